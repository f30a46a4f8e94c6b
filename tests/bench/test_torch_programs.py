"""The programs that are written for PyTorch: each is one of those that are measured."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from bench.speed import catalogue
from bench.speed.peers.table import PEERS
from hlo.program_file import read


def test_each_has_the_parameters_of_its_program() -> None:
    pytest.importorskip("torch")
    from bench.torch_programs import PROGRAMS

    found = {program.name: program for program in catalogue.found([])}
    assert set(PROGRAMS) <= set(found)
    for name, program in PROGRAMS.items():
        parameters = read(Path(found[name].path)).entry.parameters
        if not inspect.isbuiltin(program.function) and program.prepared.__name__ == "_as_given":
            inspect.signature(program.function).bind(*parameters)


def test_what_torch_compiles_is_written_for_it() -> None:
    pytest.importorskip("torch")
    eager, compiled = PEERS["torch"].programs, PEERS["compile"].programs
    assert eager is not None and compiled is not None
    assert compiled() < eager()

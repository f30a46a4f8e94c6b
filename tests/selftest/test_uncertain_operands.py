"""Enclosures of one instruction, of each opcode, hold what is inside of its operands."""

from __future__ import annotations

from typing import Any

import pytest

import hlo
from interp.envelope.budget import EXACT, Budget
from interp.envelope.enclosed_values import lows
from interp.envelope.evaluation import Enclosed, enclose
from selftest.uncertain_operands import OPCODES, escapes, main


@pytest.mark.sampled(40)
@pytest.mark.parametrize("opcode", OPCODES)
def test_legal_results_are_enclosed(opcode: str) -> None:
    for seed in range(2):
        assert not [*map(str, escapes(opcode, seed, compilers=2))]


def test_a_system_of_large_numbers_is_enclosed() -> None:
    assert not [*map(str, escapes("triangular-solve", 1027, compilers=2))]


def test_what_is_not_enclosed_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def of_low_ends(module: hlo.Module, *given: Any, peer: Budget) -> Enclosed:
        return enclose(module, *map(lows, given), peer=peer)

    monkeypatch.setattr("selftest.uncertain_operands.enclose", of_low_ends)
    assert main(["multiply", "--programs", "6"]) == 1
    told = capsys.readouterr().out
    assert "multiply(" in told and "seed 'multiply" in told and "in all)" in told


def test_what_a_legal_compiler_gives_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def as_if_exact(module: hlo.Module, *given: Any, peer: Budget) -> Enclosed:
        del peer
        return enclose(module, *given, peer=EXACT)

    monkeypatch.setattr("selftest.uncertain_operands.enclose", as_if_exact)
    assert main(["tanh", "--programs", "6"]) == 0
    assert main(["tanh", "--programs", "6", "--compilers", "2"]) == 1
    assert "compiler 0, " in capsys.readouterr().out

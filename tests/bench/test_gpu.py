"""Programs are measured on a GPU as on the emulated driver, and tell what cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import has_c_compiler

import hlo
from bench.gpu import clock, programs
from bench.gpu.__main__ import main
from hlo.types import ArrayShape


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_rows_of_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """The benchmark prints a row for each program, also after one that does not exist."""
    assert main(["--emulated", "--json", "copy", "nothing", "gelu_1k"]) == 0
    rows: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == ["copy", "nothing", "gelu_1k"]
    copy, nothing, gelu = rows
    assert copy["ms"] > 0 and copy["% of copy"] > 0 and copy["kernels"] == []
    assert "nothing" in nothing["error"]
    (kernel,) = gelu["kernels"]
    assert kernel[2] == 1 and kernel[3] > 0 and gelu["TFLOP/s"] is None


def test_units_end() -> None:
    every = programs.names(emulated=False)
    units = [programs.unit(number, emulated=False) for number in range(20)]
    assert [name for unit in units for name in unit] == every and units[-1] == []
    assert main(["--unit", "1", "--emulated"]) == 3


def test_large_programs_are_drawn_in_no_time() -> None:
    """Arguments of large programs are drawn by repeating numbers: none is of zeros alone."""
    for name in ("add_bf16_64m", "dot_s8_8192"):
        module = programs.module(name, emulated=False)
        hlo.verify(module)
        given = programs.arguments(name, module)
        for parameter, array in zip(module.entry.parameters, given, strict=True):
            assert isinstance(parameter.shape, ArrayShape)
            assert array.shape == parameter.shape.dims  # type: ignore[union-attr]
            assert array[0].astype(float).any()  # type: ignore[index, union-attr]


def test_the_clock_waits_for_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are queued, and waited for together; one that takes long is measured twice."""
    now, queued = [0.0], [0]
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])

    def wait_for(seconds: float) -> None:
        now[0] += seconds * queued[0]
        queued[0] = 0

    def enqueue() -> None:
        queued[0] += 1

    for seconds in (1e-5, 0.5):
        found = clock.milliseconds(enqueue, lambda seconds=seconds: wait_for(seconds))
        assert found == pytest.approx(1e3 * seconds)

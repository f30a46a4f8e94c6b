"""Enclosures of one instruction, of each opcode, hold what is inside of its operands."""

from __future__ import annotations

from typing import Any

import pytest

import hlo
from interp.envelope.budget import Budget
from interp.envelope.enclosed_values import lows
from interp.envelope.evaluation import Enclosed, enclose
from selftest.uncertain_operands import OPCODES, escapes, main


@pytest.mark.parametrize("opcode", OPCODES)
def test_exact_results_are_enclosed(opcode: str) -> None:
    for seed in range(2):
        assert not [*map(str, escapes(opcode, seed))]


def test_what_is_not_enclosed_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def of_low_ends(module: hlo.Module, *given: Any, peer: Budget) -> Enclosed:
        return enclose(module, *map(lows, given), peer=peer)

    monkeypatch.setattr("selftest.uncertain_operands.enclose", of_low_ends)
    assert main(["multiply", "--programs", "6"]) == 1
    told = capsys.readouterr().out
    assert "multiply(" in told and "seed 'multiply" in told and "in all)" in told

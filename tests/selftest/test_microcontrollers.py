"""Emitted C99 on emulated microcontrollers: the interpreter's bits, and one that is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import backend_c
import hlo
import interp
from selftest.microcontrollers.__main__ import main
from selftest.microcontrollers.boards import BOARDS, Board, ran

PROGRAM = """HloModule layer
ENTRY e {
  x = f32[1,5] parameter(0)
  w = f32[5,3] constant({{1, 2, 3}, {4, 5, 6}, {7, 8, 9.1}, {0.3, 1, 2}, {3, 4, 5}})
  y = f32[1,3] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[1,3] tanh(y)
}
"""


def _required(board: Board) -> None:
    if board.missing:
        pytest.skip(f"not installed: {', '.join(board.missing)}")


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_bits_of_the_interpreter(board: Board, tmp_path: Path) -> None:
    _required(board)
    module = hlo.parse(PROGRAM)
    x = np.array([[0.1, -0.02, 0.003, 1e-30, -0.05]], np.float32)
    expected = interp.evaluate(module, x)
    files = backend_c.emit(module, "embedded", "exact", ((x,), expected), name="layer")
    found = ran(board, files, "layer", tmp_path)
    assert found.status == 0 and found.text > 0 and 0 < found.stack <= 512
    assert found.instructions is not None and found.instructions > 100
    wrong = np.nextafter(expected, np.float32(9))
    files = backend_c.emit(module, "embedded", "exact", ((x,), wrong), name="layer")
    assert ran(board, files, "layer", tmp_path).status == 1


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row for each board, exact and fast."""
    for board in BOARDS:
        _required(board)
    (tmp_path / "layer.hlo").write_text(PROGRAM)
    monkeypatch.setattr("sys.argv", ["microcontrollers", str(tmp_path / "layer.hlo")])
    assert main() == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == 2 * len(BOARDS) and all("| equal |" in row for row in rows)


def test_fast_c_takes_no_more_instructions_than_one_writes_by_hand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half as many again are allowed; QEMU counts the same number each time."""
    (board,) = (board for board in BOARDS if board.name == "Cortex-M4F")
    _required(board)
    program = ROOT / "tests/corpus/jax/small_mlp_infer.before_optimizations.txt"
    by_hand = str(ROOT / "selftest/microcontrollers/by_hand")
    words = ["--instead", by_hand, "--numerics", "fast", "--board", board.name, str(program)]
    monkeypatch.setattr("sys.argv", ["microcontrollers", *words])
    assert main() == 0
    fast, other = (row.split("|") for row in capsys.readouterr().out.splitlines()[2:])
    assert (fast[2].strip(), other[2].strip()) == ("fast", "by_hand")
    instructions = [int(row[-3].replace(",", "")) for row in (fast, other)]
    assert instructions[0] <= 1.5 * instructions[1]

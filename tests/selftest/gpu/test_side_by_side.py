"""Units of a piece run side by side, each once, until there is none or the time is up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from selftest.gpu.records import Records
from selftest.gpu.side_by_side import run_units


def _unit(count: int) -> Any:
    """Return a piece of so many units."""

    def unit(number: int) -> Iterator[dict[str, Any]]:
        yield {"piece": "p", "done": True} if number >= count else {"piece": "p", "unit": number}

    return unit


@pytest.mark.parametrize("workers", [1, 3, 20])
def test_all_units_are_run_once(tmp_path: Path, workers: int) -> None:
    records = Records(tmp_path)
    records.add({"piece": "p", "unit": 2})
    assert run_units("p", _unit(7), records, workers, lambda: False)
    assert sorted(row["unit"] for row in records.rows()) == list(range(7))
    assert records.is_done("p") and run_units("p", _unit(9), records, workers, lambda: True)
    assert len(Records(tmp_path).rows()) == 7


def test_they_run_at_the_same_time(tmp_path: Path) -> None:
    together = threading.Barrier(3, timeout=20)

    def unit(number: int) -> Iterator[dict[str, Any]]:
        together.wait()
        yield {"piece": "p", "unit": number} if number < 2 else {"piece": "p", "done": True}

    assert run_units("p", unit, Records(tmp_path), 3, lambda: False)


def test_none_begins_when_the_time_is_up(tmp_path: Path) -> None:
    records, left = Records(tmp_path), [2]

    def is_over() -> bool:
        left[0] -= 1
        return left[0] < 0

    assert not run_units("p", _unit(7), records, 1, is_over)
    assert [row["unit"] for row in records.rows()] == [0, 1] and not records.is_done("p")


def test_what_a_unit_raises_is_raised(tmp_path: Path) -> None:
    def unit(number: int) -> Iterator[dict[str, Any]]:
        raise ValueError(number)

    with pytest.raises(ValueError, match="0"):
        run_units("p", unit, Records(tmp_path), 2, lambda: False)

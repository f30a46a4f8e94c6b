"""Check what the benchmark prints, writes and keeps of given rows."""

from __future__ import annotations

import io
import re
import xml.dom.minidom
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bench.speed import document, history
from bench.speed.kinds import KINDS
from bench.speed.result_judge import distance
from bench.speed.rows import Measured, Row
from bench.speed.statistics import Timing
from bench.speed.table import milliseconds, table
from bench.speed.verdicts import Memory, Verdict, of_counts, of_distance

PEERS = ("fast", "exact", "xla", "torch")


def measured(seconds: float, **more: object) -> Measured:
    each = Timing(seconds, seconds, 3)
    return replace(Measured(each, each, 0.1, 0.01, "one 1.0", 1 << 26), **more)  # type: ignore[arg-type]


def rows(fast: float = 0.5) -> list[Row]:
    seconds = {"fast": fast, "exact": 2 * fast, "xla": 1.0, "torch": 0.8}
    peers = {peer: measured(s, verdict="equal") for peer, s in seconds.items()}
    return [Row(f"program_{kind}", kind, None, 0.1, 0.2, peers) for kind in KINDS]


def printed(given: list[Row]) -> str:
    console = Console(width=240, highlight=False, file=io.StringIO(), record=True)
    console.print(table(given, PEERS))
    return console.export_text()


def test_table_has_every_program_and_its_ratios() -> None:
    text = printed(rows())
    for row in rows():
        line = next(line for line in text.splitlines() if line.startswith(row.name))
        assert line.split()[1:9] == [
            "500",
            "1.00e+03",
            "1.00e+03",
            "800",
            *["0.50", "0.50", "1.00", "0.62"],
        ]
    assert [line for line in text.splitlines() if line.startswith("all 4 ")]


def test_table_says_why_there_is_no_figure() -> None:
    row = rows()[0]
    failed = replace(row, peers={**row.peers, "xla": Measured(error="it [bold]refuses")})
    text = printed([failed, Row("bad\x1b[31m", "small", error="line 1: no module")])
    assert "xla: it [bold]refuses" in text
    assert "bad\\x1b" in text and "line 1: no module" in text


@given(st.floats(1e-8, 1e3))
def test_milliseconds_keep_three_digits(seconds: float) -> None:
    assert float(milliseconds(seconds)) == pytest.approx(1000 * seconds, rel=6e-3)


def test_page_has_a_table_for_each_class(tmp_path: Path) -> None:
    path = tmp_path / "performance.md"
    document.write(path, rows(), PEERS)
    text = path.read_text()
    for kind, title in KINDS.items():
        assert f"## {title[0].upper()}{title[1:]}\n" in text
        assert f"| `program_{kind}` |" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    for before, after in zip(lines, lines[1:]):
        if after.startswith("|---"):
            assert before.count("|") == after.count("|")
    assert not re.search(r"[{}]", text)


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="the plot needs matplotlib")
def test_plot_is_the_same_each_time(tmp_path: Path) -> None:
    texts = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.md"
        document.write(path, rows(), PEERS)
        texts.append(path.with_suffix(".svg").read_text())
        assert f"]({name}.svg)" in path.read_text()
    assert texts[0] == texts[1]
    xml.dom.minidom.parseString(texts[0])


def test_history_grows_and_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history.jsonl"
    assert history.last(path, history.record(rows())) is None
    for fast in (0.5, 0.25):
        history.append(path, history.record(rows(fast)))
    assert len(path.read_text().splitlines()) == 2
    assert history.last(path, history.record(rows())) == history.record(rows(0.25))
    other = {**history.record(rows()), "processor": "another"}
    assert history.last(path, other) is None


def test_history_has_no_path_of_this_machine() -> None:
    assert str(Path(__file__).parents[2]) not in str(history.record(rows()))


@given(st.floats(0.01, 10), st.floats(0.01, 10))
def test_regressions_are_what_is_slower_by_a_tenth(before: float, now: float) -> None:
    then, here = history.record(rows(before)), history.record(rows(now))
    lines = [*history.regressions(then, here)]
    kept = (
        here["programs"]["program_small"]["fast"]["cpu"]
        / (then["programs"]["program_small"]["fast"]["cpu"])
    )
    assert (len(lines) > 0) == (kept > history.SLOWER)
    assert len(lines) in (0, 2 * len(KINDS))  # fast and exact of each


def test_a_new_program_is_no_regression() -> None:
    now = history.record(rows())
    assert not [*history.regressions({**now, "programs": {}}, now)]
    assert [*history.regressions(None, now)] == ["no earlier run on this processor"]


def test_verdicts_are_remembered(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    memory = Memory(path)
    memory.add("one", Verdict("within"))
    memory.add("late", Verdict("off by 1e-07", seconds=10.0))
    for known in (memory, Memory(path)):
        assert known.get("one", 1.0) == Verdict("within")
        assert known.get("late", 10.0) == Verdict("off by 1e-07", seconds=10.0)
        assert known.get("late", 11.0) is None  # more time may tell more
        assert known.get("other", 1.0) is None


def test_verdict_of_counts() -> None:
    assert of_counts({"equal": 3, "within": 0}) == Verdict("equal")
    assert of_counts({"equal": 3, "within": 1}) == Verdict("within")
    undetermined = of_counts({"equal": 3, "undetermined": 1}, 1e-7)
    assert undetermined == Verdict("1 of 4 undetermined, off by 1e-07")
    assert of_counts({"outside": 2, "undetermined": 1, "equal": 1}).is_wrong


def test_verdict_of_a_distance() -> None:
    assert of_distance(0.0, is_exact=True) == Verdict("equal")
    assert of_distance(1e-7, is_exact=True).is_wrong
    assert not of_distance(1e-7, is_exact=False, seconds=1.0).is_wrong
    assert of_distance(float("inf"), is_exact=False, seconds=1.0).is_wrong


def test_distance() -> None:
    one = np.array([1.0, -4.0, np.nan, np.inf], np.float32)
    assert distance(one, one) == 0.0
    assert distance(one, np.array([1.0, -5.0, np.nan, np.inf], np.float32)) == 0.25
    assert distance(one, np.array([1.0, -4.0, np.nan, 7.0], np.float32)) == float("inf")
    assert distance(one, one.astype(np.float64)) == float("inf")
    assert distance(np.array([np.nan]), np.array([np.nan])) == 0.0
    assert distance(np.array([1.0, 2.0]), np.array([1.0, np.nan])) == float("inf")

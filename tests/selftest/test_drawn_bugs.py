"""Check how often drawn programs have what known bugs need."""

from __future__ import annotations

from pathlib import Path

import pytest

from selftest.bug_signatures import read
from selftest.drawn_bugs import lines, main, rates, told_by_programs

_SIGNATURES = """
first = ["sums"]
[[sums]]
kind = "wrong result: .*"
blamed = '(?:add|subtract)\\(.*\\) -> .*'
[[constant_sums]]
kind = "wrong result: .*"
blamed = '(?:add|subtract)\\(.*constant .*\\) -> .*'
[[arguments_of_nothing]]
kind = "wrong result: .*"
program = 'add\\(nothing'
opcodes = ["add"]
[[crash]]
kind = "crash: a.cc:1\\\\]"
"""


def test_what_is_drawn_is_counted(tmp_path: Path) -> None:
    """Drawn programs that could show a bug are counted, but for a crash whose signature is its
    place."""
    file = tmp_path / "signatures.toml"
    file.write_text(_SIGNATURES)
    signatures = read(file)
    assert "crash" not in {one.bug for one in told_by_programs(signatures)}
    found = rates(signatures, 60, 0)
    assert found.keys() == {"sums", "constant_sums", "arguments_of_nothing"}
    assert found["sums"] >= found["constant_sums"] > found["arguments_of_nothing"] == 0
    said = [*lines(found, signatures.first)]
    assert said[0].split() == ["0.0", "arguments_of_nothing"]
    assert said[-1].endswith("  sums (found first)")


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--programs", "3"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len({one.bug for one in told_by_programs(read())}) > 100

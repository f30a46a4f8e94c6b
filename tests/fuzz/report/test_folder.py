"""Check the files of a report, and that its archive has these and no others."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import hlo
from fuzz.judge.failure import Against, Judged
from fuzz.peers.xla import Answer
from fuzz.report import Report, write
from hlo.values import Array
from interp.envelope.budget import UNKNOWN, XLA_CPU, Budget

_MODULE = hlo.parse("HloModule m\nENTRY e { x = s32[2] parameter(0)  ROOT r = s32[2] abs(x) }")
_X = np.array([1, 2], np.int32)


def _report(command: str | None, budget: Budget) -> Report:
    failure = Against(lambda text, arrays: Answer((_X + 1,)), budget).failure(_MODULE, (_X,))
    assert failure is not None
    return Report(_MODULE, (_X,), Judged(failure, budget, command), b"", (_X,))


def test_other_files_of_the_folder_stay_out_of_the_archive(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "private.key").write_text("secret")
    packed = write(_report(None, XLA_CPU), folder)
    assert packed == tmp_path / "here.zip"
    with zipfile.ZipFile(packed) as file:
        names = {name.removeprefix("here/") for name in file.namelist()}
    assert names == {path.name for path in folder.iterdir()} - {"private.key"}
    assert {"reduced.hlo", "reproduce.py", "expected.npz"} < names


def test_the_script_of_an_earlier_report_goes(tmp_path: Path) -> None:
    """A compiler that is not XLA has no script, but one of the user's own stays."""
    write(_report(None, XLA_CPU), tmp_path)
    assert (tmp_path / "reproduce.py").exists()
    write(_report("./compiler", UNKNOWN), tmp_path)
    assert not (tmp_path / "reproduce.py").exists()
    (tmp_path / "reproduce.py").write_text("print(1)\n")
    write(_report("./compiler", UNKNOWN), tmp_path)
    assert (tmp_path / "reproduce.py").read_text() == "print(1)\n"


_CALL = """HloModule m
inner { p = s32[2] parameter(0)  ROOT a = s32[2] abs(p) }
ENTRY e { x = s32[2] parameter(0)  ROOT r = s32[2] call(x), to_apply=inner }
"""


def test_the_form_that_a_compiler_takes_is_in_the_report(tmp_path: Path) -> None:
    """It refuses the program itself, of which nothing could be reproduced."""

    def run(text: str, arrays: Sequence[Array]) -> Answer:
        return Answer(error="no calls") if "call(" in text else Answer((_X + 1,))

    module = hlo.parse(_CALL)
    failure = Against(run, XLA_CPU).failure(module, (_X,))
    assert failure is not None
    write(Report(module, (_X,), Judged(failure, XLA_CPU), b"", (_X,)), tmp_path)
    name = json.loads((tmp_path / "facts.json").read_text())["program"]
    assert "call(" in (tmp_path / "reduced.hlo").read_text()
    assert "call(" not in (tmp_path / name).read_text()
    assert name in (tmp_path / "issue.md").read_text()

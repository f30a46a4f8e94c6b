"""docs/found: every folder has a row of the table, every row a folder, and all files are there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import ROOT

import hlo
from hlo.errors import VerifyError

_FOUND = ROOT / "docs" / "found"
_README = (_FOUND / "README.md").read_text()
_INVALID = _FOUND / "invalid_programs_that_end_xla"
_FOLDERS = sorted(path for path in _FOUND.iterdir() if path.is_dir())


def test_folders_and_rows_are_the_same() -> None:
    rows = re.findall(r"^\| \[(\w+)\]\(\1/issue\.md\) \| ", _README, re.MULTILINE)
    assert sorted(rows) == [folder.name for folder in _FOLDERS]


def test_what_the_text_names_is_there() -> None:
    links = {link for link in re.findall(r"\]\(([^)#]+)\)", _README) if "://" not in link}
    assert [link for link in sorted(links) if not (_FOUND / link).exists()] == []


def test_as_many_were_found_as_rows_say() -> None:
    rows = re.findall(r"^\| \[\w+\]\(.*$", _README, re.MULTILINE)
    times = [[cell.strip() for cell in row.split("|")[4:-1]] for row in rows]
    counts = re.findall(r"^\| [A-Z]: .* \| (\d+) \|$", _README, re.MULTILINE)
    assert [int(n) for n in counts] == [sum(t != "—" for t in column) for column in zip(*times)]
    found = sum(any(t != "—" for t in row) for row in times)
    assert f"found {found} of these {len(rows)} bugs" in _README
    assert f"{len(rows)} so far" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("folder", _FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_is_a_report_of_a_valid_program(folder: Path) -> None:
    if folder == _INVALID:
        return
    text = (folder / "reduced.hlo").read_text()
    hlo.verify(hlo.parse(text))
    assert f"```\n{text.strip()}\n```" in (folder / "issue.md").read_text()
    facts = json.loads((folder / "facts.json").read_text())
    assert facts["kind"] in ("crash", "hang", "wrong result")
    for name in ("arguments", "expected", "original_arguments"):
        assert (folder / f"{name}.npz").exists()


@pytest.mark.parametrize("path", sorted(_INVALID.glob("*.hlo")), ids=lambda path: path.stem)
def test_an_invalid_program_is_refused(path: Path) -> None:
    with pytest.raises(VerifyError):
        hlo.verify(hlo.parse(path.read_text()))
    assert path.name in json.loads((_INVALID / "facts.json").read_text())["invalid"]
    assert f"[{path.stem}]({path.name})" in (_INVALID / "issue.md").read_text()

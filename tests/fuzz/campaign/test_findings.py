"""Check that processes which keep findings at the same time lose and mix nothing."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

from fuzz.campaign import findings
from fuzz.campaign.findings import Origin
from fuzz.campaign.subject import Finding, Suspect, Told

_SUSPECT = Suspect("planted", "crash: place.cc:12]", "", 0)


def _write(text: str, folder: Path) -> None:
    for name in ("reduced.hlo", "original.hlo"):
        (folder / name).write_text(text)


def _finding(text: str) -> Finding:
    return Finding(_SUSPECT.kind, text, frozenset(), partial(_write, text))


def test_counts_of_several_at_once_add_up(tmp_path: Path) -> None:
    findings.keep(tmp_path, "planted", _finding("a"), Origin(0, 0, 0))

    def count() -> None:
        for _ in range(100):
            assert findings.is_known(tmp_path, _SUSPECT)

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert findings.all_kept(tmp_path)[0]["times"] == 301


def test_a_finding_of_two_has_the_files_of_one(tmp_path: Path) -> None:
    """The second keeps its finding while the first writes its own."""
    second = Told("add", frozenset(["add"]))

    def write(folder: Path) -> None:
        _write("first", folder)
        findings.keep(tmp_path, "planted", _finding("second"), Origin(0, 1, 0), second)

    first = Finding(_SUSPECT.kind, "first", frozenset(), write)
    folder = findings.keep(tmp_path, "planted", first, Origin(0, 0, 0))
    assert {path.read_text() for path in folder.glob("*.hlo")} == {"second"}
    (kept,) = findings.all_kept(tmp_path)
    assert (kept["detail"], kept["times"], kept["isolated"]) == ("second", 2, [["add", ["add"]]])
    assert [*tmp_path.iterdir()] == [folder]


def test_the_folder_of_a_killed_process_is_filled_again(tmp_path: Path) -> None:
    folder = tmp_path / findings.key("planted", _finding("b"))
    folder.mkdir()
    _write("a", folder)
    assert not findings.is_known(tmp_path, _SUSPECT) and not findings.all_kept(tmp_path)
    assert findings.keep(tmp_path, "planted", _finding("b"), Origin(0, 0, 0)) == folder
    assert {path.read_text() for path in folder.glob("*.hlo")} == {"b"}

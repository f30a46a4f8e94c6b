"""Whether a file can be written is known before the work that will write it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hlo.io_errors import require_writable_directory, require_writable_file, told


def test_what_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "new", tmp_path / "file"):
        require_writable_file(path)
    for path in (tmp_path, tmp_path / "new", tmp_path / "new" / "below"):
        require_writable_directory(path)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "file"]  # nothing is made


def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "x"
    for require, path, said in (
        (require_writable_file, tmp_path, "is a directory, and a file is needed"),
        (require_writable_file, tmp_path / "no" / "x", "there is no directory"),
        (require_writable_file, below, "is below a file"),
        (require_writable_directory, below, "is below a file"),
        (require_writable_directory, tmp_path / "file", "is there already, and is no directory"),
    ):
        with pytest.raises(OSError) as raised:
            require(path)
        assert said in told(raised.value) and str(path) in told(raised.value)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    for require in (require_writable_file, require_writable_directory):
        with pytest.raises(PermissionError, match="new"):
            require(tmp_path / "new")

"""The check of a GPU goes on where it was, tells what is wrong, and packs what it needs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, has_c_compiler

import hlo
from backend_c.native.cache import open_cache
from fuzz.compilers.packed_cubins import VERSION, Packed, compiler_of
from selftest.gpu import bundle, check
from selftest.gpu.programs import PIECES, unit
from selftest.gpu.records import Records
from selftest.gpu.report import text

ROW = {"piece": "ops", "unit": 0, "programs": 60, "left out": 1, "other bits": 0, "errors": 0,
       "wrong": [], "lost": -1, "seconds": 2.0, "where": "a GPU"}  # fmt: skip


def test_the_page_says_that_nothing_was_measured() -> None:
    """docs/gpu.md until a GPU has run it: then the row of a GPU takes the place of the line."""
    page = (ROOT / "docs" / "gpu.md").read_text("utf-8")
    assert page == text([]) or "**Not measured.**" not in page
    assert "**Not measured.**" in text([])
    timed = {"piece": "bench", "unit": 0, "name": "copy", "ms": 1.0, "% of copy": 100.0}
    by_xla = {"piece": "bench by xla", "unit": 0, "name": "copy", "xla": 2.0}
    told = text([ROW, timed, by_xla], "2026-01-01, commit abc")
    assert "a GPU, 2026-01-01, commit abc." in told and "Not measured" not in told
    assert "| 60 | 1 | 0 | 0 | 2 |" in told
    assert "| `copy` | 1 | 100 |  |  | 2 |  |  | 0.5 |" in told
    assert "Geometric mean of ours / XLA: 0.50, of 1 programs." in told


def test_what_is_wrong_is_told_in_lines_of_code() -> None:
    told = text([ROW | {"wrong": ["add: other bits: # 1\n**x**"], "other bits": 1}])
    assert "    add: other bits: # 1 **x**\n" in f"{told}\n"


def test_units_have_all_programs_once() -> None:
    for piece in ("large ops", "drawn"):
        first, second = unit(piece, 0), unit(piece, 1)
        assert first and second and len(first) == len(second)
        assert not {name for name, _ in first} & {name for name, _ in second}
        again = unit(piece, 0) or []
        assert [hlo.format(c.module) for _, c in again] == [hlo.format(c.module) for _, c in first]
    assert [unit(piece, 1000) for piece in PIECES if piece != "files"] == [None] * 3


def test_rows_are_kept_and_a_line_that_is_cut_off_is_not(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.add(ROW)
    records.add({"piece": "large ops", "done": True})
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write(json.dumps(ROW | {"unit": 1})[:-20])
    again = Records(tmp_path)
    assert again.rows() == [ROW] and again.has("ops", 0) and not again.has("ops", 1)
    assert again.is_done("large ops") and not again.is_done("ops")


def test_a_check_is_over_when_its_time_is_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--minutes", "0", "--state", str(tmp_path), "--emulated"]
    assert check.main(words) == check.UNFINISHED
    assert "not finished: run the same command again" in capsys.readouterr().out


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_without_a_gpu_nothing_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert check.main(["--state", str(tmp_path)]) == 1
    assert "gpu-check: there is no driver of an NVIDIA GPU" in capsys.readouterr().err
    assert Records(tmp_path).rows() == []


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_a_unit_on_emulated_threads() -> None:
    words = [sys.executable, "-m", "selftest.gpu.unit", "large ops", "3", "--emulated"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environ)
    row: dict[str, Any] = json.loads(done.stdout)
    assert row["programs"] == len(unit("large ops", 3) or [])
    assert (row["other bits"], row["errors"], row["wrong"]) == (0, 0, [])
    assert row["where"] == "emulated threads (sm_90), driver of CUDA 13.0"


def test_packed_cubins_need_no_compiler(tmp_path: Path) -> None:
    with pytest.raises(hlo.ToolchainError, match="cannot load none"):
        compiler_of(tmp_path, {"PATH": "", "HLO_NVRTC": "none"})
    open_cache(tmp_path / "cubins")
    (tmp_path / "cubins" / VERSION).write_text("nvcc 13")
    found = compiler_of(tmp_path / "cubins", {"PATH": "", "HLO_NVRTC": "none"})
    assert isinstance(found, Packed) and found.version == "nvcc 13"
    with pytest.raises(hlo.ToolchainError, match="no cubin for sm_100 is in the bundle; cannot"):
        found.compiled("", "sm_100", tmp_path)


def test_a_bundle_is_a_folder_of_files() -> None:
    files = {"site/3.11/a/b.so": b"same" * 1000, "site/3.12/a/b.so": b"same" * 1000, "x": b""}
    with tarfile.open(fileobj=io.BytesIO(bundle.packed(files)), mode="r:xz") as tar:
        names = [member.name for member in tar.getmembers()]
        content = tar.extractfile("gpu-bundle/site/3.12/a/b.so")
        assert content is not None and content.read() == b"same" * 1000
    assert names == [f"gpu-bundle/{name}" for name in
                     ("site/3.11/a/b.so", "site/3.12/a/b.so", "x")]  # fmt: skip


def test_the_start_needs_nothing_but_python(tmp_path: Path) -> None:
    folder = tmp_path / "selftest" / "gpu"
    folder.mkdir(parents=True)
    for name in ("selftest/__init__.py", "selftest/gpu/__init__.py", "selftest/gpu/start.py"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    words = [sys.executable, "-I", "-c", "import sys; sys.path.insert(0, '.');"
             "import selftest.gpu.start as start; sys.exit(start.main())"]  # fmt: skip
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "the bundle is for none" in done.stderr

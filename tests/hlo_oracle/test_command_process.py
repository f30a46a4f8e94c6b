"""The process of a command: full disks, names like options, and Ctrl-C while it begins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from hlo.errors import Error
from hlo.io_errors import of_file, told, why
from hlo_oracle.command.main import main

ADD = """HloModule add
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT sum = f32[3] add(x, y)
}
"""
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("add.hlo", "-x.hlo"):
        (tmp_path / name).write_text(ADD)
    return tmp_path


def _environment(unbuffered: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}


@pytest.mark.sampled(3)
@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--version", "run --help", "run add.hlo"])
def test_a_full_disk_is_named(words: str, unbuffered: str, place: Path) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hlo_oracle.command.main", *words.split()],
            cwd=place,
            env=_environment(unbuffered),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    said = "hlo: standard output: cannot be written: the disk is full\n"
    assert (done.returncode, done.stderr) == (2, said)


@needs_full
@pytest.mark.parametrize(
    "words",
    [
        ["run", "add.hlo", "--save"],
        ["opt", "add.hlo", "--html"],
        ["reduce", "add.hlo", "--while", "true", "-o"],
    ],
    ids=lambda words: words[0],
)
def test_a_file_on_a_full_disk_is_named(
    words: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "out").symlink_to(FULL)
    assert main([*words, "out"]) == 2
    assert capsys.readouterr().err == "hlo: out: cannot be written: the disk is full\n"


def test_standard_input_that_is_a_directory_is_named(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Directory:
        def read(self, size: int) -> bytes:
            raise IsADirectoryError(21, "Is a directory")

    monkeypatch.setattr("sys.stdin", type("Input", (), {"buffer": Directory()}))
    assert main(["run", "-"]) == 2
    said = "hlo: standard input: is a directory, and a file is needed\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    "words", ["run -- -x.hlo", "run --values sum -- -x.hlo", "run -q -- -x.hlo"]
)
def test_a_name_that_looks_like_an_option(
    words: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 0
    assert "float32[3]" in capsys.readouterr().out


def test_files_around_the_end_of_options_keep_their_order(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "add.hlo", "--no-c", "--", "-x.hlo"]) == 0
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("add.hlo ") and second.startswith("-x.hlo ")


_INTERRUPTED = """
import os, signal, sys
from hlo_oracle.command import main

# As in the foreground of a shell: in its background Ctrl-C is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def subcommand(name):
    os.kill(os.getpid(), signal.SIGINT)
    raise ImportError("a module in C makes this of an interruption")

main.subcommand = subcommand
sys.exit(main.main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs the signals of Unix")
def test_an_interruption_while_it_begins_is_one_line(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, "run", "add.hlo"],
        cwd=place,
        env=_environment(""),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (130, "hlo: interrupted\n")


def test_an_error_of_a_file_has_its_name(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught, of_file(tmp_path / "a"):
        raise OSError(28, "No space left on device")
    assert (
        told(caught.value)
        == why(caught.value)
        == f"{tmp_path / 'a'}: cannot be written: the disk is full"
    )
    with pytest.raises(OSError) as caught, of_file(tmp_path / "a"):
        (tmp_path / "b").open()
    assert told(caught.value) == f"{tmp_path / 'b'}: there is no such file"
    assert why(Error("reason")) == "reason"

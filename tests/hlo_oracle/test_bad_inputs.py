"""Bad input from the command line: the exact line that each gets, and exit status 2."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import ROOT, has_c_compiler

import hlo_oracle
from hlo_oracle.command.main import main, parser
from hlo_oracle.program_paths import KNOWN

ADD = """HloModule add
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT sum = f32[3] add(x, y)
}
"""
LOOP = """HloModule forever
c { ROOT p = pred[] parameter(0) }
b { ROOT p = pred[] parameter(0) }
ENTRY main { x = pred[] constant(true)
  ROOT w = pred[] while(x), condition=c, body=b }
"""


def _files(place: Path) -> None:
    """Write what the rows below name."""
    three, wide = np.zeros(3, np.float32), np.zeros(3, np.float64)
    texts = {
        "add.hlo": ADD,
        "forever.hlo": LOOP,
        "empty.hlo": "",
        "opcode.hlo": ADD.replace("add(", "ad("),
        "many.hlo": ADD.replace("x, y)", "x)"),
        "operand.hlo": ADD.replace("x, y)", "x, z)"),
        "shapes.hlo": ADD.replace("y = f32[3]", "y = f32[4]"),
        "elided.hlo": ADD.replace("parameter(1)", "constant({...})"),
        "recipe.json": "{",
        "other.json": '{"other": {}}',
    }
    for name, text in texts.items():
        (place / name).write_text(text)
    (place / "folder").mkdir()
    (place / "pickle.npz").write_bytes(pickle.dumps([1]))
    np.savez(place / "good.npz", x=three, y=three)
    np.savez(place / "one.npz", x=three)
    np.savez(place / "wide.npz", x=wide, y=three)
    np.savez(place / "long.npz", x=np.zeros(4, np.float32), y=three)
    np.savez(place / "whole.npz", x=np.zeros(3, np.int32), y=three)
    np.savez(place / "records.npz", x=np.zeros(3, [("a", "f4")]), y=three)
    np.savez(place / "objects.npz", x=np.array([{1}, 2, 3], object), y=three)
    (place / "cut.npz").write_bytes((place / "good.npz").read_bytes()[:99])


class Row(NamedTuple):
    """The words of a command, and what it says, after the usage if that is shown."""

    words: str
    said: str


SEED = "is not a number from 0 to 2**64 - 1"
TIME = "is not a length of time: a number above 0"
MINUTES = "is not a number of minutes"
NPZ = "not a file of arrays (.npz or .npy)"
ROWS = [
    # files
    Row("run nowhere.hlo", "hlo: nowhere.hlo: there is no such file"),
    Row("bisect add.hlo nowhere.hlo", "hlo: nowhere.hlo: there is no such file"),
    Row("run ad.hlo", "hlo: ad.hlo: there is no such file; did you mean add.hlo?"),
    Row("run no/add.hlo", "hlo: no/add.hlo: there is no directory no"),
    Row("run add.hlo/x", "hlo: add.hlo/x: is below a file, not below a directory"),
    Row("run add.hlo --args folder", "hlo: folder: is a directory, and a file is needed"),
    Row("emit add.hlo -o add.hlo", "hlo: add.hlo: is there already, and is no directory"),
    Row("check folder", f"hlo: folder: no {KNOWN} in this directory"),
    # arrays
    Row("run add.hlo --args add.hlo", f"hlo: add.hlo: {NPZ}"),
    Row(
        "run add.hlo --args pickle.npz",
        f"hlo: pickle.npz: {NPZ}: it is a pickle, which may run code",
    ),
    Row(
        "run add.hlo --args objects.npz",
        "hlo: objects.npz: not a file of arrays: it holds Python objects, not numbers",
    ),
    Row(
        "run add.hlo --args cut.npz", "hlo: cut.npz: not a file of arrays: it is damaged or cut off"
    ),
    Row(
        "run add.hlo --args one.npz",
        "hlo: one.npz: y is missing; there are x, where x, y are expected, or arr_0, arr_1, …"
        " in this order",
    ),
    Row(
        "run add.hlo --args long.npz",
        "hlo: add.hlo: parameter 0 (x): expected f32[3], got float32[4]",
    ),
    Row(
        "run add.hlo --args whole.npz --cast",
        "hlo: add.hlo: parameter 0 (x): expected f32[3], got int32[3]",
    ),
    Row(
        "run add.hlo --args wide.npz",
        "hlo: wide.npz: x is f64[3], and f32[3] is expected: --cast converts it",
    ),
    Row(
        "check add.hlo --args good.npz --results one.npz --budget tpu",
        "hlo check: argument --budget: no budget is named 'tpu'; there are exact, fast, unknown,"
        " XLA:CPU 0.10, XLA:GPU, XLA:TPU, a rewriting",
    ),
    Row(
        "run add.hlo --args records.npz",
        "hlo: records.npz: an array of records (of a), where f32[3] is expected",
    ),
    # recipes
    Row("run add.hlo --recipe other.json", "hlo: other.json: no recipe for 'add'"),
    # programs
    Row(
        "run shapes.hlo",
        """hlo: shapes.hlo:5: %sum = add, C3: f32[4] and f32[3] differ in their dimensions
    ROOT sum = f32[3] add(x, y)    where x = f32[3] parameter(0); y = f32[4] parameter(1)
    C3: a rule of add (hlo/ops/elementwise.py): of the same type and dims""",
    ),
    Row(
        "run many.hlo",
        """hlo: many.hlo:5: %sum = add, operands: 1 operand, 2 are needed
    ROOT sum = f32[3] add(x)    where x = f32[3] parameter(0)
    operands: as many operands as the opcode takes, each defined above""",
    ),
    Row(
        "run operand.hlo",
        """hlo: operand.hlo:5:28: operand 'z' is not defined above
  ROOT sum = f32[3] add(x, z)
                           ^""",
    ),
    Row(
        "run forever.hlo --fuel 99",
        "hlo: forever.hlo: the evaluation used up its fuel; does the program end?",
    ),
    Row(
        "run add.hlo --fuel 9 --on c",
        "hlo: --fuel is the interpreter's: leave out --on c, or use --timeout",
    ),
    Row("run forever.hlo --timeout 0.1", "hlo: forever.hlo: not finished after 0.1 s (--timeout)"),
    Row("run add.hlo --values sun", "hlo: add.hlo: %sun names no instruction; did you mean %sum?"),
    Row(
        "run add.hlo --values x --on c",
        "hlo: --values are the interpreter's: leave out --on c",
    ),
    Row(
        "run add.hlo --replicas 1024 --partitions 1024",
        "hlo: 1048576 ranks: at most 1024 are simulated",
    ),
    Row("run add.hlo --profile --replicas 2", "hlo: add.hlo: --profile is of one rank, not of 2"),
    # usage
    Row(
        "",
        "hlo: a command is missing: run, check, bisect, report, triage, fuzz, reduce, verify,"
        " format, opt, emit, explain, graph, index, completion",
    ),
    Row("fuz", "hlo: there is no command 'fuz'; did you mean hlo fuzz?"),
    Row("run add.hlo --sed=3", "hlo run: what is '--sed=3'? Did you mean --seed?"),
    Row("run add.hlo more.hlo", "hlo run: what is 'more.hlo'?"),
    Row("run add.hlo --seed -1", f"hlo run: argument --seed: '-1' {SEED}"),
    Row("run add.hlo --seed 1e3", f"hlo run: argument --seed: '1e3' {SEED}"),
    Row("run add.hlo --timeout 0", f"hlo run: argument --timeout: '0' {TIME}"),
    Row("fuzz --minutes -1", f"hlo fuzz: argument --minutes: '-1' {MINUTES}"),
    Row("fuzz --minutes nan", f"hlo fuzz: argument --minutes: 'nan' {MINUTES}"),
    Row("fuzz --workers -1", "hlo fuzz: argument --workers: '-1' is not a number of processes"),
    Row("fuzz --programs 0", "hlo fuzz: argument --programs: '0' is not a number of at least 1"),
    Row(
        "check add.hlo --threads 0",
        "hlo check: argument --threads: '0' is not a number from 1 to 1024",
    ),
    Row(
        "explain add.hlo --threads 1000000000",
        "hlo explain: argument --threads: '1000000000' is not a number from 1 to 1024",
    ),
    Row(
        "run add.hlo --save out.npy",
        "hlo run: argument --save: 'out.npy' holds one array: results are saved as .npz",
    ),
    Row("run add.hlo --save no/out.npz", "hlo run: argument --save: there is no directory 'no'"),
    Row(
        "reduce add.hlo --while true -o red.npz",
        "hlo reduce: argument -o/--output: 'red.npz' would be the arguments of the program",
    ),
    Row(
        "reduce add.hlo --while true -o no/red.hlo",
        "hlo reduce: argument -o/--output: there is no directory 'no'",
    ),
    Row(
        "explain add.hlo --html no/x.html",
        "hlo explain: argument --html: there is no directory 'no'",
    ),
    Row(
        "run --values sum add.hlo",
        "hlo run: the following arguments are required: FILE; --values takes all words after it:"
        " first FILE, or -- before it",
    ),
    Row(
        "run add.hlo -q -v", "hlo run: argument -v/--verbose: not allowed with argument -q/--quiet"
    ),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("bad")
    _files(found)
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.words or "nothing")
def test_the_line_that_it_gets(
    row: Row, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    assert status(main, row.words.split()) == 2
    said = capsys.readouterr()
    lines = said.err.splitlines()
    if lines[0].startswith("usage: "):
        assert lines[0].startswith(f"usage: {row.said.split(':')[0]} ")
        lines = lines[-1:]
    assert lines == row.said.splitlines()
    assert not said.out


def test_an_interruption_is_one_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        assert main(["run", "forever.hlo"]) == 130
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert capsys.readouterr().err == "hlo: interrupted\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "out of memory"),
        (MemoryError("8 TiB"), "out of memory: 8 TiB"),
        (RecursionError("too deep"), "too deep"),
    ],
)
def test_a_limit_of_python_is_no_difference(
    error: BaseException,
    said: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*of_call: object, **options: object) -> None:
        raise error

    monkeypatch.chdir(place)
    monkeypatch.setattr("interp.evaluate", fail)
    assert main(["run", "add.hlo"]) == 2
    assert capsys.readouterr().err == f"hlo: {said}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a device without an end")
def test_a_file_without_an_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hlo_oracle.loading.programs.MOST_BYTES", 1 << 20)
    assert main(["run", "/dev/zero"]) == 2
    assert capsys.readouterr().err == "hlo: /dev/zero: more than 1048576 bytes\n"


def test_a_missing_source_is_told_before_measuring(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr("backend_c.explain", lambda *of_call, **options: pytest.fail("measured"))
    assert main(["explain", "add.hlo", "--html", "x.html", "--source", "no.py"]) == 2
    assert "no.py" in capsys.readouterr().err


def test_a_dangling_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("link.hlo").symlink_to("nowhere.hlo")
    assert main(["run", "link.hlo"]) == 2
    assert capsys.readouterr().err == "hlo: link.hlo: is a link to a file that is not there\n"


def test_recorded_results_need_their_arguments(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    assert main(["check", "add.hlo", "--no-c", "--results", "one.npz", "--budget", "xla-gpu"]) == 2
    assert "one.npz: results of which arguments? --args FILE.npz" in capsys.readouterr().out


def test_files_may_stand_between_options(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    (place / "same.hlo").write_text(ADD)
    assert main(["check", "add.hlo", "--no-c", "same.hlo", "--seed", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_compiled_code_is_interrupted(place: Path) -> None:
    """Python sees no signal while its main thread is in C."""
    words = ["run", "forever.hlo", "--on", "c", "--timeout", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "hlo_oracle.command.main", *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "hlo: forever.hlo: not finished after 2 s (--timeout)\n"


@pytest.mark.parametrize(
    "words", ["run add.hlo", "check add.hlo --no-c", "triage add.hlo --workers 0"]
)
def test_a_reader_that_left_is_no_difference(words: str, place: Path) -> None:
    command = [sys.executable, "-m", "hlo_oracle.command.main", *words.split()]
    with subprocess.Popen(
        command,
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait() == 141


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_a_closed_stream_is_the_null_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, name, None)
    monkeypatch.setattr(sys, "argv", ["hlo", "--version"])
    assert status(lambda words: main(), []) == 0
    with getattr(sys, name) as stream:
        assert stream.name == os.devnull


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(main, ["--version"]) == 0
    assert capsys.readouterr().out == f"hlo {hlo_oracle.__version__}\n"


def test_help_says_what_everything_is_and_its_default() -> None:
    _, subcommands = parser()
    for name, subcommand in subcommands.items():
        text = " ".join(subcommand.format_help().split())
        for action in subcommand._actions:
            assert action.help, f"{name}: {action.dest}"
            if action.option_strings and action.nargs != 0 and not action.required:
                _, _, after = text.partition(f" {action.option_strings[-1]} ")
                assert "default" in after, f"{name} {action.option_strings[-1]}"


def test_an_unexpected_error_shows_where_if_asked(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    assert main(["run", "nowhere.hlo", "-v"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Traceback") and said.endswith("there is no such file\n")
    assert main(["run", "add.hlo", "-v"]) == 0
    assert capsys.readouterr().err.startswith("hlo run: 0.")


def status(command: Callable[[list[str]], int], words: list[str]) -> int:
    """The exit status, also where parsing ends it."""
    try:
        return command(words)
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return ended.code

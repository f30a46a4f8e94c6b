"""The command: bad input is one typed message and exit status 2, never a traceback."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

from hlo import archive
from hlo_oracle.command.main import main

ADD = """HloModule add
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT sum = f32[3] add(x, y)
}
"""

BAD = {
    "truncated": (ADD[:-20], "truncated.hlo:"),
    "unknown opcode": (ADD.replace("add(", "ad("), "ad"),
    "undefined operand": (ADD.replace("x, y)", "x, z)"), "z"),
    "operand count": (ADD.replace("x, y)", "x)"), "add"),
    "operand shape": (ADD.replace("y = f32[3]", "y = f32[4]"), "add"),
    "empty": ("", "empty.hlo:"),
}


@pytest.fixture
def add(tmp_path: Path) -> Path:
    path = tmp_path / "add.hlo"
    path.write_text(ADD)
    return path


def message(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The message of a command that must fail with status 2."""
    assert main([str(word) for word in words]) == 2
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return said.err + said.out


@pytest.mark.parametrize("command", ["run", "opt"])
def test_a_missing_file(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = message(capsys, command, "nowhere.hlo")
    assert said.startswith("hlo: ") and "nowhere.hlo" in said and said.count("\n") == 1


@pytest.mark.parametrize("case", BAD)
def test_bad_text(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, expected = BAD[case]
    path = tmp_path / f"{case.replace(' ', '_')}.hlo"
    path.write_text(text)
    said = message(capsys, "run", path)
    assert said.startswith(f"hlo: {path}:") and expected in said
    assert said.count("\n") in (1, 3)  # one line, and where it helps the text and a caret


def test_bytes_that_are_not_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "binary.hlo"
    path.write_bytes(bytes(range(256)))
    assert str(path) in message(capsys, "run", path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"x": np.zeros(3, np.float32)},
        {"x": np.zeros(3, np.float32), "y": np.zeros(4, np.float32)},
        {"x": np.zeros(3, np.float32), "y": np.zeros(3, np.float64)},
        {"a": np.zeros(3, np.float32), "b": np.zeros(3, np.float32), "c": np.zeros(3, np.float32)},
    ],
    ids=["count", "shape", "dtype", "too many"],
)
@pytest.mark.parametrize("on", ["interp", "c"])
def test_arguments_that_do_not_fit(
    add: Path, on: str, arrays: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    archive = add.with_suffix(".npz")
    np.savez(archive, **arrays)  # type: ignore[arg-type]  # its keywords are typed as flags
    said = message(capsys, "run", add, "--args", archive, "--on", on)
    assert said.count("\n") == 1


def test_an_archive_that_is_none(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "not a file of arrays" in message(capsys, "run", add, "--args", add)


def test_a_recipe_that_is_none(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = add.with_suffix(".json")
    for text, expected in (
        ("{", "recipe"),
        ('{"other": {}}', "no recipe for 'add'"),
        ('{"add": {"seed": 1}}', "not a recipe"),
        ('{"add": {"seed": 1, "arguments": [["poisson", [3], "float32"]]}}', "not a recipe"),
        ('{"add": {"seed": -1, "arguments": []}}', "the seed is negative"),
        ('{"add": {"seed": 1e400, "arguments": []}}', "not a recipe"),
        ('{"add": 7}', 'which is {"seed": 7, "arguments": [["normal"'),
        (
            '{"add": {"seed": 1, "arguments": [["full", [1000000000000000], "float32", 0]]}}',
            "do not fit into memory",
        ),
        ("[" * 100000, "nested too deeply"),
        ("\xe9", "byte 0 is not UTF-8"),
    ):
        recipe.write_text(text, encoding="latin-1")
        said = message(capsys, "run", add, "--recipe", recipe)
        assert said.count("\n") == 1 and (expected in said or "add.json:1:2" in said)


def test_explain_measures(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", str(add), "--measure", "--threads", "1", "--repeat", "1"]
    assert main(words) == 0
    assert "% limit" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["rows"]
    assert row["instructions"] == ["sum"] and row["measured"] >= 0 and found["seconds"] >= 0
    assert {"edges", "free", "limits", "memory", "stages", "regions"} <= found.keys()


def test_no_compiler(
    add: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HLO_CC", "/nonexistent")
    assert "/nonexistent" in message(capsys, "run", add, "--on", "c")


def read_only(directory: Path) -> Path:
    """A directory in which nothing can be made, not even by root, who may write anywhere else."""
    if os.geteuid() == 0:
        return Path("/proc")
    directory.mkdir(mode=0o500)
    return directory


@pytest.mark.parametrize("kind", ["read-only", "file"])
def test_a_cache_that_cannot_be_written(
    kind: str, add: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = add if kind == "file" else read_only(add.parent / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    said = message(capsys, "run", add, "--on", "c")
    assert said.count("\n") == 1 and str(cache) in said


def test_run_prints_and_saves(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = np.array([1, 2, 3], np.float32), np.array([10, 20, 30], np.float32)
    given, saved = add.with_suffix(".npz"), add.parent / "out.npz"
    np.savez(given, y=two, x=one)
    assert main(["run", str(add), "--args", str(given), "--save", str(saved)]) == 0
    assert capsys.readouterr().out == "float32[3]\n[11. 22. 33.]\n"
    assert archive.read(saved)["result"].tolist() == [11, 22, 33]
    assert main(["run", str(add), "--args", str(given), "--json"]) == 0
    (described,) = json.loads(capsys.readouterr().out)
    assert described["sum"] == 66 and described["dtype"] == "float32"


def test_run_shows_and_saves_values_in_between(
    add: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ADD.replace(
        "  ROOT sum = f32[3] add(x, y)", "  n = negate(y)\n  ROOT sum = subtract(x, n)"
    )
    add.write_text(text)
    saved = add.parent / "values.npz"
    assert main(["run", str(add), "--values", "%n", "--save", str(saved)]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[::2]] == [
        "n",
        "result",
    ]
    arrays = archive.read(saved)
    assert [*arrays] == ["n", "result"] and arrays["n"].dtype == np.float32
    assert main(["run", str(add), "--json", "--values"]) == 0
    names = [one["output"] for one in json.loads(capsys.readouterr().out)]
    assert names == ["x", "y", "n", "sum", "result"]
    assert "did you mean %sum?" in message(capsys, "run", add, "--values", "sun")
    assert "leave out --on c" in message(capsys, "run", add, "--values", "n", "--on", "c")


def test_run_profiles(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(add), "--profile"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["instruction", "opcode", "shape", "calls", "seconds", "share"]
    assert lines[1].split()[:4] == ["main/sum", "add", "f32[3]", "1"]
    assert main(["run", str(add), "--profile", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["instruction"] == "sum"
    assert "of one rank" in message(capsys, "run", add, "--profile", "--replicas", "2")


def test_opt_writes_each_stage(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", str(add), "-o", str(add.parent / "stages")]) == 0
    stages = sorted(path.name for path in (add.parent / "stages").iterdir())
    assert stages[:2] == ["00.input.hlo", "01.inline.hlo"]
    assert capsys.readouterr().out.count("\n") == len(stages)
    assert main(["opt", str(add)]) == 0
    assert "fusion(" in capsys.readouterr().out


def test_usage_errors_have_status_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hlo_oracle.command.main", "conjure"], capture_output=True, text=True
    )
    assert done.returncode == 2 and "conjure" in done.stderr


@pytest.mark.parametrize("words", [["--seed", "-1"], ["--seed", "x"], ["--seed", "1" * 30]])
def test_seeds_are_numbers(add: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", str(add), *words])
    assert caught.value.code == 2 and "is not a number" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["openmp", "cuda", "embedded"])
def test_emit_writes_the_files_it_names(
    add: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["emit", str(add), "--target", target, "-o", str(add.parent / target)]) == 0
    named = sorted(Path(line) for line in capsys.readouterr().out.splitlines())
    assert named and named == sorted((add.parent / target).iterdir())


@pytest.mark.parametrize(
    ("target", "files"),
    [("embedded", {"module_test.c", "CMakeLists.txt"}), ("cuda", {"main.cu", "recorded.bin"})],
)
def test_emit_with_bits_to_check(add: Path, target: str, files: set[str]) -> None:
    words = ["emit", str(add), "--target", target, "--check", "-o", str(add.parent / target)]
    assert main(words) == 0
    assert files <= {path.name for path in (add.parent / target).iterdir()}


EXPONENTIAL = """HloModule e
ENTRY main {
  x = f32[3] parameter(0)
  ROOT e = f32[3] exponential(x)
}
"""


def test_numerics_are_exact_unless_one_says_fast(tmp_path: Path) -> None:
    file = tmp_path / "exponential.hlo"
    file.write_text(EXPONENTIAL)
    for words, has_fast in (((), False), (("--numerics", "fast"), True)):
        directory = tmp_path / "c" / str(has_fast)
        assert main(["emit", str(file), *words, "-o", str(directory)]) == 0
        assert ("hlo_exponential_fast" in (directory / "unit_0.c").read_text()) == has_fast
    assert main(["run", str(file), "--on", "c", "--numerics", "fast"]) == 0


def test_fast_numerics_have_no_bits_to_check(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("emit", add, "--target", "embedded", "--numerics", "fast", "--check", "-o", add.parent)
    assert "--numerics exact" in message(capsys, *words)


def test_emit_into_a_file(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert str(add) in message(capsys, "emit", add, "-o", add)


@pytest.mark.parametrize(
    "words",
    [
        ("check", "--no-c", "add.hlo"),
        ("fuzz", "--oracle", "printed", "--programs", "5", "--workers", "1", "--corpus", "corpus"),
        ("reduce", "add.hlo", "--while", "true", "-o", "reduced.hlo"),
    ],
    ids=lambda words: words[0],
)
def test_commands_need_what_the_package_depends_on_and_no_more(
    words: Sequence[str], tmp_path: Path
) -> None:
    """Commands work without any extra, as ``make demo`` installs them."""
    (tmp_path / "add.hlo").write_text(ADD)
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "for name in ('hypothesis', 'jax', 'jaxlib', 'mpmath', 'scipy', 'pytest'):\n"
        "    sys.modules[name] = None\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "hlo_oracle.command.main", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_of_opt_as_json(add: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = add.with_suffix(".html")
    assert main(["opt", str(add), "--html", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == [str(page)]

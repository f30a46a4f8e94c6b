"""README is true: its commands run and print what it says, its Python runs."""

import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest
from conftest import ROOT

README = (ROOT / "README.md").read_text()

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("gcc", "clang", "cc"))), reason="no C compiler"
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def transcripts() -> list[tuple[str, str]]:
    """Each command of a console block with its output."""
    parts = [part for block in blocks("console") for part in re.split(r"^\$ ", block, flags=re.M)]
    return [(part.splitlines()[0], part.split("\n", 1)[1]) for part in parts if part]


def without_measures(text: str) -> str:
    """Times and memory differ from run to run, and with them the width of columns."""
    return re.sub(r"[0-9.]+ (ms|s|MiB)\b", "#", re.sub(r" +", " ", text))


@pytest.mark.parametrize(("command", "expected"), transcripts(), ids=lambda text: text[:40])
def test_a_transcript_is_what_the_command_prints(command: str, expected: str) -> None:
    program, *words = shlex.split(command)
    assert program == "hlo"
    if "xla" in words and find_spec("jaxlib") is None:
        pytest.skip("jaxlib is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "hlo_oracle.command.main", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    status = 1 if " outside" in expected else 0
    assert (done.returncode, done.stderr) == (status, "")
    assert without_measures(done.stdout) == without_measures(expected)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(code, "README.md", "exec"), {})


def test_make_has_the_commands_and_ci_runs_the_second() -> None:
    makefile = (ROOT / "Makefile").read_text()
    demo, test = "".join(blocks("sh")).splitlines()
    for command in (demo, test):
        assert f"\n{command.removeprefix('make ')}:" in makefile
    for ci in (".ci/run", ".github/workflows/test.yml"):
        assert (ROOT / ci).read_text().rstrip().endswith(test)

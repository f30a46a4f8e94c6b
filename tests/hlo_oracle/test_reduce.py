"""``hlo reduce``: to what makes a command, or an oracle, see a failure."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import hlo
from hlo_oracle.command.main import main

PROGRAM = """HloModule "a `b`; $(touch here)"
ENTRY main {
  x = f32[3,4] parameter(0)
  "``` $x" = f32[3,4] tanh(x)
  y = f32[4,3] transpose("``` $x"), dimensions={1,0}
  z = f32[4,3] sine(y), metadata={op_name="'\\""}
  ROOT r = f32[4,3] negate(z)
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "p.hlo"
    path.write_text(PROGRAM)
    return path


def test_while_a_command_succeeds(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grep = shutil.which("grep")
    if grep is None:
        pytest.skip("no grep")
    assert main(["reduce", str(program), "--while", f"{grep} -q tanh"]) == 0
    assert capsys.readouterr().out.endswith("reduced.hlo: 2 instructions of 5\n")
    small = hlo.parse(program.with_suffix(".reduced.hlo").read_text())
    assert [i.opcode for i in small.entry.instructions] == ["parameter", "tanh"]
    with np.load(program.with_suffix(".reduced.npz")) as arrays:
        assert arrays["p0"].shape == () and not arrays["p0"]


def test_the_command_gets_arguments_and_no_shell(program: Path, tmp_path: Path) -> None:
    script = tmp_path / "is wrong.py"
    script.write_text(
        "import sys, zipfile\n"
        "text, names = open(sys.argv[2]).read(), zipfile.ZipFile(sys.argv[3]).namelist()\n"
        "sys.exit('sine' not in text or sys.argv[1] != '$HOME;x' or names != ['p0.npy'])\n"
    )
    command = f"{sys.executable} -I -S '{script}' '$HOME;x'"
    output = tmp_path / "small.hlo"
    assert main(["reduce", str(program), "--while", command, "-o", str(output)]) == 0
    assert "sine" in output.read_text() and "tanh" not in output.read_text()


@pytest.mark.parametrize("command", ["false", "", "no-such-command", "'"])
def test_nothing_to_reduce(command: str, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reduce", str(program), "--while", command]) == 2
    assert capsys.readouterr().err.startswith("hlo: ")


@pytest.mark.parametrize("oracle", ["same-bits", "xla"])
def test_nothing_is_wrong(oracle: str, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if oracle == "xla":
        pytest.importorskip("jaxlib")
    elif not any(map(shutil.which, ("gcc", "clang", "cc"))):
        pytest.skip("no C compiler")
    assert main(["reduce", str(program), "--oracle", oracle]) == 2
    assert "nothing" in capsys.readouterr().err


def test_what_xla_gets_wrong(tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    program, small = tmp_path / "p.hlo", tmp_path / "small.hlo"
    program.write_text(
        """HloModule m
ENTRY main {
  x = s4[3] parameter(0)
  n = s4[3] negate(x)
  p = s4[3] popcnt(n)
  ROOT r = s4[3] add(p, x)
}
"""
    )
    command = ["reduce", str(program), "--seed", "1", "--oracle", "xla", "-o", str(small)]
    assert main(command) == 0
    opcodes = [i.opcode for i in hlo.parse(small.read_text()).entry.instructions]
    assert opcodes == ["parameter", "popcnt"]

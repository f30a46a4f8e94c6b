"""Programs in files of every form. The protos beside were written by TensorFlow's own classes."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import ROOT

import hlo
import hlo_oracle as ho
from hlo.errors import ArgumentError, Error
from hlo.values import arrays_of
from hlo_oracle.command.main import main
from hlo_oracle.loading import literal_protos, programs
from hlo_oracle.loading.wire_format import NotAMessage, fields

HERE = Path(__file__).parent
DUMP = ROOT / "examples" / "dump"
ELIDED = """HloModule elided

ENTRY e {
  w = f32[4,5] constant({...})
  i = (s32[20], s4[12]) constant(({...}, {...}))
  ROOT r = (f32[4,5], (s32[20], s4[12])) tuple(w, i)
}
"""
jaxlib = pytest.mark.skipif(
    not __import__("importlib.util").util.find_spec("jaxlib"), reason="no jaxlib"
)


@jaxlib
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_protos_of_xla(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    file = tmp_path / "program.pb"
    file.write_bytes(pack((HERE / "hlo_proto.pb").read_bytes()))
    program = programs.read_program(file)
    assert program.module.name == "snapshot" and program.arguments is None
    assert [i.opcode for i in program.module.entry.instructions].count("parameter") == 6


@jaxlib
def test_a_snapshot_has_arguments_and_results(capsys: pytest.CaptureFixture[str]) -> None:
    """A snapshot has the bits of arguments and results that were put in, in every layout and of
    packed types."""
    program = programs.read_program(HERE / "snapshot.pb")
    assert program.arguments is not None and program.results is not None
    a, b, c, d, e, f = program.arguments
    assert isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    assert a.tolist() == [[1, 2, 3], [4, 5, 6]] and a.dtype == np.float32
    assert b.dtype == ml_dtypes.bfloat16 and b.astype(float).tolist() == [1, 2, 3, -4]
    assert [int(x) for x in c] == [1, 1, 7, -8, -1]
    assert [x.tolist() for x in (d, e, f) if isinstance(x, np.ndarray)] == [
        [True, False, True],
        [1 + 2j, 3 - 4j],
        [-(1 << 40), 7],
    ]
    assert len(program.results) == 6
    verdict = ho.check(HERE / "snapshot.pb")
    assert verdict and verdict.equal == 22 and not verdict.within
    assert main(["check", "--no-c", str(HERE / "snapshot.pb")]) == 0
    assert "22 equal" in capsys.readouterr().out


@jaxlib
def test_a_snapshot_of_wrong_results_is_proven_wrong() -> None:
    program = programs.read_program(HERE / "snapshot.pb")
    assert program.results is not None
    wrong = [array.copy() for array in program.results]
    wrong[0][1, 1] += 1
    verdict = ho.check(HERE / "snapshot.pb", *(program.arguments or ()), results=wrong)
    assert not verdict and verdict.outside == 1
    assert "1 of 6 outside, first at [1,1]: 6.0, where 5.0 is exact" in verdict.evidence[0]
    with pytest.raises(ArgumentError, match="2 recorded results, where snapshot has 6"):
        ho.check(HERE / "snapshot.pb", results=wrong[:2])


@jaxlib
def test_recorded_results_are_those_of_the_recorded_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Recorded results judge the recorded arguments alone: with others they would be proven
    wrong."""
    program = programs.read_program(HERE / "snapshot.pb")
    assert program.arguments is not None
    others = [np.zeros_like(array) for array in program.arguments]
    assert ho.check(HERE / "snapshot.pb", *others).equal == 22
    assert main(["check", "--no-c", "--seed", "3", str(HERE / "snapshot.pb")]) == 0
    assert "elements" not in capsys.readouterr().out


def test_results_of_other_constants_are_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Recorded results are refused if elided constants were filled in: the compiler had others."""
    results = [np.ones((4, 5), np.float32), np.ones(20, np.int32), np.ones(12, ml_dtypes.int4)]
    with pytest.raises(ArgumentError, match="its results are of other constants: 3 constants"):
        ho.check(ELIDED, results=results, elided="zeros")
    (tmp_path / "p.hlo").write_text(ELIDED)
    np.savez(tmp_path / "r.npz", *results[:2], results[2].view("V1"))
    words = ["check", "--elided", "zeros", "--results", str(tmp_path / "r.npz")]
    assert main([*words, str(tmp_path / "p.hlo")]) == 2
    assert "its results are of other constants" in capsys.readouterr().out


def test_a_budget_that_was_not_measured_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[2] sine(x) }\n"
    x = np.ones(2, np.float32)
    verdict = ho.check(text, x, results=[np.sin(x)], budget="XLA:GPU")
    assert verdict and "was not measured: XLA:GPU" in str(verdict)
    assert not ho.check(text, x, results=[np.sin(x)]).notes
    (tmp_path / "p.hlo").write_text(text)
    np.savez(tmp_path / "a.npz", x)
    np.savez(tmp_path / "r.npz", np.sin(x))
    words = ["--args", str(tmp_path / "a.npz"), "--results", str(tmp_path / "r.npz")]
    assert main(["check", "--no-c", *words, "--budget", "XLA:GPU", str(tmp_path / "p.hlo")]) == 0
    assert "was not measured: XLA:GPU" in capsys.readouterr().out


@jaxlib
def test_stablehlo_by_jaxlib(tmp_path: Path) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %y = stablehlo.negate %x : tensor<2xf32>\n  return %y : tensor<2xf32>\n}\n"
    )
    assert ho.load(file).entry.root_instruction.opcode == "negate"
    file.write_text("func.func @main() { nonsense }")
    with pytest.raises(Error, match=r"f\.mlir: jaxlib does not take it as StableHLO: "):
        ho.load(file)


def test_what_a_conversion_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Error, match=r"jaxlib is not installed: pip install 'hlo-oracle\[jax\]'"):
        ho.load(b"ML\xefR\x06")


@pytest.mark.parametrize("way", ["zeros", "random", "random:7"])
def test_constants_that_are_left_out(way: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ArgumentError, match=r"left out of the text.*elided"):
        ho.run(ELIDED)
    program = programs.of_bytes(ELIDED.encode(), way)
    assert hlo.parse(program.text) == program.module
    assert program.notes[0].startswith(f"3 constants are not in the text, and filled in with {way}")
    one, other = (list(arrays_of(ho.run(ho.load(ELIDED, elided=way)))) for _ in range(2))
    assert [x.tobytes() for x in one] == [x.tobytes() for x in other]
    assert any(x.astype(float).any() for x in one) == (way != "zeros")
    assert [x.shape for x in one] == [(4, 5), (20,), (12,)]


def test_the_command_line_says_what_was_filled_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.hlo"
    file.write_text(ELIDED)
    assert main(["run", str(file)]) == 2
    assert "--elided random:SEED" in capsys.readouterr().err
    for command in (["run"], ["check", "--no-c"]):
        assert main([*command, "--elided", "random:1", str(file)]) == 0
        told = capsys.readouterr()
        assert "3 constants are not in the text" in told.err + told.out
    with pytest.raises(SystemExit):
        main(["run", "--elided", "ones", str(file)])
    assert "'ones' is neither zeros nor random:SEED" in capsys.readouterr().err


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "HloModule m\nENTRY e { ROOT x = s32[] constant(7) }"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["run", "-"]) == 0
    assert capsys.readouterr().out == "int32[]\n7\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"HloModule")))
    assert main(["run", "-"]) == 2
    assert capsys.readouterr().err.startswith("hlo: standard input:1:")


def test_a_dump_is_read_as_it_was_before_optimisations(tmp_path: Path) -> None:
    assert ho.load(DUMP) == ho.load(next(DUMP.glob("*before_optimizations.txt")))
    for name in ("f", "g"):
        file = tmp_path / f"module_0001.jit_{name}.before_optimizations.txt"
        file.write_text(f"HloModule jit_{name}\nENTRY e {{ ROOT x = s32[] constant(7) }}")
    assert ho.load(tmp_path, name="jit_g").name == "jit_g"
    with pytest.raises(Error, match="a dump of jit_f, jit_g: name one of them"):
        ho.load(tmp_path)
    with pytest.raises(Error, match="'jit_h'"):
        ho.load(tmp_path, name="jit_h")


def test_a_scalar_literal_has_no_dimensions() -> None:
    shape = b"\x10\x0b"  # the element type, 11: f32
    number = np.float32(1.5).tobytes()
    found = literal_protos.value(b"\x0a\x02" + shape + b"\x42\x04" + number)
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.dtype, found) == ((), np.float32, 1.5)


@pytest.mark.parametrize("seed", range(30))
def test_damaged_literals_are_refused(seed: int) -> None:
    """Bytes of a literal changed: a value of it, or a typed error."""
    literal = next(x for x in fields((HERE / "snapshot.pb").read_bytes())[2])
    assert isinstance(literal, bytes)
    data = bytearray(literal)
    rng = np.random.default_rng(seed)
    for place in rng.integers(0, len(data), 3):
        data[place] = rng.integers(0, 256)
    try:
        literal_protos.value(bytes(data[: rng.integers(1, len(data) + 1)]))
    except (Error, NotAMessage) as error:
        assert isinstance(error, Error) and str(error)


@pytest.mark.parametrize("name", ["a (1).hlo", "a=b.hlo", "HloModule"])
def test_a_file_that_exists_is_no_text(name: str, tmp_path: Path) -> None:
    text = "HloModule m\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}"
    (tmp_path / name).write_text(text)
    assert ho.load(str(tmp_path / name)).name == "m"


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "the text is empty"), (" \n", "the text is empty"), ("a" * 5000, "no such file")],
)
def test_a_text_that_names_nothing(text: str, said: str) -> None:
    with pytest.raises(Error, match=said):
        ho.load(text)


def test_elided_constants_of_a_module_are_filled_in() -> None:
    made = ho.load(hlo.parse(ELIDED), elided="zeros")
    assert not any(array.any() for array in arrays_of(ho.run(made)))

"""Any plugin of PJRT can be judged: of a device, with the types and options that it has."""

from __future__ import annotations

import _ctypes
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import hlo
import hlo_oracle
from fuzz.oracles import Difference, LeftOut, named
from fuzz.peers.plugin import Plugin, parsed
from fuzz.peers.stablehlo import Conversion
from fuzz.reducer.search import Case
from hlo.errors import ArgumentError
from hlo.types import ELEMENT_TYPES
from hlo_oracle.command.main import main
from interp.envelope.budget import XLA_CPU

pytest.importorskip("jaxlib")
pytest.importorskip("pypjrt")

from pjrt_test_plugin import library

from fuzz.peers.pjrt import PJRT, facts

_X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def _identity(name: str, shape: str = "f32[2,3]") -> str:
    return f"HloModule {name}\nENTRY e {{\n  ROOT x = {shape} parameter(0)\n}}\n"


@pytest.fixture(scope="module")
def plugin() -> str:
    """The name of the plugin of tests."""
    return f"pjrt:{library()}"


@pytest.fixture(scope="module")
def run(plugin: str) -> Iterator[PJRT]:
    """The plugin of tests, started."""
    with PJRT(parsed(plugin), 5.0) as started:
        yield started


def test_what_a_name_says() -> None:
    found = parsed(
        "pjrt:/a b/p.so,memory=0.5,preallocate=false,chips=2,mode=fast,budget=XLA:CPU 0.10"
    )
    options = (("memory", 0.5), ("preallocate", False), ("chips", 2), ("mode", "fast"))
    assert found == Plugin("/a b/p.so", options, XLA_CPU)
    for name, said in (("pjrt:", "file is missing"), ("pjrt:p,x", "no KEY=VALUE"),
                       ("pjrt:p,budget=none", "there are exact")):  # fmt: skip
        with pytest.raises(ArgumentError, match=said):
            parsed(name)


def test_every_element_type_there_and_back(run: PJRT) -> None:
    """Arrays of every element type come back in row-major order, whatever the device's layout."""
    for name, kind in ELEMENT_TYPES.items():
        if not kind.is_array or name in ("s1", "u1"):
            continue
        x = np.array([[1, 0, 1], [0, 0, 1]]).astype(kind.numpy)
        for array, dims in ((x, "2,3"), (x[0, 0], ""), (x[:0], "0,3")):
            answer = run(_identity("m", f"{name}[{dims}]"), [np.asarray(array)])
            assert answer.outputs is not None, f"{name}: {answer}"
            (found,) = answer.outputs
            assert found.dtype == array.dtype and found.shape == array.shape
            assert found.tobytes() == array.tobytes(), name


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("it_is_refused", "error", "no room for it"),
        ("it_dies", "crash", "SIGABRT"),
    ],
)
def test_what_goes_wrong_is_told(run: PJRT, name: str, kind: str, told: str) -> None:
    answer = run(_identity(name), [_X])
    assert answer.outputs is None and told in (getattr(answer, kind) or "")
    assert run(_identity("after_it"), [_X]).outputs is not None


def test_what_jaxlib_cannot_convert() -> None:
    with closing(Conversion((1, 0, 0), 30.0)) as converted:
        assert "pair" in (converted(_identity("m").replace("parameter", "pair")).error or "")
        assert b"StableHLO_v1.0.0" in converted(_identity("m")).program


def test_what_depends_on_layouts_is_refused(run: PJRT) -> None:
    """The plugin would get a program that means something else."""
    text = _identity("m").replace("ROOT x", "x").replace("}", "  ROOT b = f32[6] bitcast(x)\n}")
    assert run(text, [_X]).outputs is not None
    answer = run(text.replace("f32[2,3]", "f32[2,3]{0,1}"), [_X])
    assert answer.error is not None and "layouts" in answer.error


def test_what_jaxlib_makes_another_program_of_is_refused(run: PJRT) -> None:
    """A program that jaxlib gives other types is refused: the plugin would be blamed for a program
    that it never got."""
    answer = run(_identity("m", "s1[3]"), [np.zeros(3, ELEMENT_TYPES["s1"].numpy)])
    assert answer.error == "StableHLO has no s1: jaxlib makes pred of it"
    text = """HloModule m
    ENTRY e { x = u64[2] parameter(0)
              both = (u64[2], f32[3]) rng-bit-generator(x), algorithm=rng_philox
              ROOT y = u64[2] get-tuple-element(both), index=0 }"""
    answer = run(text, [np.zeros(2, np.uint64)])
    assert answer.error == "jaxlib makes unsigned integers of random bits of f32"


def test_a_plugin_that_hangs(plugin: str) -> None:
    with PJRT(parsed(plugin), 1.0) as run:
        assert run(_identity("it_hangs"), [_X]).crash == "no answer in 1 s"


def test_a_plugin_is_described(plugin: str) -> None:
    assert facts(parsed(plugin)).device == "tester, chip 0"


@pytest.mark.parametrize(
    ("option", "line"),
    [
        (",devices=0", "it has no device"),
        (",fails=false", "it gives no device: no chip of ours"),
        (",dies=true", "when opened: SIGABRT"),
    ],
)
def test_no_device(
    plugin: str, option: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.hlo").write_text(_identity("m"))
    assert main(["check", str(tmp_path), "--against", plugin + option]) == 2
    assert capsys.readouterr().err == f"hlo: {plugin}: {line}\n"


def test_what_is_no_plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.hlo").write_text(_identity("m"))
    (tmp_path / "text.so").write_text("no library at all, but a text of some length\n")
    for path, line in (
        (tmp_path / "none.so", "there is no such file"),
        (tmp_path / "text.so", "it cannot be loaded as a library: "),
        (Path(_ctypes.__file__), "it is no plugin of PJRT: it exports no GetPjrtApi"),
    ):
        assert main(["check", str(tmp_path), "--against", f"pjrt:{path}"]) == 2
        assert f"pjrt:{path}: {line}" in capsys.readouterr().err


def test_hlo_check_judges_it(
    plugin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.hlo").write_text(_identity("it_is_wrong"))
    assert main(["check", "--no-c", str(tmp_path), "--against", plugin]) == 1
    out = capsys.readouterr().out
    assert "PJRT" in out and "OUTSIDE, proven wrong: elements 5 equal, 1 outside" in out


def test_ho_check_judges_it(plugin: str) -> None:
    assert hlo_oracle.check(_identity("m"), _X, against=plugin)
    assert not hlo_oracle.check(_identity("it_is_wrong"), _X, against=plugin)
    with pytest.raises(hlo.Error, match="no room for it"):
        hlo_oracle.check(_identity("it_is_refused"), _X, against=plugin)


def test_it_is_an_oracle(plugin: str) -> None:
    names = ("m", "it_is_wrong", "it_dies", "it_is_refused")
    cases = [Case(hlo.parse(_identity(name)), (_X,)) for name in names]
    with named(plugin).open() as of:
        right, wrong, dead, refused = of(cases)
    assert right is None and refused == LeftOut("refused")
    assert isinstance(wrong, Difference) and wrong.kind.startswith("wrong result")
    assert isinstance(dead, Difference) and dead.kind.startswith("crash: SIGABRT")
    assert wrong.judged is not None and wrong.judged.command == plugin

"""Parameters that become constants: the same results, and errors that name the parameter."""

import json
from pathlib import Path

import numpy as np
import pytest

import hlo
import interp
from hlo.passes.bound_parameters import with_bound_parameters
from hlo_oracle.command.main import main

PROGRAM = """HloModule m, entry_computation_layout={(s8[2]{0}, f32[2,3]{1,0}, f32[3]{0})->f32[3]{0}}
ENTRY e {
  n = s8[2] parameter(0)
  w = f32[2,3] parameter(1)
  b = f32[3] parameter(2)
  x = f32[2] convert(n)
  d = f32[3] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT r = f32[3] add(d, b)
}
"""
N = np.array([3, -4], np.int8)
W = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.array([0.5, 1.5, 2.5], np.float32)


def test_the_rest_keeps_its_order() -> None:
    bound = with_bound_parameters(hlo.parse(PROGRAM), {"w": W.T.copy().T})
    hlo.verify(bound)
    assert [p.name for p in bound.entry.parameters] == ["n", "b"]
    found = interp.evaluate(hlo.parse(hlo.format(bound)), N, B)
    assert np.array_equal(found, interp.evaluate(hlo.parse(PROGRAM), N, W, B))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"v": W}, "no parameter is called 'v'; there are n, w, b"),
        ({"b": W}, r"the value of %b, float32\[2, 3\], is no f32\[3\]"),
        ({"n": B}, r"the value of %n, float32\[3\], is no s8\[2\]"),
    ],
)
def test_what_does_not_fit(values: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(hlo.ArgumentError, match=message):
        with_bound_parameters(hlo.parse(PROGRAM), values)


SCALAR = """HloModule m
ENTRY e {
  x = f32[] parameter(0)
  y = f32[1] parameter(1)
  ROOT r = (f32[], f32[1]) tuple(x, y)
}
"""


def test_scalars_are_no_arrays_of_one_element() -> None:
    number = np.float32(1.5)
    bound = with_bound_parameters(hlo.parse(SCALAR), {"x": number, "y": number.reshape(1)})
    hlo.verify(bound)
    x, y = interp.evaluate(hlo.parse(hlo.format(bound)))
    assert (x.shape, x, y.shape, y) == ((), number, (1,), number)
    with pytest.raises(hlo.ArgumentError, match=r"the value of %y, float32\[\], is no f32\[1\]"):
        with_bound_parameters(hlo.parse(SCALAR), {"y": number})
    with pytest.raises(hlo.ArgumentError, match=r"the value of %x, float32\[1\], is no f32\[\]"):
        with_bound_parameters(hlo.parse(SCALAR), {"x": number.reshape(1)})


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(PROGRAM)
    np.savez(tmp_path / "a.npz", N, W, B)
    words = ["emit", str(tmp_path / "m.hlo"), "--args", str(tmp_path / "a.npz")]
    words += ["--target", "embedded", "--weights", "w,b", "--check", "-o", str(tmp_path / "c")]
    assert main(words) == 0
    manifest = json.loads((tmp_path / "c" / "manifest.json").read_text())
    assert [a["name"] for a in manifest["arguments"]] == ["in_n"]
    assert manifest["weights_bytes"] >= W.nbytes + B.nbytes

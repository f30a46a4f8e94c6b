"""Emitted C without doubles: none is left in it, or the error names what takes them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
from hlo.elementary.fast import SINGLE
from hlo.errors import Unsupported
from hlo_oracle.arguments import from_seed
from selftest.microcontrollers.host import results_here
from selftest.prove.float_machine import evaluated_fast

NETWORK = """HloModule network
ENTRY e {
  x = f32[1,4] parameter(0)
  w = f32[4,3] constant({{1, 2, 3}, {4, 5, 6.5}, {7, 8, 9}, {0.5, 1, 2}})
  y = f32[1,3] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  positive = f32[1,3] multiply(y, y)
  root = f32[1,3] sqrt(positive)
  t = f32[1,3] tanh(y)
  u = f32[1,3] exponential(t)
  v = f32[1,3] divide(u, root)
  n = s32[1,3] convert(v)
  m = s32[1,3] parameter(1)
  k = s32[1,3] divide(m, n)
  j = u32[1,3] bitcast-convert(k)
  i = u32[1,3] remainder(j, j)
  z = f32[1,3] round-nearest-even(v)
  ROOT r = (f32[1,3], s32[1,3], u32[1,3], f32[1,3]) tuple(v, k, i, z)
}
"""
_TAKES_F64 = "HloModule m\nENTRY e {{ x = {0} parameter(0)\n ROOT y = {1} {2}(x) }}"


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_no_double_is_left(tmp_path: Path) -> None:
    """Emitted C has no double by name or by promotion, and gives the results that it gives with
    doubles."""
    module = hlo.parse(NETWORK)
    arguments = from_seed(module, 3)
    given = (arguments, results_here(module, arguments))
    files = backend_c.emit(module, "embedded", "fast", given, no_double=True)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    words = ["-std=c99", "-Wall", "-Wextra", "-Wdouble-promotion", "-Werror", "-ffp-contract=off"]
    no_doubles = [*words, "-Ddouble=no_double_here"]
    subprocess.run(["cc", *no_doubles, "-c", "module.c"], cwd=tmp_path, check=True)
    sources = ["module.c", "module_weights.c", "module_test.c"]
    subprocess.run(["cc", *words, *sources, "-o", "program"], cwd=tmp_path, check=True)
    assert subprocess.run(["./program"], cwd=tmp_path, check=False).returncode == 0
    assert b"double" in backend_c.emit(module, "embedded", "exact")["module.c"]


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="no arm-none-eabi-gcc")
def test_no_soft_double_is_linked() -> None:
    files = backend_c.emit(
        hlo.parse(NETWORK),
        *("embedded", "fast"),
        compiler="arm-none-eabi-gcc -mcpu=cortex-m0 -mthumb",
        no_double=True,
    )
    called = re.findall(r"__\w+", files["manifest.json"].decode())
    # Those of floats and integers; of doubles all have a d before what they do, or behind a 2.
    assert "__aeabi_fmul" in called and not [f for f in called if re.search(r"_d|2d|_cd", f)]


@pytest.mark.parametrize(
    ("text", "numerics", "message"),
    [
        (NETWORK, "exact", r"%v of e takes double precision: exact numerics compute floats in f64"),
        (
            _TAKES_F64.format("f32[2]", "f32[2]", "asin"),
            *("fast", r"%y of e takes double precision: f32 has too few digits within asin"),
        ),
        (
            _TAKES_F64.format("f64[2]", "f64[2]", "negate"),
            *("fast", r"%y of e takes double precision: convert its f64 arrays to f32"),
        ),
        (
            _TAKES_F64.format("c128[2]", "f64[2]", "real"),
            *("exact", r"%y of e takes double precision: convert its f64 arrays to f32"),
        ),
    ],
)
def test_the_instruction_that_takes_doubles(text: str, numerics: str, message: str) -> None:
    module = hlo.parse(text)
    with pytest.raises(Unsupported, match=message):
        backend_c.emit(module, "embedded", numerics, no_double=True)
    assert "module.c" in backend_c.emit(module, "embedded", numerics)


def test_integers_take_none_in_exact_numerics() -> None:
    module = hlo.parse(_TAKES_F64.format("s32[2]", "s32[2]", "negate"))
    files = backend_c.emit(module, "embedded", "exact", no_double=True)
    assert b"double" not in re.sub(rb"/\*.*?\*/", b"", files["module.c"], flags=re.DOTALL)


@pytest.mark.parametrize("target", ["openmp", "cuda"])
def test_other_targets_have_doubles(target: str) -> None:
    with pytest.raises(Unsupported, match="^no_double is for the target embedded"):
        backend_c.emit(hlo.parse(NETWORK), target, no_double=True)
    assert backend_c.emit(hlo.parse(NETWORK), target)


_NORMALISED = """HloModule m
ENTRY e {{
  x = f32[{0}] parameter(0)
  y = f32[{0}] parameter(1)
  q = f32[{0}] power(x, y)
  {1}
  image = f32[2,3,4] parameter(2)
  scale = f32[4] parameter(3)
  offset = f32[4] parameter(4)
  mean = f32[4] parameter(5)
  variance = f32[4] parameter(6)
  n = f32[2,3,4] batch-norm-inference(image, scale, offset, mean, variance), epsilon=0.001,
    feature_index=2
  ROOT r = (f32[{0}], {2}, f32[2,3,4]) tuple(q, {3}, n)
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_functions_have_sequences_without_doubles() -> None:
    """Elementary functions have sequences without doubles, also in batch normalisation, with the
    bits that NumPy evaluates."""
    unary = sorted(SINGLE.keys() - {"power"})
    lines = [f"{name} = f32[4000] {name}(x)" for name in unary]
    shapes = ", ".join(["f32[4000]"] * len(unary))
    text = _NORMALISED.format(4000, "\n  ".join(lines), shapes, ", ".join(unary))
    module = hlo.parse(text)
    assert backend_c.emit(module, "embedded", "fast", no_double=True)
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 2**32, (2, 4000), dtype=np.uint32).view(np.float32)
    x[::2], y[::2] = np.exp(rng.normal(size=2000) * 9), rng.normal(size=2000) * 4
    rest = rng.normal(size=(2, 3, 4)), *np.abs(rng.normal(size=(4, 4)))
    power, *found, _ = results_here(module, (x, y, *(a.astype(np.float32) for a in rest)))
    expected = [evaluated_fast(SINGLE[name], x, once=False) for name in unary]
    expected.append(evaluated_fast(SINGLE["power"], x, y, once=False))
    for name, one, other in zip((*unary, "power"), (*found, power), expected, strict=True):
        number = ~(np.isnan(one) & np.isnan(other))
        assert (one.view(np.uint32) == other.view(np.uint32))[number].all(), name

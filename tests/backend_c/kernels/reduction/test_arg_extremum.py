"""argmax and argmin, however their computations are written, by the interpreter's bits."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.kernels.parts.reduction.arg_extremum import Choice, choice_of
from backend_c.pipeline import lowered
from fuzz.compilers.combined_programs import merged
from hlo.bit_equality import differences
from hlo.values import Array

_HEAD = """HloModule m
c {{
  a = {t}[] parameter(0)
  i = {n}[] parameter(1)
  b = {t}[] parameter(2)
  j = {n}[] parameter(3)
"""
# As JAX writes it: of zeros of both signs the value is the last one.
_JAX = (
    _HEAD
    + """  better = pred[] compare(a, b), direction={direction}
  none = pred[] compare(a, a), direction=NE
  first = pred[] or(better, none)
  value = {t}[] select(first, a, b)
  tie = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction=LT
  both = pred[] and(tie, before)
  keeps = pred[] or(first, both)
  index = {n}[] select(keeps, i, j)
  ROOT r = ({t}[], {n}[]) tuple(value, index)
}}
"""
)
# As TensorFlow writes it: value and index of the same element.
_TENSORFLOW = (
    _HEAD
    + """  better = pred[] compare(a, b), direction={direction}
  equal = pred[] compare(a, b), direction=EQ
  none = pred[] compare(a, a), direction=NE
  some = pred[] or(better, equal)
  first = pred[] or(some, none)
  value = {t}[] select(first, a, b)
  index = {n}[] select(first, i, j)
  ROOT r = ({t}[], {n}[]) tuple(value, index)
}}
"""
)
_DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "s32": np.int32,
    "u8": np.uint8,
    "s64": np.int64,
}
_SHAPES = (
    ((1000,), 0),
    ((70001,), 0),
    ((40, 601), 1),
    ((601, 40), 0),
    ((2, 70001), 1),
    ((70001, 2), 0),
    ((5, 70, 11), 1),
    ((3, 9), 1),
    ((3, 2), 1),
)


def _program(head: str, dims: tuple[int, ...], d: int) -> str:
    """The text of a reduce of (values, iota)."""
    whole, kept = (",".join(map(str, one)) for one in (dims, dims[:d] + dims[d + 1 :]))
    index = "s64" if "s64[] parameter(1)" in head else "s32"
    t = head.split("a = ")[1].split("[")[0]
    return f"""{head}
ENTRY e {{
  x = {t}[{whole}] parameter(0)
  v = {t}[] parameter(1)
  n = {index}[] parameter(2)
  i = {index}[{dims[d]}] iota(), iota_dimension=0
  k = {index}[{whole}] broadcast(i), dimensions={{{d}}}
  ROOT r = ({t}[{kept}], {index}[{kept}]) reduce(x, k, v, n), dimensions={{{d}}}, to_apply=c
}}
"""


def _values(element_type: str, dims: tuple[int, ...], direction: str) -> Array:
    """Values whose best is often a zero of either sign, sometimes NaN."""
    rng = np.random.default_rng(sum(dims))
    dtype = np.dtype(_DTYPES[element_type])
    if dtype.kind in "iu":
        return rng.integers(0, 100, dims).astype(dtype)
    drawn = -np.abs(rng.normal(size=dims)) * (1 if direction == "GT" else -1)
    for special, share in ((0.0, 0.01), (-0.0, 0.01), (np.nan, 0.001), (np.inf, 0.0003)):
        drawn[rng.random(dims) < share] = special
    return np.asarray(drawn.astype(dtype))


@pytest.mark.sampled(2)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize(("number", "dims", "dimension"), [(n, *s) for n, s in enumerate(_SHAPES)])
def test_bits(number: int, dims: tuple[int, ...], dimension: int) -> None:
    """Kernels of argmin and argmax have the interpreter's bits, also from inits that win, that tie,
    and whose index is not the first.

    Both forms meet each type, and each shape; all types of a shape take one compilation.
    """
    forms = ((_JAX, "GT", "s32"), (_TENSORFLOW, "LT", "s64"))
    cases = [(t, *forms[(place + number) % 2]) for place, t in enumerate(_DTYPES)]
    modules = [
        hlo.parse(_program(form.format(t=t, n=n, direction=direction), dims, dimension))
        for t, form, direction, n in cases
    ]
    for module in modules:
        # The least position of the best, in lanes or by columns; of few elements a plain fold.
        is_sought = "minimum" in str(lowered(module).kernels)
        assert is_sought == (dims[dimension] > 16)
    executable = backend_c.compile(merged(modules), numerics="exact")
    executables = [executable.in_threads(threads) for threads in (1, 3)]
    every = [_arguments(t, dims, direction, n) for t, _, direction, n in cases]
    for some in zip(*every, strict=True):  # the same init of all
        expected = [interp.evaluate(module, *one) for module, one in zip(modules, some)]
        for executable in executables:
            found = executable(*itertools.chain(*some))
            for case, arguments, one, other in zip(cases, some, expected, found, strict=True):
                assert not differences(one, other), (case, arguments[1:])


def _arguments(
    element_type: str, dims: tuple[int, ...], direction: str, index_type: str
) -> list[tuple[Array, Array, Array]]:
    """Values, init and its index, for each init."""
    dtype = _DTYPES[element_type]
    x = _values(element_type, dims, direction)
    worst = 0 if dtype is np.uint8 else -100 if direction == "GT" else 100
    return [
        (x, np.asarray(init, dtype), np.asarray(index, _DTYPES[index_type]))
        for init, index in ((worst, 0), (0, 7), (99, 3))
    ]


def _known(text: str) -> Choice | None:
    rest = "ENTRY e { ROOT x = f32[] parameter(0) }"
    return choice_of(hlo.parse(text + rest).computations[0])


@pytest.mark.parametrize("t", _DTYPES)
def test_computations_are_known(t: str) -> None:
    is_float = t in ("f32", "f64", "bf16")
    for direction, operation in (("GT", "maximum"), ("LT", "minimum")):
        known = _known(_JAX.format(t=t, n="s32", direction=direction))
        assert known == Choice(operation, is_last_value=is_float)


def test_other_computations_are_not() -> None:
    text = _JAX.format(t="f32", n="s32", direction="GT")
    assert (
        _known(text.replace("compare(i, j), direction=LT", "compare(i, j), direction=GT")) is None
    )
    assert _known(text.replace("direction=NE", "direction=EQ")) is None
    assert _known(text.replace("or(better, none)", "or(better, better)")) is None
    assert _known(text.replace("tuple(value, index)", "tuple(value, j)")) is None
    assert _known(text.replace("select(first, a, b)", "add(a, b)")) is None


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_indices_that_are_no_iota_are_folded_in_order() -> None:
    """A position cannot stand for them: an iota along another dimension, and one reversed."""
    text = _program(_JAX.format(t="f32", n="s32", direction="GT"), (40, 40), 1)
    reverse = (
        "q = s32[40,40] broadcast(i), dimensions={1}\n  k = s32[40,40] reverse(q), dimensions={1}"
    )
    x = _values("f32", (40, 40), "GT")
    arguments = x, np.float32(-np.inf), np.int32(0)
    forward = "k = s32[40,40] broadcast(i), dimensions={1}"
    for line in ("k = s32[40,40] broadcast(i), dimensions={0}", reverse):
        module = hlo.parse(text.replace(forward, line))
        expected = interp.evaluate(module, *arguments)
        assert not differences(expected, backend_c.compile(module, numerics="exact")(*arguments))

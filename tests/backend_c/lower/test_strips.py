"""Kernels that run along rows across memory: reductions of a dimension before the last ones."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import backend_c
import hlo
import interp
from backend_c.ir.loop_ir import Kernel, Loop, Store, every
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import compiled, lowered
from hlo.bit_equality import differences
from hlo.passes.fusion import fused_with_reasons
from hlo.passes.fusion_targets import TARGETS
from hlo_oracle.arguments import from_seed

DTYPES = {
    "f32": (np.dtype(np.float32), 1e-5),
    "f64": (np.dtype(np.float64), 1e-12),
    "f16": (np.dtype(np.float16), 1e-2),
    "bf16": (np.dtype(ml_dtypes.bfloat16), 1e-1),
    "s32": (np.dtype(np.int32), 0.0),
    "u8": (np.dtype(np.uint8), 0.0),
}
_INITS = {"add": 0, "multiply": 1, "maximum": 0, "minimum": 0}
_WIDE = (st.tuples(st.integers(16, 70)), st.tuples(st.integers(4, 9), st.integers(4, 9)))


@dataclass(frozen=True, slots=True)
class Chain:
    """Two reductions, of an array and of what is computed of it and the first one's result."""

    element_type: str
    outer: tuple[int, ...]
    reduced: tuple[int, ...]
    inner: tuple[int, ...]
    operations: tuple[str, str]
    result: str

    @property
    def module(self) -> hlo.Module:
        """The chain as a module."""
        t, (one, two) = self.element_type, self.operations
        dims = *self.outer, *self.reduced, *self.inner
        whole = f"{t}[{_listed(dims)}]"
        single = f"{t}[{_listed((*self.outer, *self.inner))}]"
        reduced = range(len(self.outer), len(self.outer) + len(self.reduced))
        over = f"dimensions={{{_listed(reduced)}}}"
        kept = f"dimensions={{{_listed(d for d in range(len(dims)) if d not in reduced)}}}"
        powers = "exponential" if DTYPES[t][1] else "negate"
        last = {
            "whole": f"""to = {whole} broadcast(scale), {kept}
                ROOT r = {whole} add(powers, to)""",
            "single": f"ROOT r = {single} add(scale, first)",
            "reduction": f"ROOT r = {single} reduce(powers, j), {over}, to_apply=two",
        }
        return hlo.parse(f"""HloModule chain
        one {{ a = {t}[] parameter(0)
               b = {t}[] parameter(1)
               ROOT r = {t}[] {one}(a, b) }}
        two {{ a = {t}[] parameter(0)
               b = {t}[] parameter(1)
               ROOT r = {t}[] {two}(a, b) }}
        ENTRY e {{ x = {whole} parameter(0)
            i = {t}[] constant({_INITS[one]})
            j = {t}[] constant({_INITS[two]})
            first = {single} reduce(x, i), {over}, to_apply=one
            from = {whole} broadcast(first), {kept}
            less = {whole} subtract(x, from)
            powers = {whole} {powers}(less)
            second = {single} reduce(powers, j), {over}, to_apply=two
            scale = {single} multiply(second, second)
            {last[self.result]} }}""")


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    dims = st.lists(st.integers(1, 4), max_size=2).map(tuple)
    reduced = draw(st.lists(st.integers(1, 9), min_size=1, max_size=2).map(tuple))
    operations = st.sampled_from(("add", "maximum", "minimum"))
    return Chain(
        draw(st.sampled_from(sorted(DTYPES))),
        draw(dims),
        reduced if math.prod(reduced) > 1 else (2, *reduced),
        draw(st.one_of(_WIDE)),
        (draw(operations), draw(operations)),
        draw(st.sampled_from(("whole", "single", "reduction"))),
    )


def kernels(module: hlo.Module) -> list[Kernel]:
    return lowered(module, Settings(Numerics.FAST), "backend_c_fast").kernels


@settings(max_examples=30)
@given(chains())
def test_a_chain_is_one_kernel_of_the_same_results(chain: Chain) -> None:
    module = chain.module
    note(hlo.format(module))
    (kernel,) = kernels(module)
    assert kernel.kind == "rows"
    dtype, error = DTYPES[chain.element_type]
    size = (*chain.outer, *chain.reduced, *chain.inner)
    x = np.random.default_rng(1).uniform(0, 3, size).astype(dtype)
    found = backend_c.compile(module)(x).astype(np.float64)
    expected = np.asarray(interp.evaluate(module, x)).astype(np.float64)
    assert np.allclose(found, expected, rtol=error, atol=error)


_FOLDS = """HloModule folds
fold {{ a = {t}[] parameter(0)
        b = {t}[] parameter(1)
        {fold} }}
ENTRY e {{ x = {t}[3,20,50] parameter(0)
  i = {t}[] constant({init})
  folded = {t}[3,50] reduce(x, i), dimensions={{1}}, to_apply=fold
  all = {t}[3,20,50] broadcast(folded), dimensions={{0,2}}
  ROOT r = {t}[3,20,50] {last}(x, all) }}"""


@pytest.mark.parametrize(
    ("t", "init", "fold", "last"),
    [
        ("s32", "7", "ROOT r = s32[] xor(a, b)", "subtract"),
        ("u16", "7", "ROOT r = u16[] and(a, b)", "add"),
        ("s8", "1", "ROOT r = s8[] multiply(a, b)", "add"),
        ("pred", "false", "ROOT r = pred[] or(a, b)", "xor"),
        # No monoid: in the order of the rows.
        ("s32", "1", "c = s32[] add(a, a) ROOT r = s32[] add(c, b)", "multiply"),
        ("f32", "1", "c = f32[] negate(a) ROOT r = f32[] maximum(c, b)", "minimum"),
        ("f32", "-inf", "ROOT r = f32[] maximum(a, b)", "minimum"),
        ("f64", "inf", "ROOT r = f64[] minimum(a, b)", "maximum"),
    ],
)
def test_any_fold_has_its_bits(t: str, init: str, fold: str, last: str) -> None:
    module = hlo.parse(_FOLDS.format(t=t, init=init, fold=fold, last=last))
    (x,) = from_seed(module, 3)  # NaN, infinities and zeros of both signs among them
    found, expected = backend_c.compile(module)(x), interp.evaluate(module, x)
    assert not differences(expected, found)
    assert len(kernels(module)) == 1


def softmax(dims: tuple[int, ...], dimension: int, result: str = "f32") -> hlo.Module:
    whole = _listed(dims)
    kept = [d for d in range(len(dims)) if d != dimension]
    single, over = _listed(dims[d] for d in kept), f"dimensions={{{dimension}}}"
    copies = f"dimensions={{{_listed(kept)}}}"
    return hlo.parse(f"""HloModule softmax
add {{ a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }}
max {{ a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] maximum(a, b) }}
ENTRY e {{ x = f32[{whole}] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  largest = f32[{single}] reduce(x, low), {over}, to_apply=max
  most = f32[{whole}] broadcast(largest), {copies}
  less = f32[{whole}] subtract(x, most)
  powers = f32[{whole}] exponential(less)
  total = f32[{single}] reduce(powers, zero), {over}, to_apply=add
  totals = f32[{whole}] broadcast(total), {copies}
  parts = f32[{whole}] divide(powers, totals)
  ROOT r = {result}[{whole}] convert(parts) }}""")


# Powers are kept in the result, on the stack, and in workspace; strips are of one width or not.
@pytest.mark.parametrize("result", ["f32", "f64"])
@pytest.mark.parametrize(
    ("dims", "dimension"),
    [
        ((5, 12, 40), 1),
        ((300, 601), 0),
        ((16, 2100, 33), 1),
        ((2, 3, 1, 50, 16, 3), 3),
        ((2, 30, 12, 18), 1),
    ],
)
def test_softmax_of_a_dimension(dims: tuple[int, ...], dimension: int, result: str) -> None:
    module = softmax(dims, dimension, result)
    (kernel,) = kernels(module)
    assert bool(kernel.scratch) == (result == "f64" and dims[1] == 2100)
    x = np.random.default_rng(1).normal(size=dims).astype(np.float32)
    powers = np.exp(x.astype(np.float64))
    executables = [compiled(module, Settings(Numerics.FAST, 1), threads=n) for n in (1, 2)]
    one, two = (np.asarray(executable(x)) for executable in executables)
    assert np.allclose(one, powers / powers.sum(dimension, keepdims=True), rtol=3e-6, atol=0)
    assert not differences(one, two)


def test_a_sum_that_no_other_loop_needs_stays_alone() -> None:
    """Threads share the rows of a sum of few columns, which a loop over these would not."""
    text = """HloModule log_of_sum
add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[900,600] parameter(0)
  zero = f32[] constant(0)
  powers = f32[900,600] exponential(x)
  sum = f32[600] reduce(powers, zero), dimensions={0}, to_apply=add
  ROOT r = f32[600] log(sum) }"""
    assert [kernel.kind for kernel in kernels(hlo.parse(text))] == ["reduce", "map"]


def test_few_operations_are_not_worth_reading_memory_in_snippets() -> None:
    """A norm of columns is two kernels where they have more than the last cache has room for."""
    text = """HloModule norms
add {{ a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }}
ENTRY e {{ x = f32[{n},1000] parameter(0)
  zero = f32[] constant(0)
  squares = f32[{n},1000] multiply(x, x)
  sum = f32[1000] reduce(squares, zero), dimensions={{0}}, to_apply=add
  norm = f32[1000] sqrt(sum)
  norms = f32[{n},1000] broadcast(norm), dimensions={{1}}
  ROOT r = f32[{n},1000] divide(x, norms) }}"""
    assert [len(kernels(hlo.parse(text.format(n=n)))) for n in (1000, 1050)] == [1, 2]


@pytest.mark.parametrize(
    ("dims", "number"),
    [((1000, 16), 1), ((1000, 15), 4), ((2000, 500), 4), ((2000, 512), 1), ((4, 16384, 64), 4)],
)
def test_strips_fill_vectors_caches_and_threads(dims: tuple[int, ...], number: int) -> None:
    assert len(kernels(softmax(dims, len(dims) - 2))) == number


def test_a_value_of_a_row_is_computed_once() -> None:
    """A square root of each column's sum, not of each element's."""
    module = Chain("f32", (3,), (20,), (50,), ("add", "add"), "whole").module
    text = hlo.format(module).replace("multiply(second, second)", "rsqrt(second)")
    (kernel,) = kernels(hlo.parse(text))
    (root,) = (loop for loop in _innermost(kernel) if "rsqrt" in repr(loop.body))
    assert not any(isinstance(s, Store) and s.array in kernel.outputs for s in root.body)


def _innermost(kernel: Kernel) -> list[Loop]:
    return [s for s in every(kernel.body) if isinstance(s, Loop) and s.kind == "lanes"]


_STANDARD = """HloModule standard
add {{ a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }}
ENTRY e {{ x = f32[30,50] parameter(0)
  zero = f32[] constant(0)
  sum = f32[50] reduce(x, zero), dimensions={{0}}, to_apply=add
  sine = f32[50] sine(sum)
  sines = f32[30,50] broadcast(sine), dimensions={{1}}
  {root} }}"""


@pytest.mark.parametrize(
    ("root", "stored"),
    [
        ("ROOT r = f32[30,50] divide(x, sines)", {"r"}),
        (
            """r = f32[30,50] divide(x, sines)
            ROOT t = (f32[30,50], f32[50]) tuple(r, sum)""",
            {"r", "sum", "sine"},
        ),
    ],
)
def test_what_is_once_for_each_row_is_stored_where_its_sum_is(root: str, stored: set[str]) -> None:
    """A sine joins the loop over rows that the sum is in, not one that would repeat it."""
    module = hlo.parse(_STANDARD.format(root=root))
    _, groups = fused_with_reasons(module, TARGETS["fusion_with_epilogues"])
    assert {name for name in groups["e"] if name not in ("x", "t")} == stored

"""Kernels that run along rows: each reduction of a row is one loop, whatever the rank."""

import numpy as np
import pytest

import backend_c
import hlo
import interp
from backend_c.ir.loop_ir import Loop, Statement
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import lowered


def softmax(dims: tuple[int, ...]) -> hlo.Module:
    rows, whole = (",".join(map(str, d)) for d in (dims[:-1], dims))
    kept = ",".join(map(str, range(len(dims) - 1)))
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
  largest = f32[{rows}] reduce(x, low), dimensions={{{len(dims) - 1}}}, to_apply=max
  most = f32[{whole}] broadcast(largest), dimensions={{{kept}}}
  less = f32[{whole}] subtract(x, most)
  powers = f32[{whole}] exponential(less)
  total = f32[{rows}] reduce(powers, zero), dimensions={{{len(dims) - 1}}}, to_apply=add
  totals = f32[{whole}] broadcast(total), dimensions={{{kept}}}
  ROOT r = f32[{whole}] divide(powers, totals) }}""")


def loops(statements: tuple[Statement, ...]) -> int:
    inside = [s for s in statements if isinstance(s, Loop)]
    return len(inside) + sum(loops(loop.body) for loop in inside)


@pytest.mark.parametrize("dims", [(64, 48), (4, 12, 48), (2, 3, 5, 48), (2, 1, 3, 4, 48)])
def test_each_reduction_is_one_loop(dims: tuple[int, ...]) -> None:
    for numerics in Numerics:
        pipeline = "backend_c_fast" if numerics is Numerics.FAST else "backend_c"
        (kernel,) = lowered(softmax(dims), Settings(numerics), pipeline).kernels
        assert kernel.kind == "rows" and loops(kernel.body) == 4  # rows, maximum, sum, result


def test_the_bits_of_the_interpreter() -> None:
    module = softmax((2, 3, 5, 50))
    x = np.random.default_rng(1).normal(size=(2, 3, 5, 50)).astype(np.float32)
    found = backend_c.compile(module, numerics="exact")(x)
    assert found.tobytes() == interp.evaluate(module, x).tobytes()


_DISTANCES = """HloModule distances
add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[70,3] parameter(0)
  zero = f32[] constant(0)
  from = f32[70,50,3] broadcast(x), dimensions={0,2}
  first = f32[50,3] slice(x), slice={[0:50], [0:3]}
  to = f32[70,50,3] broadcast(first), dimensions={1,2}
  less = f32[70,50,3] subtract(to, from)
  squares = f32[70,50,3] multiply(less, less)
  sum = f32[70,50] reduce(squares, zero), dimensions={2}, to_apply=add
  ROOT r = f32[70,50] sqrt(sum) }"""


def test_short_rows_are_lanes() -> None:
    """Distances of points of three coordinates: no loop over these, but in lanes over points."""
    (kernel,) = lowered(hlo.parse(_DISTANCES), Settings(Numerics.FAST), "backend_c_fast").kernels
    assert kernel.kind == "rows" and loops(kernel.body) == 2
    x = np.random.default_rng(3).normal(size=(70, 3)).astype(np.float32)
    found = backend_c.compile(hlo.parse(_DISTANCES))(x)
    wide = x.astype(np.float64)
    expected = np.sqrt(((wide[None, :50] - wide[:, None]) ** 2).sum(-1))
    assert np.allclose(found, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("length", [1, 2, 6, 8, 9])
def test_all_elements_of_short_rows_are_kept(length: int) -> None:
    """Their sums are written out: the loop that computes them reads one element after the other."""
    x = np.random.default_rng(4).normal(size=(5, length)).astype(np.float32)
    powers = np.exp(x.astype(np.float64))
    found = backend_c.compile(softmax((5, length)))(x)
    assert np.allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-6, atol=0)

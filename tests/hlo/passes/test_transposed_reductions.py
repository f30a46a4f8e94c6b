"""Reductions run along other dimensions of what is not transposed yet, with the same bits."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import interp
from hlo.passes.dead_code import dead_code
from hlo.passes.simplify import simplify
from hlo.passes.transpositions.transposes import transposes

_FOLDS = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
product { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] multiply(a, b) }
pair { a = f32[] parameter(0)
  c = f32[] parameter(1)
  b = f32[] parameter(2)
  d = f32[] parameter(3)
  s = f32[] add(a, b)
  m = f32[] maximum(c, d)
  ROOT r = (f32[], f32[]) tuple(s, m) }
"""


def _dims(dims: list[int] | tuple[int, ...]) -> str:
    return ",".join(map(str, dims))


def _folded(text: str) -> tuple[hlo.Module, hlo.Module, Counter[str]]:
    """Return a module, what the passes make of it, and how often that has each opcode."""
    module = hlo.parse(f"HloModule m\n{_FOLDS}{text}")
    folded = dead_code(simplify(transposes(module)))
    hlo.verify(folded)
    return module, folded, Counter(i.opcode for i in folded.entry.instructions)


def _same_bits(module: hlo.Module, folded: hlo.Module) -> bool:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(p.shape.dims).astype("f") for p in module.entry.parameters]
    before, after = (np.asarray(interp.evaluate(m, *arrays)) for m in (module, folded))
    return before.tobytes() == after.tobytes() and before.shape == after.shape


_CHAIN = """  c = f32[] constant(0.5)
  w = f32[{t}] broadcast(c), dimensions={{}}
  v = f32[{t}] broadcast(y), dimensions={{{vector}}}
  m = f32[{t}] multiply(t, w)
  n = f32[{t}] add(m, v)
  k = pred[] constant(true)
  z = f32[{t}] select(k, n, m)
"""


@given(st.data())
def test_any_dimensions_of_any_order(data: st.DataObject) -> None:
    dims = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    order = data.draw(st.permutations(range(len(dims))))
    reduced = data.draw(st.lists(st.sampled_from(range(len(dims))), unique=True, min_size=1))
    fold, chain = data.draw(st.sampled_from(["add", "product"])), data.draw(st.booleans())
    t = [dims[d] for d in order]
    vector = data.draw(st.sampled_from(range(len(dims))))
    kept = [extent for d, extent in enumerate(t) if d not in reduced]
    between = _CHAIN.format(t=_dims(t), vector=vector) if chain else ""
    module, folded, _ = _folded(f"""ENTRY e {{
  x = f32[{_dims(dims)}] parameter(0)
  y = f32[{t[vector]}] parameter(1)
  t = f32[{_dims(t)}] transpose(x), dimensions={{{_dims(order)}}}
{between}  i = f32[] constant(1)
  ROOT r = f32[{_dims(kept)}] reduce({"z" if chain else "t"}, i), dimensions={{{_dims(reduced)}}},
    to_apply={fold}
}}""")
    assert _same_bits(module, folded)
    # What is left moves the result, if it moves at all; a product of several dimensions in order.
    in_order = [order[d] for d in sorted(reduced)]
    if fold == "add" or in_order == sorted(in_order):
        moved = [i for i in folded.entry.instructions if i.opcode == "transpose"]
        assert all(math.prod(i.shape.dims) == math.prod(kept) for i in moved)  # type: ignore[union-attr]


def test_the_trapezoid_rule_has_no_transpose() -> None:
    module, folded, left = _folded("""ENTRY e {
  x = f32[7,5] parameter(0)
  t = f32[5,7] transpose(x), dimensions={1,0}
  i = f32[] constant(0)
  s = f32[5] reduce(t, i), dimensions={1}, to_apply=add
  f = f32[5,1] slice(t), slice={[0:5], [0:1]}
  l = f32[5,1] slice(t), slice={[0:5], [6:7]}
  e = f32[5,1] add(f, l)
  q = f32[5] reshape(e)
  ROOT r = f32[5] subtract(s, q)
}""")
    assert _same_bits(module, folded) and not left["transpose"]


_NEEDED = {
    "a softmax reads its elements too": """  m = f32[5] reduce(t, i), dimensions={1}, to_apply=add
  w = f32[5,7] broadcast(m), dimensions={0}
  ROOT r = f32[5,7] subtract(t, w)""",
    "a link of the chain is needed": """  e = f32[5,7] exponential(t)
  m = f32[5] reduce(e, i), dimensions={1}, to_apply=add
  w = f32[5,7] broadcast(m), dimensions={0}
  ROOT r = f32[5,7] divide(e, w)""",
    "another operand is in no other order": """  a = f32[5,7] add(t, y)
  ROOT r = f32[5] reduce(a, i), dimensions={1}, to_apply=add""",
    "a fold of two arrays": """  p = (f32[5], f32[5]) reduce(t, y, i, i), dimensions={1},
    to_apply=pair
  ROOT r = f32[5] get-tuple-element(p), index=0""",
    "a slice that is transposed as well": """  f = f32[5,2] slice(t), slice={[0:5], [0:2]}
  ROOT r = f32[5,2] negate(f)""",
}


@pytest.mark.parametrize("rest", _NEEDED.values(), ids=_NEEDED)
def test_a_transpose_that_is_needed_stays(rest: str) -> None:
    module, folded, left = _folded(f"""ENTRY e {{
  x = f32[7,5] parameter(0)
  y = f32[5,7] parameter(1)
  t = f32[5,7] transpose(x), dimensions={{1,0}}
  i = f32[] constant(0)
{rest}
}}""")
    assert left["transpose"] == 1
    assert _same_bits(module, folded)


def test_time_is_linear_in_a_chain() -> None:
    links = "\n".join(f"  a{n + 1} = f32[5,7] add(a{n}, a{n})" for n in range(5000))
    _, _, left = _folded(f"""ENTRY e {{
  x = f32[7,5] parameter(0)
  a0 = f32[5,7] transpose(x), dimensions={{1,0}}
{links}
  i = f32[] constant(0)
  ROOT r = f32[5] reduce(a5000, i), dimensions={{1}}, to_apply=add
}}""")
    assert not left["transpose"] and left["add"] == 5000

"""Chains of operations that are fused, longer than Python's recursion."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo
from backend_c.ir.deep_expressions import deep_expressions


def _chain(links: int) -> str:
    """Return a program that adds its argument to a sum so many times."""
    sums = ["x", *(f"a{n}" for n in range(links))]
    lines = [f"{name} = f32[8] add({last}, x)" for last, name in zip(sums, sums[1:], strict=False)]
    body = "\n  ".join([*lines[:-1], f"ROOT {lines[-1]}"])
    return f"HloModule m\nENTRY e {{\n  x = f32[8] parameter(0)\n  {body}\n}}\n"


@pytest.mark.parametrize("target", ["openmp", "embedded", "cuda"])
def test_a_long_chain_is_emitted(target: str) -> None:
    assert backend_c.emit(hlo.parse(_chain(1200)), target)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_a_long_chain_has_the_bits_of_the_interpreter() -> None:
    assert_same_bits(_chain(1200), np.linspace(-1, 1, 8, dtype=np.float32))


def _links(shape: str, first: str, other: str) -> str:
    """Return the instructions of a chain of 2,000 operations, of which the last is ``a1999``."""
    last, lines = first, []
    for n in range(2000):
        operation = f"add({last}, {other})" if n % 2 else f"negate({last})"
        last = f"a{n}"
        lines.append(f"{last} = {shape} {operation}")
    return "\n".join(lines)


# No fusion cuts computations that are called per element: they are as long as their text.
_REDUCE = f"""HloModule m
f {{ x = f32[] parameter(0)
  y = f32[] parameter(1)
  {_links("f32[]", "x", "y")}
  ROOT r = f32[] subtract(a1999, x) }}
ENTRY e {{ x = f32[8] parameter(0)
  one = f32[] constant(1)
  ROOT r = f32[] reduce(x, one), dimensions={{0}}, to_apply=f }}"""
_ARRAYS = f"""HloModule m
condition {{ s = (s32[], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(3)
  ROOT less = pred[] compare(n, limit), direction=LT }}
body {{ s = (s32[], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  more = s32[] add(n, one)
  x = f32[2] get-tuple-element(s), index=1
  {_links("f32[2]", "x", "x")}
  ROOT r = (s32[], f32[2]) tuple(more, a1999) }}
f {{ x = f32[] parameter(0)
  xs = f32[2] broadcast(x), dimensions={{}}
  zero = s32[] constant(0)
  s = (s32[], f32[2]) tuple(zero, xs)
  end = (s32[], f32[2]) while(s), condition=condition, body=body
  ys = f32[2] get-tuple-element(end), index=1
  y = f32[1] slice(ys), slice={{[1:2]}}
  ROOT r = f32[] reshape(y) }}
ENTRY e {{ x = f32[8] parameter(0)
  ROOT r = f32[8] map(x), dimensions={{0}}, to_apply=f }}"""
_PER_ELEMENT = {"scalars": _REDUCE, "arrays": _ARRAYS}


@pytest.mark.parametrize("text", _PER_ELEMENT.values(), ids=_PER_ELEMENT)
@pytest.mark.parametrize("target", ["embedded", "cuda"])
def test_a_long_computation_of_elements_is_emitted(target: str, text: str) -> None:
    assert backend_c.emit(hlo.parse(text), target)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("text", _PER_ELEMENT.values(), ids=_PER_ELEMENT)
def test_a_long_computation_of_elements_has_the_bits_of_the_interpreter(text: str) -> None:
    assert_same_bits(text, np.linspace(-1, 1, 8, dtype=np.float32))


def test_the_limit_is_what_it_was_after_the_last_thread() -> None:
    before, together = sys.getrecursionlimit(), Barrier(2)

    @deep_expressions()
    def depth(n: int) -> int:
        with deep_expressions():
            together.wait(60)
        return _depth(n)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(depth, (5000, 10))) == [5000, 10]
    assert sys.getrecursionlimit() == before


def _depth(n: int) -> int:
    """Return n by n calls."""
    return 1 + _depth(n - 1) if n else 0

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

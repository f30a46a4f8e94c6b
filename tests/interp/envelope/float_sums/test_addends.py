"""Sums of few addends that are not zero, or of numbers of few bits, have no error in any order; and
what any order gives is legal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hlo
from hlo.values import Array
from interp.envelope.budget import FAST, UNKNOWN, XLA_CPU, XLA_GPU, XLA_TPU, Budget
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose
from interp.envelope.float_sums.addends import grids
from interp.exact.conversion import type_of

BF16 = np.dtype(ml_dtypes.bfloat16)
TYPES = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "bf16": BF16}
TYPES["f16"] = np.dtype(np.float16)
PEERS = (XLA_CPU, UNKNOWN, FAST, XLA_GPU, XLA_TPU)
_ADD = """add {
  a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  ROOT s = TYPE[] add(a, b)
}
"""
_finfo: Any = ml_dtypes.finfo


def reduction(name: str, size: int) -> str:
    return f"""HloModule m
{_ADD}ENTRY e {{
  x = TYPE[{size}] parameter(0)
  z = TYPE[] parameter(1)
  ROOT r = TYPE[] reduce(x, z), dimensions={{0}}, to_apply=add
}}
""".replace("TYPE", name)


def windows(name: str, size: int) -> str:
    """Sum all elements up to each one."""
    return f"""HloModule m
{_ADD}ENTRY e {{
  x = TYPE[{size}] parameter(0)
  z = TYPE[] parameter(1)
  ROOT r = TYPE[{size}] reduce-window(x, z), window={{size={size} pad={size - 1}_0}}, to_apply=add
}}
""".replace("TYPE", name)


def scattered(name: str, size: int) -> str:
    return f"""HloModule m
{_ADD}ENTRY e {{
  x = TYPE[{size}] parameter(0)
  z = TYPE[] parameter(1)
  v = TYPE[1] reshape(z)
  i = s32[] constant(0)
  p = s32[{size},1] broadcast(i), dimensions={{}}
  ROOT r = TYPE[1] scatter(v, p, x), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
}}
""".replace("TYPE", name)  # noqa: E501 (one instruction)


def product(name: str, size: int) -> str:
    return f"""HloModule m
ENTRY e {{
  x = TYPE[{size}] parameter(0)
  y = TYPE[{size}] parameter(1)
  ROOT r = TYPE[] dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
}}
""".replace("TYPE", name)


# What numbers are like.
_DRAWN: dict[str, Callable[[np.random.Generator, int, Any], Array]] = {
    "zeros": lambda rng, n, info: rng.choice([0.0, -0.0], n),
    "masks": lambda rng, n, info: rng.integers(0, 2, n).astype(np.float64),
    "whole": lambda rng, n, info: rng.integers(-9, 10, n) * 2.0 ** rng.integers(-9, 9),
    "large whole": lambda rng, n, info: rng.integers(-(2**11), 2**11, n).astype(np.float64) * 2**13,
    "any": lambda rng, n, info: rng.standard_normal(n),
    "any sizes": lambda rng, n, info: rng.standard_normal(n) * 2.0 ** rng.integers(-20, 20, n),
    "tiny": lambda rng, n, info: rng.integers(-9, 10, n) * (float(info.smallest_normal) / 8),
    "huge": lambda rng, n, info: rng.uniform(-1, 1, n) * float(info.max),
    "special": lambda rng, n, info: rng.choice([np.inf, -np.inf, np.nan, 1.0], n),
}


def drawn(rng: np.random.Generator, size: int, dtype: np.dtype[Any]) -> Array:
    """Draw numbers of one kind or two, most of them zeros at times."""
    kinds = list(_DRAWN)
    with np.errstate(all="ignore"):
        found = _DRAWN[kinds[rng.integers(0, len(kinds))]](rng, size, _finfo(dtype))
        if rng.integers(0, 3) == 0:
            some = rng.integers(0, size, rng.integers(1, 3))
            found[some] = _DRAWN[kinds[rng.integers(0, len(kinds))]](rng, some.size, _finfo(dtype))
        if rng.integers(0, 2):
            found = np.where(rng.random(size) < rng.choice([0.5, 0.95]), 0.0, found)
        return np.asarray(found).astype(dtype)


class Adder:
    """Add as a legal compiler: in a type, an order, and with roundings in between, at random."""

    def __init__(self, rng: np.random.Generator, dtype: np.dtype[Any], peer: Budget) -> None:
        self.rng, self.dtype = rng, dtype
        own = type_of(np.zeros(0, dtype))
        wide = [np.dtype(np.float32)] if dtype.itemsize == 2 else [np.dtype(np.float64)]
        self.accumulator = [dtype, *wide][rng.integers(0, 2)]
        self.stores = bool(rng.integers(0, 2))
        self.flushes = peer.may_flush(own) and bool(rng.integers(0, 2))
        self.tiny = float(_finfo(dtype).smallest_normal)
        if self.accumulator == np.float32 and peer.flushes:  # also f16, in which they are subnormal
            self.flushes, self.tiny = bool(rng.integers(0, 2)), float(np.finfo(np.float32).tiny)

    def flushed(self, x: Any) -> Any:
        is_small = self.flushes and 0 < abs(float(x)) < self.tiny
        return x * x.dtype.type(0) if is_small and self.rng.integers(0, 4) else x

    def stored(self, x: Any) -> Any:
        """Round to the type written, at times, as memory between two steps has it."""
        if self.stores and self.rng.integers(0, 2):
            return self.flushed(x).astype(self.dtype).astype(self.accumulator)
        return x

    def plus(self, x: Any, y: Any) -> Any:
        return self.stored(self.flushed(self.flushed(x) + self.flushed(y)))

    def total(self, addends: list[Any]) -> Any:
        """Add in lanes that begin with zeros, in the order written or another, or as a tree."""
        terms = [np.asarray(x).astype(self.accumulator)[()] for x in addends]
        zero = self.accumulator.type(self.rng.choice([0.0, -0.0]))
        terms += [zero] * int(self.rng.integers(0, 4))
        if self.rng.integers(0, 2):
            terms = [terms[n] for n in self.rng.permutation(len(terms))]
        lanes = int(self.rng.integers(1, 6))
        partial = []
        for lane in (terms[n::lanes] for n in range(lanes)):
            total = zero
            for term in lane:
                total = self.plus(total, term)
            partial.append(total)
        partial = terms if self.rng.integers(0, 3) == 0 else partial
        while len(partial) > 1:
            pairs = [self.plus(*partial[n : n + 2]) for n in range(0, len(partial) - 1, 2)]
            partial = pairs + ([partial[-1]] if len(partial) % 2 else [])
        return self.flushed(np.asarray(self.flushed(partial[0])).astype(self.dtype)[()])


_MODULES: dict[tuple[Any, str, int], hlo.Module] = {}


def module_of(make: Callable[[str, int], str], name: str, size: int) -> hlo.Module:
    found = _MODULES.get((make, name, size))
    if found is None:
        found = _MODULES[make, name, size] = hlo.parse(make(name, size))
    return found


@given(st.integers(0, 2**32), st.sampled_from(list(TYPES)), st.sampled_from((reduction, scattered)))
@example(0, "f16", reduction)
def test_every_order_of_a_sum_is_legal(seed: int, name: str, make: Any) -> None:
    rng = np.random.default_rng(seed)
    size, dtype = int(rng.choice([1, 2, 7, 40])), TYPES[name]
    x = drawn(rng, size, dtype)
    init = drawn(rng, 1, dtype)[0] if rng.integers(0, 2) else dtype.type(0)
    peer = PEERS[rng.integers(0, len(PEERS))]
    legal = enclose(module_of(make, name, size), x, np.asarray(init), peer=peer).result
    with np.errstate(all="ignore"):
        for _ in range(4):
            actual = Adder(rng, dtype, peer).total([init, *x])
            assert contains(legal, np.full(legal.shape, actual)).all(), (peer.name, x, actual)


@given(st.integers(0, 2**32), st.sampled_from(list(TYPES)))
def test_every_order_of_windows_is_legal(seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    size, dtype = 12, TYPES[name]
    x = drawn(rng, size, dtype)
    zero = np.asarray(rng.choice([0.0, -0.0]), dtype)
    peer = PEERS[rng.integers(0, len(PEERS))]
    legal = enclose(module_of(windows, name, size), x, zero, peer=peer).result
    with np.errstate(all="ignore"):
        adder = Adder(rng, dtype, peer)
        actual = np.array([adder.total([zero[()], *x[: n + 1]]) for n in range(size)], dtype)
    assert contains(legal, actual).all(), (peer.name, x, actual)


def rounded_factors(rng: np.random.Generator, x: Array, peer: Budget) -> list[Array]:
    """Round factors of f32 to bf16, or TF32, or split them, as a device does; the terms of a
    split one are the parts of a sum."""
    bits = peer.operand_bits.get("default", 24)
    if bits == 24 or x.dtype != np.float32 or rng.integers(0, 4) == 0:
        return [x]
    if bits == 8 or rng.integers(0, 2):
        high = x.astype(BF16).astype(np.float32)
        is_one = bits == 8 and bool(rng.integers(0, 2))
        return [high] if is_one else [high, (x - high).astype(BF16).astype(np.float32)]
    # TF32: ten bits and the one in front, to nearest, even.
    word = x.view(np.uint32)
    return [((word + 0xFFF + ((word >> 13) & 1)) & np.uint32(0xFFFFE000)).view(np.float32)]


def _products(rng: np.random.Generator, adder: Adder, x: Array, y: Array) -> list[Any]:
    """Multiply: rounded to the accumulator's type, or unrounded where that is exact in f64, in
    which the sum is taken then."""
    wide = adder.accumulator
    if wide == np.float32 and adder.dtype == np.float32 and rng.integers(0, 2):
        adder.accumulator = wide = np.dtype(np.float64)
    return [adder.flushed(adder.flushed(a) * adder.flushed(b)) for a, b in
            zip(x.astype(wide), y.astype(wide), strict=True)]  # fmt: skip


@given(st.integers(0, 2**32), st.sampled_from(list(TYPES)))
def test_every_order_of_a_product_is_legal(seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    size, dtype = int(rng.choice([1, 2, 7, 40])), TYPES[name]
    x, y = drawn(rng, size, dtype), drawn(rng, size, dtype)
    peer = PEERS[rng.integers(0, len(PEERS))]
    legal = enclose(module_of(product, name, size), x, y, peer=peer).result
    with np.errstate(all="ignore"):
        for _ in range(4):
            adder = Adder(rng, dtype, peer)
            terms = []
            left, right = rounded_factors(rng, x, peer), rounded_factors(rng, y, peer)
            if not (np.isfinite(x).all() and np.isfinite(y).all()):
                left, right = [x], [y]  # parts of an infinity are no numbers
            for a in left:
                for b in right:
                    terms += _products(rng, adder, a, b)
            actual = np.asarray(adder.total(terms))
            assert contains(legal, actual).all(), (peer.name, x, y, actual)


@given(st.integers(0, 2**32), st.sampled_from((XLA_CPU, UNKNOWN, XLA_GPU, XLA_TPU)))
def test_whole_numbers_have_one_sum(seed: int, peer: Budget) -> None:
    rng = np.random.default_rng(seed)
    size = 100
    x = rng.integers(-100, 101, size).astype(np.float32)
    y = rng.integers(-100, 101, size).astype(np.float32)
    zero = np.float32(0)
    power = 2.0 ** rng.integers(-50, 50)
    total = enclose(module_of(reduction, "f32", size), x * np.float32(power), zero, peer=peer)
    assert total.result.low == total.result.high == x.sum() * np.float32(power)
    dot = enclose(module_of(product, "f32", size), x * np.float32(power), y, peer=peer).result
    assert dot.low == dot.high == (x.astype(np.float64) @ y) * power


def test_a_sum_of_nothing_is_its_init() -> None:
    legal = enclose(
        hlo.parse(reduction("f32", 0)), np.zeros(0, np.float32), np.float32(0.1), peer=XLA_CPU
    ).result
    assert legal.low == legal.high == np.float32(0.1)


@pytest.mark.parametrize("peer", PEERS, ids=lambda x: x.name)
def test_one_addend_is_its_own_sum(peer: Budget) -> None:
    x = np.zeros(40, np.float32)
    x[7] = np.float32(0.1)
    legal = enclose(module_of(reduction, "f32", 40), x, np.float32(0), peer=peer).result
    assert legal.low == legal.high == x[7]
    legal = enclose(module_of(windows, "f32", 40), x, np.float32(0), peer=peer).result
    assert (legal.low == legal.high).all()


@pytest.mark.parametrize("peer", (XLA_CPU, UNKNOWN, FAST), ids=lambda x: x.name)
def test_one_product_is_its_own_sum(peer: Budget) -> None:
    x = np.zeros(40, np.float32)
    x[7], y = 1, np.float32(np.random.default_rng(0).standard_normal(40))
    legal = enclose(module_of(product, "f32", 40), x, y, peer=peer).result
    assert legal.low == legal.high == y[7]


@pytest.mark.parametrize("peer", (XLA_CPU, XLA_TPU), ids=lambda x: x.name)
def test_sums_beyond_the_precision_of_their_type_are_rounded(peer: Budget) -> None:
    """2^24 + 1 and the like are no numbers of f32, 257 is none of bf16, in which a compiler may
    add."""
    for name, most in (("f32", 2.0**24), ("bf16", 2.0**8)):
        x = np.asarray([most, 1, 1], TYPES[name])
        legal = enclose(module_of(reduction, name, 3), x, TYPES[name].type(0), peer=peer).result
        assert contains(legal, np.asarray(most, TYPES[name]))
        assert contains(legal, np.asarray(most + 2, TYPES[name]))


@pytest.mark.parametrize(
    "number, grid",
    [(0.0, np.inf), (-0.0, np.inf), (1.0, 1.0), (-12.0, 4.0), (0.75, 0.25), (5e-324, 5e-324)]
    + [(2.0**-1022 + 2.0**-1074, 2.0**-1074), (1 + 2.0**-52, 2.0**-52), (2.0**1023, 2.0**1023)],
)
def test_a_grid_is_the_last_bit(number: float, grid: float) -> None:
    assert grids(np.asarray([number]), np.asarray([number])) == grid
    assert grids(np.asarray([number]), np.asarray([np.inf])) == 0

"""Rules applied block by block give nothing that they do not give for whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hlo.bit_equality import differences
from hlo.types import ELEMENT_TYPES, PRED, ArrayShape
from hlo.values import Array
from hlo.walk import column
from interp.envelope import budget
from interp.envelope.blocks import BLOCK, in_blocks, in_blocks_of, is_uniform
from interp.envelope.budget import EXACT, UNKNOWN, XLA_CPU
from interp.envelope.complex_numbers import joined
from interp.envelope.enclosure import Enclosure, anything, is_nan, moved, point
from interp.envelope.midpoints import beside_middle, middle
from interp.envelope.verdict import WIDEST, is_wide, kinds
from interp.exact.rounding import rounded

RULES = column("interp.envelope.ops")
UNARY = (
    "abs_",
    "ceil",
    "exponential",
    "floor",
    "log",
    "logistic",
    "negate",
    "rsqrt",
    "sign",
    "sine",
)
BINARY = ("add", "atan2", "divide", "maximum", "multiply", "power", "remainder")
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 2.0]


def drawn(rng: np.random.Generator, name: str) -> Enclosure:
    """Numbers of many sizes and special ones, in intervals of which some are points."""
    values = rng.standard_normal((6, 5)) * 10.0 ** rng.integers(-8, 9, (6, 5))
    values = np.where(rng.random((6, 5)) < 0.3, rng.choice(SPECIAL, (6, 5)), values)
    low = rounded(values, ELEMENT_TYPES[name])
    if rng.random() < 0.3:
        return point(low)
    widths = np.nan_to_num(np.abs(values), posinf=0.0) * rng.choice([0, 0.1, 3], (6, 5))
    high = rounded(values + widths, ELEMENT_TYPES[name])
    return Enclosure(low, high, is_nan(low) | (rng.random((6, 5)) < 0.1))


def same(one: Enclosure, other: Enclosure) -> bool:
    parts = [(x.low, x.high, np.asarray(x.nan)) for x in (one, other)]
    return not differences(*parts) and one.shape == other.shape


def is_part(one: Enclosure, other: Enclosure) -> bool:
    """Whether all of one enclosure is legal in another."""
    with np.errstate(invalid="ignore"):  # bf16 warns of NaN
        low, high = np.asarray(one.low >= other.low), np.asarray(one.high <= other.high)
    numbers = (low & high) | is_nan(one.low) | is_nan(one.high)
    return one.shape == other.shape and bool((numbers & (other.nan | ~one.nan)).all())


@pytest.mark.sampled(36)
@pytest.mark.parametrize("peer", [EXACT, UNKNOWN, XLA_CPU], ids=lambda peer: peer.name)
@pytest.mark.parametrize("type_name", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_blocks_are_parts_of_the_whole(name: str, type_name: str, peer: budget.Budget) -> None:
    """A rule applied in blocks gives parts of the whole enclosure, and all of it where nothing is
    flushed."""
    rng = np.random.default_rng([len(name), len(type_name), len(peer.name)])
    rule: Callable[..., Any] = RULES[name].function
    for _ in range(6):
        with np.errstate(all="ignore"), budget.using(peer):
            operands = [drawn(rng, type_name) for _ in range(2 if name in BINARY else 1)]
            whole, blocks = rule(*operands), in_blocks(rule, operands, block=7)
        assert is_part(blocks, whole)
        assert peer is not EXACT or same(blocks, whole)


def test_a_choice_and_a_conversion() -> None:
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        one, other = drawn(rng, "f32"), drawn(rng, "f32")
    either = point(rng.random((6, 5)) < 0.5)
    shape = ArrayShape(ELEMENT_TYPES["bf16"], (6, 5))
    rules: list[tuple[Callable[..., Any], list[Enclosure]]] = [
        (RULES["select"].function, [either, one, other]),
        (lambda x: RULES["convert"].function(x, shape=shape), [one]),
        (lambda x, y: RULES["compare"].function(x, y, direction="LT", type=""), [one, other]),
    ]
    for rule, operands in rules:
        with np.errstate(all="ignore"), budget.using(XLA_CPU):
            assert same(rule(*operands), in_blocks(rule, operands, block=7))


def test_small_arrays_scalars_and_integers_stay_whole() -> None:
    seen: list[tuple[int, ...]] = []

    def rule(*operands: Enclosure) -> Enclosure:
        seen.append(operands[-1].shape)
        return operands[-1]

    floats, integers = point(np.ones((6, 5), np.float32)), point(np.ones((6, 5), np.int32))
    scalar, mask = point(np.float32(1) * np.ones(())), point(np.ones((6, 5), PRED.numpy))
    for operands in ([floats], [scalar, floats], [integers, integers]):
        in_blocks(rule, operands, block=16)
    assert seen == [(6, 5)] * 3
    result = in_blocks(rule, [mask, floats], block=15)
    assert seen[3:] == [(15,), (15,)] and result.is_point and result.shape == (6, 5)


@pytest.mark.parametrize("type_name", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_what_is_the_same_everywhere_is_computed_once(name: str, type_name: str) -> None:
    rng = np.random.default_rng([len(name), len(type_name)])
    seen: list[tuple[int, ...]] = []

    def rule(*operands: Enclosure) -> Enclosure:
        seen.append(operands[0].shape)
        return RULES[name].function(*operands)  # type: ignore[no-any-return]

    with np.errstate(all="ignore"):
        values = drawn(rng, type_name), anything((6, 5), ELEMENT_TYPES[type_name])
    for value in values:
        one = moved(lambda x: np.broadcast_to(x[2:3, 3:4], (6, 5)), value)
        assert is_uniform(one)
        operands = [one] * (2 if name in BINARY else 1)
        with np.errstate(all="ignore"), budget.using(XLA_CPU):
            found = in_blocks(rule, operands)
            written_out = [moved(np.copy, x) for x in operands]
            assert same(found, RULES[name].function(*written_out))
        assert seen.pop() == (1, 1) and is_uniform(found)


def test_arrays_are_computed_in_blocks() -> None:
    one, other = np.arange(30.0).reshape(6, 5), np.broadcast_to(np.float64(3), (6, 5))
    sizes: list[int] = []

    def both(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes.append(x.size)
        return x + y, x > y

    found = in_blocks_of(both, (one, other), block=7)
    assert [len(found), *sizes] == [2, 7, 7, 7, 7, 2]
    for result, expected in zip(found, both(one, other), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("type_name", ["f32", "bf16", "f64", "c64", "s32"])
def test_verdicts_of_many_elements_are_those_of_few(type_name: str) -> None:
    """The verdict on an array that repeats each of a few rows is the verdict on the rows, repeated:
    blocks of other rows and sizes do not change it."""
    rng = np.random.default_rng(11)
    for _ in range(4):
        with np.errstate(over="ignore"):
            legal, *others = (_of_type(rng, type_name) for _ in range(3))
        exact, actual = (x.low for x in others)
        actual = np.where(rng.random((6, 5)) < 0.7, rng.choice([legal.low, exact]), actual)
        times = 2 * BLOCK // 30 + 2

        def repeated(array: Array, times: int = times) -> Array:
            return np.repeat(array, times, axis=0)

        with np.errstate(all="ignore"):
            many = moved(repeated, legal)
            found = kinds(*map(repeated, (actual, exact)), many)
            assert found.tobytes() == repeated(kinds(actual, exact, legal)).tobytes()
            assert middle(many).tobytes() == repeated(middle(legal)).tobytes()
            beside = beside_middle(repeated(actual), many)
            assert beside.tobytes() == repeated(beside_middle(actual, legal)).tobytes()
            wide = is_wide(many, middle(many), 2.0**-8)
            assert (wide == repeated(is_wide(legal, middle(legal), 2.0**-8))).all()


def _of_type(rng: np.random.Generator, type_name: str) -> Enclosure:
    """Draw an enclosure, of whole numbers or by component if the type has these."""
    if type_name == "c64":
        return joined(*(drawn(rng, "f32") for _ in range(2)))
    if type_name != "s32":
        return drawn(rng, type_name)
    low = rng.integers(-9, 9, (6, 5)).astype(np.int32)
    return Enclosure(low, low + rng.integers(0, 2, (6, 5)).astype(np.int32), is_nan(low))


@pytest.mark.parametrize("type_name", ["f32", "f64"])
def test_what_is_surely_narrow_is_narrow(type_name: str) -> None:
    """Widths just below and above the limit are told apart, also of subnormal numbers, as by their
    own type's arithmetic alone."""
    number = ELEMENT_TYPES[type_name].numpy.type
    for scale in (1.0, 1e30, 2.0**-1060 if type_name == "f64" else 2.0**-140):
        for size in range(1, 400):
            low = np.full((), size * scale, number)
            for part in (0.9, 0.985, 0.995, 1.01, 1.2):
                high = np.asarray(number(float(low) * (1 + WIDEST * part)))
                width = float(high) - float(low)
                expected = width > WIDEST * float(low)
                legal = Enclosure(low, high, np.asarray(False))
                assert bool(is_wide(legal, low)) == expected, (size, scale, part)

"""Random bits against the vectors of XLA's own generators."""

from __future__ import annotations

import numpy as np
import pytest

from hlo.errors import Unsupported
from hlo.types import ELEMENT_TYPES, U64, ArrayShape, TupleShape
from interp.ops import random

VECTORS = [
    ("rng_three_fry", [1, 2], [43444564, 2150618427, 3979645651, 3745730563, 1672743891], [1, 5]),
    ("rng_philox", [1, 2, 3], [4031113034, 1366700262, 495645701, 3051723414, 89414891], [1, 4, 3]),
    ("rng_default", [1, 2], [2100602697, 2847456232, 2074354647, 800269529, 1828267006], [1, 4]),
]


def bits(
    state: list[int], dims: tuple[int, ...], name: str, algorithm: str
) -> tuple[np.ndarray, np.ndarray]:
    shape = TupleShape((ArrayShape(U64, (len(state),)), ArrayShape(ELEMENT_TYPES[name], dims)))
    words = np.array(state, np.uint64)
    return random.rng_bit_generator(words, algorithm=algorithm, shape=shape)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("algorithm", "state", "expected", "after"), VECTORS)
def test_vectors(algorithm: str, state: list[int], expected: list[int], after: list[int]) -> None:
    new_state, values = bits(state, (5,), "u32", algorithm)
    assert values.tolist() == expected and new_state.tolist() == after
    only = random.rng_bit_generator(
        np.array(state, np.uint64), algorithm=algorithm, shape=ArrayShape(ELEMENT_TYPES["u8"], (5,))
    )
    assert only.tolist() == [value % 256 for value in expected]


def test_three_fry_splits_the_first_even_or_the_largest_dimension() -> None:
    new_state, values = bits([1, 2], (3, 3), "u32", "rng_three_fry")
    assert new_state.tolist() == [1, 8]
    assert values.tolist() == [
        [43444564, 3979645651, 1672743891],
        [2150618427, 3745730563, 4240503393],
        [2109414752, 2534981805, 2868795927],
    ]


def test_counters_carry() -> None:
    full = 2**64 - 1
    assert bits([7, full, 3], (8,), "u32", "rng_philox")[0].tolist() == [7, 1, 4]
    assert bits([7, full, full], (8,), "u32", "rng_philox")[0].tolist() == [7, 1, 0]
    first = bits([7, 0, 4], (4,), "u32", "rng_philox")[1]
    assert bits([7, full, 3], (8,), "u32", "rng_philox")[1][4:].tolist() == first.tolist()
    assert bits([7, full], (4,), "u64", "rng_three_fry")[0].tolist() == [7, 3]


def test_words_of_64_bits_take_two() -> None:
    narrow = bits([1, 2, 3], (6,), "u32", "rng_philox")[1].astype(np.uint64)
    wide = bits([1, 2, 3], (3,), "u64", "rng_philox")[1]
    assert wide.tolist() == (narrow[0::2] | narrow[1::2] << np.uint64(32)).tolist()


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(Unsupported, match="rng_three_fry with a state of 3"):
        bits([1, 2, 3], (5,), "u32", "rng_three_fry")


def scalars(name: str, *values: float) -> list[np.ndarray]:
    return [np.asarray(value, ELEMENT_TYPES[name].numpy) for value in values]


def test_uniform_draws_are_reproducible_and_in_range() -> None:
    shape = ArrayShape(ELEMENT_TYPES["f32"], (1000,))
    with random.seeded(5):
        first = random.rng(*scalars("f32", -2, 3), distribution="rng_uniform", shape=shape)
        second = random.rng(*scalars("f32", -2, 3), distribution="rng_uniform", shape=shape)
    with random.seeded(5):
        again = random.rng(*scalars("f32", -2, 3), distribution="rng_uniform", shape=shape)
    assert np.array_equal(first, again) and not np.array_equal(first, second)
    assert first.min() >= -2 and first.max() < 3 and abs(first.mean() - 0.5) < 0.2
    expected = bits([5, 0, 0], (1000,), "u32", "rng_philox")[1] >> np.uint32(9)
    unit = expected.astype(np.float32) * np.float32(2**-23)
    assert np.array_equal(first, np.float32(-2) + unit * np.float32(5))


def test_draws_of_f64_take_words_of_64_bits() -> None:
    shape = ArrayShape(ELEMENT_TYPES["f64"], (1000,))
    with random.seeded(5):
        uniform = random.rng(*scalars("f64", -2, 3), distribution="rng_uniform", shape=shape)
        normal = random.rng(*scalars("f64", 1, 2), distribution="rng_normal", shape=shape)
    words = bits([5, 0, 0], (1000,), "u64", "rng_philox")[1] >> np.uint64(12)
    assert np.array_equal(uniform, -2 + words.astype(np.float64) * 2.0**-52 * 5)
    u1, u2 = bits([5, 0, 1], (2, 1000), "u64", "rng_philox")[1] >> np.uint64(12)
    expected = 1 + 2 * np.sqrt(-2 * np.log((u1 + 1.0) * 2**-52)) * np.cos(
        2 * np.pi * (u2 * 2.0**-52)
    )
    assert np.allclose(normal, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["s8", "u16", "s32", "s64", "u64"])
def test_uniform_integers(name: str) -> None:
    shape = ArrayShape(ELEMENT_TYPES[name], (2000,))
    with random.seeded(1):
        values = random.rng(*scalars(name, 3, 10), distribution="rng_uniform", shape=shape)
    assert values.dtype == shape.element_type.dtype and set(values.tolist()) == set(range(3, 10))


def test_the_global_state_advances() -> None:
    shape = ArrayShape(U64, (2,))
    with random.seeded(2**64 - 1):
        states = [random.rng_get_and_update_state(delta=3, shape=shape).tolist() for _ in range(2)]
    assert states == [[2**64 - 1, 0], [2, 1]]

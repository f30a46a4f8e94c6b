"""Generate random bits: PHILOX 4x32-10 and THREE_FRY 2x32-20 (Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3", 2011), laid out as XLA's ``prng.cc`` does; and the legacy ``rng``,
which this project defines as PHILOX keyed by the seed of the run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.errors import Unsupported
from hlo.types import F32, F64, U32, U64, ArrayShape, ElementType, TupleShape
from hlo.values import Array
from interp.exact import integers
from interp.exact.conversion import converted
from interp.ops import elementwise

__all__ = ["rng", "rng_bit_generator", "rng_get_and_update_state"]


_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@dataclass(slots=True)
class Generator:
    """The state that the random instructions of one run share."""

    seed: int
    draws: int = 0  # how many rng instructions have run
    advanced: int = 0  # what rng-get-and-update-state has added up


_GENERATOR: ContextVar[Generator] = ContextVar("generator")


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Start ``rng`` and ``rng-get-and-update-state`` from ``seed`` within a block."""
    with going_on(Generator(seed % 2**64)):
        yield


@contextmanager
def going_on(generator: Generator) -> Iterator[None]:
    """Continue from a generator's state within a block."""
    token = _GENERATOR.set(generator)
    try:
        yield
    finally:
        _GENERATOR.reset(token)


def rng_bit_generator(state: Array, *, algorithm: str, shape: ArrayShape | TupleShape) -> Any:
    """Return (new state, bits), or only bits if ``shape`` is an array's."""
    wanted = shape.elements[1] if isinstance(shape, TupleShape) else shape
    assert isinstance(wanted, ArrayShape)
    words = [int(word) for word in state]
    known = {
        ("rng_three_fry", 2): _three_fry,
        ("rng_philox", 2): _philox_of_two,
        ("rng_philox", 3): _philox_of_three,
        ("rng_default", 2): _philox_of_two,
        ("rng_default", 3): _philox_of_three,
    }
    generate = known.get((algorithm.lower(), len(words)))
    if generate is None or state.dtype != np.uint64:
        raise Unsupported(f"{algorithm} with a state of {len(words)} {state.dtype} words")
    new_state, bits = generate(words, wanted.dims, wanted.element_type)
    result = bits.view(wanted.element_type.numpy)
    return (np.asarray(new_state, np.uint64), result) if isinstance(shape, TupleShape) else result


def rng_get_and_update_state(*, delta: int, shape: ArrayShape) -> Array:
    """Return the state before ``delta`` is added to it; it starts as {seed, 0}."""
    del shape
    generator = _GENERATOR.get()
    state = (generator.seed + generator.advanced) % 2**128
    generator.advanced += delta
    return np.array([state % 2**64, state >> 64], np.uint64)


def rng(*operands: Array, distribution: str, shape: ArrayShape) -> Array:
    """Draw uniform numbers in [a, b), or normal ones of given mean and deviation, by PHILOX with
    the state {seed, 0, number of the draw}."""
    generator = _GENERATOR.get()
    state = [generator.seed, 0, generator.draws]
    generator.draws += 1
    sample = _SAMPLES.get((distribution, shape.element_type.kind))
    if sample is None:
        raise Unsupported(f"{distribution} of {shape.element_type} is not implemented")
    return sample(state, operands, shape)


def _uniform(state: list[int], operands: tuple[Array, ...], shape: ArrayShape) -> Array:
    a, b = (converted(operand, _computed_in(shape)) for operand in operands)
    unit = _unit(_philox_of_three(state, shape.dims, _word(shape))[1])
    return converted(np.asarray(a + unit * (b - a)), shape.element_type)


def _computed_in(shape: ArrayShape) -> ElementType:
    return F64 if shape.element_type is F64 else F32


def _word(shape: ArrayShape) -> ElementType:
    return U64 if shape.element_type.bits == 64 else U32


def _integers(state: list[int], operands: tuple[Array, ...], shape: ArrayShape) -> Array:
    word = _word(shape)
    a, b = (converted(operand, word) for operand in operands)
    bits = _philox_of_three(state, shape.dims, word)[1]
    return converted(a + integers.remainder(bits, b - a, word.bits), shape.element_type)


def _normal(state: list[int], operands: tuple[Array, ...], shape: ArrayShape) -> Array:
    """Draw normal numbers by Box and Muller, each step an f32 instruction (of f64 an f64 one)."""
    mean, deviation = (converted(operand, _computed_in(shape)) for operand in operands)
    count = math.prod(shape.dims)
    bits = _philox_of_three(state, (2 * count,), _word(shape))[1].reshape(2, *shape.dims)
    u1, u2 = _unit(bits[0]), _unit(bits[1])
    number = u1.dtype.type
    # In (0, 1], where its logarithm is finite.
    u1 = u1 + _SMALLEST[u1.dtype.itemsize]
    radius = elementwise.sqrt(number(-2) * elementwise.log(u1))
    z = radius * elementwise.cosine(number(2 * math.pi) * u2)
    return converted(np.asarray(mean + deviation * z), shape.element_type)


_SAMPLES = {
    ("rng_uniform", "float"): _uniform,
    ("rng_uniform", "signed"): _integers,
    ("rng_uniform", "unsigned"): _integers,
    ("rng_normal", "float"): _normal,
}


_SMALLEST: dict[int, np.floating[Any]] = {4: np.float32(2**-23), 8: np.float64(2**-52)}


def _unit(bits: Array) -> Array:
    """Convert words to multiples of 2**-23 in [0, 1), 64-bit words to multiples of 2**-52."""
    if bits.dtype == np.uint64:
        return np.asarray((bits >> np.uint64(12)).astype(np.float64) * _SMALLEST[8])
    return np.asarray((bits >> np.uint32(9)).astype(np.float32) * _SMALLEST[4])


def _philox_of_two(
    state: list[int], dims: tuple[int, ...], element_type: ElementType
) -> tuple[list[int], Array]:
    """Generate from XLA's state {key, counter low}; the key is the high word of the counter,
    too."""
    (_, low, _), bits = _philox_of_three([state[0], state[1], state[0]], dims, element_type)
    return [state[0], low], bits


def _philox_of_three(
    state: list[int], dims: tuple[int, ...], element_type: ElementType
) -> tuple[list[int], Array]:
    """Generate from the state {key, counter low, counter high}, in order: a block of four words per
    count."""
    count = math.prod(dims)
    per_block = 2 if element_type.bits == 64 else 4
    blocks = -(-count // per_block)
    words = _philox(state[0], state[1] + (state[2] << 64), blocks)
    if element_type.bits == 64:
        bits = words[:, 0::2].astype(np.uint64) | words[:, 1::2].astype(np.uint64) << _HALF
    else:
        bits = words.astype(f"u{element_type.numpy.itemsize}")
    counter = (state[1] + (state[2] << 64) + blocks) % 2**128
    return [state[0], counter % 2**64, counter >> 64], bits.reshape(-1)[:count].reshape(dims)


def _philox(key: int, counter: int, blocks: int) -> Array:
    """Compute PHILOX 4x32-10 for consecutive counters, as u32[blocks, 4]."""
    # The 128-bit counter as two words: `low` wraps where it is below the word that was added.
    low = np.arange(blocks, dtype=np.uint64) + np.uint64(counter % 2**64)
    carry = (low < np.uint64(counter % 2**64)).astype(np.uint64)
    high = np.uint64(counter >> 64) + carry
    x = [low & _LOW, low >> _HALF, high & _LOW, high >> _HALF]
    k0, k1 = key % 2**32, key >> 32
    for _ in range(10):
        # The multipliers are the paper's; the keys step by the fractions of the golden ratio and of
        # sqrt(3), times 2**32 (Weyl sequences).
        one, two = np.uint64(0xD2511F53) * x[0], np.uint64(0xCD9E8D57) * x[2]
        x = [
            (two >> _HALF) ^ x[1] ^ np.uint64(k0),
            two & _LOW,
            (one >> _HALF) ^ x[3] ^ np.uint64(k1),
            one & _LOW,
        ]
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return np.stack(x, 1).astype(np.uint32)


def _three_fry(
    state: list[int], dims: tuple[int, ...], element_type: ElementType
) -> tuple[list[int], Array]:
    """Generate from the state {key, counter}. The two words of a count form one 64-bit value, or
    two neighbours along the first even dimension (the largest one if none is even), cut off at its
    size."""
    key, counter = state
    if element_type.bits == 64:
        count = math.prod(dims)
        low, high = _three_fry_words(key, counter, count)
        bits = low.astype(np.uint64) | high.astype(np.uint64) << _HALF
        return [key, (counter + count) % 2**64], bits.reshape(dims)
    shape = dims or (1,)
    even = [d for d, size in enumerate(shape) if size % 2 == 0]
    split = even[0] if even else shape.index(max(shape))
    half = [-(-size // 2) if d == split else size for d, size in enumerate(shape)]
    both = _three_fry_words(key, counter, math.prod(half))
    pairs = np.stack([words.reshape(half) for words in both], split + 1)
    doubled = [2 * size if d == split else size for d, size in enumerate(half)]
    bits = pairs.reshape(doubled)[tuple(np.s_[:size] for size in shape)]
    narrow = np.ascontiguousarray(bits).astype(f"u{element_type.numpy.itemsize}")
    return [key, (counter + math.prod(half)) % 2**64], narrow.reshape(dims)


def _three_fry_words(key: int, counter: int, count: int) -> tuple[Array, Array]:
    counts = np.arange(count, dtype=np.uint64) + np.uint64(counter)
    x0, x1 = (counts & _LOW).astype(np.uint32), (counts >> _HALF).astype(np.uint32)
    k0, k1 = key % 2**32, key >> 32
    # Threefish's key schedule: the last word is the parity of the keys and a fixed constant.
    schedule = [k0, k1, k0 ^ k1 ^ 0x1BD11BDA]
    x0, x1 = x0 + np.uint32(k0), x1 + np.uint32(k1)
    for group in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << np.uint32(rotation) | x1 >> np.uint32(32 - rotation)) ^ x0
        x0 = x0 + np.uint32(schedule[(group + 1) % 3])
        x1 = x1 + np.uint32((schedule[(group + 2) % 3] + group + 1) % 2**32)
    return x0, x1

"""Data movement against NumPy and, where bits are reread, against bytes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hlo.errors import ArgumentError, Unsupported
from hlo.literal import Literal
from hlo.types import ELEMENT_TYPES, S32, ArrayShape, ElementType, Layout, TupleShape
from interp.ops import data_movement as move

ARRAYS = [t for t in ELEMENT_TYPES.values() if t.is_array]


def shape(name: str, *dims: int, layout: tuple[int, ...] | None = None) -> ArrayShape:
    return ArrayShape(ELEMENT_TYPES[name], dims, (), None if layout is None else Layout(layout))


def test_constants() -> None:
    value = np.arange(3, dtype=np.float32)
    literal = Literal(shape("f32", 3), value)
    assert move.constant(literal=literal, shape=literal.shape) is literal.value
    pair = Literal(TupleShape((literal.shape,)), (literal,))
    assert move.constant(literal=pair, shape=pair.shape) == (literal.value,)
    elided = Literal(shape("f32", 3), None)
    with pytest.raises(ArgumentError, match="xla_dump_large_constants"):
        move.constant(literal=elided, shape=elided.shape)


@pytest.mark.parametrize("t", ARRAYS, ids=str)
def test_iota_is_converted(t: ElementType) -> None:
    count = move.iota(iota_dimension=1, shape=ArrayShape(t, (2, 2, 2)))
    assert count.shape == (2, 2, 2) and count.dtype == t.dtype
    if t.bits > 2 and t.name != "f8e8m0fnu":  # which has no zero
        assert count[1, :, 0].astype(np.complex128).tolist() == [0, 1]


def test_iota_rounds_to_nearest_even() -> None:
    count = move.iota(iota_dimension=0, shape=shape("bf16", 1000))
    assert count[257].astype(np.float32) == 256 and count[259].astype(np.float32) == 260


def test_broadcast() -> None:
    operand = np.arange(6).reshape(2, 3)
    for dimensions in itertools.permutations(range(4), 2):
        dims = [5, 5, 5, 5]
        dims[dimensions[0]], dims[dimensions[1]] = 2, 3
        result = move.broadcast(operand, dimensions=dimensions, shape=shape("s64", *dims))
        assert result.shape == tuple(dims)
        for index in np.ndindex(*dims):
            assert result[index] == operand[index[dimensions[0]], index[dimensions[1]]]
    scalar = move.broadcast(np.asarray(7), dimensions=(), shape=shape("s64", 2, 0))
    assert scalar.shape == (2, 0)


def test_reshape_of_bounded_dimensions() -> None:
    def reshaped(dims: tuple[int, ...], source: ArrayShape, target: ArrayShape) -> np.ndarray:
        operand = np.arange(8, dtype=np.int32).reshape(dims)
        return move.reshape(operand, shape=target, operand_shape=source)

    rows = ArrayShape(S32, (6, 2), (True, False))
    flat = ArrayShape(S32, (12,), (True,))
    assert reshaped((8,), flat, rows).shape == (4, 2)
    assert reshaped((4, 2), rows, flat).shape == (8,)
    square = ArrayShape(S32, (6, 4), (True, True))
    both = ArrayShape(S32, (6, 1, 4), (True, False, True))
    assert reshaped((4, 2), square, both).shape == (4, 1, 2)
    with pytest.raises(Unsupported, match="inferred_dimension"):
        reshaped((4, 2), square, ArrayShape(S32, (4, 1, 6), (True, True, True)))
    operand = np.arange(8, dtype=np.int32)
    three = [np.asarray(n, np.int32) for n in (2, 1, 4)]
    assert move.dynamic_reshape(operand, *three, shape=both).shape == (2, 1, 4)


def naive_pad(operand: np.ndarray, padding: tuple[tuple[int, int, int], ...]) -> np.ndarray:
    dims = [
        n + lo + hi + max(n - 1, 0) * inner for n, (lo, hi, inner) in zip(operand.shape, padding)
    ]
    result = np.full([max(d, 0) for d in dims], -1)
    for index in np.ndindex(*operand.shape):
        at = tuple(lo + i * (inner + 1) for i, (lo, hi, inner) in zip(index, padding))
        if all(0 <= a < d for a, d in zip(at, dims)):
            result[at] = operand[index]
    return result


def test_pad() -> None:
    rows = [(0, 0, 0), (2, 1, 0), (-1, 0, 0), (0, -2, 1), (-2, -1, 2), (3, -1, 2), (-1, 3, 0)]
    for n in (0, 1, 3, 4):
        for first, second in itertools.product(rows, rows[:3]):
            if n == 0 and (min(first) < 0 or min(second) < 0):
                continue
            operand = np.arange(n * 3).reshape(n, 3)
            expected = naive_pad(operand, (first, second))
            if n + first[0] + first[1] + max(n - 1, 0) * first[2] < 0:
                continue
            result = move.pad(operand, np.asarray(-1), padding=(first, second))
            assert np.array_equal(result, expected), (n, first, second)


def test_slices_reverse_and_sizes() -> None:
    operand = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert move.slice_(operand, slice=((1, 3, 1), (0, 4, 3))).tolist() == [[4, 7], [8, 11]]
    assert move.reverse(operand, dimensions=(0, 1))[0, 0] == 11
    assert move.concatenate(operand, operand, dimensions=(1,)).shape == (3, 8)
    assert move.transpose(operand, dimensions=(1, 0))[3, 1] == 7
    size = move.get_dimension_size(operand, dimensions=(1,))
    assert size == 4 and size.dtype == np.int32
    bounded = ArrayShape(S32, (3, 5), (False, True))
    two, five = np.asarray(2, np.int32), np.asarray(5, np.int32)
    shrunk = move.set_dimension_size(operand, two, dimensions=(1,), shape=bounded)
    assert shrunk.shape == (3, 2)
    assert move.set_dimension_size(shrunk, five, dimensions=(1,), shape=bounded)[0].tolist() == [
        0,
        1,
        0,
        0,
        0,
    ]


def test_copies() -> None:
    operand = np.ones(2, np.float32)
    started = move.copy_start(operand)
    assert move.copy_done(started) is operand and started[2].dtype == np.uint32


@pytest.mark.parametrize("t", ARRAYS, ids=str)
def test_bitcast_convert_to_bits_and_back(t: ElementType) -> None:
    bits = t.bits
    if bits > 64 or t.name == "pred" or bits in (6,):
        return
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**bits, (3, 8), dtype=np.uint64)
    unsigned = ELEMENT_TYPES[f"u{bits}"].numpy
    patterns = words.astype(np.uint8).astype(unsigned) if bits < 8 else words.astype(unsigned)
    values = move.bitcast_convert(patterns, shape=ArrayShape(t, (3, 8)))
    assert values.dtype == t.dtype
    back = move.bitcast_convert(values, shape=shape(f"u{bits}", 3, 8))
    assert np.array_equal(back, patterns)


def test_bitcast_convert_changes_width_little_end_first() -> None:
    word = np.array([0x04030201], np.uint32)
    assert move.bitcast_convert(word, shape=shape("u8", 1, 4)).tolist() == [[1, 2, 3, 4]]
    nibbles = move.bitcast_convert(word, shape=shape("u4", 1, 8))
    assert nibbles.astype(np.uint8).tolist() == [[1, 0, 2, 0, 3, 0, 4, 0]]
    assert move.bitcast_convert(nibbles, shape=shape("u32", 1))[0] == 0x04030201
    assert move.bitcast_convert(nibbles.reshape(4, 2), shape=shape("u8", 4)).tolist() == [
        1,
        2,
        3,
        4,
    ]
    pairs = move.bitcast_convert(np.zeros((0, 4), np.uint8), shape=shape("f32", 0))
    assert pairs.shape == (0,)


def test_bitcast_reads_memory_in_layout_order() -> None:
    operand = np.arange(6, dtype=np.float32).reshape(2, 3)
    column_major = shape("f32", 2, 3, layout=(0, 1))
    flat = move.bitcast(operand, shape=shape("f32", 6), operand_shape=column_major)
    assert flat.tolist() == [0, 3, 1, 4, 2, 5]
    turned = shape("f32", 3, 2, layout=(1, 0))
    assert np.array_equal(
        move.bitcast(operand, shape=turned, operand_shape=column_major), operand.T
    )
    tall = shape("f32", 6, 1, layout=(0, 1))
    assert move.bitcast(operand, shape=tall, operand_shape=shape("f32", 2, 3)).shape == (6, 1)
    one = move.bitcast(
        np.ones((1, 1), np.float32), shape=shape("s32"), operand_shape=shape("f32", 1, 1)
    )
    assert one.shape == () and one == 0x3F800000

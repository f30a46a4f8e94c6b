"""gather and scatter against a loop over indices; sort against sorted()."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hlo.module import Computation, Instruction
from hlo.types import F32, PRED, ArrayShape
from hlo.walk import Callee
from interp.algorithms import stable_sort
from interp.ops import indexing

SCALAR = ArrayShape(F32)


def callee(opcode: str, call: Callable[..., Any]) -> Callee[Any]:
    """``opcode(parameter 0, parameter 1)``, or anything if the opcode is a lie."""
    parameters = tuple(
        Instruction(f"p{i}", SCALAR, "parameter", (), {"parameter_number": i}) for i in (0, 1)
    )
    root = Instruction("root", ArrayShape(PRED), opcode, ("p0", "p1"))
    return Callee(Computation("c", (*parameters, root), "root"), call)


ADD = callee("add", np.add)
SUBTRACT = callee("subtract", np.subtract)  # neither commutes nor associates
LESS = callee("compare", np.less)


def index_of(indices: np.ndarray, batch: tuple[int, ...], vector_dim: int, k: int) -> int:
    if vector_dim == indices.ndim:
        return int(indices[batch])
    return int(indices[(*batch[:vector_dim], k, *batch[vector_dim:])])


def naive_gather(
    operand: np.ndarray,
    indices: np.ndarray,
    a: dict[str, Any],
) -> np.ndarray:
    vector_dim, sizes = a["index_vector_dim"], a["slice_sizes"]
    batching = dict(
        zip(a.get("operand_batching_dims", ()), a.get("start_indices_batching_dims", ()))
    )
    batch_dims = [n for d, n in enumerate(indices.shape) if d != vector_dim]
    kept = [
        d for d in range(operand.ndim) if d not in a["collapsed_slice_dims"] and d not in batching
    ]
    rank = len(batch_dims) + len(kept)
    batch_axes = [d for d in range(rank) if d not in a["offset_dims"]]
    dims = [0] * rank
    for axis, n in zip(batch_axes, batch_dims):
        dims[axis] = n
    for axis, d in zip(a["offset_dims"], kept):
        dims[axis] = sizes[d]
    result = np.zeros(dims, operand.dtype)
    for index in np.ndindex(*dims):
        batch = tuple(index[axis] for axis in batch_axes)
        at = [0] * operand.ndim
        for k, d in enumerate(a["start_index_map"]):
            start = index_of(indices, batch, vector_dim, k)
            at[d] = min(max(start, 0), operand.shape[d] - sizes[d])
        for d, b in batching.items():
            at[d] = batch[b - (b > vector_dim)]
        for axis, d in zip(a["offset_dims"], kept):
            at[d] += index[axis]
        result[index] = operand[tuple(at)]
    return result


GATHERS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (
        (5, 6),
        (4,),
        {
            "offset_dims": (1,),
            "collapsed_slice_dims": (0,),
            "start_index_map": (0,),
            "index_vector_dim": 1,
            "slice_sizes": (1, 6),
        },
    ),
    (
        (5, 6),
        (3, 2),
        {
            "offset_dims": (0, 2),
            "collapsed_slice_dims": (),
            "start_index_map": (1, 0),
            "index_vector_dim": 1,
            "slice_sizes": (2, 3),
        },
    ),
    (
        (5, 6, 4),
        (2, 3, 7),
        {
            "offset_dims": (1, 2),
            "collapsed_slice_dims": (1,),
            "start_index_map": (1, 2),
            "index_vector_dim": 0,
            "slice_sizes": (5, 1, 2),
        },
    ),
    (
        (3, 5, 4, 6),
        (4, 2, 3),
        {
            "offset_dims": (2,),
            "collapsed_slice_dims": (1,),
            "start_index_map": (1, 3),
            "index_vector_dim": 1,
            "slice_sizes": (1, 1, 1, 2),
            "operand_batching_dims": (0, 2),
            "start_indices_batching_dims": (2, 0),
        },
    ),
    (
        (5,),
        (),
        {
            "offset_dims": (),
            "collapsed_slice_dims": (0,),
            "start_index_map": (0,),
            "index_vector_dim": 0,
            "slice_sizes": (1,),
        },
    ),
]


@pytest.mark.parametrize(("dims", "index_dims", "attributes"), GATHERS)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint64])
def test_gather(
    dims: tuple[int, ...], index_dims: tuple[int, ...], attributes: dict[str, Any], dtype: type
) -> None:
    rng = np.random.default_rng(1)
    operand = np.arange(np.prod(dims)).reshape(dims)
    for _ in range(5):
        indices = np.asarray(rng.integers(-2, 8, index_dims)).astype(dtype)
        expected = naive_gather(operand, indices, attributes)
        assert np.array_equal(indexing.gather(operand, indices, **attributes), expected)


def naive_scatter(
    operand: np.ndarray,
    indices: np.ndarray,
    update: np.ndarray,
    a: dict[str, Any],
    function: Callable[[Any, Any], Any],
) -> np.ndarray:
    result, vector_dim = operand.copy(), a["index_vector_dim"]
    batching = dict(
        zip(a.get("input_batching_dims", ()), a.get("scatter_indices_batching_dims", ()))
    )
    inserted = a["inserted_window_dims"]
    kept = [d for d in range(operand.ndim) if d not in inserted and d not in batching]
    window_axes = a["update_window_dims"]
    batch_axes = [d for d in range(update.ndim) if d not in window_axes]
    for index in np.ndindex(*update.shape):
        batch = tuple(index[axis] for axis in batch_axes)
        first, size, offset = ([0] * operand.ndim, [1] * operand.ndim, [0] * operand.ndim)
        for k, d in enumerate(a["scatter_dims_to_operand_dims"]):
            first[d] = index_of(indices, batch, vector_dim, k)
        for d, b in batching.items():
            first[d] = batch[b - (b > vector_dim)]
        for axis, d in zip(window_axes, kept):
            size[d], offset[d] = update.shape[axis], index[axis]
        if all(f >= 0 and f + s <= n for f, s, n in zip(first, size, operand.shape)):
            at = tuple(f + o for f, o in zip(first, offset))
            result[at] = function(result[at], update[index])
    return result


SCATTERS: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (
        (6, 4),
        (9, 1),
        (9, 4),
        {
            "update_window_dims": (1,),
            "inserted_window_dims": (0,),
            "scatter_dims_to_operand_dims": (0,),
            "index_vector_dim": 1,
        },
    ),
    (
        (6, 5),
        (2, 7),
        (2, 7, 3),
        {
            "update_window_dims": (0, 2),
            "inserted_window_dims": (),
            "scatter_dims_to_operand_dims": (1, 0),
            "index_vector_dim": 0,
        },
    ),
    (
        (3, 5, 4),
        (3, 6),
        (3, 6, 2),
        {
            "update_window_dims": (2,),
            "inserted_window_dims": (1,),
            "scatter_dims_to_operand_dims": (1,),
            "index_vector_dim": 2,
            "input_batching_dims": (0,),
            "scatter_indices_batching_dims": (0,),
        },
    ),
    (
        (5,),
        (0,),
        (),
        {
            "update_window_dims": (),
            "inserted_window_dims": (0,),
            "scatter_dims_to_operand_dims": (),
            "index_vector_dim": 0,
        },
    ),
]


@pytest.mark.parametrize(("dims", "index_dims", "update_dims", "attributes"), SCATTERS)
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("computation", [ADD, SUBTRACT])
def test_scatter(
    dims: tuple[int, ...],
    index_dims: tuple[int, ...],
    update_dims: tuple[int, ...],
    attributes: dict[str, Any],
    dtype: type,
    computation: Callee[Any],
) -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        operand = rng.integers(-9, 9, dims).astype(dtype)
        update = np.asarray(rng.integers(-9, 9, update_dims)).astype(dtype)
        indices = rng.integers(-1, 6, index_dims).astype(np.int32)
        expected = naive_scatter(operand, indices, update, attributes, computation.call)
        result = indexing.scatter(operand, indices, update, **attributes, to_apply=computation)
        assert np.array_equal(result, expected)


def test_scatter_of_two_operands_goes_on_together() -> None:
    both = callee("tuple", lambda a, b, x, y: (a * 2 + x, b - y))
    operands = np.zeros(3, np.float32), np.ones(3, np.int32)
    indices = np.array([1, 1, 5, 1], np.int32)
    updates = np.array([1, 2, 9, 3], np.float32), np.array([1, 2, 9, 3], np.int32)
    first, second = indexing.scatter(
        *operands,
        indices,
        *updates,
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
        to_apply=both,
    )
    assert list(first) == [0, 11, 0] and list(second) == [1, -5, 1]


def test_scatter_sums_floats_exactly() -> None:
    updates = np.array([1e30, 1, -1e30, 2.0**-20], np.float32)
    result = indexing.scatter(
        np.array([0, 3], np.float32),
        np.zeros(4, np.int32),
        updates,
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
        to_apply=ADD,
    )
    assert list(result) == [1 + 2.0**-20, 3]


def refused(*operands: np.ndarray) -> np.ndarray:
    raise AssertionError("called for a round of updates")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_scatter_of_extremes_takes_no_rounds(opcode: str, dtype: type[np.floating]) -> None:
    """Bits of NaNs that are not updated stay, and -0 is below +0 in any order of the updates."""
    nan = np.array([0xFE01], np.uint16).view(np.float16).astype(dtype)[0]
    operand = np.array([0.0, -0.0, 5, 5, nan], dtype)
    updates = np.array([-0.0, 0.0, 7, -7, np.nan, 1], dtype)
    result = indexing.scatter(
        operand,
        np.array([0, 1, 2, 2, 3, 3], np.int32),
        updates,
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
        to_apply=callee(opcode, refused),
    )
    is_greatest = opcode == "maximum"
    zero = 0.0 if is_greatest else -0.0
    expected = np.array([zero, zero, 7 if is_greatest else -7], dtype)
    assert result[:3].tobytes() == expected.tobytes()
    assert np.isnan(result[3]) and result[4:].tobytes() == operand[4:].tobytes()


def test_dynamic_slices_are_clamped() -> None:
    operand = np.arange(12).reshape(3, 4)
    at = [np.asarray(5, np.uint8), np.asarray(-3, np.int64)]
    window = indexing.dynamic_slice(operand, *at, dynamic_slice_sizes=(2, 2))
    assert window.tolist() == [[4, 5], [8, 9]]
    update = np.full((1, 3), -1)
    result = indexing.dynamic_update_slice(operand, update, *at)
    assert result[2].tolist() == [-1, -1, -1, 11] and operand[2, 0] == 8


KEY = functools.cmp_to_key(lambda a, b: (a > b) - (a < b))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 17, 100])
def test_merging_is_a_stable_sort(n: int) -> None:
    rng = np.random.default_rng(n)
    rows = rng.integers(0, 9, (3, n)).astype(np.float32), rng.integers(0, 3, (3, n))
    by_second_then_first = callee(
        "or", lambda a, b, c, d: (c > d) | ((c == d) & (np.abs(a - 4) < np.abs(b - 4)))
    )
    order = stable_sort.sorting_order(rows, by_second_then_first)
    for row in range(3):
        expected = sorted(range(n), key=lambda i: (-rows[1][row, i], abs(rows[0][row, i] - 4)))
        assert order[row].tolist() == expected


def test_sort_along_a_dimension() -> None:
    operand = np.array([[3, 1], [-0.0, 1], [0.0, 0]], np.float32)
    which = np.arange(6).reshape(3, 2)
    less = callee("compare", lambda a, b, c, d: a < b)
    values, moved = indexing.sort(operand, which, dimensions=(0,), to_apply=less)
    assert values.tolist() == [[0, 0], [0, 1], [3, 1]]
    assert moved.tolist() == [[2, 5], [4, 1], [0, 3]]
    greater = callee("compare", lambda a, b, c, d: a > b)
    assert indexing.sort(operand, which, dimensions=(0,), to_apply=greater)[1].tolist() == [
        [0, 1],
        [2, 3],
        [4, 5],
    ]


def test_a_comparator_that_is_none_still_gives_a_permutation() -> None:
    rows = (np.array([1, np.nan, 0, np.nan, -1, 2, np.nan, 5], np.float32),)
    for comparator in (LESS, callee("or", lambda a, b: (a * 8) % 3 != 1)):
        assert sorted(stable_sort.sorting_order(rows, comparator)) == list(range(8))


def test_topk() -> None:
    operand = np.array([[1, np.nan, 3, -0.0, 0.0, 3]], np.float32)
    values, indices = indexing.topk(operand, k=4)
    assert indices.tolist() == [[1, 2, 5, 0]] and indices.dtype == np.int32
    assert values[0, 1:].tolist() == [3, 3, 1]
    assert indexing.topk(operand, k=2, largest=False)[1].tolist() == [[3, 4]]
    flags = np.array([False, True, True])
    assert indexing.topk(flags, k=2)[1].tolist() == [1, 2]
    every = list(itertools.permutations(range(4)))
    assert indexing.topk(np.array(every, np.uint8), k=1)[0].tolist() == [[3]] * 24

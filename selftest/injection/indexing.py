"""Bugs of dynamic slices, gather, scatter, sort and top-k."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hlo.values import Array
from hlo.walk import Callee
from interp.values import Value
from selftest.injection.bug import Call, Family, given, operand

_slices = Family("dynamic slices")
_gathers = Family("gather")
_scatters = Family("scatter")
_sorting = Family("sorting")

_FIRST = {"dynamic-slice": 1, "dynamic-update-slice": 2}  # start indices follow so many operands


def _starts(change: Any) -> Any:
    """Make the bug of other start indices: a function of the given and the clamped starts, the
    extents and the sizes."""

    def wrong(call: Call) -> Value:
        first = _FIRST[call.instruction.opcode]
        given_starts = call.operands[first:]
        if not given_starts or any(x.ndim for x in given_starts):
            return None
        sizes = call.attributes.get("dynamic_slice_sizes", call.operands[1].shape)
        extents = call.operands[0].shape
        right = [
            min(max(int(s), 0), max(n - k, 0)) for s, n, k in zip(given_starts, extents, sizes)
        ]
        made = change([int(x) for x in given_starts], right, extents, sizes)
        if made is None or made == right:
            return None
        window = [np.arange(s, s + k) for s, k in zip(made, sizes)]
        return _at(call, window)

    return wrong


def _at(call: Call, window: list[Array]) -> Value:
    """Read or update at these indices; out of bounds, a read is clamped and an update dropped."""
    value = call.operands[0]
    if not value.size:
        return None
    inside = [np.clip(one, 0, n - 1) for one, n in zip(window, value.shape)]
    if call.instruction.opcode == "dynamic-slice":
        return value[np.ix_(*inside)] if window else None
    update = call.operands[1]
    changed = np.array(value)
    kept = [np.flatnonzero((one >= 0) & (one < n)) for one, n in zip(window, value.shape)]
    if not window:
        return None
    places = np.ix_(*(one[k] for one, k in zip(window, kept)))
    changed[places] = update[np.ix_(*kept)]
    return changed


def _wrapped(starts: list[int], right: list[int], extents: Any, sizes: Any) -> list[int]:
    return [s + n if -n <= s < 0 else r for s, r, n in zip(starts, right, extents)]


def _to_last(starts: list[int], right: list[int], extents: Any, sizes: Any) -> list[int]:
    return [min(max(s, 0), n - 1) for s, n in zip(starts, extents)]


def _to_zero(starts: list[int], right: list[int], extents: Any, sizes: Any) -> list[int]:
    return [s if 0 <= s <= n - k else 0 for s, n, k in zip(starts, extents, sizes)]


def _unsigned(starts: list[int], right: list[int], extents: Any, sizes: Any) -> list[int]:
    return [n - k if s < 0 else r for s, r, n, k in zip(starts, right, extents, sizes)]


def _later(starts: list[int], right: list[int], extents: Any, sizes: Any) -> list[int]:
    return [min(r + 1, max(n - k, 0)) for r, n, k in zip(right, extents, sizes)]


def _modulo(starts: list[int], right: list[int], extents: Any, sizes: Any) -> list[int]:
    return [s % n if n and s % n <= n - k else r
            for s, r, n, k in zip(starts, right, extents, sizes)]  # fmt: skip


def _in_place(call: Call) -> Value:
    """Write the result into the operand's buffer, which others still read."""
    right = call()
    value = call.operands[0]
    if not value.flags.writeable or value.base is not None or np.array_equal(value, right):
        return None
    value[...] = right
    return right


_BOTH = "dynamic-slice dynamic-update-slice"
SLICES = (
    *_slices.each(_BOTH, "negative starts count from the end", _starts(_wrapped)),
    *_slices.each(_BOTH, "clamped to the last element, not the last window", _starts(_to_last)),
    *_slices.each(_BOTH, "out of bounds becomes zero", _starts(_to_zero)),
    *_slices.each(_BOTH, "starts read as unsigned", _starts(_unsigned)),
    *_slices.each(_BOTH, "one place later", _starts(_later)),
    *_slices.each(_BOTH, "starts modulo the extent", _starts(_modulo)),
    *_slices.each(_BOTH, "starts exchanged", _starts(
        lambda starts, right, extents, sizes: right[::-1])),
    _slices("dynamic-slice", "dynamic-slice: starts ignored", _starts(
        lambda starts, right, extents, sizes: [0] * len(right))),
    _slices("dynamic-update-slice", "dynamic-update-slice: not written", lambda c: c.operands[0]),
    _slices("dynamic-update-slice", "dynamic-update-slice: the rest not copied", lambda c: c(
        np.zeros_like(c.operands[0]), *c.operands[1:])),
    _slices("dynamic-update-slice", "dynamic-update-slice: in place before the last reader",
            _in_place),
)  # fmt: skip


# Gather


def _cast(dtype: str) -> Any:
    def change(indices: Array) -> Array | None:
        if indices.dtype.kind not in "iu" or indices.dtype.itemsize <= np.dtype(dtype).itemsize:
            return None
        return indices.astype(dtype).astype(indices.dtype)

    return operand(1, change)


def _components_exchanged(number: int) -> Any:
    def change(call: Call) -> Value:
        indices, axis = call.operands[number], call.attributes["index_vector_dim"]
        if axis >= indices.ndim or indices.shape[axis] < 2:
            return None
        return call(*(np.flip(x, axis) if n == number else x
                      for n, x in enumerate(call.operands)))  # fmt: skip

    return change


def _index(change: Any) -> Any:
    """Make the bug of other index vectors: a function of each component's indices, extent and
    size."""

    def wrong(call: Call) -> Value:
        is_gather = call.instruction.opcode == "gather"
        number = 1 if is_gather else len(call.operands) // 2
        indices, axis = call.operands[number], call.attributes["index_vector_dim"]
        if indices.dtype.kind not in "iu" or not call.operands[0].size:
            return None
        named = "start_index_map" if is_gather else "scatter_dims_to_operand_dims"
        changed = np.array(indices, np.int64)
        columns = np.moveaxis(changed, axis, -1) if axis < changed.ndim else changed[..., None]
        for component, dimension in enumerate(call.attributes[named]):
            extent = call.operands[0].shape[dimension]
            size = call.attributes["slice_sizes"][dimension] if is_gather else 1
            columns[..., component] = change(columns[..., component], extent, size)
        return call(*(changed.astype(indices.dtype) if n == number else x
                      for n, x in enumerate(call.operands)))  # fmt: skip

    return wrong


def _filled(fill: float) -> Any:
    """Make the bug of a fill value for reads out of bounds, as another mode of JAX's gather has
    it."""

    def wrong(call: Call) -> Value:
        right = np.asarray(call())
        if call.attributes["index_vector_dim"] != call.operands[1].ndim - 1:
            return None
        vectors = call.operands[1].astype(np.int64)
        limits = [
            call.operands[0].shape[d] - call.attributes["slice_sizes"][d]
            for d in call.attributes["start_index_map"]
        ]
        bad = ((vectors < 0) | (vectors > np.asarray(limits))).any(-1)
        axes = [a for a in range(right.ndim) if a not in call.attributes["offset_dims"]]
        along = [1] * right.ndim
        for axis, size in zip(axes, bad.shape):
            along[axis] = size
        return np.where(bad.reshape(along), np.asarray(fill).astype(right.dtype), right)

    return wrong


_INDICES = {
    "negative ones count from the end": lambda i, n, k: np.where((i < 0) & (i >= -n), i + n, i),
    "one too many": lambda i, n, k: np.minimum(i + 1, n - 1),
    "modulo the extent": lambda i, n, k: i % n,
    "out of bounds becomes zero": lambda i, n, k: np.where((i < 0) | (i > n - k), 0, i),
    "clamped": lambda i, n, k: np.clip(i, 0, n - k),
}

GATHERS = (
    *(bug for name, change in _INDICES.items() if name != "clamped"
      for bug in _gathers.each("gather", f"indices: {name}", _index(change))),
    _gathers("gather", "gather: indices read as unsigned", _index(
        lambda i, n, k: np.where(i < 0, n - k, i))),
    _gathers("gather", "gather: indices in 8 bits", _cast("i1")),
    _gathers("gather", "gather: indices in 16 bits", _cast("i2")),
    _gathers("gather", "gather: out of bounds gives zero", _filled(0.0)),
    _gathers("gather", "gather: out of bounds gives NaN", _filled(np.nan)),
    _gathers("gather", "gather: components of index vectors exchanged", _components_exchanged(1)),
    _gathers("gather", "gather: start_index_map in reverse", given(
        start_index_map=lambda m: m[::-1] if len(m) > 1 else None)),
    _gathers("gather", "gather: offset_dims in reverse", given(
        offset_dims=lambda m: m[::-1] if len(m) > 1 else None)),
    _gathers("gather", "gather: one index for all", operand(1, lambda i: np.broadcast_to(
        i.reshape(-1)[:1].reshape((1,) * i.ndim), i.shape) if i.size > 1 else None)),
    _gathers("gather", "gather: index vectors in reverse order", operand(
        1, lambda i: np.flip(i, 0) if i.ndim else None)),
)  # fmt: skip


def _folding(make: Any) -> Any:
    """Make the bug of another combination of an element with an update."""

    def wrong(call: Call) -> Value:
        before = call.attributes["to_apply"]
        if len(call.operands) != 3:
            return None
        root = replace(before.computation, root=before.computation.parameters[1].name)
        return call(to_apply=Callee(root, make(before)))

    return wrong


def _updates(change: Any) -> Any:
    """Make the bug of changing updates and indices along the first scatter dimension."""

    def wrong(call: Call) -> Value:
        count = len(call.operands) // 2
        axis = next((a for a in range(call.operands[-1].ndim)
                     if a not in call.attributes["update_window_dims"]), None)  # fmt: skip
        if axis is None or call.attributes["index_vector_dim"] == 0:
            return None
        indices = change(call.operands[count], 0)
        if indices is None:
            return None
        updates = [change(x, axis) for x in call.operands[count + 1 :]]
        return call(*call.operands[:count], indices, *updates)

    return wrong


SCATTERS = (
    *(bug for name, change in _INDICES.items()
      for bug in _scatters.each("scatter", f"indices: {name}", _index(change))),
    _scatters("scatter", "scatter: the last update wins", _folding(lambda f: lambda a, b: b)),
    _scatters("scatter", "scatter: the operand is kept", lambda c: c.operands[0]
              if len(c.operands) == 3 else None),
    _scatters("scatter", "scatter: into zeros", lambda c: c(
        np.zeros_like(c.operands[0]), *c.operands[1:]) if len(c.operands) == 3 else None),
    _scatters("scatter", "scatter: everything twice", lambda c: c(c(), *c.operands[1:])
              if len(c.operands) == 3 else None),
    _scatters("scatter", "scatter: last update left out", _updates(
        lambda x, axis: x.take(range(x.shape[axis] - 1), axis)
        if x.ndim and x.shape[axis] > 1 else None)),
    _scatters("scatter", "scatter: first update twice", _updates(
        lambda x, axis: np.concatenate([x.take([0], axis), x], axis)
        if x.ndim and x.shape[axis] else None)),
    _scatters("scatter", "scatter: components of index vectors exchanged",
              lambda c: _components_exchanged(len(c.operands) // 2)(c)),
    _scatters("scatter", "scatter: dimensions in reverse", given(
        scatter_dims_to_operand_dims=lambda m: m[::-1] if len(m) > 1 else None)),
    _scatters("scatter", "scatter: in place before the last reader", _in_place),
)  # fmt: skip


# Sorting


def _axis(call: Call) -> int:
    if call.instruction.opcode == "topk":
        return int(call.operands[0].ndim - 1)
    return int(call.attributes["dimensions"][0])


def _flipped_result(call: Call) -> Value:
    right, axis = call(), _axis(call)
    whole = right if isinstance(right, tuple) else (right,)
    turned = tuple(np.flip(x, axis) for x in whole)
    return turned if isinstance(right, tuple) else turned[0]


def _unstable(call: Call) -> Value:
    """Sort such that equal elements come in reverse order."""
    axis = _axis(call)
    return call(*(np.flip(x, axis) for x in call.operands))


def _only(number: int) -> Any:
    """Make the bug of sorting one operand only."""

    def wrong(call: Call) -> Value:
        if len(call.operands) < 2:
            return None
        right = call()
        return tuple(right[n] if n == number else x for n, x in enumerate(call.operands))

    return wrong


def _other_axis(call: Call) -> Value:
    rank = call.operands[0].ndim
    return call(dimensions=((_axis(call) + 1) % rank,)) if rank > 1 else None


def _without_two(call: Call) -> Value:
    """Exchange the first two results, as if a sorting network lacked their comparator."""
    right, axis = call(), _axis(call)
    whole = right if isinstance(right, tuple) else (right,)
    size = whole[0].shape[axis]
    if size < 2:
        return None
    order = [1, 0, *range(2, size)]
    mixed = tuple(x.take(order, axis) for x in whole)
    return mixed if isinstance(right, tuple) else mixed[0]


def _last_indices(call: Call) -> Value:
    """Choose the highest index among equal elements."""
    right = call(np.flip(call.operands[0], -1))
    last = call.operands[0].shape[-1] - 1
    return right[0], (last - right[1]).astype(right[1].dtype)


SORTING = (
    *_sorting.each("sort topk", "result in reverse", _flipped_result),
    *_sorting.each("sort topk", "first two not in order", _without_two),
    _sorting("sort", "sort: not stable", _unstable),
    _sorting("sort", "sort: only the keys move", _only(0)),
    _sorting("sort", "sort: the keys stay", _only(1)),
    _sorting("sort", "sort: not at all", lambda c: c.operands if len(c.operands) > 1
             else c.operands[0]),
    _sorting("sort", "sort: along another dimension", _other_axis),
    _sorting("topk", "topk: the other end", given(largest=lambda largest: largest is False)),
    _sorting("topk", "topk: of ties the last", _last_indices),
    _sorting("topk", "topk: indices one too many", lambda c: (c()[0], c()[1] + np.int32(1))),
    _sorting("topk", "topk: the first elements", lambda c: (
        c.operands[0][..., : c.attributes["k"]], c()[1])),
)  # fmt: skip

BUGS = (*SLICES, *GATHERS, *SCATTERS, *SORTING)

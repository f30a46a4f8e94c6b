"""Fold windows in the order written, and running folds in blocks, as XLA's
``ReduceWindowRewriter``.

A running fold (a cumulative sum) has a window from the start of a dimension to the element, or from
the element to the end.
"""

from __future__ import annotations

import math

import numpy as np

from hlo.attributes import Window, WindowDimension
from hlo.values import Array
from hlo.walk import Callee
from interp.envelope.enclosed_values import spread
from interp.envelope.enclosure import Enclosure, Value, anything, moved, where
from interp.ops import reduction as exact
from interp.windows import from_, positions, running, trimmed, up_to

_BLOCK = 16  # elements
_MOST_WORK = 1 << 31  # elements that instructions compute, some 15 ns each

Values = tuple[Enclosure, ...]


def windows_in_order(
    inputs: Values, inits: Values, to_apply: Callee[Value], window: Window
) -> Value:
    """Fold each window in row-major order, the init first. Where each window has the elements up to
    its own, its fold goes on from that of the window before. Of more work than is done in half a
    minute the result is open."""
    dims = tuple(map(positions, window.dimensions, inputs[0].shape))
    along = running(window.dimensions, inputs[0].shape)
    if along is not None and along.ends and inputs[0].low.size:
        return _accumulated(inputs, inits, to_apply, along.axis)
    offsets = math.prod(trimmed(*x).size for x in zip(window.dimensions, inputs[0].shape))
    if offsets * math.prod(dims) * len(to_apply.computation.instructions) > _MOST_WORK:
        return to_apply.bundled([anything(dims, x.element_type) for x in inputs])
    state = [spread(x, dims) for x in inits]
    for step in exact.steps_of(window, inputs[0].shape):
        elements = [moved(lambda x, at=step.elements: x[at], x) for x in inputs]
        result = to_apply(*state, *(spread(x, dims) for x in elements))
        after = result if isinstance(result, tuple) else (result,)
        state = [where(step.inside, new, old) for new, old in zip(after, state, strict=True)]
    return to_apply.bundled(state)


def _accumulated(inputs: Values, inits: Values, to_apply: Callee[Value], axis: int) -> Value:
    """Fold the elements up to each one along an axis, the init first."""
    rows = [moved(lambda x: np.moveaxis(x, axis, 0), x) for x in inputs]
    dims = rows[0].shape[1:]
    state = [spread(x, dims) for x in inits]
    states = []
    for step in range(len(rows[0].low)):
        elements = [moved(lambda x, at=step: x[at, ...], x) for x in rows]
        result = to_apply(*state, *elements)
        state = [spread(x, dims) for x in (result if isinstance(result, tuple) else (result,))]
        states.append(state)
    folds = zip(*states, strict=True)
    return to_apply.bundled([moved(lambda *x: np.stack(x, axis), *parts) for parts in folds])


def is_running(window: Window, dims: tuple[int, ...]) -> bool:
    """Test for a running fold: one dimension has a window over all elements up to, or from, each
    one."""
    return running(window.dimensions, dims) is not None


def in_some_blocks(inputs: Values, inits: Values, to_apply: Callee[Value], window: Window) -> Value:
    """Compute a running fold in blocks of 16: within each block, then combined with the running
    fold of the totals of the blocks before (or behind)."""
    found = running(window.dimensions, inputs[0].shape)
    assert found is not None
    axis, is_up_to = found
    rows = [moved(lambda x: np.moveaxis(x, axis, -1), x) for x in inputs]
    results = _folded(rows, inits, to_apply, is_up_to)
    return to_apply.bundled([moved(lambda x: np.moveaxis(x, -1, axis), x) for x in results])


def _folded(
    rows: list[Enclosure], inits: Values, to_apply: Callee[Value], is_up_to: bool
) -> list[Enclosure]:
    """Compute a running fold along the last dimension, by blocks within blocks."""
    length = rows[0].shape[-1]
    if length <= _BLOCK:
        return _in_order(rows, inits, to_apply, is_up_to)
    blocks = -(-length // _BLOCK)
    inside = _in_order(
        [_in_rows(x, init, blocks) for x, init in zip(rows, inits, strict=True)],
        inits,
        to_apply,
        is_up_to,
    )
    last = -1 if is_up_to else 0
    totals = [moved(lambda x: x[..., last], x) for x in inside]
    running = _folded(totals, inits, to_apply, is_up_to)
    others = [_shifted(x, init, is_up_to) for x, init in zip(running, inits, strict=True)]
    combined = to_apply(*inside, *(_repeated(x) for x in others))
    parts = combined if isinstance(combined, tuple) else (combined,)
    dims = rows[0].shape
    return [moved(lambda x: x.reshape(*dims[:-1], -1)[..., :length], part) for part in parts]


def _in_order(
    rows: list[Enclosure], inits: Values, to_apply: Callee[Value], is_up_to: bool
) -> list[Enclosure]:
    *others, length = rows[0].shape
    ones = (WindowDimension(1),) * len(others)
    window = Window((*ones, up_to(length) if is_up_to else from_(length)))
    result = windows_in_order(tuple(rows), inits, to_apply, window)
    return list(result) if isinstance(result, tuple) else [result]


def _in_rows(value: Enclosure, init: Enclosure, blocks: int) -> Enclosure:
    """Pad with the init to a multiple of the block, and reshape to (…, blocks, block)."""
    *others, length = value.shape

    def filled(array: Array, nothing: Array) -> Array:
        whole = np.empty((*others, blocks * _BLOCK), array.dtype)
        whole[...] = nothing
        whole[..., :length] = array
        return whole.reshape(*others, blocks, _BLOCK)

    return moved(filled, value, init)


def _shifted(value: Enclosure, init: Enclosure, is_up_to: bool) -> Enclosure:
    """Shift by one block, so that each block gets the fold of those before it; the first (or last)
    gets the init."""

    def shifted(array: Array, nothing: Array) -> Array:
        found = np.empty_like(array)
        if is_up_to:
            found[..., 1:], found[..., 0] = array[..., :-1], nothing
        else:
            found[..., :-1], found[..., -1] = array[..., 1:], nothing
        return found

    return moved(shifted, value, init)


def _repeated(value: Enclosure) -> Enclosure:
    dims = (*value.shape, _BLOCK)
    return moved(lambda x: np.broadcast_to(x[..., None], dims), value)

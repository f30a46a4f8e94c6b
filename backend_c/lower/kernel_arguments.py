"""Build the readers and the writer that connect a kernel's expressions to its buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backend_c.ir import index as ix
from backend_c.ir.element import Element, Value, Writer, array_reader, memoised
from backend_c.ir.loop_ir import INDEX, Array, Expr, Load
from backend_c.ir.scope import Scope, apply
from backend_c.lower.plan import Buffer
from backend_c.lower.plan import Value as BufferValue
from backend_c.lower.views import is_dense


def inputs_of(operands: Sequence[BufferValue]) -> tuple[Buffer, ...]:
    """Return a kernel's input buffers: those of operands and their sizes, each once."""
    return tuple(dict.fromkeys(with_sizes(operands)))


def with_sizes(values: Sequence[BufferValue]) -> list[Buffer]:
    """Flatten values to their buffers, each followed by the buffer of its actual sizes, if any."""
    found: list[Buffer] = []
    for value in values:
        if isinstance(value, tuple):
            found.extend(with_sizes(value))
        else:
            found.extend((value,) if value.sizes is None else (value, value.sizes))
    return found


def reader(value: BufferValue, arrays: Mapping[Buffer, Array], scope: Scope) -> Value:
    """Return the reader of a value in memory; its actual sizes are clamped to the bounds."""
    if isinstance(value, tuple):
        return tuple(reader(element, arrays, scope) for element in value)
    if value.sizes is None:
        return array_reader(arrays[value], value.shape, within=_within(value))
    sizes: list[Expr] = []
    for dimension, (bound, dynamic) in enumerate(
        zip(value.shape.dims, value.shape.dynamic, strict=True)
    ):
        load = Load(arrays[value.sizes], ix.constant(dimension))
        size: Expr = ix.constant(bound)
        if dynamic:
            # Sizes come from memory, and may come from the caller: clamped, they cannot lead out of
            # bounds.
            size = scope.bind(ix.clamp(0, apply("convert", load, type=INDEX), bound))
        sizes.append(size)
    return array_reader(arrays[value], value.shape, tuple(sizes))


def memoised_value(value: Value, scope: Scope) -> Value:
    """Memoise the readers of a value, so that an element is computed once per index."""
    if isinstance(value, Element):
        return memoised(value, scope)
    return tuple(memoised_value(part, scope) for part in value)


def writer_of(scope: Scope, outputs: Sequence[Buffer], targets: Sequence[Array]) -> Writer:
    """Return the writer to a kernel's output arrays."""
    waiting = iter(targets)
    arrays, sizes = [], []
    for output in outputs:
        arrays.append(next(waiting))
        sizes.append(next(waiting) if output.sizes is not None else None)
    shapes = tuple(output.shape for output in outputs)
    within = {n: dims for n, output in enumerate(outputs) if (dims := _within(output)) is not None}
    return Writer(scope, shapes, tuple(arrays), tuple(sizes), within=within)


def _within(buffer: Buffer) -> tuple[int, ...] | None:
    """Return the dims that linearise a view's indices; None for a dense buffer."""
    dims = buffer.memory_dims
    return None if is_dense(buffer.shape, dims) else dims

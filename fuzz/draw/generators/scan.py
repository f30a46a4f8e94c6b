"""Generate scan: a drawn computation, applied to slice after slice."""

from __future__ import annotations

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators.control import computed
from fuzz.draw.shapes import MOST_ELEMENTS, MOST_RANK, Accepts, nonzero, size_to
from hlo.types import ArrayShape, TupleShape

_MOST_STEPS = 6


def scan(builder: Builder, shape: ArrayShape) -> str:
    """Draw a scan that has the shape as a stacked output or as a carry, perhaps among others."""
    is_output = shape.rank > 0 and builder.boolean()
    if is_output:
        dimension = builder.integer(0, shape.rank - 1)
        length, inner = shape.dims[dimension], _without(shape, dimension)
    else:
        dimension = builder.integer(0, min(shape.rank, MOST_RANK - 1))
        length, inner = size_to(builder, _MOST_STEPS), shape
    alike = inner.rank < MOST_RANK and nonzero((*inner.dims, length)) <= MOST_ELEMENTS * 2
    slices = [_slice(builder, inner, dimension, alike) for _ in range(1 + _few(builder))]
    outputs = [_slice(builder, inner, dimension, alike) for _ in range(_few(builder))]
    carries = [builder.choice((inner, _small(builder))) for _ in range(_few(builder))]
    wanted = outputs if is_output else carries
    place = builder.integer(0, len(wanted))
    wanted.insert(place, inner)
    index = place + (0 if is_output else len(outputs))
    inputs = [builder.value(_with(one, dimension, length)) for one in slices]
    inits = [builder.value(one) for one in carries]
    flags = {name: builder.boolean() for name in ("is_reverse", "is_associative")}
    results = [*(_with(one, dimension, length) for one in outputs), *carries]
    found = builder.emit(
        "scan", TupleShape(tuple(results)), *inputs, *inits,
        dimensions=(dimension,), num_carries=len(carries),
        to_apply=_step(builder, [*slices, *carries], [*outputs, *carries]),
        **{name: True for name, flag in flags.items() if flag},
    )  # fmt: skip
    return builder.emit("get-tuple-element", results[index], found, index=index)


def _step(builder: Builder, given: list[ArrayShape], results: list[ArrayShape]) -> str:
    return builder.computation(
        given, lambda inner, names: inner.tuple(*(_result(inner, names, one) for one in results))
    )


def _result(inner: Builder, names: list[str], shape: ArrayShape) -> str:
    """Draw a result of the scanned computation, mostly from slices and carries of its shape."""
    alike = [name for name in names if inner.shape(name) == shape]
    if not alike or not inner.integer(0, 3):
        return computed(inner, shape)
    # Combined, as freely drawn instructions hardly show in which order the steps are taken.
    one, other = inner.permutation([*alike, *alike])[:2]
    kinds = ("and", "xor") if shape.element_type.kind == "pred" else ("subtract", "add", "multiply")
    return inner.emit(inner.choice(kinds), shape, one, other)


def _few(builder: Builder) -> int:
    return builder.choice((0, 0, 1, 2))


def _without(shape: ArrayShape, dimension: int) -> ArrayShape:
    dims = (*shape.dims[:dimension], *shape.dims[dimension + 1 :])
    return ArrayShape(shape.element_type, dims)


def _with(shape: ArrayShape, dimension: int, size: int) -> ArrayShape:
    """Return the shape of stacked slices: with a dimension of ``size`` inserted."""
    dims = (*shape.dims[:dimension], size, *shape.dims[dimension:])
    return ArrayShape(shape.element_type, dims)


def _small(builder: Builder, least_rank: int = 0) -> ArrayShape:
    most = max(least_rank, min(MOST_RANK - 1, least_rank + 2))
    dims = builder.several(lambda: size_to(builder, 3), least_rank, most)
    return ArrayShape(builder.element_type(lambda t: True), tuple(dims))


def _slice(builder: Builder, inner: ArrayShape, dimension: int, alike: bool) -> ArrayShape:
    """Return a slice's shape: the given one, of its type or another, or any of sufficient rank."""
    if not alike or builder.integer(0, 2) == 0:
        return _small(builder, dimension)
    if builder.boolean():
        return inner
    return ArrayShape(builder.element_type(lambda t: True), inner.dims)


GENERATORS: dict[str, tuple[Generator, Accepts]] = {"scan": (scan, lambda shape: True)}

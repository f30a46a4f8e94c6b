"""Define the semantics of bounded dimensions: which actual sizes must agree, and what is undefined.

An array of ``f32[<=5]`` has an actual size in every run. Where an op needs equal sizes of two
dimensions, verification shows that their bounds are equal; actual sizes that differ are cut to the
smallest. Of the bounded dimensions of elementwise operands, one of actual size 1 is broadcast to
the size of the others, as in XLA's ``DynamicPadder``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hlo.attributes import Attribute, ConvolutionDimensions
from hlo.opcodes import ASYNC, ELEMENTWISE, PENDING, having, of_family
from hlo.types import ArrayShape, Shape, bounded, is_bounded, leaves

_Attributes = Mapping[str, Attribute]
_Place = tuple[int, int]
_Rule = Callable[[Sequence[ArrayShape], _Attributes], Iterator[Sequence[_Place]]]


class Agreement(NamedTuple):
    """Hold dimensions that must have one actual size: pairs (operand, dimension). If ``stretches``,
    a bounded one of actual size 1 is broadcast to the size of the others."""

    places: tuple[_Place, ...]
    stretches: bool = False


def has_bounds(shape: Shape) -> bool:
    """Return whether any dimension of any array in a shape is bounded."""
    if isinstance(shape, ArrayShape):
        return bool(shape.dynamic)
    return any(leaf.dynamic for leaf in leaves(shape))


def declares_bounds(opcode: str) -> bool:
    """Return whether the text may declare result dimensions bounded or static regardless of the
    operands, as XLA's verifier lets it: missing elements are then zero. False for async starts."""
    return opcode not in _KEEPS_BOUNDS


_KEEPS_BOUNDS = having(ASYNC | PENDING)
_ELEMENTWISE = of_family(ELEMENTWISE)


def agreements(
    opcode: str, operands: Sequence[Shape], attributes: _Attributes
) -> tuple[Agreement, ...]:
    """Return the sets of dimensions whose actual sizes must agree and that have a bounded one."""
    arrays = [shape for shape in operands if isinstance(shape, ArrayShape)]
    if len(arrays) < len(operands) or not any(shape.dynamic for shape in arrays):
        return ()
    stretches = opcode in _ELEMENTWISE
    rule = _elements if stretches else _RULES.get(opcode)
    if rule is None:
        return ()
    return tuple(
        Agreement(tuple(places), stretches)
        for places in rule(arrays, attributes)
        if len(places) > 1 and any(is_bounded(arrays[number], d) for number, d in places)
    )


def _alike(numbers: Sequence[int], rank: int) -> Iterator[list[_Place]]:
    """Yield each dimension of the numbered operands, which all have this rank, as one set."""
    for d in range(rank):
        yield [(number, d) for number in numbers]


def _elements(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    """Match the dimensions of elementwise operands; scalars are broadcast."""
    rank = max(shape.rank for shape in arrays)
    return _alike([n for n, shape in enumerate(arrays) if shape.rank == rank], rank)


def _inputs(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    """Match the dimensions of the inputs, the first half of the operands; the rest are inits."""
    return _alike(range(len(arrays) // 2), arrays[0].rank)


def _parts(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    along = _integers(attributes, "dimensions")
    for places in _alike(range(len(arrays)), arrays[0].rank):
        if places[0][1] not in along:
            yield places


def _products(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    for kind in ("batch", "contracting"):
        ours = _integers(attributes, f"lhs_{kind}_dims")
        theirs = _integers(attributes, f"rhs_{kind}_dims")
        for one, other in zip(ours, theirs, strict=True):
            yield [(0, one), (1, other)]


def _groups(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    """Match a ragged-dot: as a dot; the group dimension of rhs with the last of the group sizes;
    and their leading dimensions, if they have any, with those that precede lhs's ragged one."""
    left, right, sizes = arrays
    taken = _integers(attributes, "lhs_batch_dims"), _integers(attributes, "lhs_contracting_dims")
    (ragged,) = _integers(attributes, "lhs_ragged_dims")
    free = tuple(d for d in range(left.rank) if d not in (*taken[0], *taken[1]))
    order = (*taken[0], *(taken[1] if ragged in taken[1] else free))
    before = order[: order.index(ragged)] if sizes.rank > 1 else ()
    alike = {d: [(0, d), (2, n)] for n, d in enumerate(before)}
    for pair in _products((left, right), attributes):
        yield [*alike.pop(pair[0][1], [pair[0]]), pair[1]]
    yield from alike.values()
    for group in _integers(attributes, "rhs_group_dims"):
        yield [(1, group), (2, sizes.rank - 1)]


def _scaled(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    """Match a scaled-dot: as a dot, and each scale with its operand (blocks of one element)."""
    groups = [list(pair) for pair in _products(arrays[:2], attributes)]
    taken = {place for group in groups for place in group}
    places = [(n, d) for n in (0, 1) for d in range(arrays[n].rank)]
    groups += [[place] for place in places if place not in taken]
    for group in groups:
        yield [*group, *((n + 2, d) for n, d in group if arrays[n + 2].rank)]


def _features(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    labels = attributes["dim_labels"]
    assert isinstance(labels, ConvolutionDimensions)
    # Bounded features in groups are undefined: see _convolution.
    if attributes.get("feature_group_count", 1) == 1:
        yield [(0, labels.input_feature), (1, labels.kernel_input_feature)]


def _batching(
    numbers: tuple[int, int], ours: str, theirs: str, attributes: _Attributes
) -> Iterator[list[_Place]]:
    pairs = zip(_integers(attributes, ours), _integers(attributes, theirs), strict=True)
    for one, other in pairs:
        yield [(numbers[0], one), (numbers[1], other)]


def _gathered(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    return _batching((0, 1), "operand_batching_dims", "start_indices_batching_dims", attributes)


def _scattered(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    """Match a scatter's operands, its updates, and both with its indices' batching dimensions."""
    half = len(arrays) // 2
    inputs, updates = range(half), range(half + 1, len(arrays))
    window = _integers(attributes, "update_window_dims")
    ours = [d for d in range(arrays[half + 1].rank) if d not in window]
    theirs = [d for d in range(arrays[half].rank) if d != attributes["index_vector_dim"]]
    of_indices = dict(zip(ours, theirs, strict=True))
    operand_dims = _integers(attributes, "input_batching_dims")
    index_dims = _integers(attributes, "scatter_indices_batching_dims")
    of_operands = dict(zip(index_dims, operand_dims, strict=True))
    for places in _alike(updates, arrays[half + 1].rank):
        index = of_indices.get(places[0][1], -1)
        places += [(half, index)] if index >= 0 else []
        places += [(n, of_operands[index]) for n in inputs if index in of_operands]
        yield places
    for places in _alike(inputs, arrays[0].rank):
        if places[0][1] not in operand_dims:
            yield places


def _square(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    yield [(0, arrays[0].rank - 2), (0, arrays[0].rank - 1)]


def _triangles(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    rank = arrays[0].rank
    yield from _alike((0, 1), rank - 2)
    side = rank - 2 if attributes.get("left_side") else rank - 1
    yield [(0, rank - 2), (0, rank - 1), (1, side)]


def _normalised(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    """Match a batch norm: the feature dimension with each vector; the gradient with the operand."""
    feature = attributes["feature_index"]
    assert isinstance(feature, int)
    # Operand 4 is grad_output; of an inference it is the variance, a vector.
    whole = [n for n, shape in enumerate(arrays) if n in (0, 4) and shape.rank == arrays[0].rank]
    vectors = [(n, 0) for n in range(1, len(arrays)) if n not in whole]
    for places in _alike(whole, arrays[0].rank):
        yield [*places, *vectors] if places[0][1] == feature else places


def _scanned(arrays: Sequence[ArrayShape], attributes: _Attributes) -> Iterator[list[_Place]]:
    carries = attributes["num_carries"]
    assert isinstance(carries, int)
    for dimension in _integers(attributes, "dimensions"):
        yield [(number, dimension) for number in range(len(arrays) - carries)]


_RULES: dict[str, _Rule] = {
    "batch-norm-grad": _normalised,
    "batch-norm-inference": _normalised,
    "batch-norm-training": _normalised,
    "cholesky": _square,
    "concatenate": _parts,
    "convolution": _features,
    "dot": _products,
    "gather": _gathered,
    "map": _elements,
    "ragged-dot": _groups,
    "reduce": _inputs,
    "reduce-window": _inputs,
    "scaled-dot": _scaled,
    "scan": _scanned,
    "scatter": _scattered,
    "sort": _elements,
    "triangular-solve": _triangles,
}


def _integers(attributes: _Attributes, name: str) -> tuple[int, ...]:
    value = attributes.get(name, ())
    assert isinstance(value, tuple)
    return tuple(map(int, value))  # type: ignore[arg-type]


class Run(NamedTuple):
    """Hold consecutive dimensions of a reshape's operand and of its result with equal products of
    sizes. ``free`` is the one result dimension whose actual size follows from the others'."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    free: int | None


def reshape_runs(source: ArrayShape, target: ArrayShape, inferred_dimension: int = -1) -> list[Run]:
    """Divide a reshape into its smallest runs, in order; raise ValueError if a run of the result
    has several bounded dimensions and ``inferred_dimension`` names none of them.

    Of n actual elements of a run, the free dimension gets n divided, rounded down, by the product
    of the others' bounds; excess elements are dropped. Without a free dimension, missing elements
    are zero.
    """
    runs = list(_runs(source.dims, target.dims))
    # One run for each dimension: _runs joins all dimensions if one is 0, and f32[<=0,<=3] would not
    # reshape to itself, as two bounded dimensions in a run leave open which one is free.
    if source.dims == target.dims:
        runs = [((d,), (d,)) for d in range(source.rank)]
    return [Run(ours, theirs, _free(target, theirs, inferred_dimension)) for ours, theirs in runs]


def meaningless(
    opcode: str, operands: Sequence[Shape], attributes: _Attributes, result: Shape
) -> str:
    """Return why an instruction on bounded dimensions is undefined, "" if it is defined."""
    rule = _MEANINGLESS.get(opcode)
    arrays = [shape for shape in (*operands, result) if isinstance(shape, ArrayShape)]
    if rule is None or not any(shape.dynamic for shape in arrays):
        return ""
    return rule(arrays, attributes)


def _reshape(arrays: Sequence[ArrayShape], attributes: _Attributes) -> str:
    inferred = attributes.get("inferred_dimension", -1)
    assert isinstance(inferred, int)
    try:
        reshape_runs(arrays[0], arrays[1], inferred)
    except ValueError as error:
        return str(error)
    return ""


def _bitcast(arrays: Sequence[ArrayShape], attributes: _Attributes) -> str:
    source, result = arrays
    if source.element_type.bits != result.element_type.bits:
        return f"{source} to {result}: elements of bounded arrays keep their width"
    try:
        reshape_runs(_in_memory(source), _in_memory(result))
    except ValueError:
        return f"{source} to {result}: which of the bounded dimensions takes what is unknown"
    return ""


def _in_memory(shape: ArrayShape) -> ArrayShape:
    """Return the shape with its dimensions from major to minor."""
    minor_to_major = shape.layout.minor_to_major if shape.layout else range(shape.rank)[::-1]
    order = tuple(reversed(minor_to_major))
    dynamic = tuple(is_bounded(shape, d) for d in order)
    return bounded(shape.element_type, tuple(shape.dims[d] for d in order), dynamic)


def _fft(arrays: Sequence[ArrayShape], attributes: _Attributes) -> str:
    source, rank = arrays[0], len(_integers(attributes, "fft_length"))
    if any(source.dynamic[source.rank - rank :]):
        return f"a transform along bounded dimensions of {source}: fft_length is static"
    return ""


def _convolution(arrays: Sequence[ArrayShape], attributes: _Attributes) -> str:
    labels, (lhs, rhs) = attributes["dim_labels"], arrays[:2]
    assert isinstance(labels, ConvolutionDimensions)
    if any(is_bounded(rhs, d) for d in labels.kernel_spatial):
        return f"windows of bounded sizes, those of {rhs}: the window's size is static"
    grouped = attributes.get("feature_group_count", 1) != 1
    both = is_bounded(lhs, labels.input_feature) or is_bounded(rhs, labels.kernel_input_feature)
    return f"groups of bounded features of {lhs} and {rhs}" if grouped and both else ""


def _static(arrays: Sequence[ArrayShape], attributes: _Attributes) -> str:
    return f"of bounded dimensions: {', '.join(map(str, arrays))}"


def _blocks(arrays: Sequence[ArrayShape], attributes: _Attributes) -> str:
    for group in _scaled(arrays, attributes):
        some = any(is_bounded(arrays[n], d) for n, d in group)
        if some and len({arrays[n].dims[d] for n, d in group}) > 1:
            shapes = ", ".join(str(arrays[n]) for n, _ in group)
            return f"blocks of several elements along bounded dimensions, of {shapes}"
    return ""


def _index_vectors(arrays: Sequence[ArrayShape], attributes: _Attributes) -> str:
    """Return why a gather or scatter is undefined: its index vectors have a bounded length. The
    indices are a gather's second operand, and stand between a scatter's operands and updates."""
    vector = attributes["index_vector_dim"]
    assert isinstance(vector, int)
    indices = arrays[1] if "offset_dims" in attributes else arrays[(len(arrays) - 1) // 2]
    if vector < indices.rank and is_bounded(indices, vector):
        return f"index vectors of bounded length, dimension {vector} of {indices}"
    return ""


_MEANINGLESS: dict[str, Callable[[Sequence[ArrayShape], _Attributes], str]] = {
    "bitcast": _bitcast,
    "convolution": _convolution,
    "fft": _fft,
    "gather": _index_vectors,
    "ragged-all-to-all": _static,
    "reshape": _reshape,
    "rng-bit-generator": _static,
    "scaled-dot": _blocks,
    "scatter": _index_vectors,
}


def _runs(
    source: Sequence[int], target: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    # All products are 0 then, so nothing tells where a run ends.
    if 0 in source or 0 in target:
        yield tuple(range(len(source))), tuple(range(len(target)))
        return
    # f32[6,4] to f32[2,3,4]: the runs are (0) to (0,1), and (1) to (2).
    i = j = 0
    while i < len(source) and j < len(target):
        first, second = i, j
        one, other = source[i], target[j]
        i, j = i + 1, j + 1
        while one != other:
            if one < other:
                one, i = one * source[i], i + 1
            else:
                other, j = other * target[j], j + 1
        yield tuple(range(first, i)), tuple(range(second, j))
    # All that is left has size 1, as the products up to here are equal.
    if i < len(source) or j < len(target):
        yield tuple(range(i, len(source))), tuple(range(j, len(target)))


def _free(target: ArrayShape, run: tuple[int, ...], inferred_dimension: int) -> int | None:
    if inferred_dimension in run:
        return inferred_dimension
    # f32[<=6] of 5 elements to f32[2,<=3]: the second dimension has 5 // 2 = 2.
    found = [d for d in run if is_bounded(target, d)]
    # A bound of 1 changes no product: in f32[<=5] to f32[<=1,<=5] the second one is free.
    found = [d for d in found if target.dims[d] != 1] or found
    if len(found) > 1:
        names = " and ".join(map(str, found))
        raise ValueError(
            f"the sizes of the bounded dimensions {names} of {target} do not follow from the"
            " operand's; say which one does with inferred_dimension, or use dynamic-reshape"
        )
    return found[0] if found else None

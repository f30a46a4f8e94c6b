"""Infer the shapes of collectives, host transfers and channels."""

from __future__ import annotations

from collections.abc import Sequence

from hlo.ops.constraints import (
    array,
    arrays,
    called_on,
    distinct_dimensions,
    is_scalar,
    is_token,
    one_or_tuple,
    require,
    scalars,
)
from hlo.ops.permuted_slices import repetitions, require_slices
from hlo.ops.replica_groups import require_groups, require_pairs
from hlo.replica_groups import ALL_IDS, ReplicaGroups, SourceTargetPairs
from hlo.summary import counted
from hlo.types import (
    TOKEN,
    U32,
    ArrayShape,
    Shape,
    TupleShape,
    bounded,
    compatible,
    same_bounds,
    without_layout,
)
from hlo.walk import Callee

__all__ = [
    "all_gather", "all_gather_done", "all_gather_start", "all_reduce", "all_reduce_done",
    "all_reduce_start", "all_to_all", "collective_broadcast", "collective_permute",
    "collective_permute_done", "collective_permute_start", "infeed", "outfeed", "partition_id",
    "ragged_all_to_all", "recv", "recv_done", "reduce_scatter", "replica_id", "send", "send_done",
]  # fmt: skip


def _same(operands: Sequence[Shape]) -> Shape:
    """C1: at least one operand, all arrays. Their shapes, a tuple of several."""
    require("C1", bool(operands), "no operands")
    shapes = arrays("C1", operands)
    return one_or_tuple([ArrayShape(s.element_type, s.dims, s.dynamic) for s in shapes])


def _results(label: str, shape: Shape, count: int) -> list[ArrayShape]:
    """Return the declared results of ``count`` operands: an array for one, a tuple of as many
    else."""
    found = shape.elements if isinstance(shape, TupleShape) and count > 1 else (shape,)
    require(label, len(found) == count, f"{counted(count, 'operand')}, results {shape}")
    return arrays(label, found, "result")


def _scaled(
    operands: Sequence[Shape], dimensions: tuple[int, ...], shape: Shape, gathers: bool
) -> Shape:
    """C1: arrays, a result for each; C2: one dimension of each; C3: along it, and only there, the
    larger side is the same multiple of the smaller one."""
    require("C1", bool(operands), "no operands")
    sources = arrays("C1", operands)
    targets = _results("C1", shape, len(sources))
    require("C2", len(dimensions) == 1, f"{len(dimensions)} dimensions, one is needed")
    (dimension,) = dimensions
    ratios: set[int] = set()
    for source, target in zip(sources, targets, strict=True):
        distinct_dimensions("C2", dimensions, source.rank)
        alike = source.element_type is target.element_type and source.rank == target.rank
        alike = alike and all(
            source.dims[d] == target.dims[d] for d in range(source.rank) if d != dimension
        )
        message = f"{source} and {target} differ in more than dimension {dimension}"
        require("C3", alike, message)
        sizes = source.dims[dimension], target.dims[dimension]
        small, large = sizes if gathers else sizes[::-1]
        ratio, rest = divmod(large, small) if small else (0, large)
        require("C3", rest == 0, f"dimension {dimension} of {source} and {target}: no multiple")
        # Any multiple of 0 is 0: it says nothing of the others.
        ratios |= {ratio} if small else set()
    require("C3", len(ratios) < 2, f"{shape} is of different multiples {sorted(ratios)}")
    return without_layout(shape)


def all_gather(
    *operands: ArrayShape,
    shape: Shape,
    dimensions: tuple[int, ...],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
) -> Shape:
    """C1: arrays, a result for each; C2: one dimension of each; C3: along it, and only there, a
    result is the same multiple of its operand; C4: groups of one size."""
    flattened = use_global_device_ids
    require_groups("C4", replica_groups, uniform=True, channel_id=channel_id, flattened=flattened)
    return _scaled(operands, dimensions, shape, gathers=True)


def reduce_scatter(
    *operands: ArrayShape,
    shape: Shape,
    to_apply: Callee[Shape],
    dimensions: tuple[int, ...],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
    mode: str = "",
) -> Shape:
    """C1: arrays, a result for each; C2: one dimension of each; C3: along it, and only there, an
    operand is the same multiple of its result; C4: to_apply takes two elements and gives one; C5:
    groups of one size."""
    flattened = use_global_device_ids
    require_groups("C5", replica_groups, uniform=True, channel_id=channel_id, flattened=flattened)
    result = _scaled(operands, dimensions, shape, gathers=False)
    _combines("C4", to_apply, operands)
    return result


def _combines(label: str, to_apply: Callee[Shape], operands: Sequence[ArrayShape]) -> None:
    """Require that ``to_apply`` combines two elements. A single operation may be on other types of
    the same kind: where XLA:CPU widens operands (f8 to f16, s4 to s8), it does not change
    ``to_apply``."""
    for element in scalars(operands):
        stands = to_apply.monoid is not None and _is_of_kind(to_apply, element)
        taken = to_apply.computation.root_instruction.shape if stands else element
        called_on(label, to_apply, (taken, taken), (taken,), folds=True)


def _is_of_kind(callee: Callee[Shape], element: Shape) -> bool:
    shape = callee.computation.root_instruction.shape
    if not isinstance(shape, ArrayShape) or not isinstance(element, ArrayShape) or shape.rank:
        return False
    return shape.element_type.kind == element.element_type.kind


def all_gather_start(
    *operands: ArrayShape,
    shape: Shape,
    dimensions: tuple[int, ...],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
) -> Shape:
    """(operands, results): C1 to C4 as of all-gather; C5: the operands come first."""
    two = isinstance(shape, TupleShape) and len(shape.elements) == 2
    require("C5", two, f"result {shape} is not (operands, results)")
    assert isinstance(shape, TupleShape)
    same = same_bounds(shape.elements[0], one_or_tuple(operands))
    require("C5", same, f"{shape.elements[0]} are not the operands")
    flattened = use_global_device_ids
    require_groups("C4", replica_groups, uniform=True, channel_id=channel_id, flattened=flattened)
    _scaled(operands, dimensions, shape.elements[1], gathers=True)
    return without_layout(shape)


def _second(operand: Shape, least: int, opcode: str) -> Shape:
    """C1: what the starting instruction gives, of which the second element is the result."""
    started = isinstance(operand, TupleShape) and len(operand.elements) >= least
    require("C1", started, f"{operand} is not what {opcode} gives")
    assert isinstance(operand, TupleShape)
    return operand.elements[1]


def all_gather_done(operand: Shape) -> Shape:
    """C1: what all-gather-start gives."""
    return _second(operand, 2, "all-gather-start")


def all_reduce(
    *operands: ArrayShape,
    to_apply: Callee[Shape],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
    mode: str = "",
) -> Shape:
    """C1: arrays; C2: to_apply takes two elements and gives one; C3: groups."""
    flattened = use_global_device_ids
    require_groups("C3", replica_groups, uniform=False, channel_id=channel_id, flattened=flattened)
    result = _same(operands)
    _combines("C2", to_apply, operands)
    return result


all_reduce_start = all_reduce


def all_reduce_done(operand: Shape) -> Shape:
    """result = the result of the all-reduce-start."""
    return operand


def all_to_all(
    *operands: ArrayShape,
    dimensions: tuple[int, ...] = (),
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
) -> Shape:
    """C1: arrays; C2: one operand with one dimension to split and join, or several operands, all
    alike and without one; C3: groups of one size."""
    require_groups("C3", replica_groups, uniform=True)
    result = _same(operands)
    if dimensions:
        one = len(dimensions) == len(operands) == 1
        require("C2", one, f"{len(dimensions)} dimensions, {len(operands)} operands")
        distinct_dimensions("C2", dimensions, operands[0].rank)
        return result
    # XLA's tuple form: operand k goes to rank k of the group. Of one operand it is a tuple, too.
    alike = all(compatible(operand, operands[0]) for operand in operands)
    require("C2", alike, "the operands are not alike")
    return TupleShape(tuple(map(without_layout, operands)))


def collective_broadcast(
    *operands: ArrayShape,
    has_dynamic_root: bool = False,
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
) -> Shape:
    """C1: arrays; C2: groups. The last one is the root's number where that is dynamic."""
    require_groups("C2", replica_groups, partial=True)
    return _same(operands[:-1] if has_dynamic_root else operands)


def collective_permute(
    *operands: Shape,
    source_target_pairs: SourceTargetPairs,
    channel_id: int | None = None,
    slice_sizes: tuple[tuple[int, ...], ...] = (),
) -> Shape:
    """C1: arrays; C2: with slice_sizes input, output and where slices of them start: an array (or
    as many) each, and for each slice a tuple of scalars; the result is the output's; C3: slices
    fit; C4: no rank sends or receives more often than the (first) array's starts are a tuple of."""
    require_pairs("C4", source_target_pairs, most=repetitions(operands) if slice_sizes else 1)
    if not slice_sizes:
        return _same(operands)
    require("C2", len(operands) == 4, f"{len(operands)} operands with slice_sizes, not four")
    # The codec is that of gather, too, whose slice_sizes are numbers.
    nested = all(isinstance(sizes, tuple) for sizes in slice_sizes)
    require("C2", nested, "slice_sizes of collective-permute is a list of lists, one per slice")
    for data, starts in zip(operands[:2], operands[2:], strict=True):
        require_slices(data, starts, slice_sizes)
    return without_layout(operands[1])


def collective_permute_start(
    *operands: Shape,
    shape: Shape,
    source_target_pairs: SourceTargetPairs,
    channel_id: int | None = None,
    slice_sizes: tuple[tuple[int, ...], ...] = (),
) -> Shape:
    """(operands, results, contexts…), or (input, output, contexts…): C1 to C4 as of
    collective-permute; C5: they come first."""
    result = collective_permute(
        *operands,
        source_target_pairs=source_target_pairs,
        channel_id=channel_id,
        slice_sizes=slice_sizes,
    )
    found = shape.elements if isinstance(shape, TupleShape) else ()
    wanted = (operands[0] if slice_sizes else one_or_tuple(operands), result)
    fits = len(found) >= 2 and all(map(same_bounds, found[:2], wanted))
    require("C5", fits, f"result {shape} is not ({wanted[0]}, {result}) with contexts")
    return without_layout(shape)


def collective_permute_done(operand: Shape) -> Shape:
    """C1: what collective-permute-start gives."""
    return _second(operand, 2, "collective-permute-start")


def ragged_all_to_all(
    operand: ArrayShape,
    output: ArrayShape,
    input_offsets: ArrayShape,
    send_sizes: ArrayShape,
    output_offsets: ArrayShape,
    recv_sizes: ArrayShape,
    *,
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    dimensions: tuple[int, ...] = (),
) -> ArrayShape:
    """C1: arrays, operand and output alike but for the first dimension; C2: offsets and sizes are
    integers, all of one shape of rank 1 or 2; C3: groups of one size."""
    require_groups("C3", replica_groups, uniform=True)
    source, target = arrays("C1", (operand, output))
    alike = source.element_type is target.element_type and source.dims[1:] == target.dims[1:]
    alike = alike and source.rank == target.rank >= 1
    require("C1", alike, f"{source} and {target} differ in more than the first dimension")
    sizes = arrays("C2", (input_offsets, send_sizes, output_offsets, recv_sizes))
    for one in sizes:
        fits = one.is_integer and one.rank in (1, 2) and one.dims == sizes[0].dims
        require("C2", fits, f"{one} is not of integers of rank 1 or 2, like {sizes[0]}")
    return bounded(target.element_type, target.dims, target.dynamic)


def replica_id() -> ArrayShape:
    """A number."""
    return ArrayShape(U32)


partition_id = replica_id


def send(
    operand: ArrayShape,
    token: Shape,
    *,
    channel_id: int | None = None,
    is_host_transfer: bool = False,
) -> TupleShape:
    """(data, context, token); C1: an array and a token."""
    data = without_layout(array("C1", operand))
    require("C1", is_token(token), f"{token} is not a token")
    return TupleShape((data, ArrayShape(U32), ArrayShape(TOKEN)))


def _started(operand: Shape, opcode: str) -> Shape:
    """C1: (data, context, token). The data."""
    found = operand.elements if isinstance(operand, TupleShape) else ()
    fits = len(found) == 3 and is_scalar(found[1], U32) and is_token(found[2])
    require("C1", fits, f"{operand} is not what {opcode} gives")
    return found[0]


def send_done(
    operand: Shape, *, channel_id: int | None = None, is_host_transfer: bool = False
) -> ArrayShape:
    """A token; C1: of what send gives."""
    _started(operand, "send")
    return ArrayShape(TOKEN)


def recv(
    token: Shape, *, shape: Shape, channel_id: int | None = None, is_host_transfer: bool = False
) -> Shape:
    """(data, context, token); C1: from a token."""
    require("C1", is_token(token), f"{token} is not a token")
    _started(shape, "recv")
    return without_layout(shape)


def recv_done(
    operand: Shape, *, channel_id: int | None = None, is_host_transfer: bool = False
) -> TupleShape:
    """(data, token); C1: of what recv gives."""
    return TupleShape((_started(operand, "recv"), ArrayShape(TOKEN)))


def infeed(token: Shape, *, shape: Shape, infeed_config: str = "") -> Shape:
    """(data, token); C1: from a token; C2: of that form."""
    require("C1", is_token(token), f"{token} is not a token")
    found = shape.elements if isinstance(shape, TupleShape) else ()
    fits = len(found) == 2 and is_token(found[1])
    require("C2", fits, f"result {shape} is not (data, token)")
    return without_layout(shape)


def outfeed(
    operand: Shape, token: Shape, *, outfeed_config: str = "", outfeed_shape: Shape | None = None
) -> ArrayShape:
    """A token; C1: the second operand is one; C2: outfeed_shape, if given, is the first one's."""
    require("C1", is_token(token), f"{token} is not a token")
    if outfeed_shape is not None:
        fits = same_bounds(outfeed_shape, operand)
        require("C2", fits, f"outfeed_shape is {outfeed_shape}, the operand {operand}")
    return ArrayShape(TOKEN)

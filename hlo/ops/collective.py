"""What crosses the border of a replica: collectives, hosts and other devices; shapes from shapes.

Sources: XLA's ``shape_inference.cc`` (InferAllGatherShape and others) and ``hlo_verifier.cc``.
Groups are kept as text: how many replicas there are is not a matter of shapes.
"""

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
from hlo.types import TOKEN, U32, ArrayShape, Shape, TupleShape, bounded, compatible, without_layout
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
    """The declared results of ``count`` operands: an array, or a tuple of as many."""
    found = shape.elements if isinstance(shape, TupleShape) else (shape,)
    require(label, len(found) == count, f"{count} operands, results {shape}")
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
        ratios |= {ratio} if small else set()
    require("C3", len(ratios) < 2, f"{shape} is of different multiples {sorted(ratios)}")
    return without_layout(shape)


def all_gather(
    *operands: ArrayShape,
    shape: Shape,
    dimensions: tuple[int, ...],
    replica_groups: str = "",
    channel_id: int = 0,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
) -> Shape:
    """C1: arrays, a result for each; C2: one dimension of each; C3: along it, and only there, a
    result is the same multiple of its operand."""
    return _scaled(operands, dimensions, shape, gathers=True)


def reduce_scatter(
    *operands: ArrayShape,
    shape: Shape,
    to_apply: Callee[Shape],
    dimensions: tuple[int, ...],
    replica_groups: str = "",
    channel_id: int = 0,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
    mode: str = "",
) -> Shape:
    """C1: arrays, a result for each; C2: one dimension of each; C3: along it, and only there, an
    operand is the same multiple of its result; C4: to_apply takes two elements and gives one."""
    result = _scaled(operands, dimensions, shape, gathers=False)
    _combines("C4", to_apply, operands)
    return result


def _combines(label: str, to_apply: Callee[Shape], operands: Sequence[ArrayShape]) -> None:
    for element in scalars(operands):
        called_on(label, to_apply, (element, element), (element,))


def all_gather_start(
    *operands: ArrayShape,
    shape: Shape,
    dimensions: tuple[int, ...],
    replica_groups: str = "",
    channel_id: int = 0,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
) -> Shape:
    """(operands, results): C1 to C3 as of all-gather; C4: the operands come first."""
    two = isinstance(shape, TupleShape) and len(shape.elements) == 2
    require("C4", two, f"result {shape} is not (operands, results)")
    assert isinstance(shape, TupleShape)
    same = compatible(shape.elements[0], one_or_tuple(operands))
    require("C4", same, f"{shape.elements[0]} are not the operands")
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
    replica_groups: str = "",
    channel_id: int = 0,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
    mode: str = "",
) -> Shape:
    """C1: arrays; C2: to_apply takes two elements and gives one."""
    result = _same(operands)
    _combines("C2", to_apply, operands)
    return result


all_reduce_start = all_reduce


def all_reduce_done(operand: Shape) -> Shape:
    """What all-reduce-start gives."""
    return operand


def all_to_all(
    *operands: ArrayShape,
    dimensions: tuple[int, ...] = (),
    replica_groups: str = "",
    channel_id: int = 0,
    constrain_layout: bool = False,
) -> Shape:
    """C1: arrays; C2: one operand with one dimension to split and join, or several operands, all
    alike and without one."""
    result = _same(operands)
    if dimensions:
        one = len(dimensions) == len(operands) == 1
        require("C2", one, f"{len(dimensions)} dimensions, {len(operands)} operands")
        distinct_dimensions("C2", dimensions, operands[0].rank)
        return result
    alike = all(compatible(operand, operands[0]) for operand in operands)
    require("C2", alike, "the operands are not alike")
    return TupleShape(tuple(map(without_layout, operands)))


def collective_broadcast(
    *operands: ArrayShape,
    has_dynamic_root: bool = False,
    replica_groups: str = "",
    channel_id: int = 0,
) -> Shape:
    """C1: arrays. The last one is the root's number where that is dynamic."""
    return _same(operands[:-1] if has_dynamic_root else operands)


def collective_permute(
    *operands: ArrayShape,
    source_target_pairs: str,
    channel_id: int = 0,
    slice_sizes: tuple[int, ...] = (),
) -> Shape:
    """C1: arrays; C2: with slice_sizes input, output and their offsets: the result is the
    output's."""
    result = _same(operands)
    if slice_sizes:
        require("C2", len(operands) == 4, f"{len(operands)} operands with slice_sizes, not four")
        return without_layout(operands[1])
    return result


def collective_permute_start(
    *operands: ArrayShape,
    shape: Shape,
    source_target_pairs: str,
    channel_id: int = 0,
    slice_sizes: tuple[int, ...] = (),
) -> Shape:
    """(operands, results, contexts…): C1 and C2 as of collective-permute; C3: they come first."""
    result = collective_permute(
        *operands,
        source_target_pairs=source_target_pairs,
        channel_id=channel_id,
        slice_sizes=slice_sizes,
    )
    found = shape.elements if isinstance(shape, TupleShape) else ()
    wanted = (one_or_tuple(operands), result)
    fits = len(found) in (2, 4) and all(map(compatible, found[:2], wanted))
    fits = fits and all(is_scalar(context, U32) for context in found[2:])
    require("C3", fits, f"result {shape} is not ({wanted[0]}, {result}) with contexts")
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
    replica_groups: str = "",
    channel_id: int = 0,
    dimensions: tuple[int, ...] = (),
) -> ArrayShape:
    """C1: arrays, operand and output alike but for the first dimension; C2: integer vectors, all
    of one size."""
    source, target = arrays("C1", (operand, output))
    alike = source.element_type is target.element_type and source.dims[1:] == target.dims[1:]
    alike = alike and source.rank == target.rank >= 1
    require("C1", alike, f"{source} and {target} differ in more than the first dimension")
    sizes = arrays("C2", (input_offsets, send_sizes, output_offsets, recv_sizes))
    for one in sizes:
        fits = one.is_integer and one.rank == 1 and one.dims == sizes[0].dims
        require("C2", fits, f"{one} is not an integer vector like {sizes[0]}")
    return bounded(target.element_type, target.dims, target.dynamic)


def replica_id() -> ArrayShape:
    """A number."""
    return ArrayShape(U32)


partition_id = replica_id


def send(
    operand: ArrayShape, token: Shape, *, channel_id: int = 0, is_host_transfer: bool = False
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


def send_done(operand: Shape, *, channel_id: int = 0, is_host_transfer: bool = False) -> ArrayShape:
    """A token; C1: of what send gives."""
    _started(operand, "send")
    return ArrayShape(TOKEN)


def recv(
    token: Shape, *, shape: Shape, channel_id: int = 0, is_host_transfer: bool = False
) -> Shape:
    """(data, context, token); C1: from a token."""
    require("C1", is_token(token), f"{token} is not a token")
    _started(shape, "recv")
    return without_layout(shape)


def recv_done(operand: Shape, *, channel_id: int = 0, is_host_transfer: bool = False) -> TupleShape:
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
    operand: Shape, token: Shape, *, outfeed_config: str = "", outfeed_shape: str = ""
) -> ArrayShape:
    """A token; C1: the second operand is one."""
    require("C1", is_token(token), f"{token} is not a token")
    return ArrayShape(TOKEN)

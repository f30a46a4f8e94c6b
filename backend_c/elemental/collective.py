"""Build one element of each collective on a single rank, where most are the identity.

Generated code is one rank. Groups of more are Unsupported, and so are transfers between ranks, to
and from the host: a library has nobody to call.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.elemental.data_movement import all_of
from backend_c.elemental.indexing import dynamic_slice, dynamic_update_slice
from backend_c.ir import index as ix
from backend_c.ir.element import Element, Value, scalar, zero
from backend_c.ir.loop_ir import INDEX, Constant, Expr
from backend_c.ir.scope import apply
from hlo.errors import Unsupported
from hlo.permuted_slices import placed_slices
from hlo.replica_groups import ALL_IDS, ReplicaGroups, SourceTargetPairs, expanded
from hlo.types import PRED, U32, ArrayShape, Shape, TupleShape
from hlo.walk import Callee

__all__ = [
    "all_gather",
    "all_gather_done",
    "all_gather_start",
    "all_reduce",
    "all_reduce_done",
    "all_reduce_start",
    "all_to_all",
    "collective_broadcast",
    "collective_permute",
    "collective_permute_done",
    "collective_permute_start",
    "infeed",
    "outfeed",
    "partition_id",
    "ragged_all_to_all",
    "recv",
    "recv_done",
    "reduce_scatter",
    "replica_id",
    "send",
    "send_done",
]

# Slices of a ragged-all-to-all: each is a select at every element of the result.
MOST_SLICES = 64

_ELSEWHERE = "generated C is one rank; interp.evaluate(…, replicas=…, partitions=…) simulates more"
_FEEDS = "generated C has no host and no other rank; interp.evaluate has both"


def _require_one_rank(replica_groups: ReplicaGroups) -> None:
    """Raise Unsupported unless every replica group is this one rank."""
    if expanded(replica_groups) not in ((), ((0,),)):
        raise Unsupported(f"replica_groups={str(replica_groups)[:60]}: {_ELSEWHERE}")


def _identity(operands: Sequence[Value], replica_groups: ReplicaGroups) -> Value:
    """Return the operands unchanged, as the result of a collective over one rank."""
    _require_one_rank(replica_groups)
    return operands[0] if len(operands) == 1 else tuple(operands)


def replica_id() -> Element:
    """result = 0."""
    return scalar(ArrayShape(U32), Constant(U32, 0))


partition_id = replica_id


def all_reduce(
    *operands: Element,
    to_apply: Callee[Value],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
    mode: str = "",
) -> Value:
    """result = operands: the sum over one rank."""
    return _identity(operands, replica_groups)


all_reduce_start = all_reduce


def all_reduce_done(operand: Value) -> Value:
    """Return the result of the start."""
    return operand


def _require_same_size(operands: Sequence[Element], shape: Shape) -> None:
    """Raise Unsupported where results have other dims than operands, as of several ranks."""
    results = shape.elements if isinstance(shape, TupleShape) else (shape,)
    for operand, result in zip(operands, results, strict=True):
        assert isinstance(result, ArrayShape)
        if result.dims != operand.shape.dims:
            raise Unsupported(f"a result {shape} of more than one rank: {_ELSEWHERE}")


def all_gather(
    *operands: Element,
    shape: Shape,
    dimensions: tuple[int, ...],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
) -> Value:
    """result = operands: the concatenation over one rank."""
    _require_same_size(operands, shape)
    return _identity(operands, replica_groups)


def all_gather_start(
    *operands: Element,
    shape: Shape,
    dimensions: tuple[int, ...],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
) -> Value:
    """Return (operands, results)."""
    assert isinstance(shape, TupleShape)
    _require_same_size(operands, shape.elements[1])
    value = _identity(operands, replica_groups)
    return value, value


def all_gather_done(operand: tuple[Value, ...]) -> Value:
    """Return the results of the start."""
    return operand[1]


def reduce_scatter(
    *operands: Element,
    shape: Shape,
    to_apply: Callee[Value],
    dimensions: tuple[int, ...],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
    mode: str = "",
) -> Value:
    """result = operands: the sum over one rank, all of it this rank's."""
    _require_same_size(operands, shape)
    return _identity(operands, replica_groups)


def all_to_all(
    *operands: Element,
    dimensions: tuple[int, ...] = (),
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
) -> Value:
    """result = operands: the one piece that this rank sends is its own."""
    value = _identity(operands, replica_groups)
    if len(operands) > 1:
        raise Unsupported(f"{len(operands)} operands for as many ranks: {_ELSEWHERE}")
    return value if dimensions else (value,)


def collective_broadcast(
    *operands: Element,
    has_dynamic_root: bool = False,
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
) -> Value:
    """result = operands: this rank is the root."""
    return _identity(operands[:-1] if has_dynamic_root else operands, replica_groups)


def collective_permute(
    *operands: Value,
    source_target_pairs: SourceTargetPairs,
    channel_id: int | None = None,
    slice_sizes: tuple[tuple[int, ...], ...] = (),
) -> Value:
    """result = operands if this rank sends to itself, zeros if nobody sends to it.

    With ``slice_sizes``, (source, output, starts, targets): slices of the source are written into
    the output.
    """
    pairs = source_target_pairs.pairs
    if any(ids != (0, 0) for ids in pairs):
        raise Unsupported(f"source_target_pairs={str(source_target_pairs)[:60]}: {_ELSEWHERE}")
    if slice_sizes:
        source, output, starts, target_starts = operands
        return (
            _with_slices_moved(source, output, starts, target_starts, slice_sizes)
            if pairs
            else output
        )
    results = operands if pairs else tuple(_zeros(o) for o in operands if isinstance(o, Element))
    return results[0] if len(results) == 1 else tuple(results)


def _zeros(operand: Element) -> Element:
    """result[i] = 0, or NaN in a type that has no zero."""
    nothing = zero(operand.shape.element_type)
    return Element(operand.shape, lambda *index: nothing, operand.sizes)


def _tuple(value: Value) -> tuple[Value, ...]:
    """Wrap a value that is no tuple in one."""
    return value if isinstance(value, tuple) else (value,)


def _with_slices_moved(
    source: Value,
    output: Value,
    starts: Value,
    target_starts: Value,
    slice_sizes: tuple[tuple[int, ...], ...],
) -> Value:
    """Write slices of the source into the output, one after the other."""
    sources, outputs = _tuple(source), list(_tuple(output))
    taken, put = (
        placed_slices(len(of) if isinstance(of, tuple) else None, at, _parts)
        for of, at in ((source, starts), (output, target_starts))
    )
    for (number, from_), (which, into), sizes in zip(taken, put, slice_sizes, strict=True):
        data, target = sources[number], outputs[which]
        assert isinstance(data, Element) and isinstance(target, Element)
        piece = dynamic_slice(data, *_index(from_), dynamic_slice_sizes=sizes)
        outputs[which] = dynamic_update_slice(target, piece, *_index(into))
    return tuple(outputs) if isinstance(output, tuple) else outputs[0]


def _parts(value: Value) -> tuple[Value, ...] | None:
    """Return the elements of a tuple; None for any other value."""
    return value if isinstance(value, tuple) else None


def _index(start: Value) -> list[Element]:
    """Return the scalars, or the one vector, that a start index is given by."""
    return [index for index in _tuple(start) if isinstance(index, Element)]


def collective_permute_start(
    *operands: Value,
    shape: Shape,
    source_target_pairs: SourceTargetPairs,
    channel_id: int | None = None,
    slice_sizes: tuple[tuple[int, ...], ...] = (),
) -> Value:
    """Return (operands, results, contexts…)."""
    result = collective_permute(
        *operands,
        source_target_pairs=source_target_pairs,
        channel_id=channel_id,
        slice_sizes=slice_sizes,
    )
    assert isinstance(shape, TupleShape)
    context = replica_id()  # a zero, as good as any
    first = operands[0] if slice_sizes or len(operands) == 1 else tuple(operands)
    return (first, result, *(context for _ in shape.elements[2:]))


def collective_permute_done(operand: tuple[Value, ...]) -> Value:
    """Return the results of the start."""
    return operand[1]


def ragged_all_to_all(
    operand: Element,
    output: Element,
    input_offsets: Element,
    send_sizes: Element,
    output_offsets: Element,
    recv_sizes: Element,
    *,
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    dimensions: tuple[int, ...] = (),
) -> Element:
    """result[i] = output[i], overwritten by slices of the operand's rows.

    Slice s puts rows input_offsets[s] … + send_sizes[s] at output_offsets[s]. Rows out of bounds
    are not written; the interpreter calls them an error.
    """
    _require_one_rank(replica_groups)
    count = input_offsets.shape.elements
    if count > MOST_SLICES:
        raise Unsupported(f"{count} slices on one rank: the C backend takes {MOST_SLICES}")
    last = max(operand.shape.dims[0] - 1, 0)

    def entry(table: Element, number: int) -> Expr:
        index = ix.delinearize(ix.constant(number), table.shape.dims)
        return apply("convert", table.at(*index), type=INDEX)

    def at(*index: Expr) -> Expr:
        # Slices are tried in order at each element: a later one overwrites an earlier one, as if in
        # turn.
        value = output.at(*index)
        for number in range(count):
            tables = (input_offsets, send_sizes, output_offsets)
            start, size, target = (entry(table, number) for table in tables)
            row = apply("subtract", index[0], target)
            inside = [
                apply("compare-GE", row, ix.constant(0), type=PRED),
                apply("compare-LT", row, size, type=PRED),
            ]
            source = ix.clamp(0, apply("add", start, row), last)
            read = operand.at(source, *index[1:])
            value = apply("select", all_of(inside), read, value, type=read.type)
        return value

    return Element(output.shape, at, output.sizes)


def _unsupported(opcode: str) -> Unsupported:
    """Return the error of an op that needs a host or another rank."""
    return Unsupported(f"the C backend takes no {opcode}: {_FEEDS}")


def send(
    operand: Element, token: Value, *, channel_id: int | None = None, is_host_transfer: bool = False
) -> Value:
    """Raise Unsupported."""
    raise _unsupported("send")


def send_done(
    operand: Value, *, channel_id: int | None = None, is_host_transfer: bool = False
) -> Value:
    """Raise Unsupported."""
    raise _unsupported("send-done")


def recv(
    token: Value, *, shape: Shape, channel_id: int | None = None, is_host_transfer: bool = False
) -> Value:
    """Raise Unsupported."""
    raise _unsupported("recv")


def recv_done(
    operand: Value, *, channel_id: int | None = None, is_host_transfer: bool = False
) -> Value:
    """Raise Unsupported."""
    raise _unsupported("recv-done")


def infeed(token: Value, *, shape: Shape, infeed_config: str = "") -> Value:
    """Raise Unsupported."""
    raise _unsupported("infeed")


def outfeed(
    operand: Value, token: Value, *, outfeed_config: str = "", outfeed_shape: Shape | None = None
) -> Value:
    """Raise Unsupported."""
    raise _unsupported("outfeed")

"""Evaluate collective-permute and ragged-all-to-all on simulated ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlo.errors import ArgumentError, CollectiveError
from hlo.permuted_slices import placed_slices
from hlo.replica_groups import ALL_IDS, ReplicaGroups, SourceTargetPairs
from hlo.types import Shape, TupleShape
from hlo.values import Array, zeros_of
from interp.ops.collective import met, one_or_all, required_group
from interp.ranks import current
from interp.values import Value, zeros

__all__ = [
    "collective_permute",
    "collective_permute_done",
    "collective_permute_start",
    "ragged_all_to_all",
]


def _sources(
    given: SourceTargetPairs, channel: int | None
) -> tuple[dict[int, int], tuple[int, ...]]:
    """Map each receiving rank to its sender, and list all ranks that take part, among the ranks of
    this one's replica or partition."""
    if not given.pairs:
        return {}, ()
    rank = current()
    among = rank.among_partitions if channel is not None else rank.among_replicas
    pairs = dict.fromkeys(given.pairs)  # with slices one may be written for each of them
    sources, targets = (among(ids) for ids in zip(*pairs, strict=True))
    found = dict(zip(targets, sources, strict=True))
    if len(found) != len(targets):
        raise CollectiveError(f"{str(given)[:60]}: two send to one")
    return found, tuple(sorted({*sources, *targets}))


def collective_permute(
    *operands: Value,
    source_target_pairs: SourceTargetPairs,
    channel_id: int | None = None,
    slice_sizes: tuple[tuple[int, ...], ...] = (),
) -> Value:
    """Return the operands of the rank that sends to this one; zeros if none does.

    With ``slice_sizes`` the operands are input, output, where slices of the input start, and where
    they go in the output: the result is the output with the slices that the sender took at its
    starts, at this rank's places (both clamped as dynamic-slice does).
    """
    sources, members = _sources(source_target_pairs, channel_id)
    rank = current()

    def combine(given: list[Value]) -> list[Value]:
        brought = dict(zip(members, given, strict=True))
        return [brought[sources[number]] if number in sources else None for number in members]

    value = _slices(operands[0], operands[2], slice_sizes) if slice_sizes else operands
    received = None
    if rank.number in members:
        received = met(members, channel_id, value, combine, {"pairs": str(sources)})
    if slice_sizes:
        return _with_slices(operands[1], operands[3], received)
    if received is None:
        received = tuple(zeros_of(array.shape, array.dtype) for array in operands)
    return one_or_all(received)


def _pieces(
    arrays: Value, starts: Value, count: int
) -> tuple[list[Array], list[int], list[tuple[int, ...]]]:
    """List the arrays, and for each slice the number of its array and its start indices."""
    whole = list(_parts(arrays) or (arrays,))
    buffers = None if _parts(arrays) is None else len(whole)
    slices = placed_slices(buffers, starts, _parts)
    assert len(slices) == count  # as hlo/ops/collective.py asks for
    numbers = [number for number, _ in slices]
    return whole, numbers, [tuple(map(int, _parts(at) or (at,))) for _, at in slices]


def _parts(value: Value) -> tuple[Value, ...] | None:
    return value if isinstance(value, tuple) else None


def _at(array: Array, start: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    """Compute the slices of a window clamped to lie inside; in a bounded dimension that is shorter
    than the window it ends there."""
    clamped = [
        min(max(first, 0), max(extent - size, 0))
        for first, extent, size in zip(start, array.shape, sizes, strict=True)
    ]
    return tuple(slice(first, first + size) for first, size in zip(clamped, sizes, strict=True))


def _slices(
    arrays: Value, starts: Value, slice_sizes: tuple[tuple[int, ...], ...]
) -> tuple[Array, ...]:
    whole, numbers, places = _pieces(arrays, starts, len(slice_sizes))
    return tuple(
        whole[number][_at(whole[number], place, sizes)]
        for number, place, sizes in zip(numbers, places, slice_sizes, strict=True)
    )


def _with_slices(arrays: Value, starts: Value, received: tuple[Array, ...] | None) -> Value:
    if received is None:
        return arrays
    whole, numbers, places = _pieces(arrays, starts, len(received))
    whole = [np.array(array) for array in whole]
    for number, place, piece in zip(numbers, places, received, strict=True):
        inside = piece[tuple(map(slice, whole[number].shape))]
        whole[number][_at(whole[number], place, inside.shape)] = inside
    return tuple(whole) if isinstance(arrays, tuple) else whole[0]


def collective_permute_start(
    *operands: Value,
    shape: Shape,
    source_target_pairs: SourceTargetPairs,
    channel_id: int | None = None,
    slice_sizes: tuple[tuple[int, ...], ...] = (),
) -> Value:
    """Exchange at once; return (operands, results, contexts: zeros), where operands is only the
    input if slices are exchanged."""
    result = collective_permute(
        *operands,
        source_target_pairs=source_target_pairs,
        channel_id=channel_id,
        slice_sizes=slice_sizes,
    )
    assert isinstance(shape, TupleShape)
    return (
        operands[0] if slice_sizes else one_or_all(operands),
        result,
        *map(zeros, shape.elements[2:]),
    )


def collective_permute_done(operand: Value) -> Value:
    """Return the results."""
    return operand[1]


def ragged_all_to_all(
    operand: Array,
    output: Array,
    input_offsets: Array,
    send_sizes: Array,
    output_offsets: Array,
    recv_sizes: Array,
    *,
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    dimensions: tuple[int, ...] = (),
) -> Array:
    """Exchange slices of rows with every member of the group; return the output with received rows.

    Offsets and sizes have k entries for each of the n members; entries i·k to i·k + k - 1 describe
    what this rank sends to member i: ``send_sizes`` rows from ``input_offsets`` on are written into
    the output of member i from ``output_offsets`` on. ``recv_sizes`` has the number of rows that
    member i sends.
    """
    del dimensions  # rows are always along the first one
    group = required_group(replica_groups, channel_id, None)
    tables = [table.astype(np.int64).ravel() for table in (input_offsets, send_sizes)]
    tables += [table.astype(np.int64).ravel() for table in (output_offsets, recv_sizes)]
    if len(tables[0]) % len(group):
        raise CollectiveError(
            f"{current()}: {len(tables[0])} slices for the {len(group)} ranks of its group"
        )

    def combine(given: list[tuple[Array, ...]]) -> list[Value]:
        return [_ragged(given, group, member) for member in range(len(group))]

    return met(group, channel_id, (operand, output, *tables), combine, {})  # type: ignore[no-any-return]


def _ragged(given: list[tuple[Array, ...]], group: Sequence[int], member: int) -> Array:
    """Copy all rows sent to ``member`` into its output."""
    result, expected = np.array(given[member][1]), given[member][5]
    each = len(expected) // len(given)
    for sender, (rows, _, starts, sizes, targets, _) in enumerate(given):
        for number in range(each):
            mine, theirs = sender * each + number, member * each + number
            start, size, target = (int(table[theirs]) for table in (starts, sizes, targets))
            if size != expected[mine]:
                raise CollectiveError(
                    f"rank {group[sender]} sends {size} rows to rank {group[member]}, which"
                    f" expects {expected[mine]}"
                )
            if (
                min(start, size, target) < 0
                or start + size > len(rows)
                or target + size > len(result)
            ):
                raise ArgumentError(
                    f"rank {group[sender]} sends {size} rows from {start} of {len(rows)} to"
                    f" {target} of {len(result)} on rank {group[member]}: out of bounds"
                )
            result[target : target + size] = rows[start : start + size]
    return result

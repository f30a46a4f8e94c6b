"""Evaluate collectives on simulated ranks.

Group modes are those of XLA's ``collective_ops_utils.h``. The last member of a group to arrive
computes the results of all. An asynchronous start waits for the others as the op itself does: its
value holds the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hlo.errors import CollectiveError
from hlo.replica_groups import ALL_IDS, ReplicaGroups, expanded
from hlo.values import Array, zeros_of
from hlo.walk import Callee
from interp.ops.reduction import reduce
from interp.ranks import Rank, current
from interp.values import Value, described

__all__ = [
    "all_gather",
    "all_gather_done",
    "all_gather_start",
    "all_reduce",
    "all_reduce_done",
    "all_reduce_start",
    "all_to_all",
    "collective_broadcast",
    "partition_id",
    "reduce_scatter",
    "replica_id",
]

_Combine = Callable[[list[tuple[Array, ...]]], Sequence[Value]]

# By whether there is a channel, and whether ids are global: what the ids of a group are.
_MODES = {
    (False, False): Rank.among_replicas,
    (True, False): Rank.among_both,
    (True, True): Rank.among_all,
    (False, True): Rank.among_all,
}


def replica_id() -> Array:
    """Return the replica of this rank."""
    return np.asarray(current().replica, np.uint32)


def partition_id() -> Array:
    """Return the partition of this rank."""
    return np.asarray(current().partition, np.uint32)


def one_or_all(results: Sequence[Value]) -> Value:
    return results[0] if len(results) == 1 else tuple(results)


def _group(
    groups: ReplicaGroups, channel: int | None, global_ids: bool | None
) -> tuple[int, ...] | None:
    """Find this rank's group, as rank numbers; None if it is in none. ``global_ids`` is None for
    ops whose ids are partitions if they have a channel, else replicas."""
    if global_ids is None:
        among = Rank.among_partitions if channel is not None else Rank.among_replicas
    else:
        among = _MODES[channel is not None, global_ids]
    return current().group(expanded(groups), among)


def required_group(
    groups: ReplicaGroups, channel: int | None, global_ids: bool | None
) -> tuple[int, ...]:
    group = _group(groups, channel, global_ids)
    if group is None:
        raise CollectiveError(f"{current()} is in none of the groups {str(groups)[:60]}")
    return group


def met(
    group: tuple[int, ...],
    channel: int | None,
    operands: tuple[Array, ...],
    combine: _Combine,
    agreement: Mapping[str, str],
) -> Value:
    """Exchange operands with the group: the last member to arrive applies ``combine`` to those of
    all, and each gets its own result. All must have operands of the same shapes."""
    rank = current()
    opcode = "" if rank.instruction is None else rank.instruction.opcode
    same = {"operations": opcode, "shapes": described(operands), **agreement}
    return rank.ranks.meet(rank, group, channel, same, operands, combine)


def _reduced(given: Sequence[Array], to_apply: Callee[Value]) -> Array:
    """Fold all members' arrays in the order of the group; a sum of floats is rounded once."""
    # The first array is the init: a zero as init would make +0 of a sum of -0 only.
    first, *others = given
    if not others:
        return first
    stacked = np.stack(others)
    folded = reduce(stacked, first, dimensions=(0,), to_apply=to_apply)
    return np.asarray(folded[0] if isinstance(folded, tuple) else folded)


def _combination(to_apply: Callee[Value]) -> str:
    # Instructions of one channel may each call an addition of their own.
    return to_apply.monoid or to_apply.computation.name


def all_reduce(
    *operands: Array,
    to_apply: Callee[Value],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
    mode: str = "",
) -> Value:
    """Return the fold of all members' operands, to each of them."""
    del constrain_layout, mode
    group = required_group(replica_groups, channel_id, use_global_device_ids)

    def combine(given: list[tuple[Array, ...]]) -> list[Value]:
        folded = [_reduced(arrays, to_apply) for arrays in zip(*given, strict=True)]
        return [one_or_all(folded)] * len(given)

    agreement = {"computations": _combination(to_apply)}
    return met(group, channel_id, operands, combine, agreement)


all_reduce_start = all_reduce


def all_reduce_done(operand: Value) -> Value:
    """Return the result that all-reduce-start computed."""
    return operand


def all_gather(
    *operands: Array,
    dimensions: tuple[int, ...],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
) -> Value:
    """Return all members' operands one after the other along a dimension, to each of them."""
    del constrain_layout
    group = required_group(replica_groups, channel_id, use_global_device_ids)
    (dimension,) = dimensions

    def combine(given: list[tuple[Array, ...]]) -> list[Value]:
        joined = [np.concatenate(arrays, axis=dimension) for arrays in zip(*given, strict=True)]
        return [one_or_all(joined)] * len(given)

    return met(group, channel_id, operands, combine, {"dimensions": str(dimension)})


def all_gather_start(
    *operands: Array,
    dimensions: tuple[int, ...],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
) -> Value:
    """Gather at once; return (operands, results)."""
    results = all_gather(
        *operands,
        dimensions=dimensions,
        replica_groups=replica_groups,
        channel_id=channel_id,
        constrain_layout=constrain_layout,
        use_global_device_ids=use_global_device_ids,
    )
    return one_or_all(operands), results


def all_gather_done(operand: Value) -> Value:
    """Return the results."""
    return operand[1]


def _parts(array: Array, dimension: int, count: int) -> list[Array]:
    if array.shape[dimension] % count:
        raise CollectiveError(
            f"{current()}: dimension {dimension} of {described(array)} does not divide among the"
            f" {count} ranks of a group"
        )
    return np.split(array, count, axis=dimension)


def reduce_scatter(
    *operands: Array,
    to_apply: Callee[Value],
    dimensions: tuple[int, ...],
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
    use_global_device_ids: bool = False,
    mode: str = "",
) -> Value:
    """Return the fold of all members' operands, of which each gets its part along a dimension."""
    del constrain_layout, mode
    group = required_group(replica_groups, channel_id, use_global_device_ids)
    (dimension,) = dimensions

    def combine(given: list[tuple[Array, ...]]) -> list[Value]:
        folded = [_reduced(arrays, to_apply) for arrays in zip(*given, strict=True)]
        parts = [_parts(array, dimension, len(given)) for array in folded]
        return [one_or_all(mine) for mine in zip(*parts, strict=True)]

    agreement = {"dimensions": str(dimension), "computations": _combination(to_apply)}
    return met(group, channel_id, operands, combine, agreement)


def all_to_all(
    *operands: Array,
    dimensions: tuple[int, ...] = (),
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
    constrain_layout: bool = False,
) -> Value:
    """Give member i the i-th operand of every member. Of one operand with a dimension, split it
    into parts along that: member i gets every member's i-th part, concatenated along it."""
    del constrain_layout
    group = required_group(replica_groups, channel_id, None)

    def combine(given: list[tuple[Array, ...]]) -> list[Value]:
        if not dimensions:
            return [tuple(mine) for mine in zip(*given, strict=True)]
        parts = [_parts(array, dimensions[0], len(given)) for (array,) in given]
        return [np.concatenate(mine, axis=dimensions[0]) for mine in zip(*parts, strict=True)]

    if not dimensions and len(operands) != len(group):
        raise CollectiveError(
            f"{current()}: {len(operands)} operands for the {len(group)} ranks of its group"
        )
    return met(group, channel_id, operands, combine, {"dimensions": str(dimensions)})


def collective_broadcast(
    *operands: Array,
    has_dynamic_root: bool = False,
    replica_groups: ReplicaGroups = ALL_IDS,
    channel_id: int | None = None,
) -> Value:
    """Return the operands of the first member of the group, or of the member whose place in the
    group the last operand gives (``has_dynamic_root``); zeros on a rank of no group."""
    group = _group(replica_groups, channel_id, None)
    data = operands[:-1] if has_dynamic_root else operands
    if group is None:
        return one_or_all([zeros_of(array.shape, array.dtype) for array in data])
    root = int(operands[-1].ravel()[0]) if has_dynamic_root else 0
    if not 0 <= root < len(group):
        raise CollectiveError(f"{current()}: root {root} of a group of {len(group)} ranks")

    def combine(given: list[tuple[Array, ...]]) -> list[Value]:
        return [one_or_all(given[root][: len(data)])] * len(given)

    return met(group, channel_id, operands, combine, {"roots": str(root)})

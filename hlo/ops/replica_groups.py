"""Check constraints of replica groups and source-target pairs that hold for any number of ranks."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter

from hlo.ops.constraints import require
from hlo.replica_groups import (
    Groups,
    ListedGroups,
    MeshGroups,
    ReplicaGroups,
    SourceTargetPairs,
    check,
    expanded,
    id_count,
)


def require_groups(
    label: str,
    groups: ReplicaGroups,
    *,
    uniform: bool = False,
    partial: bool = False,
    channel_id: int | None = None,
    flattened: bool = False,
) -> None:
    """Require groups that are not empty, have each of the ids 0, 1, … once (at most once if
    ``partial``), and one size if ``uniform``. Flattened ids need a channel and groups."""
    try:
        check(groups)
    except ValueError as error:
        require(label, False, f"replica_groups: {error}")
    if flattened:
        require(label, channel_id is not None, "use_global_device_ids=true without a channel_id")
        require(label, id_count(groups) > 0, "use_global_device_ids=true without replica_groups")
    if isinstance(groups, ListedGroups):
        _require_each_once(label, groups.groups, uniform, partial)
    elif isinstance(groups, MeshGroups) and isinstance(groups.devices, tuple):
        _require_each_once(label, expanded(groups), uniform, partial)


def _require_each_once(label: str, groups: Groups, uniform: bool, partial: bool) -> None:
    """Check listed ids for :func:`require_groups`; an iota satisfies this by construction."""
    seen: set[int] = set()
    for group in groups:
        require(label, bool(group), "replica_groups has an empty group")
        for rank in group:
            require(label, rank not in seen, f"replica_groups names {rank} twice")
            seen.add(rank)
    for rank in seen:
        inside = rank >= 0 and (partial or rank < len(seen))
        require(label, inside, f"replica_groups names {rank} of {len(seen)} ids in all")
    same = not uniform or len(set(map(len, groups))) < 2
    require(label, same, "the groups of replica_groups differ in size")


def require_pairs(label: str, pairs: SourceTargetPairs, *, most: int) -> None:
    """Require ids >= 0, each at most ``most`` times a source and ``most`` times a target."""
    for side, what in enumerate(("source", "target")):
        found = [pair[side] for pair in pairs.pairs]
        least = min(found, default=0)
        require(label, least >= 0, f"source_target_pairs has the {what} {least}")
        rank, times = max(Counter(found).items(), key=itemgetter(1), default=(0, 0))
        message = (
            f"source_target_pairs has the {what} {rank} {times} times, at most {most} is legal"
        )
        require(label, times <= most, message)

"""What replica groups and source-target pairs must keep, whatever the number of ranks.

Source: ``CheckReplicaGroups`` and ``CheckDuplicatedSourceOrTarget`` of XLA's ``hlo_verifier.cc``.
"""

from __future__ import annotations

from hlo import ranks
from hlo.ops.constraints import require


def require_groups(
    label: str,
    text: str,
    *,
    uniform: bool = False,
    partial: bool = False,
    channel_id: int = 0,
    flattened: bool = False,
) -> None:
    """Groups are not empty, name each of the ids 0, 1, … once (at most once if ``partial``), and
    are of one size if ``uniform``. Flattened ids need a channel, and groups."""
    try:
        groups = ranks.replica_groups(text)
    except ValueError as error:
        require(label, False, f"replica_groups: {error}")
    if flattened:
        require(label, channel_id != 0, "use_global_device_ids=true without a channel_id")
        require(label, bool(groups), "use_global_device_ids=true without replica_groups")
    one_of_nothing = not groups and text.strip()[1:].lstrip().startswith("{")
    require(label, not one_of_nothing, "replica_groups has an empty group")
    seen: set[int] = set()
    for group in groups:
        require(label, bool(group), "replica_groups has an empty group")
        for rank in group:
            require(label, rank not in seen, f"replica_groups names {rank} twice")
            seen.add(rank)
    for rank in seen:
        inside = partial or rank < len(seen)
        require(label, inside, f"replica_groups names {rank} of {len(seen)} ids in all")
    same = not uniform or len(set(map(len, groups))) < 2
    require(label, same, "the groups of replica_groups differ in size")


def require_pairs(label: str, text: str, *, once: bool) -> None:
    """Pairs of ids, of which none sends or receives twice if ``once``."""
    try:
        pairs = ranks.source_target_pairs(text)
    except ValueError as error:
        require(label, False, f"source_target_pairs: {error}")
    for side, what in enumerate(("source", "target")):
        found = [pair[side] for pair in pairs]
        twice = once and len(set(found)) != len(found)
        require(label, not twice, f"source_target_pairs has a {what} twice")

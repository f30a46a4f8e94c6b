"""Verify the number of ranks in collectives, and the shapes that follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hlo.module import Instruction
from hlo.opcodes import BY_PARTITION, having
from hlo.replica_groups import ALL_IDS, ReplicaGroups, SourceTargetPairs, group_size, id_count
from hlo.types import ArrayShape, Shape, TupleShape
from hlo.verification.async_chains import Fault

_BY_PARTITION = having(BY_PARTITION)


def participant_faults(
    instruction: Instruction,
    shapes: Mapping[str, Shape],
    replicas: int,
    partitions: int,
) -> Iterator[Fault]:
    """Yield the faults of a collective's groups and shapes for a number of replicas and partitions.
    A header with one rank makes no claim: such a module runs on any number (docs/ranks.md)."""
    attributes = instruction.attributes
    pairs = attributes.get("source_target_pairs")
    if isinstance(pairs, SourceTargetPairs):
        among = partitions if "channel_id" in attributes else replicas
        yield from _pairs(instruction, pairs, among)
        return
    groups = attributes.get("replica_groups", ALL_IDS)
    assert isinstance(groups, ReplicaGroups)
    total, size = _sizes(instruction, groups, replicas, partitions)
    found = id_count(groups)
    partial = instruction.opcode == "collective-broadcast"  # zeros on those that no group has
    if found and total not in (None, found) and not partial:
        yield Fault(instruction, "groups", f"replica_groups name {found} of {total} ranks")
        return
    operands = [shapes[name] for name in instruction.operands]
    if instruction.opcode == "all-to-all":
        yield from _split(instruction, operands, size)
    elif "dimensions" in attributes and size not in (None, 1):
        yield from _scaled(instruction, operands, size)


def _pairs(instruction: Instruction, pairs: SourceTargetPairs, total: int) -> Iterator[Fault]:
    most = max((max(pair) for pair in pairs.pairs), default=0)
    if most >= total != 1:
        yield Fault(instruction, "groups", f"source_target_pairs name {most} of {total} ranks")


def _sizes(
    instruction: Instruction, groups: ReplicaGroups, replicas: int, partitions: int
) -> tuple[int | None, int | None]:
    """Return the number of ids in all groups, and the ranks per group; None where unknown."""
    # XLA's GetCollectiveOpGroupMode: with use_global_device_ids, ids are flattened ones; with a
    # channel alone, each id is a replica that stands for all of its partitions; else a replica.
    attributes, given = instruction.attributes, group_size(groups)
    channel, has_partitions = "channel_id" in attributes, False  # of each id all partitions
    if instruction.opcode in _BY_PARTITION:
        total = partitions if channel else replicas
    elif attributes.get("use_global_device_ids"):
        total = replicas * partitions
    else:
        total, has_partitions = replicas, channel
    size = (given or total) * (partitions if has_partitions else 1)
    # A header with one rank leaves open how many partitions each id stands for.
    is_known = replicas * partitions > 1 or (given and not has_partitions)
    return total if total > 1 else None, size if is_known else None


def _split(
    instruction: Instruction, operands: Sequence[Shape], size: int | None
) -> Iterator[Fault]:
    if size is None:
        return
    dimensions = instruction.attributes.get("dimensions")
    if not dimensions:
        if len(operands) != size:
            message = (
                f"{len(operands)} operands for {size} ranks of a group: one for each is needed"
            )
            yield Fault(instruction, "groups", message)
        return
    assert isinstance(dimensions, tuple) and isinstance(operands[0], ArrayShape)
    dimension = dimensions[0]
    assert isinstance(dimension, int)
    if operands[0].dims[dimension] % size:
        message = f"dimension {dimension} of {operands[0]} does not divide by {size} ranks"
        yield Fault(instruction, "groups", message)


def _scaled(instruction: Instruction, operands: Sequence[Shape], size: int) -> Iterator[Fault]:
    """Yield pairs of all-gather or reduce-scatter whose sizes do not differ by the group's size."""
    result = instruction.shape
    if instruction.opcode == "all-gather-start":
        assert isinstance(result, TupleShape)
        result = result.elements[1]
    dimensions = instruction.attributes["dimensions"]
    assert isinstance(dimensions, tuple)
    (dimension,) = dimensions
    results = result.elements if isinstance(result, TupleShape) else (result,)
    for operand, made in zip(operands, results, strict=True):
        assert isinstance(operand, ArrayShape) and isinstance(made, ArrayShape)
        assert isinstance(dimension, int)
        small, large = operand.dims[dimension], made.dims[dimension]
        if instruction.opcode == "reduce-scatter":
            small, large = large, small
        if small * size != large:
            message = f"{operand} and {made} do not fit a group of {size} ranks"
            yield Fault(instruction, "groups", message)

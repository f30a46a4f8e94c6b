"""Compute lower bounds of time from the machine's peak rates (roofline model)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

K = TypeVar("K")

_MOSTLY = 8  # work that writes less than this part of its bytes only reads
# Additions of integers: as many vectors at a time as multiply-adds, which count as two each.
_HALF = {"s32": "f32", "s64": "f64"}


@dataclass(frozen=True, slots=True)
class Limits:
    """Hold the peak rates of a machine at a number of threads.

    ``read`` and ``copy``: bytes a second, by the bytes touched. ``operations``: a second, by type;
    a multiply-add is two. ``region``: seconds of an empty parallel region.
    """

    read: Mapping[int, float]
    copy: Mapping[int, float]
    operations: Mapping[str, float]
    region: float = 0.0

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Build limits from their fields as JSON has them, where keys are strings."""
        read, copy = ({int(k): float(v) for k, v in fields[x].items()} for x in ("read", "copy"))
        return cls(read, copy, fields["operations"], fields.get("region", 0.0))

    def bandwidth(self, read: int, written: int) -> float:
        """Return the bytes a second at a working set of this size.

        It is that of the largest measured size that is not larger, which is cached no worse: times
        that follow from it are lower bounds.
        """
        table = self.read if written * _MOSTLY < read else self.copy
        fitting = [size for size in table if size <= read + written]
        return table[max(fitting, default=min(table))]

    def seconds(self, read: int, written: int, operations: Mapping[str, float]) -> float:
        """Return the lower bound of a time: max(bytes / bandwidth, Σ operations / peak)."""
        return max(self.memory(read, written), self.arithmetic(operations))

    def memory(self, read: int, written: int) -> float:
        """Return the lower bound of the time to read and write these numbers of bytes."""
        return (read + written) / self.bandwidth(read, written)

    def arithmetic(self, operations: Mapping[str, float]) -> float:
        """Return the lower bound of the time of operations, counted by type."""
        return sum(count / self.peak(kind) for kind, count in operations.items())

    def peak(self, kind: str) -> float:
        """Return the peak operations a second of a type.

        s32 and s64 have half the peak of f32 and f64; types that were not measured have that of
        f32.
        """
        if kind in _HALF:
            return self.peak(_HALF[kind]) / 2
        return self.operations.get(kind) or self.operations["f32"]


def best(one: Limits, other: Limits) -> Limits:
    """Return the better figure of two measurements, one by one."""
    return Limits(
        _larger(one.read, other.read),
        _larger(one.copy, other.copy),
        _larger(one.operations, other.operations),
        min(one.region, other.region),
    )


def _larger(one: Mapping[K, float], other: Mapping[K, float]) -> dict[K, float]:
    """Merge two tables by the larger figure of each key."""
    return {key: max(value, other[key]) for key, value in one.items()}

"""Represent replica groups and source-target pairs, and expand them to ids.

Groups are written in three ways: as lists ``{{0,1},{2,3}}``, as a transposed iota
``[2,4]<=[4,2]T(1,0)``, or as axes of a mesh ``mesh['x'=2,'y'=4] {'y'}``. A few characters of the
last two name a million ids: nothing is expanded before it is asked for. ``str`` is the canonical
text of a value; ``spelling``, not compared, is the text that it was read from where that differs.
Source: XLA's ``replica_group.cc`` and ``mesh_and_axis.cc``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

Groups = tuple[tuple[int, ...], ...]

# Ids in one attribute: more devices than any machine has.
MOST_IDS = 1 << 20


@dataclass(frozen=True, slots=True)
class ListedGroups:
    """``{{0,1},{2,3}}``: the ids of each group. Without groups, all ids are one."""

    groups: Groups = ()
    spelling: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return _lists(self.groups)


@dataclass(frozen=True, slots=True)
class Iota:
    """``[4,2]T(1,0)``: the ids 0, 1, … in row-major order as an array of ``dims``, transposed."""

    dims: tuple[int, ...]
    permutation: tuple[int, ...] = ()

    def __str__(self) -> str:
        turned = f"T({_numbers(self.permutation)})" if self.permutation else ""
        return f"[{_numbers(self.dims)}]{turned}"


@dataclass(frozen=True, slots=True)
class IotaGroups:
    """``[2,4]<=[4,2]T(1,0)``: ``count`` groups of ``size`` ids, row by row of an iota."""

    count: int
    size: int
    ids: Iota
    spelling: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return f"[{self.count},{self.size}]<={self.ids}"


@dataclass(frozen=True, slots=True)
class AxisPart:
    """``'y':(2)3``: of an axis of size 2 × 3 × …, the factor 3; size 0 is all behind the 2."""

    axis: str
    before: int = 1
    size: int = 0

    def __str__(self) -> str:
        part = f":({self.before}){self.size}" if self.size else ""
        return f"'{self.axis}'{part}"


@dataclass(frozen=True, slots=True)
class MeshGroups:
    """``mesh['x'=2,'y'=4], device_ids=(…) {'y'}``: devices (by default 0, 1, …) in a mesh of named
    axes; those that differ only along the axes, or parts of axes, in ``along`` are a group."""

    axes: tuple[tuple[str, int], ...]
    along: tuple[AxisPart, ...]
    devices: Iota | tuple[int, ...] | None = None
    spelling: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        sizes = ",".join(f"'{name}'={size}" for name, size in self.axes)
        listed = _numbers(self.devices) if isinstance(self.devices, tuple) else self.devices
        devices = "" if listed is None else f", device_ids=({listed})"
        return f"mesh[{sizes}]{devices} {{{','.join(map(str, self.along))}}}"


ReplicaGroups = ListedGroups | IotaGroups | MeshGroups
ALL_IDS = ListedGroups()


@dataclass(frozen=True, slots=True)
class SourceTargetPairs:
    """``{{0,1},{1,2}}``: pairs of (sender, receiver)."""

    pairs: tuple[tuple[int, int], ...] = ()
    spelling: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return _lists(self.pairs)


def _numbers(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


def _lists(rows: Iterable[Iterable[int]]) -> str:
    return "{" + ",".join(f"{{{_numbers(row)}}}" for row in rows) + "}"


def check(groups: ReplicaGroups) -> None:
    """Raise ValueError("expected …") if the sizes in an iota or a mesh are inconsistent."""
    if isinstance(groups, IotaGroups):
        if groups.count < 1 or groups.size < 1:
            raise ValueError("expected a number of groups and a number of ids in each before <=")
        total = _checked(groups.ids)
        if groups.count * groups.size != total:
            raise ValueError(f"expected groups of {total} ids in all")
    elif isinstance(groups, MeshGroups):
        _factors(groups)
        total = _product(size for _, size in groups.axes)
        given = groups.devices
        if given is not None:
            found = _checked(given) if isinstance(given, Iota) else len(given)
            if found != total:
                raise ValueError(f"expected {total} device_ids")


def _checked(ids: Iota) -> int:
    """Return the number of ids of an iota; raise ValueError if they are too many."""
    total = _product(ids.dims)
    if ids.permutation and sorted(ids.permutation) != list(range(len(ids.dims))):
        raise ValueError("expected each dimension once in T(…)")
    return total


def _product(sizes: Iterable[int]) -> int:
    """Return the product of sizes; raise ValueError as soon as it exceeds MOST_IDS."""
    total = 1
    for size in sizes:
        if size < 0:
            raise ValueError("expected sizes that are not negative")
        total *= size
        if total > MOST_IDS:
            raise ValueError(f"expected at most {MOST_IDS} ids")
    return total


def expanded(groups: ReplicaGroups) -> Groups:
    """Return the ids of each group, in order; () for one group of all ids. :func:`check` must
    accept the groups."""
    if isinstance(groups, ListedGroups):
        return () if groups.groups == ((),) else groups.groups
    if isinstance(groups, IotaGroups):
        return _rows(_array(groups.ids), groups.size)
    dims, last = _factors(groups)
    given = groups.devices
    ids = np.array(given, np.int64) if isinstance(given, tuple) else _array(given or Iota(dims))
    size = math.prod(dims[d] for d in last)
    kept = [d for d in range(len(dims)) if d not in last]
    return _rows(_transposed(ids, dims, (*kept, *last)), size)


def group_size(groups: ReplicaGroups) -> int:
    """Count the ids of the first group; 0 without groups."""
    if isinstance(groups, ListedGroups):
        return len(groups.groups[0]) if groups.groups else 0
    if isinstance(groups, IotaGroups):
        return groups.size
    dims, last = _factors(groups)
    return math.prod(dims[d] for d in last)


def id_count(groups: ReplicaGroups) -> int:
    """Count the ids of all groups."""
    if isinstance(groups, ListedGroups):
        return sum(map(len, groups.groups))
    if isinstance(groups, IotaGroups):
        return groups.count * groups.size
    return math.prod(size for _, size in groups.axes)


def _array(ids: Iota) -> np.ndarray:
    return _transposed(np.arange(math.prod(ids.dims)), ids.dims, ids.permutation)


def _transposed(ids: np.ndarray, dims: Sequence[int], permutation: Sequence[int]) -> np.ndarray:
    """Reshape ids to dims, and transpose. Dims of 1 are left out, as NumPy has at most 64."""
    places = {d: n for n, d in enumerate(d for d, size in enumerate(dims) if size != 1)}
    array = ids.reshape([dims[d] for d in places])
    order = [places[d] for d in permutation if d in places]
    return array.transpose(order) if order else array


def _rows(ids: np.ndarray, size: int) -> Groups:
    return tuple(map(tuple, ids.reshape(-1, size).tolist()))


def _factors(mesh: MeshGroups) -> tuple[tuple[int, ...], list[int]]:
    """Split the axes of a mesh at the boundaries of all parts; return the sizes of the factors, and
    the indices of those in ``along``. Raises ValueError for overlaps, and parts that do not divide
    an axis."""
    sizes = dict(mesh.axes)
    if len(sizes) != len(mesh.axes):
        raise ValueError("expected axes of different names in a mesh")
    if any(size < 1 for size in sizes.values()):
        raise ValueError("expected a size of at least 1 of each axis in a mesh")
    # A boundary is the product of the factors before it; quotients of neighbours are the factors.
    # mesh['x'=8] {'x':(2)2} has 1, 2, 4 and 8: three factors of 2, the second of which is along.
    cuts = {name: {1, size} for name, size in sizes.items()}
    for part in mesh.along:
        if part.axis not in sizes:
            raise ValueError(f"expected axes of the mesh, not {part.axis!r}")
        cuts[part.axis] |= {part.before, _end(part, sizes[part.axis])}
    dims: list[int] = []
    places: dict[str, list[tuple[int, int]]] = {}  # of each axis, where parts begin
    for name, size in sizes.items():
        ordered = sorted(cuts[name])
        whole = ordered[0] == 1 and ordered[-1] == size
        if not whole or any(high % low for low, high in pairwise(ordered)):
            raise ValueError(f"expected parts that divide axis {name!r} of {size}")
        places[name] = [(low, len(dims) + n) for n, low in enumerate(ordered[:-1])]
        dims += [high // low for low, high in pairwise(ordered)]
    last: list[int] = []
    for part in mesh.along:
        end = _end(part, sizes[part.axis])
        last += [d for low, d in places[part.axis] if part.before <= low < end]
    if len(set(last)) != len(last):
        raise ValueError("expected axes that do not overlap")
    return tuple(dims), last


def _end(part: AxisPart, size: int) -> int:
    """Return the product of an axis' factors up to the end of a part."""
    # No text has ``before`` 0; _factors refuses such a part, as its boundaries begin below 1.
    return part.before * (part.size or size // max(part.before, 1))

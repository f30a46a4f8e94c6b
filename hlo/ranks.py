"""How a program speaks of ranks: which there are, groups of them, and pairs.

A *rank* is one replica of one partition; its number is ``replica * partitions + partition``, which
the language calls the flattened id. Groups are written in three ways: as lists ``{{0,1},{2,3}}``,
as a transposed iota ``[2,4]<=[4,2]T(1,0)``, or as axes of a mesh ``mesh['x'=2,'y'=4] {'y'}``.
Source: XLA's ``replica_group.cc``, ``mesh_and_axis.cc`` and ``collective_ops_utils.h``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.opcodes import RANKS, having
from hlo.text.scanning import fields

Groups = tuple[tuple[int, ...], ...]

# Ids in one attribute: more devices than any machine has.
MOST_IDS = 1 << 20

_LIST = re.compile(r"\{\s*+(?:\d{1,9}+\s*+(?:,\s*+\d{1,9}+\s*+)*+)?+\}", re.ASCII)
_NUMBERS = r"\[\s*+(\d{1,9}+(?:\s*+,\s*+\d{1,9}+)*+)\s*+\]"
_TURNED = r"(?:\s*+T\(\s*+(\d{1,9}+(?:\s*+,\s*+\d{1,9}+)*+)\s*+\))?+"
_IOTA = re.compile(rf"{_NUMBERS}\s*+<=\s*+{_NUMBERS}{_TURNED}", re.ASCII)
_MESH = re.compile(
    r"mesh\[([^\[\]{}()]*+)\]\s*+(?:,\s*+device_ids="
    r"\(((?:[^(){}]|\([^(){}]*+\))*+)\)\s*+)?+\{([^{}]*+)\}",
    re.ASCII,
)
_DEVICES = re.compile(rf"{_NUMBERS}{_TURNED}", re.ASCII)
_AXIS = re.compile(r"""["']([^"']*+)["']\s*+=\s*+(\d{1,9}+)""", re.ASCII)
_PART = re.compile(
    r"""["']([^"']*+)["'](?:\s*+:\s*+\((0*+[1-9]\d{0,8}+)\)(0*+[1-9]\d{0,8}+))?+""", re.ASCII
)
_PAIRS = re.compile(r"\b_xla_send_recv_source_target_pairs\s*+=\s*+[\"']?+(\{[\d\s,{}]*\})")

_RANKS = having(RANKS)


def declared(module: Module) -> tuple[int, int]:
    """The ``replica_count`` and ``num_partitions`` of the module's header: 1 if it has none."""

    def count(name: str) -> int:
        text = module.attributes.get(name, "1")
        if not re.fullmatch(r"\d{1,9}+", text, re.ASCII) or not int(text):
            raise ArgumentError(f"{name}={text[:40]} in the header is not a number of ranks")
        return int(text)

    return count("replica_count"), count("num_partitions")


def knows_ranks(module: Module) -> bool:
    """Whether running the module on one rank is something else than on one of many."""
    return any(i.opcode in _RANKS for c in module.computations for i in c.instructions)


@lru_cache(maxsize=1024)
def replica_groups(text: str) -> Groups:
    """The ids in each group, in order; no groups mean one of all ids. ValueError("expected …")."""
    text = text.strip()
    if text.startswith("mesh"):
        groups = _mesh(text)
    elif text.startswith("["):
        groups = _iota(text)
    else:
        groups = _lists(text)
    return () if groups == ((),) else groups


@lru_cache(maxsize=1024)
def source_target_pairs(text: str) -> tuple[tuple[int, int], ...]:
    """``{{0,1},{1,2}}``: who sends to whom. ValueError("expected …")."""
    lists = _lists(text)
    if any(len(pair) != 2 for pair in lists):
        raise ValueError("expected {{source,target},…}")
    return tuple((source, target) for source, target in lists)


def send_recv_pairs(frontend_attributes: str) -> tuple[tuple[int, int], ...] | None:
    """The pairs that send and recv carry in ``_xla_send_recv_source_target_pairs``, if any."""
    found = _PAIRS.search(frontend_attributes)
    return None if found is None else source_target_pairs(_balanced(found[1]))


def _balanced(text: str) -> str:
    """The text up to where its first brace closes."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if not depth:
            return text[: position + 1]
    raise ValueError("expected {{source,target},…}")


def _lists(text: str) -> Groups:
    text = text.strip()
    if not text:
        return ()
    parts = fields(text[1:-1]) if text[0] + text[-1] == "{}" else [""]
    if not all(map(_LIST.fullmatch, parts)):
        raise ValueError("expected {{0,1},{2,3}}, [groups,size]<=[ids] or mesh[…] {…}")
    return tuple(_numbers(part[1:-1]) for part in parts)


def _numbers(text: str | None) -> tuple[int, ...]:
    return tuple(int(number) for number in (text or "").split(",") if number.strip())


def _iota(text: str) -> Groups:
    match = _IOTA.fullmatch(text)
    if match is None:
        raise ValueError("expected [groups,size]<=[ids…], perhaps with T(…) behind")
    into, dims, turned = map(_numbers, match.groups())
    if len(into) != 2 or 0 in into:
        raise ValueError("expected two numbers before <=: how many groups, how many in each")
    return _rows(_turned(dims, turned), into)


def _turned(dims: Sequence[int], permutation: Sequence[int]) -> np.ndarray:
    """All ids in order as an array, transposed."""
    if math.prod(dims) > MOST_IDS:
        raise ValueError(f"expected at most {MOST_IDS} ids")
    if permutation and sorted(permutation) != list(range(len(dims))):
        raise ValueError("expected each dimension once in T(…)")
    ids = np.arange(math.prod(dims)).reshape(dims)
    return ids.transpose(permutation) if permutation else ids


def _rows(ids: np.ndarray, into: Sequence[int]) -> Groups:
    if ids.size != math.prod(into):
        raise ValueError(f"expected groups of {ids.size} ids in all")
    return tuple(tuple(map(int, row)) for row in ids.reshape(into))


def _mesh(text: str) -> Groups:
    """Ids along the named axes of a mesh are one group; ``'y':(2)3`` is a part of axis y, which is
    then taken as 2 × 3 × the rest."""
    match = _MESH.fullmatch(text)
    axes = [_AXIS.fullmatch(part) for part in fields(match[1])] if match else [None]
    chosen = [_PART.fullmatch(part) for part in fields(match[3])] if match else [None]
    if match is None or None in axes or None in chosen:
        raise ValueError("expected mesh['axis'=size,…] {'axis',…}")
    sizes = {axis[1]: int(axis[2]) for axis in axes if axis}
    if len(sizes) != len(axes) or not all(sizes.values()):
        raise ValueError("expected axes of different names in a mesh")
    ids = _devices(match[2], tuple(sizes.values()))
    parts = [(part[1], int(part[2] or 1), int(part[3] or 0)) for part in chosen if part]
    return _along(ids, sizes, parts)


def _devices(text: str | None, dims: tuple[int, ...]) -> np.ndarray:
    """The ids in a mesh, row by row: in order, or as ``device_ids=(…)`` says."""
    if text is None:
        return _turned(dims, ())
    iota = _DEVICES.fullmatch(text.strip())
    listed = _numbers(text) if re.fullmatch(r"[\d\s,]*+", text, re.ASCII) else ()
    ids = _turned(_numbers(iota[1]), _numbers(iota[2])) if iota else np.array(listed, np.int64)
    if ids.size != math.prod(dims):
        raise ValueError(f"expected {math.prod(dims)} device_ids")
    return ids.reshape(dims)


def _along(ids: np.ndarray, sizes: dict[str, int], parts: Sequence[tuple[str, int, int]]) -> Groups:
    """The groups along parts (name, product of sizes before it, size; 0: all of the axis)."""
    dims: list[int] = []
    place: dict[tuple[str, int], int] = {}
    for name, size in sizes.items():
        ends = {1, size}
        for part, before, length in parts:
            if part == name:
                ends |= {before, before * (length or size // before)}
        cuts = sorted(ends)
        if any(high % low for low, high in zip(cuts, cuts[1:])) or cuts[-1] != size:
            raise ValueError(f"expected parts that divide axis {name!r} of {size}")
        for low, high in zip(cuts, cuts[1:]):
            place[name, low] = len(dims)
            dims.append(high // low)
    last: list[int] = []
    for name, before, length in parts:
        if name not in sizes:
            raise ValueError(f"expected axes of the mesh, not {name!r}")
        end = before * (length or sizes[name] // before)
        last += [d for (axis, low), d in place.items() if axis == name and before <= low < end]
    if len(set(last)) != len(last):
        raise ValueError("expected axes that do not overlap")
    first = [d for d in range(len(dims)) if d not in last]
    size = math.prod(dims[d] for d in last)
    return _rows(ids.reshape(dims).transpose(*first, *last), (ids.size // size, size))

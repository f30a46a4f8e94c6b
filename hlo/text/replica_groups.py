"""Read and print replica groups and source-target pairs.

Source: ``ParseCollectiveDeviceListBase`` of XLA's ``hlo_parser.cc``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from hlo.replica_groups import (
    AxisPart,
    Groups,
    Iota,
    IotaGroups,
    ListedGroups,
    MeshGroups,
    ReplicaGroups,
    SourceTargetPairs,
)
from hlo.text.patterns import pattern
from hlo.text.scanning import fields

_ID = r"-?\d{1,19}+"  # that no id is negative, or too large, is for the verifier
_ROW = rf"\{{\s*+(?:{_ID}\s*+(?:,\s*+{_ID}\s*+)*+)?+\}}"
_LISTS = pattern(rf"\{{\s*+(?:{_ROW}\s*+(?:,\s*+{_ROW}\s*+)*+)?+\}}", re.ASCII)
_IDS = pattern(r"\{([^{}]*+)\}")
_NUMBERS = r"\d{1,18}+(?:\s*+,\s*+\d{1,18}+)*+"
_ORDER = rf"\[\s*+({_NUMBERS})\s*+\](?:\s*+T\(\s*+({_NUMBERS})\s*+\))?+"
_IOTA = pattern(rf"\[\s*+(\d{{1,18}}+)\s*+,\s*+(\d{{1,18}}+)\s*+\]\s*+<=\s*+{_ORDER}", re.ASCII)
_MESH = pattern(
    r"mesh\[([^\[\]{}()]*+)\]\s*+(?:,\s*+device_ids="
    r"\(\s*+((?:[^(){}]|\([^(){}]*+\))*+)\)\s*+)?+\{([^{}]*+)\}",
    re.ASCII,
)
_DEVICES = pattern(rf"(?:{_ORDER}|({_NUMBERS}))\s*+", re.ASCII)
_AXIS = pattern(r"""["']([^"']*+)["']\s*+=\s*+(\d{1,18}+)""", re.ASCII)
_PART = pattern(
    r"""["']([^"']*+)["'](?:\s*+:\s*+\((0*+[1-9]\d{0,17}+)\)(0*+[1-9]\d{0,17}+))?+""", re.ASCII
)
_GROUPS = "expected {{0,1},{2,3}}, [groups,size]<=[ids] or mesh[…] {…}"
_PAIRS = "expected {{source,target},…}"
# Not possessive inside of the braces: the last one is a } itself. _balanced cuts off the rest.
_SEND_RECV = pattern(r"\b_xla_send_recv_source_target_pairs\s*+=\s*+[\"']?+(\{[\d\s,{}]*\})")

V = TypeVar("V", ListedGroups, IotaGroups, MeshGroups, SourceTargetPairs)


def read_groups(text: str) -> ReplicaGroups:
    """Read groups in any of the three forms (lists, iota, mesh); the verifier checks their ids."""
    if text.startswith("mesh"):
        return _as_written(_mesh(text), text)
    if text.startswith("["):
        return _as_written(_iota(text), text)
    return _as_written(ListedGroups(_lists(text, _GROUPS)), text)


def read_pairs(text: str) -> SourceTargetPairs:
    """Read ``{{0,1},{1,2}}``."""
    return _as_written(SourceTargetPairs(_pairs(text)), text)


def show_written(value: ReplicaGroups | SourceTargetPairs) -> str:
    """Return the text that groups or pairs were parsed from, else the canonical one."""
    return value.spelling or str(value)


def send_recv_pairs(frontend_attributes: str) -> tuple[tuple[int, int], ...] | None:
    """Return the pairs in a send's or recv's ``_xla_send_recv_source_target_pairs``, or None."""
    found = _SEND_RECV.search(frontend_attributes)
    return None if found is None else _pairs(_balanced(found[1]))


def _as_written(value: V, text: str) -> V:
    return value if str(value) == text else replace(value, spelling=text)


def _balanced(text: str) -> str:
    """Return the prefix up to the brace that closes the first one."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if not depth:
            return text[: position + 1]
    raise ValueError(_PAIRS)


def _pairs(text: str) -> tuple[tuple[int, int], ...]:
    lists = _lists(text, _PAIRS)
    if any(len(pair) != 2 for pair in lists):
        raise ValueError(_PAIRS)
    return tuple((source, target) for source, target in lists)


def _lists(text: str, wanted: str) -> Groups:
    if not _LISTS.fullmatch(text):
        raise ValueError(wanted)
    return tuple(map(_numbers, _IDS.findall(text, 1, len(text) - 1)))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text and not text.isspace() else ()


def _iota(text: str) -> IotaGroups:
    match = _IOTA.fullmatch(text)
    if match is None:
        raise ValueError("expected [groups,size]<=[ids…], perhaps with T(…) behind")
    return IotaGroups(int(match[1]), int(match[2]), _ordered(match[3], match[4]))


def _ordered(dims: str, permutation: str | None) -> Iota:
    return Iota(_numbers(dims), _numbers(permutation or ""))


def _mesh(text: str) -> MeshGroups:
    match = _MESH.fullmatch(text)
    axes = [_AXIS.fullmatch(part) for part in fields(match[1])] if match else [None]
    parts = [_PART.fullmatch(part) for part in fields(match[3])] if match else [None]
    if match is None or None in axes or None in parts:
        raise ValueError("expected mesh['axis'=size,…] {'axis',…}")
    return MeshGroups(
        tuple((axis[1], int(axis[2])) for axis in axes if axis),
        tuple(AxisPart(part[1], int(part[2] or 1), int(part[3] or 0)) for part in parts if part),
        None if match[2] is None else _devices(match[2]),
    )


def _devices(text: str) -> Iota | tuple[int, ...]:
    match = _DEVICES.fullmatch(text)
    if match is None:
        raise ValueError("expected device_ids=([ids…]T(…)) or device_ids=(0,1,…)")
    return _numbers(match[3]) if match[3] else _ordered(match[1], match[2])

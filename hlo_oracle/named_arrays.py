"""Match the arrays of a file with those that a program takes, or gives, by their names.

A name is the program's, or what it was before XLA numbered it: ``x`` is ``x.1``, if that is the
only ``x``, ``p['w']`` is ``p__w__.1``. Arrays that are only numbered, as NumPy, campaigns and
recordings name them, are taken by their numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hlo.errors import ArgumentError
from hlo.values import Array

# One array that is numbered: by NumPy (arr_0), campaigns and recordings (p0), the command of a peer
# (r0), frontends (Arg_0), or by its place in the results that a run saved ({1,0}, of rank 3 {1}@3).
_PREFIXES = "arr_|p|r|%?[Aa]rg_?|param_?|parameter_?|result_?|output_?|out_?"
_NUMBERED = re.compile(rf"({_PREFIXES})(\d{{1,9}})")
_PLACED = re.compile(r"\{(\d{1,9}(?:,\d{1,9})*+)\}(?:@(\d{1,9}))?")
# What the only array is called of an .npy, and of the results of a run.
_ONLY = {"array", "result"}
_SUFFIX = re.compile(r"\.\d+(?=\Z|\{)")  # that XLA adds to a name, before a place in a tuple
_LISTED = 20  # names in a message


class _Key(NamedTuple):
    """A name of the program, and the rank that a key of a file names: None for all."""

    name: str
    rank: str | None


def of_rank(
    path: Path, names: Sequence[str], arrays: Mapping[str, Array], rank: int, size: int
) -> Sequence[Array]:
    """Choose the arrays of a rank of several: by name if each is there, else by their numbers.

    Arrays that nothing is named after are left out. Returns another number of arrays than of names
    only where they are numbered. Raises ArgumentError for names that are missing, and where names
    and numbers contradict each other.
    """
    named = _by_name(names, arrays)
    found = [named.get(_Key(name, str(rank)), named.get(_Key(name, None))) for name in names]
    chosen = [array for array in found if array is not None]
    numbered, count = in_order(arrays), len(names)
    if numbered is not None and len(numbered) == size * count:
        numbered = numbered[rank * count : (rank + 1) * count]
    if len(chosen) == count:
        if numbered is not None and len(numbered) == count and not set(names) <= set(arrays):
            _require_agreement(path, names, arrays, chosen, numbered)
        return chosen
    if numbered is not None:
        return numbered
    missing = [name for name, array in zip(names, found, strict=True) if array is None]
    are = "is" if len(missing) == 1 else "are"
    raise ArgumentError(
        f"{path}: {_listed(missing)} {are} missing; there are {_listed(list(arrays))}, where"
        f" {_listed(names)} are expected, or arr_0, arr_1, … in this order"
    )


def in_order(arrays: Mapping[str, Array]) -> list[Array] | None:
    """Sort arrays by the numbers that are their names; None if they have other names, or if a
    number is missing."""
    if len(arrays) == 1 and _ONLY.issuperset(arrays):
        return list(arrays.values())
    numbered = [_NUMBERED.fullmatch(key) for key in arrays]
    placed = [_PLACED.fullmatch(key) for key in arrays]
    order: list[tuple[int, ...]]
    if all(numbered):
        order = [(int(match[2]),) for match in numbered if match]
        prefixes = {match[1] for match in numbered if match}
        if len(prefixes) > 1 or sorted(order) != [(n,) for n in range(len(order))]:
            return None
    elif all(placed):
        order = [(int(m[2] or 0), *map(int, m[1].split(","))) for m in placed if m]
    else:
        return None
    ordered = sorted(zip(order, arrays, strict=True))
    return [arrays[key] for _, key in ordered]


def results(path: Path, arrays: Mapping[str, Array]) -> list[Array]:
    """Order the arrays of a file as the results of a program, which have no names but numbers.

    Raises ArgumentError for several arrays with other names, whose order nobody stated.
    """
    ordered = list(arrays.values()) if len(arrays) == 1 else in_order(arrays)
    if ordered is None:
        raise ArgumentError(
            f"{path}: results are in order, and {_listed(list(arrays))} tell none:"
            " name them arr_0, arr_1, …, as numpy.savez does without names"
        )
    return ordered


def _by_name(names: Sequence[str], arrays: Mapping[str, Array]) -> dict[_Key, Array]:
    """Index arrays by the names of the program that their keys mean, and by their ranks."""
    spellings = _spellings(names)
    found: dict[_Key, Array] = {}
    for key in sorted(arrays, key=lambda key: key in names):  # the program's own names prevail
        base, at, rank = key.rpartition("@")
        base, of_rank_ = (base, rank) if at and rank.isdecimal() else (key, None)
        base = base.removeprefix("%")
        name = spellings.get(base) or spellings.get(_as_xla_writes(base))
        if name is not None:
            found[_Key(name, of_rank_)] = arrays[key]
    return found


def _spellings(names: Sequence[str]) -> dict[str, str]:
    """Map what a name may be written as to the name: itself, and without its number if no other
    name is the same then."""
    bare = [_SUFFIX.sub("", name) for name in names]
    counts = Counter(bare)
    unique = {short: name for short, name in zip(bare, names, strict=True) if counts[short] == 1}
    return unique | {name: name for name in names}


def _as_xla_writes(name: str) -> str:
    """Replace what XLA allows in no name: of ``p['w']`` JAX's parameter is ``p__w__.1``."""
    return re.sub(r"[^\w.\-]", "_", name, flags=re.ASCII)


def _require_agreement(
    path: Path,
    names: Sequence[str],
    arrays: Mapping[str, Array],
    chosen: Sequence[Array],
    numbered: Sequence[Array],
) -> None:
    """Raise ArgumentError for keys that are names of parameters and numbers of other ones."""
    if any(a is not b for a, b in zip(chosen, numbered, strict=True)):
        raise ArgumentError(
            f"{path}: {_listed(list(arrays))} may be names or numbers of {_listed(names)}, which"
            " are in another order: use these names, or arr_0, arr_1, …"
        )


def _listed(names: Sequence[str]) -> str:
    more = f", … ({len(names)} in all)" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more

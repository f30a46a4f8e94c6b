"""Map the instructions of a kernel to the lines of C that compute them.

A kernel records which instruction each of its names belongs to (:mod:`backend_c.ir.names`), and its
code can be rendered with the names on each line (:mod:`backend_c.render.marked_statements`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from backend_c.ir.loop_ir import Computed, Origins
from backend_c.lower.plan import Origin
from hlo.module import Computation, Module
from hlo.passes.fusion_reasons import Groups

_WORD = re.compile(r"\b[a-z]+\d\w*")  # names of values, loops and arrays, and of functions


class Named(NamedTuple):
    """Identify an instruction by its computation and its name."""

    computation: str
    instruction: str


class InstructionNames:
    """Look up the names, before fusion, of the instructions in kernels.

    ``before`` is the module that the fusion pass was given, ``groups`` the fusions it chose,
    ``after`` the module that was lowered.
    """

    def __init__(self, before: Module, groups: Groups, after: Module) -> None:
        self._before = {c.name: {i.name for i in c.instructions} for c in before.computations}
        self._groups = groups
        self._after = {c.name: c for c in after.computations}

    def named(self, one: Computed, launches: Sequence[Origin]) -> Named | None:
        """Return the name of an instruction in a kernel of merged launches; None if it is
        unknown."""
        origin = launches[one.launch]
        if one.computation:
            inner = self._after.get(one.computation)
            return Named(inner.name, inner.instructions[one.number].name) if inner else None
        if origin.computes is None:
            return None
        return Named(origin.computation, self._name(one.number, origin, origin.computes))

    def _name(self, number: int, origin: Origin, inner: Computation) -> str:
        """Return the name of instruction number ``number`` of a launch's computation."""
        group = self._groups.get(origin.computation, {}).get(origin.instruction)
        inside = [n for n, i in enumerate(inner.instructions) if i.opcode != "parameter"]
        # Equal computations are merged: the names in them may be those of another group's members,
        # which are in the same order.
        if group is not None and len(group.members) == len(inside) and number in inside:
            return group.members[inside.index(number)]
        name = inner.instructions[number].name
        is_own = name in self._before.get(origin.computation, ()) and len(inside) > 1
        return name if is_own else origin.instruction


def computed_lines(
    text: str,
    lines: Sequence[Sequence[str]],
    origins: Origins,
    launches: Sequence[Origin],
    names: InstructionNames,
) -> dict[Named, tuple[int, ...]]:
    """Map each instruction to the numbers, from 0, of the lines of ``text`` that compute it.

    ``lines`` has the names on each line, ``origins`` the instructions of each name, in a kernel of
    merged launches.
    """
    if not origins:  # a kernel of no computation, as the one that stores what a scan gives
        named = Named(launches[0].computation, launches[0].instruction)
        return {named: tuple(number for number, own in enumerate(lines) if own)}
    found: dict[Named, list[int]] = {}
    for number, own in enumerate(_owners(text.split("\n"), lines, origins)):
        for one in own:
            name = names.named(one, launches)
            if name is not None:
                found.setdefault(name, []).append(number)
    return {name: tuple(dict.fromkeys(numbers)) for name, numbers in found.items()}


def with_lines_of_users(
    lines: Mapping[Named, tuple[int, ...]],
    computes: Sequence[Named],
    operands: Mapping[Named, Sequence[str]],
) -> dict[Named, tuple[int, ...]]:
    """Give instructions without lines of their own the lines of their users.

    ``computes`` are the instructions of the kernel, operands first; ``operands`` maps each to its
    own.
    """
    found = dict(lines)
    users: dict[Named, list[Named]] = {}
    for user in reversed(computes):
        if user not in found:
            known = (n for other in users.get(user, ()) for n in found.get(other, ()))
            found[user] = tuple(sorted(set(known)))
        for name in operands.get(user, ()):
            users.setdefault(Named(user.computation, name), []).append(user)
    return {name: own for name, own in found.items() if own}


def _owners(
    texts: Sequence[str], lines: Sequence[Sequence[str]], origins: Origins
) -> list[tuple[Computed, ...]]:
    """Return the instructions that each line computes, by the names on it.

    Names without an instruction, such as those that rewriting gave, take those of later lines that
    read them; loop indices take none.
    """
    readers: dict[str, dict[Computed, None]] = {}
    found: list[tuple[Computed, ...]] = []
    for text, names in zip(reversed(texts), reversed(lines), strict=True):
        own = dict.fromkeys(_computed(names, origins))
        if not own and not text.lstrip().startswith("for "):
            own = {one: None for n in names if n[0] != "i" for one in readers.get(n, ())}
        for word in _WORD.findall(text) if own else ():
            readers.setdefault(word, {}).update(own)
        found.append(tuple(own))
    return found[::-1]


def _computed(names: Sequence[str], origins: Origins) -> Iterator[Computed]:
    """Yield the instructions that names belong to."""
    for name in names:
        yield from origins.get(name) or origins.get(_source(name), ())


def _source(name: str) -> str:
    """Return the variable that a derived name was made from: lanes of a sum, a thread's part of
    it."""
    return name.removeprefix("t").partition("_")[0]

"""Name the values inside a program: those of the entry, of its loops and of its branches.

A value of the entry has its instruction's name. In the body of a loop it is ``loop/value``, in
branch 1 of a conditional ``choice#1/value``, and so on inwards. Of a value in loops there is one a
trip, so what a peer shows of it has a leading dimension for each loop around it, outermost first.
``loop:states:i`` is element i of what a loop carries after each trip, ``loop:trips`` how many trips
a loop took, ``choice:branch`` the number of the branch that was taken. No instruction is named so,
once names have none of these signs (:func:`with_plain_names`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hlo.module import Computation, Instruction, Module
from hlo.passes.rewriting import Names, each
from hlo.walk import renamed

_SIGNS = frozenset("/#:")


def states_name(loop: str, element: int) -> str:
    """Name the stack of one element of a loop's state."""
    return f"{loop}:states:{element}"


def trips_name(loop: str) -> str:
    """Name the trip count of a loop."""
    return f"{loop}:trips"


def branch_name(conditional: str) -> str:
    """Name the number of the branch that a conditional took."""
    return f"{conditional}:branch"


def inside_loop(loop: str) -> str:
    """Return the prefix of the names of values in a loop's body."""
    return f"{loop}/"


def inside_branch(conditional: str, number: int) -> str:
    """Return the prefix of the names of values in a branch."""
    return f"{conditional}#{number}/"


def with_plain_names(module: Module) -> Module:
    """Rename instructions whose names contain ``/``, ``#`` or ``:``, the separators of nested
    names."""
    return each(module, _with_plain_names)


def _with_plain_names(computation: Computation) -> Computation:
    odd = [i.name for i in computation.instructions if not _SIGNS.isdisjoint(i.name)]
    if not odd:
        return computation
    names = Names(i.name for i in computation.instructions)
    plain = {name: names.fresh(re.sub("[/#:]", "_", name)) for name in odd}
    return renamed(computation, str, lambda name: plain.get(name, name))


def decisions(name: str) -> list[str]:
    """List the names of the trip counts and branch numbers that tell whether a value was computed,
    outermost first; of a loop's states also the loop's own trip count, without which none is
    read."""
    *around, _ = name.split("/")
    found = []
    for depth, last in enumerate(around, 1):
        whole, number = "/".join(around[:depth]), last.rpartition("#")[2]
        is_branch = "#" in last
        found.append(branch_name(whole[: -len(number) - 1]) if is_branch else trips_name(whole))
    loop, states, _ = name.rpartition(":states:")
    return [*found, trips_name(loop)] if states else found


def with_decisions(chosen: Sequence[str]) -> tuple[str, ...]:
    """Put before names those of the trip counts and branch numbers that they depend on, each
    once."""
    around = (decision for name in chosen for decision in decisions(name))
    return tuple(dict.fromkeys((*around, *chosen)))


class Entered(NamedTuple):
    """A loop or conditional that an evaluation is in: the place where it stands, its instruction,
    and the number of the trip (from 0) or of the branch."""

    outer: Place
    instruction: Instruction
    number: int

    @property
    def name(self) -> str:
        """The nested name of the loop or conditional."""
        return self.outer.named(self.instruction.name)

    @property
    def is_loop(self) -> bool:
        """Whether this is a loop, so that ``number`` is a trip."""
        return self.instruction.opcode == "while"

    @property
    def decision(self) -> str:
        """The name of the value that tells whether a program got here: the loop's trip count or the
        conditional's branch number."""
        return trips_name(self.name) if self.is_loop else branch_name(self.name)


@dataclass(frozen=True, slots=True)
class Place:
    """A computation in one of its evaluations: the entry, a loop's body in one trip, or a
    branch."""

    computation: Computation
    path: str = ""
    entered: Entered | None = None

    def named(self, name: str) -> str:
        """Return the nested name of an instruction of this computation."""
        return self.path + name

    def in_loop(self, loop: Instruction, body: Computation, trip: int) -> Place:
        """Return the place in a loop's body, in a trip."""
        return Place(body, inside_loop(self.named(loop.name)), Entered(self, loop, trip))

    def in_branch(self, conditional: Instruction, branch: Computation, number: int) -> Place:
        """Return the place in a branch of a conditional."""
        path = inside_branch(self.named(conditional.name), number)
        return Place(branch, path, Entered(self, conditional, number))

    def around(self) -> list[Entered]:
        """List the loops and conditionals that enclose this place, outermost first."""
        found = []
        entered = self.entered
        while entered is not None:
            found.append(entered)
            entered = entered.outer.entered
        return found[::-1]

    def trips(self) -> list[int]:
        """List the trip numbers (from 0) of the loops that enclose this place, outermost first."""
        return [x.number for x in self.around() if x.is_loop]

"""Find epilogues: chains of elementwise instructions that a contraction can apply to each element
of its result before storing it.

A target without memory to spare wants the sums of a contraction rounded, biased and narrowed before
they are stored: the s32 sums of a quantised layer take four times the memory of what is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from hlo.module import Computation, Instruction
from hlo.opcodes import ELEMENTWISE, PRODUCTS, having, of_family
from hlo.passes.rewriting import array
from hlo.passes.updates_in_place import updates_in_place
from hlo.types import ArrayShape, Shape

_ELEMENTWISE = of_family(ELEMENTWISE)
# Of all contractions those whose every kernel writes an element of the result once.
WRITTEN_ONCE = having(PRODUCTS)
_LONGEST = 64  # instructions


def epilogues(computation: Computation, small_part: int) -> dict[str, str]:
    """Map the name of each contraction with an epilogue, and those of the epilogue's instructions,
    to its last instruction.

    That instruction post-dominates the others: no value of the epilogue escapes except through it,
    at the same index. Of several candidates, the latest with the narrowest element type is taken.
    An epilogue that reads two contractions belongs to the later one. The last instruction may be an
    update in place, which stores the elements where they are wanted in the first place: those that
    :func:`hlo.passes.updates_in_place.updates_in_place` takes with ``small_part``.
    """
    search = _Search(computation, small_part)
    ends: dict[str, str] = {}
    for hero in reversed(computation.instructions):
        if hero.opcode in WRITTEN_ONCE and _is_real_array(hero.shape):
            members = search.epilogue(hero, ends)
            if len(members) > 1:
                ends |= dict.fromkeys(members, members[-1])
    return ends


class _Search:
    """Search for epilogues in a computation's def-use graph."""

    def __init__(self, computation: Computation, small_part: int) -> None:
        self._instructions = computation.instructions
        self._root = computation.root
        self._by_name = {i.name: i for i in computation.instructions}
        self._updates = updates_in_place(computation, small_part)
        self._shapes = {i.name: i.shape for i in computation.instructions}
        self._users: dict[str, list[int]] = {i.name: [] for i in computation.instructions}
        for number, instruction in enumerate(computation.instructions):
            for name in dict.fromkeys(instruction.operands):
                self._users[name].append(number)

    def epilogue(self, hero: Instruction, taken: Mapping[str, str]) -> Sequence[str]:
        """Return the names of a contraction and the instructions of its epilogue, in order; the
        contraction alone if it has none. ``taken`` are instructions of other epilogues."""
        found: list[Instruction] = []
        # Uses of what was found that are not among what was found, by instruction.
        open_uses: dict[str, int] = {}
        waiting: list[int] = []
        end = 1

        def join(instruction: Instruction) -> None:
            users = self._users[instruction.name]
            # The caller's use of the root stays open: nothing behind the root can be an end.
            open_uses[instruction.name] = len(users) + (instruction.name == self._root)
            found.append(instruction)
            for user in users:
                heappush(waiting, user)

        join(hero)
        # In program order (a heap of positions), so that all operands of a user are found before
        # it.
        while waiting and len(found) < _LONGEST:
            number = heappop(waiting)
            # It waits once for each of its operands that was found.
            while waiting and waiting[0] == number:
                heappop(waiting)
            user = self._instructions[number]
            if user.name in taken or not self._keeps_index(user, hero.shape):
                break  # what it uses stays open: nothing later can be an end
            for name in dict.fromkeys(user.operands):
                if name in open_uses:
                    open_uses[name] -= 1
            join(user)
            if not any(uses for name, uses in open_uses.items() if name != user.name):
                is_narrow = _bits(user) <= _bits(found[end - 1])
                end = len(found) if is_narrow else end
        members = [instruction.name for instruction in found[:end]]
        update = self._update(members, taken)
        return members if update is None else [*members, update]

    def _update(self, members: Sequence[str], taken: Mapping[str, str]) -> str | None:
        """Return the update in place that is the only user of the last member, which it stores;
        None if there is none, or if a member reads the array that it updates."""
        last = members[-1]
        if last == self._root or len(self._users[last]) != 1:
            return None
        user = self._instructions[self._users[last][0]]
        if user.name in taken or user.name not in self._updates:
            return None
        whole, update, *starts = user.operands
        read = {name for member in members for name in self._by_name[member].operands}
        is_own = update == last and last not in (whole, *starts) and whole not in read
        return user.name if is_own else None

    def _keeps_index(self, instruction: Instruction, like: Shape) -> bool:
        """Return whether an instruction is elementwise over arrays of the shape's dims and scalars,
        so that each element depends on those at the same index only."""
        if instruction.opcode not in _ELEMENTWISE:
            return False
        shapes = [instruction.shape, *(self._shapes[name] for name in instruction.operands)]
        dims = {array(shape).dims for shape in (like, *shapes) if _is_real_array(shape)}
        return all(map(_is_real_array, shapes)) and dims <= {array(like).dims, ()}


def _bits(instruction: Instruction) -> int:
    """Return the width of an instruction's element type in bits."""
    return array(instruction.shape).element_type.bits


def _is_real_array(shape: Shape) -> bool:
    """Return whether a shape is a static array of an element type that is not complex."""
    if not isinstance(shape, ArrayShape) or shape.is_dynamic:
        return False
    return shape.element_type.is_array and not shape.element_type.is_complex

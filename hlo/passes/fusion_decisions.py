"""Decide which instructions are computed in one kernel, and give the reason where one starts.

Instructions are visited from last to first. Each elemental one is either *absorbed* by the loops of
all its users (recomputed there for each use) or *stored* (materialised in memory, as the root of a
fusion of its own). Absorbing saves a store and loads; it costs operations where several loops, or
several paths in a loop, use an element (:mod:`hlo.passes.cost`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from hlo.module import Computation, Instruction
from hlo.passes.cost import CHEAP, FUNCTION, is_worth_storing, operations_of, weights
from hlo.passes.epilogues import epilogues
from hlo.passes.fusible import (
    READERS,
    is_read_as_computed,
    why_it_reads_what_is_updated,
    why_read_as_bytes,
    why_read_by_a_kernel,
    why_root,
    why_unfusible,
)
from hlo.passes.fusion_reasons import Group, Reason, Why, listed
from hlo.passes.fusion_targets import Target
from hlo.passes.index_paths import LOOP, Paths
from hlo.passes.prologues import prologues
from hlo.passes.recomputation import cones, is_far
from hlo.passes.rewriting import array
from hlo.passes.row_loops.fused_rows import RowsAcross, root_in_rows, why_no_rows
from hlo.passes.row_loops.rows import (
    Kind,
    Rows,
    changes_rows,
    has_functions_of_rows,
    is_in_snippets,
    rows_of,
)
from hlo.passes.row_loops.written_rows import Loop, WrittenRows
from hlo.passes.updates_in_place import ANY_PART, SMALL_PART, is_static_array, updates_in_place
from hlo.types import ArrayShape

# Operations, elementary functions counting as 20, that a loop may consist of: about 1,000 lines of
# C, above which gcc -O3 takes more than a second for the kernel and spills its registers.
MOST_OPERATIONS = 512

_Uses = dict[str, dict[int, float]]  # root → path → how many elements it needs there


def decided(computation: Computation, target: Target) -> Decisions:
    """Decide for all instructions of a computation.

    What a reduction is read for is decided before the reduction is: as if it joined that loop. If
    one does not, all is decided again without it.
    """
    alone: set[str] = set()
    while True:
        decisions = Decisions(computation, target, alone)
        decisions.decide()
        wrong = decisions.assumed - decisions.absorbed
        if not wrong:
            return decisions
        alone |= wrong


class Decisions:
    """Decide for each elemental instruction and reduction of a computation: absorbed or stored.

    ``_uses`` has, per decided instruction, the roots whose loops compute it, and on which paths
    with how many elements; ``_operations`` the size of each root's loop body so far. ``assumed``
    are reductions that were taken to join the loops that read them, of which none is ``alone``.
    """

    def __init__(
        self, computation: Computation, target: Target, alone: Collection[str] = ()
    ) -> None:
        small_part = ANY_PART if target.updates_any_part else SMALL_PART
        self._ends = epilogues(computation, small_part) if target.has_epilogues else {}
        self._factors = prologues(computation) if target.has_prologues else set()
        self._products = {name for name, _ in self._factors} - self._ends.keys()
        self._updates = updates_in_place(computation, small_part)
        self._target = target
        self._instructions = computation.instructions
        self._root = computation.root
        self.by_name = {i.name: i for i in computation.instructions}
        self._position = {i.name: n for n, i in enumerate(computation.instructions)}
        self._users: dict[str, list[tuple[Instruction, int]]] = defaultdict(list)
        for instruction in computation.instructions:
            for number, name in enumerate(instruction.operands):
                self._users[name].append((instruction, number))
        self._paths = Paths()
        self._written = WrittenRows(self._paths, MOST_OPERATIONS, target.writes_rows)
        self._reasons: dict[str, Reason] = {}  # why each value that is in memory is there
        self._fusible = {i.name for i in computation.instructions if self._is_fusible(i)}
        inlined = [
            i for i in self._instructions if i.name in self._fusible and not self._is_root(i)
        ]
        self._weight = weights(inlined, self.by_name)
        self._cones = cones(self._instructions, self.by_name, self._weight)
        self._uses: dict[str, _Uses] = {}
        self._operations: dict[str, int] = {}
        self._rows: dict[str, Rows] = {}  # of the roots whose loops run by rows
        joining = {i.name for i in self._instructions if self._is_joined_across(i)}
        self._across = RowsAcross(self._instructions, joining.difference(alone))
        self.assumed: set[str] = set()
        self.absorbed: set[str] = set()
        self.stored: set[str] = set()

    def _is_fusible(self, instruction: Instruction) -> bool:
        """Return whether an instruction may join a fusion: elemental or a reduction.

        Only of static arrays: those of bounded size stay in kernels of one instruction each.
        """
        reason = why_unfusible(instruction, self.by_name)
        if reason is not None:
            self._reasons[instruction.name] = reason
        return reason is None

    def _is_root(self, instruction: Instruction) -> bool:
        """Return whether an instruction is a hero that is always the root of a fusion."""
        return instruction.opcode == "reduce" or self._why_root(instruction) is not None

    def _why_root(self, instruction: Instruction) -> Reason | None:
        """Return why an instruction is always the root of a fusion; None if it is not."""
        return why_root(instruction, self._updates) or self._written.why_stored(instruction)

    def is_updated(self, instruction: Instruction) -> bool:
        """Return whether an instruction is an update in place."""
        return instruction.name in self._updates

    def decide(self) -> None:
        """Visit all fusible instructions, users before their operands."""
        for instruction in self._written.first_those_with_rows(self._instructions):
            if instruction.name in self._ends:
                self._decide_epilogue(instruction, self._ends[instruction.name])
            elif instruction.name in self._products:
                self._store(instruction, {}, Reason(Why.OWN_KERNEL, (instruction.opcode,)))
            elif instruction.name in self._fusible:
                if instruction.opcode == "reduce":
                    why = self._joined_rows(instruction)
                else:
                    why = self._why_root(instruction)
                    if why is None:
                        self._decide(instruction)
                if why is not None:
                    self._store(instruction, {}, why)

    def _decide_epilogue(self, instruction: Instruction, end: str) -> None:
        """Absorb a contraction and its epilogue in the loops of the epilogue's last instruction."""
        if instruction.name == end:
            self._store(instruction, {}, Reason(Why.EPILOGUE))
        else:
            self._reasons.pop(instruction.name, None)
            self._absorb(instruction, {end: {LOOP: float(array(instruction.shape).elements)}})

    def _joined_rows(self, instruction: Instruction) -> Reason | None:
        """Absorb a reduction of rows into the one row loop that needs it; return None, or the
        reason why there is no such loop."""
        if not is_static_array(instruction.shape):
            return Reason(Why.SEVERAL_RESULTS)
        operand = array(self.by_name[instruction.operands[0]].shape)
        rows = rows_of(instruction, operand)
        why = self._why_needed(instruction) or why_no_rows(instruction, rows, self._target)
        if rows is None or why is not None:
            return why
        root = root_in_rows(instruction, rows, self._users, self._fusible, self._uses)
        if isinstance(root, Reason):
            return root
        # Loops of an epilogue are those of its contraction, not of rows.
        if root in self._ends:
            return Reason(Why.READ_BEYOND_ROW, (f"%{root}",))
        uses: _Uses = {root: {LOOP: float(operand.elements)}}
        if self._rows.get(root, rows) != rows or self._written.length(root) > 1:
            return Reason(Why.OTHER_ROWS, (f"%{root}",))
        why = self._why_too_large(instruction, uses) or self._why_not_by_lanes(root, rows)
        why = why or self._why_not_across(instruction, root, rows)
        if why is None:
            self._rows[root] = rows
            self._absorb(instruction, uses)
        return why

    def _is_joined_across(self, instruction: Instruction) -> bool:
        """Return whether an instruction is a reduction of rows across memory that a loop over them
        may have, and that nothing else needs."""
        if instruction.opcode != "reduce" or instruction.name not in self._fusible:
            return False
        rows = rows_of(instruction, array(self.by_name[instruction.operands[0]].shape))
        if rows is None or rows.columns == 1 or not is_static_array(instruction.shape):
            return False
        return not (why_no_rows(instruction, rows, self._target) or self._why_needed(instruction))

    def _why_not_across(self, reduction: Instruction, root: str, rows: Rows) -> Reason | None:
        """Return the reason if a loop over rows across memory would save too little, or None."""
        if rows.columns == 1 or root in self._rows or reduction.name in self._across.dependent:
            return None
        hero = self.by_name[root]
        if hero.opcode != "reduce" and rows.kind(array(hero.shape)) is Kind.SINGLE:
            return Reason(Why.NO_OTHER_LOOP)
        operand = self.by_name[reduction.operands[0]]
        bits = array(operand.shape).element_type.bits
        if self._weight.get(operand.name, 0.0) < FUNCTION and is_in_snippets(rows, bits):
            return Reason(Why.READ_IN_SNIPPETS, (f"%{root}",))
        return None

    def _why_not_by_lanes(self, root: str, rows: Rows) -> Reason | None:
        """Return the reason if rows that are no lanes would make functions run singly, or None."""
        shape, operations = array(self.by_name[root].shape), self._operations[root]
        if self._target.rows_are_lanes or not has_functions_of_rows(rows, shape, operations):
            return None
        return Reason(Why.NO_LANES, (f"%{root}",))

    def _decide(self, instruction: Instruction) -> None:
        """Absorb or store one elemental instruction, by its uses."""
        uses = self._uses_of(instruction)
        # A scalar: arrays of constants are not fusible.
        if instruction.opcode == "constant":
            self._absorb(instruction, uses)
        elif needed := self._why_needed(instruction):
            # A value that only indexes something smaller is cheaper to recompute than to load.
            repeated = instruction.opcode in ("broadcast", "iota")
            repeated = repeated and self._weight[instruction.name] == 0
            repeated = repeated and self._why_too_large(instruction, uses) is None
            if repeated:
                self._absorb(instruction, uses)
            self._store(instruction, uses if repeated else {}, needed)
        elif why := self._why_stored(instruction, uses):
            self._store(instruction, {}, why)
        else:
            self._absorb(instruction, uses)

    def _why_stored(self, instruction: Instruction, uses: _Uses) -> Reason | None:
        """Return the reason to store an instruction that only fusions read; None to absorb it."""
        roots = [self.by_name[root] for root in uses]
        return (
            why_read_as_bytes(instruction, [user for user, _ in self._users[instruction.name]])
            or why_read_by_a_kernel(instruction, roots)
            or why_it_reads_what_is_updated(instruction, roots, self._updates)
            or self._why_read_across(instruction, uses)
            or self._written.why_chosen(instruction, self._loops(uses), uses)
            or self._why_too_large(instruction, uses)
            or self._why_not_repeated(instruction, uses)
        )

    def is_needed(self, instruction: Instruction) -> bool:
        """Return whether anything but a fusion reads the instruction's result in memory."""
        return self._why_needed(instruction) is not None

    def _why_needed(self, instruction: Instruction) -> Reason | None:
        """Return the reason why a result must be in memory (a user cannot absorb it), or None."""
        users = self._users[instruction.name]
        for user, number in users:
            reads = user.opcode in READERS and not is_read_as_computed(instruction)
            computes = user.name in self._fusible or (user.name, number) in self._factors
            if reads or not computes:
                result = user.name == self._root and user.opcode == "tuple"
                taken = Reason(Why.READ_IN_MEMORY, (f"%{user.name}", user.opcode))
                return Reason(Why.RESULT) if result else taken
        if instruction.name == self._root:
            return Reason(Why.RESULT)
        return None if users else Reason(Why.UNUSED)

    def _why_read_across(self, instruction: Instruction, uses: _Uses) -> Reason | None:
        """Return the reason if a row loop would read a transpose's operand across memory.

        Such a loop reads its row several times, one element per cache line; a transpose kernel does
        it once, in tiles.
        """
        if instruction.opcode != "transpose":
            return None
        source = array(self.by_name[instruction.operands[0]].shape)
        if not changes_rows(instruction, source):
            return None
        for root in uses:
            rows = self._rows.get(root)
            if rows is not None and source.elements == rows.number * rows.length:
                return Reason(Why.READ_ACROSS, (f"%{root}",))
        return None

    def _uses_of(self, instruction: Instruction) -> _Uses:
        """Count the elements needed by each loop (root) on each path, summed over all users."""
        found: _Uses = {}
        shape = array(instruction.shape)
        for user, number in self._users[instruction.name]:
            if (user.name, number) in self._factors:
                end = self._ends.get(user.name, user.name)
                found.setdefault(end, {})[self._paths.factor(user, number)] = float(shape.elements)
            if user.name not in self._fusible:
                continue
            part = self._share(user, number, shape)
            for root, paths in self._uses[user.name].items():
                mine = found.setdefault(root, {})
                for path, elements in paths.items():
                    here = self._paths.through(user, number, shape, path)
                    loop = self._loop(self.by_name[root])
                    wanted = self._written.computed(root, here, shape, elements * part, loop)
                    # Two readers on one path share the element (common subexpression): count the
                    # larger need, not both.
                    mine[here] = max(mine.get(here, 0.0), wanted)
        return found

    def _share(self, user: Instruction, number: int, shape: ArrayShape) -> float:
        """Return how many elements of an operand one element of a user reads on average."""
        once = self._across.once.get(user.name)
        if once is None or user.opcode == "reduce":
            return self._written.share(user, number, shape, self.by_name)
        self.assumed |= once
        return shape.elements / array(user.shape).elements

    def _why_too_large(self, instruction: Instruction, uses: _Uses) -> Reason | None:
        """Return the reason if absorbing it made a loop exceed MOST_OPERATIONS, else None."""
        for root, added in self._operations_in(instruction, uses).items():
            if self._operations[root] + added > MOST_OPERATIONS:
                return Reason(Why.TOO_LARGE, (f"%{root}", MOST_OPERATIONS))
        return None

    def _operations_in(self, instruction: Instruction, uses: _Uses) -> dict[str, int]:
        """Return by root how many operations absorbing it adds to a loop's body."""
        # Every path is a copy in the loop's body; even a free instruction takes part of its code.
        each, elements = operations_of(instruction), array(instruction.shape).elements
        loops, written = self._loops(uses), self._written
        return {
            root: each * sum(written.copies(root, path, elements, loops[root]) for path in paths)
            for root, paths in uses.items()
        }

    def _loops(self, roots: Iterable[str]) -> dict[str, Loop]:
        """Describe the loops of some roots."""
        return {root: self._loop(self.by_name[root]) for root in roots}

    def _loop(self, root: Instruction) -> Loop:
        """Describe the loop of a root."""
        is_map = root.opcode not in (*READERS, "reduce", "dynamic-update-slice")
        others = self._ends, self._products, self._rows
        is_map = is_map and not any(root.name in names for names in others)
        return Loop(
            array(root.shape).elements if is_map else 0, self._operations[root.name], is_map
        )

    def _why_not_repeated(self, instruction: Instruction, uses: _Uses) -> Reason | None:
        """Return the reason if recomputation costs more than storing and loading, else None."""
        elements, name = array(instruction.shape).elements, instruction.name
        weight = self._weight[name]
        # One reader on one path, and cheap: the loop is bound by memory, so even a broadcast may
        # repeat it.
        if weight <= CHEAP and sum(map(len, uses.values())) == 1:
            return None
        computed = sum(sum(paths.values()) for paths in uses.values())
        # The operations repeated, against one store and one load of each element.
        if not is_worth_storing(elements, computed, weight):
            return None
        cone, is_once = self._cones.get(name), all({*paths} == {LOOP} for paths in uses.values())
        if cone and is_once and is_far(instruction, cone, self.by_name, len(uses)):
            return None
        return Reason(Why.COSTS_MORE, (listed(sorted(uses)), int(computed), elements, int(weight)))

    def _absorb(self, instruction: Instruction, uses: _Uses) -> None:
        """Compute the instruction in the loops of its users; count its operations there."""
        self.absorbed.add(instruction.name)
        self._uses[instruction.name] = uses
        for root, factor in self._written.note(instruction, self._loops(uses), uses).items():
            self._operations[root] *= factor
        for root, added in self._operations_in(instruction, uses).items():
            self._operations[root] += added

    def _store(self, instruction: Instruction, uses: _Uses, why: Reason) -> None:
        """Compute the instruction in loops of its own, a reduction over its operand."""
        shape = self.by_name[instruction.operands[0]] if instruction.opcode == "reduce" else None
        elements = array(shape.shape if shape else instruction.shape).elements
        self.stored.add(instruction.name)
        self._reasons[instruction.name] = why
        own = {instruction.name: {LOOP: float(elements)}}
        self._uses[instruction.name] = {**uses, **own}
        self._operations[instruction.name] = operations_of(instruction)
        self._written.note(instruction, self._loops(own), own)

    def groups(self) -> dict[str, Group]:
        """Return the fusion group of each value in memory, by its name."""
        found = {}
        for name, reason in self._reasons.items():
            instruction = self.by_name[name]
            members = self.members(instruction) if name in self.stored else [instruction]
            computed = {
                i.name: sum(self._uses[i.name][name].values())
                for i in members
                if name in self._uses.get(i.name, {})
            }
            found[name] = Group(tuple(i.name for i in members), reason, computed)
        return found

    def members(self, root: Instruction) -> list[Instruction]:
        """Return a stored instruction and all that its loops absorbed, in order, itself last."""
        found, todo = {root.name}, [root]
        while todo:
            for name in todo.pop().operands:
                if name in self.absorbed and name not in found:
                    found.add(name)
                    todo.append(self.by_name[name])
        return [self.by_name[name] for name in sorted(found, key=self._position.__getitem__)]

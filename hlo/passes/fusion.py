"""Decide which instructions are computed together (producer-consumer fusion): here, and only here.

Afterwards every computation that control flow reaches consists of parameters, constants, tuples and
their elements, control flow, *heroes* left alone (dot, sort, …), reshapes of arrays in memory, and
fusions. A fusion has one result. Its root may be a hero, a ``reduce`` that reads computed elements
or a ``concatenate`` of many parts; without one it is a map. Reductions inside a fusion run along
the rows of its root (:mod:`hlo.passes.rows`), which is then computed row by row.

Instructions are visited from last to first. Each elemental one is either *absorbed* by the loops of
all its users (recomputed there for each use) or *stored* (materialised in memory, as the root of a
fusion of its own). Absorbing saves a store and loads; it costs operations where several loops, or
several paths in a loop, use an element. The constants below are that cost model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hlo.aliasing import Alias
from hlo.attributes import Attribute
from hlo.module import Computation, Instruction, Module
from hlo.passes.cost import COST
from hlo.passes.fused_computation import fused_computation
from hlo.passes.index_paths import LOOP, Paths, share
from hlo.passes.rewriting import Names, array, reachable
from hlo.passes.rows import Kind, Rows, operand_kind, rows_of
from hlo.types import ArrayShape

# Computations of these are sequences of kernels, as the entry is; those of other instructions
# (to_apply, select, …) are the insides of kernels.
_CONTROL = frozenset(("while", "conditional", "call", "scan", "async-start"))

# Operations, elementary functions counting as 20, that a loop may consist of: about 1,000 lines of
# C, above which gcc -O3 takes more than a second for the kernel and spills its registers.
MOST_OPERATIONS = 512

# Storing an element and loading it again costs about as much as this many operations.
STORED = 4

# Recomputing so few operations in all costs less than another kernel.
FEW = 64

# An operand of a broadcast is recomputed for each copy if it is as cheap as this: the loop around
# it is bound by memory anyway.
CHEAP = 4

# A concatenation of more parts is a kernel with a loop for each, not a choice at each element.
MOST_PARTS = 2

# An update of so small a part of an array writes that part only.
SMALL_PART = 4

_Uses = dict[str, dict[int, float]]  # root → path → how many elements it needs there


def fusion(module: Module) -> Module:
    """Replace groups of instructions by ``fusion`` instructions that call them as a computation."""
    names = Names(computation.name for computation in module.computations)
    fused: list[Computation] = []
    sequences = {c.name for c in reachable(module, lambda i: i.opcode in _CONTROL)}
    for computation in module.computations:
        if computation.name in sequences:
            fused.extend(_fused(computation, names))
        else:
            fused.append(computation)
    return replace(module, computations=tuple(fused))


def _fused(computation: Computation, names: Names) -> list[Computation]:
    """Fuse within one computation; the computations that it then calls stand before it."""
    decisions = _Decisions(computation)
    decisions.decide()
    callees: list[Computation] = []
    kept: list[Instruction] = []
    for instruction in computation.instructions:
        if instruction.name in decisions.stored:
            members = decisions.members(instruction)
            if len(members) == 1 and instruction.opcode == "reshape":
                kept.append(instruction)  # of an array in memory: the same memory
                continue
            opcode = instruction.opcode.replace("-", "_")
            callee, operands = fused_computation(
                names.fresh(f"fused_{opcode}"), members, decisions.by_name
            )
            callees.append(replace(callee, annotations=computation.annotations))
            attributes: dict[str, Attribute] = {"kind": "kLoop", "calls": callee.name}
            if is_update_in_place(instruction, decisions.by_name):
                attributes |= _aliasing(callee, instruction, operands)
            kept.append(
                instruction._replace(opcode="fusion", operands=operands, attributes=attributes)
            )
        elif instruction.name not in decisions.absorbed or decisions.is_needed(instruction):
            kept.append(instruction)
    return [*callees, replace(computation, instructions=tuple(kept))]


def updated_operand(fusion: Instruction, callee: Computation) -> int | None:
    """Return the operand whose memory a fusion only updates; None if it is no such fusion."""
    root = callee.root_instruction
    if "output_to_operand_aliasing" not in fusion.attributes:
        return None
    if root.opcode != "dynamic-update-slice" or not _is_static_array(root.shape):
        return None
    names = [p.name for p in callee.parameters]
    reads = sum(i.operands.count(root.operands[0]) for i in callee.instructions)
    return names.index(root.operands[0]) if root.operands[0] in names and reads == 1 else None


def _aliasing(
    callee: Computation, update: Instruction, operands: Sequence[str]
) -> dict[str, Attribute]:
    """Return the attribute that the result lies where the operand of an update was.

    There is none if the fusion reads the operand elsewhere, too: an element may be overwritten
    before it is read.
    """
    number = operands.index(update.operands[0])
    parameter = callee.root_instruction.operands[0]
    reads = sum(i.operands.count(parameter) for i in callee.instructions)
    return {"output_to_operand_aliasing": (Alias((), number, ()),)} if reads == 1 else {}


def is_update_in_place(instruction: Instruction, by_name: Mapping[str, Instruction]) -> bool:
    """Return whether an instruction updates a small part of an array that is in memory."""
    if instruction.opcode != "dynamic-update-slice" or not _is_static_array(instruction.shape):
        return False
    operand, update = (by_name[name] for name in instruction.operands[:2])
    if operand.opcode in COST and not is_update_in_place(operand, by_name):
        return False  # it is computed, and may be in the same loop
    return array(operand.shape).elements >= FEW + SMALL_PART * array(update.shape).elements


def _is_static_array(shape: object) -> bool:
    """Return whether a shape is an array of fixed size."""
    return isinstance(shape, ArrayShape) and shape.element_type.is_array and not shape.dynamic


def _operations_of(instruction: Instruction) -> int:
    """Return the operations that an instruction adds to a loop body; a free one is code, too."""
    return max(1, COST.get(instruction.opcode, 1))


class _Decisions:
    """Decide for each elemental instruction and reduction of a computation: absorbed or stored.

    ``_uses`` has, per decided instruction, the roots whose loops compute it, and on which paths
    with how many elements; ``_operations`` the size of each root's loop body so far.
    """

    def __init__(self, computation: Computation) -> None:
        self._instructions = computation.instructions
        self._root = computation.root
        self.by_name = {i.name: i for i in computation.instructions}
        self._position = {i.name: n for n, i in enumerate(computation.instructions)}
        self._users: dict[str, list[tuple[Instruction, int]]] = defaultdict(list)
        for instruction in computation.instructions:
            for number, name in enumerate(instruction.operands):
                self._users[name].append((instruction, number))
        self._paths = Paths()
        self._fusible = {i.name for i in computation.instructions if self._is_fusible(i)}
        self._weight = self._weights()
        self._uses: dict[str, _Uses] = {}
        self._operations: dict[str, int] = {}
        self._rows: dict[str, Rows] = {}  # of the roots whose loops run by rows
        self._shapes = {
            i.name: i.shape for i in computation.instructions if isinstance(i.shape, ArrayShape)
        }
        self.absorbed: set[str] = set()
        self.stored: set[str] = set()

    def _is_fusible(self, instruction: Instruction) -> bool:
        """Return whether an instruction may join a fusion: elemental or a reduction.

        Only of static arrays: those of bounded size stay in kernels of one instruction each.
        """
        if instruction.opcode not in COST and instruction.opcode != "reduce":
            return False
        shapes = [instruction.shape, *(self.by_name[o].shape for o in instruction.operands)]
        if instruction.opcode == "reduce":
            shapes = shapes[1:]  # several results are a tuple
        if not all(map(_is_static_array, shapes)):
            return False
        return instruction.opcode != "constant" or array(instruction.shape).rank == 0

    def _is_root(self, instruction: Instruction) -> bool:
        """Return whether an instruction is a hero that is always the root of a fusion."""
        many = instruction.opcode == "concatenate" and len(instruction.operands) > MOST_PARTS
        in_place = is_update_in_place(instruction, self.by_name)
        return many or in_place or instruction.opcode == "reduce"

    def _weights(self) -> dict[str, float]:
        """Bound the operations that an element takes if all operands are absorbed, transitively."""
        weights: dict[str, float] = {}
        for instruction in self._instructions:
            if instruction.name in self._fusible and not self._is_root(instruction):
                single = array(instruction.shape).elements == 1
                inner = sum(
                    weights.get(name, 0.0)
                    for name in set(instruction.operands)
                    if single or array(self.by_name[name].shape).elements != 1
                )
                weights[instruction.name] = min(1e9, COST[instruction.opcode] + inner)
        return weights

    def decide(self) -> None:
        """Visit all fusible instructions, users before their operands."""
        for instruction in reversed(self._instructions):
            if instruction.name in self._fusible:
                if self._is_root(instruction):
                    if not self._has_joined_rows(instruction):
                        self._store(instruction, {})
                else:
                    self._decide(instruction)

    def _has_joined_rows(self, instruction: Instruction) -> bool:
        """Absorb a reduction of rows into the one loop of rows that needs it, if there is one."""
        if instruction.opcode != "reduce" or not _is_static_array(instruction.shape):
            return False
        operand = array(self.by_name[instruction.operands[0]].shape)
        rows = rows_of(instruction, operand)
        if rows is None or self.is_needed(instruction):
            return False
        roots = self._roots_in_rows(instruction, rows)
        if len(roots) != 1:
            return False
        (root,) = roots
        uses: _Uses = {root: {LOOP: float(operand.elements)}}
        if self._rows.get(root, rows) != rows or not self._fits(instruction, uses):
            return False
        self._rows[root] = rows
        self._absorb(instruction, uses)
        return True

    def _roots_in_rows(self, reduction: Instruction, rows: Rows) -> set[str]:
        """Return the roots of the loops that need a reduction; none if one reads it elsewhere than
        in its row.
        """
        roots: set[str] = set()
        waiting = [(reduction, Kind.SINGLE)]
        while waiting:
            instruction, kind = waiting.pop()
            for user, number in self._users[instruction.name]:
                if user.name not in self._fusible:
                    return set()
                shape = array(user.shape) if isinstance(user.shape, ArrayShape) else None
                wanted = rows.kind(shape) if shape else None
                if wanted is None or operand_kind(user, number, wanted, rows, self._shapes) != kind:
                    return set()
                if user.name in self.stored:
                    roots.add(user.name)
                else:
                    waiting.append((user, wanted))
        return roots

    def _decide(self, instruction: Instruction) -> None:
        """Absorb or store one elemental instruction, by its uses."""
        uses = self._uses_of(instruction)
        if instruction.opcode == "constant":
            self._absorb(instruction, uses)
        elif self.is_needed(instruction):
            # A value that only indexes something smaller is cheaper to recompute than to load.
            repeated = instruction.opcode in ("broadcast", "iota") and self._fits(instruction, uses)
            repeated = repeated and self._weight[instruction.name] == 0
            if repeated:
                self._absorb(instruction, uses)
            self._store(instruction, uses if repeated else {})
        elif self._is_read_as_bytes(instruction) or self._reads_what_is_updated(instruction, uses):
            self._store(instruction, {})
        elif self._fits(instruction, uses) and self._is_worth_repeating(instruction, uses):
            self._absorb(instruction, uses)
        else:
            self._store(instruction, {})

    def is_needed(self, instruction: Instruction) -> bool:
        """Return whether something other than a fusion needs the instruction's result in memory."""
        users = self._users[instruction.name]
        outside = any(user.name not in self._fusible for user, _ in users)
        return outside or not users or instruction.name == self._root

    def _is_read_as_bytes(self, instruction: Instruction) -> bool:
        """Return whether a user reads elements of another width.

        Those of an array in memory are its bytes as they lie; each of a computed one would take a
        division, a computation and a shift.
        """
        bits = array(instruction.shape).element_type.bits
        return any(
            user.opcode == "bitcast-convert" and array(user.shape).element_type.bits != bits
            for user, _ in self._users[instruction.name]
        )

    def _reads_what_is_updated(self, instruction: Instruction, uses: _Uses) -> bool:
        """Return whether an instruction reads the array that one of its loops updates in place."""
        updated = {
            self.by_name[root].operands[0]
            for root in uses
            if is_update_in_place(self.by_name[root], self.by_name)
        }
        return not updated.isdisjoint(instruction.operands)

    def _uses_of(self, instruction: Instruction) -> _Uses:
        """Collect, over all users, the loops and paths that need the instruction's elements."""
        found: _Uses = {}
        shape = array(instruction.shape)
        for user, number in self._users[instruction.name]:
            if user.name not in self._fusible:
                continue
            # A reduction's loop runs over its operand's elements, which its uses count already.
            part = 1.0 if user.opcode == "reduce" else share(user, number, shape)
            for root, paths in self._uses[user.name].items():
                mine = found.setdefault(root, {})
                for path, elements in paths.items():
                    here = self._paths.through(user, number, shape, path)
                    wanted = 1.0 if shape.elements == 1 else elements * part
                    # Two readers on one path share the element (common subexpression): count the
                    # larger need, not both.
                    mine[here] = max(mine.get(here, 0.0), wanted)
        return found

    def _fits(self, instruction: Instruction, uses: _Uses) -> bool:
        """Return whether every loop that would absorb it stays within MOST_OPERATIONS."""
        # Every path is a copy in the loop's body; even a free instruction takes part of its code.
        each = _operations_of(instruction)
        return all(
            self._operations[root] + len(paths) * each <= MOST_OPERATIONS
            for root, paths in uses.items()
        )

    def _is_worth_repeating(self, instruction: Instruction, uses: _Uses) -> bool:
        """Return whether recomputing elements at each use costs less than storing them once."""
        elements = array(instruction.shape).elements
        weight = self._weight[instruction.name]
        # One reader on one path, and cheap: the loop is bound by memory, so even a broadcast may
        # repeat it.
        if weight <= CHEAP and sum(map(len, uses.values())) == 1:
            return True
        computed = sum(sum(paths.values()) for paths in uses.values())
        # The operations repeated, against one store and one load of each element.
        return (computed - elements) * weight <= max(FEW, STORED * elements)

    def _absorb(self, instruction: Instruction, uses: _Uses) -> None:
        """Compute the instruction in the loops of its users."""
        self.absorbed.add(instruction.name)
        self._uses[instruction.name] = uses
        for root, paths in uses.items():
            self._operations[root] += len(paths) * _operations_of(instruction)

    def _store(self, instruction: Instruction, uses: _Uses) -> None:
        """Compute the instruction in a loop of its own, and note how many elements that has.

        The loop of a reduction runs over its operand.
        """
        shape = self.by_name[instruction.operands[0]] if instruction.opcode == "reduce" else None
        elements = array(shape.shape if shape else instruction.shape).elements
        self.stored.add(instruction.name)
        self._uses[instruction.name] = {**uses, instruction.name: {LOOP: float(elements)}}
        self._operations[instruction.name] = _operations_of(instruction)

    def members(self, root: Instruction) -> list[Instruction]:
        """Return the instructions that compute a stored one, in order, itself last."""
        found, todo = {root.name}, [root]
        while todo:
            for name in todo.pop().operands:
                if name in self.absorbed and name not in found:
                    found.add(name)
                    todo.append(self.by_name[name])
        return [self.by_name[name] for name in sorted(found, key=self._position.__getitem__)]

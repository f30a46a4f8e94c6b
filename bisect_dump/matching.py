"""Match the instructions of two programs, one made from the other by a compiler pass.

Values that are equal bit for bit are the strongest sign: a pass may rename everything. Other
instructions are matched by their place in the result, by name, by the source operation in their
metadata, and by their neighbours in the graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass

from bisect_dump.shared_values import Program, Reference, Values
from hlo.module import Computation, Instruction
from hlo.text.patterns import pattern
from hlo.types import ArrayShape, without_layout

_OP_NAME = pattern(r'op_name="((?:[^"\\]|\\.)*+)"')

Named = Mapping[str, Instruction]


@dataclass(frozen=True, slots=True)
class Side:
    """Hold a program, and the reference of each instruction's value by name."""

    program: Program
    values: Mapping[str, Reference]

    @property
    def entry(self) -> Computation:
        return self.program.module.entry

    @property
    def closed(self) -> frozenset[str]:
        """Return the names of instructions that depend on no parameter: their values (zeros, say)
        are often equal by coincidence."""
        found: set[str] = set()
        for i in self.program.steps.instructions:
            if i.opcode != "parameter" and found.issuperset(i.operands):
                found.add(i.name)
        return frozenset(found)

    @property
    def arrays(self) -> dict[str, Instruction]:
        """Return the live instructions whose value is an array, by name."""
        matter = self.program.steps.instructions
        return {i.name: i for i in matter if isinstance(self.values[i.name], bytes)}


@dataclass(frozen=True, slots=True)
class Matches:
    """Hold a matching. ``shared``: instructions of the earlier program whose exact value the later
    one has, too. ``pairs``: other matches, later name to earlier name. ``guessed``: the pairs that
    count only if their values turn out to be near."""

    shared: frozenset[str]
    pairs: Mapping[str, str]
    guessed: frozenset[str]


def matched(before: Side, after: Side, values: Values) -> Matches:
    """Match the array instructions of two programs evaluated on the same arguments."""
    arrays = before.arrays, after.arrays
    shared = frozenset(_found_again(before, arrays[0], after, values))
    known = frozenset(_found_again(after, arrays[1], before, values))
    ours = {name: i for name, i in arrays[0].items() if name not in shared}
    theirs = {name: i for name, i in arrays[1].items() if name not in known}
    pairs = dict(_of_results(before.entry, after.entry, ours, theirs))
    are_named = _are_named_alike(*arrays)
    if are_named:
        _pair(pairs, ours, theirs, lambda instruction: instruction.name)
    sure = frozenset(pairs)
    if are_named:
        _pair(pairs, ours, theirs, _own_name)
    _pair(pairs, ours, theirs, _origin)
    _pair_results_of_pairs(pairs, before, after, (ours, theirs))
    _pair_operands_of_pairs(pairs, before, after, shared, theirs)
    if are_named:
        _pair(pairs, arrays[0], theirs, lambda instruction: instruction.name)
    return Matches(shared, pairs, frozenset(pairs) - sure)


def _found_again(one: Side, arrays: Named, other: Side, values: Values) -> Iterator[str]:
    """Yield the arrays that the other program computes as well, without coincidences: the array
    must be distinctive, or its whole cone equal."""
    there = {reference for reference in other.values.values() if isinstance(reference, bytes)}
    cones = (side.program.cones.of(side.program.module.entry_name) for side in (one, other))
    own, others = next(cones), set(next(cones).values())
    closed = one.closed
    for name in arrays:
        reference = one.values[name]
        is_same = own[name] in others and name not in closed
        if reference in there and (values.is_telling(reference) or is_same):
            yield name


def _are_named_alike(ours: Named, theirs: Named) -> bool:
    """Return whether names carry over: most instructions with equal names agree in opcode and
    shape."""
    both = [(ours[name], theirs[name]) for name in ours if name in theirs]
    same = sum(one.opcode == other.opcode and _alike(one, other) for one, other in both)
    return 2 * same > len(both)


def _of_results(
    before: Computation, after: Computation, ours: Named, theirs: Named
) -> Iterator[tuple[str, str]]:
    one, other = before.root_instruction, after.root_instruction
    names: list[tuple[str, str]] = [(other.name, one.name)]
    if one.opcode == other.opcode == "tuple" and len(one.operands) == len(other.operands):
        names = list(zip(other.operands, one.operands, strict=True))
    for later, earlier in names:
        if later in theirs and earlier in ours and _alike(theirs[later], ours[earlier]):
            yield later, earlier


def _pair(
    pairs: dict[str, str], ours: Named, theirs: Named, key: Callable[[Instruction], Hashable]
) -> None:
    """Pair the unmatched instructions that share a key with exactly one counterpart."""
    taken = set(pairs.values())
    free = [
        [i for i in ours.values() if i.name not in taken],
        [i for i in theirs.values() if i.name not in pairs],
    ]
    by_key = [_by_key(instructions, key) for instructions in free]
    for found, others in by_key[1].items():
        mine = by_key[0].get(found, [])
        if (len(mine), len(others)) == (1, 1) and _alike(mine[0], others[0]):
            pairs[others[0].name] = mine[0].name


def _by_key(
    instructions: list[Instruction], key: Callable[[Instruction], Hashable]
) -> dict[Hashable, list[Instruction]]:
    found: dict[Hashable, list[Instruction]] = defaultdict(list)
    for instruction in instructions:
        value = key(instruction)
        if value is not None:
            found[value].append(instruction)
    return found


def _pair_results_of_pairs(
    pairs: dict[str, str], before: Side, after: Side, free: tuple[Named, Named]
) -> None:
    """Pair instructions of equal opcode and shape whose operands are all matched."""
    taken = set(pairs.values())
    open_ = [name.keys() - side.closed for name, side in zip(free, (before, after), strict=True)]

    def mine(instruction: Instruction) -> Hashable:
        names = instruction.operands
        return _computed(instruction, [n if n in open_[0] else before.values[n] for n in names])

    def others(instruction: Instruction) -> Hashable:
        names = instruction.operands
        found = [pairs.get(n, n) if n in open_[1] else after.values[n] for n in names]
        return _computed(instruction, found)

    by_key = _by_key([i for i in free[0].values() if i.name not in taken], mine)
    for name, instruction in free[1].items():
        found = by_key.get(others(instruction), [])
        if name not in pairs and len(found) == 1 and found[0].name not in taken:
            pairs[name] = found[0].name
            taken.add(found[0].name)


def _pair_operands_of_pairs(
    pairs: dict[str, str], before: Side, after: Side, shared: frozenset[str], theirs: Named
) -> None:
    """Pair the operands of matched instructions of equal opcode, position by position, from the
    results backwards. A value that the earlier program has twice may be wrong in one place only, so
    an instruction whose value is shared may be paired here, with an instruction of its opcode."""
    taken = set(pairs.values())
    free = before.arrays
    entries = [{i.name: i for i in side.entry.instructions} for side in (after, before)]
    stack = [(after.entry.root, before.entry.root), *reversed(pairs.items())]
    while stack:
        other, one = (entry[name] for entry, name in zip(entries, stack.pop(), strict=True))
        if one.opcode != other.opcode or len(one.operands) != len(other.operands):
            continue
        for later, earlier in zip(other.operands, one.operands, strict=True):
            if later not in theirs or later in pairs or earlier not in free or earlier in taken:
                continue
            is_same_op = theirs[later].opcode == free[earlier].opcode
            if _alike(theirs[later], free[earlier]) and (is_same_op or earlier not in shared):
                pairs[later] = earlier
                taken.add(earlier)
                stack.append((later, earlier))


def _computed(instruction: Instruction, operands: list[Reference]) -> Hashable:
    shape = str(without_layout(instruction.shape))
    return (instruction.opcode, shape, *operands) if operands else None


def _alike(one: Instruction, other: Instruction) -> bool:
    """Return whether both instructions produce arrays of the same element type and shape."""
    shapes = without_layout(one.shape), without_layout(other.shape)
    return isinstance(shapes[0], ArrayShape) and shapes[0] == shapes[1]


def _own_name(instruction: Instruction) -> Hashable:
    """Strip from a name what inlining and cloning added: ``call.1.add.3.clone`` is ``add.3``."""
    parts = instruction.name.split(".")
    while len(parts) > 1 and (parts[-1] == "clone" or parts[-2:-1] == ["clone"]):
        parts.pop()
    own = parts[-2:] if len(parts) > 1 and parts[-1].isdecimal() else parts[-1:]
    return (*own, instruction.opcode)


def _origin(instruction: Instruction) -> Hashable:
    match = _OP_NAME.search(instruction.annotations.get("metadata", ""))
    return (match[1], instruction.opcode, str(without_layout(instruction.shape))) if match else None

"""Cut a program down to the instructions that matter: values of the others become arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from fuzz.reducer.delta_debugging import minimal
from fuzz.reducer.search import Case, Search
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import PENDING, having
from hlo.passes.rewriting import with_entry
from hlo.types import TupleShape, leaves
from interp.envelope.recorded_values import exposed
from interp.values import Value, zeros

Evaluate = Callable[[Module, tuple[Value, ...]], Value | None]

_MOST_BYTES = 2 << 30  # of values that are recorded: the others are always computed
# Instructions that are tried one by one before halves are: each alone takes a compiler less than
# half of such a program, and most often one is to blame. Of longer programs halves are faster.
_MOST_ALONE = 64
_PENDING = having(PENDING)
_ROOT = "outputs"
# Each of these is nothing without what it names as its first operand.
_LINKED = ("-done", "-update")


def cut(search: Search, evaluate: Evaluate) -> bool:
    """Cut the entry computation, with the values of removed instructions from ``evaluate``, to one
    instruction if one is interesting alone; return whether it became smaller."""
    case = search.best
    values = recorded(case, evaluate)
    if values is None:
        return False
    names = [i.name for i in case.module.entry.instructions if _is_computed(i)]

    def first(parts: Iterable[Sequence[str]]) -> int | None:
        return search.first((only(case, values, frozenset(part)) for part in parts), "cut")

    if 2 < len(names) <= _MOST_ALONE and first([name] for name in names) is not None:
        return True
    return len(minimal(names, first)) < len(names)


def recorded(case: Case, evaluate: Evaluate) -> dict[str, Value] | None:
    """Return the values of the entry's instructions that can be arguments, the smallest ones that
    fit in memory; None if the evaluation fails."""
    entry = case.module.entry
    names = affordable(i for i in entry.instructions if i.opcode != "parameter")
    found = evaluate(exposed(case.module, names), case.arrays)
    if found is None:
        return None
    values = dict(zip(names, found[1:], strict=True))
    for parameter, value in zip(entry.parameters, case.arrays, strict=True):
        values[parameter.name] = value
    return values


def affordable(instructions: Iterable[Instruction], most: int = _MOST_BYTES) -> tuple[str, ...]:
    """Return the smallest values that together take at most so many bytes, in their order."""
    sizes = {i.name: _bytes(i) for i in instructions if can_be_shown(i)}
    return smallest(sizes, most)


def smallest(sizes: Mapping[str, int], most: int) -> tuple[str, ...]:
    """Return the names of the smallest values, of so many bytes each, that together take at most
    ``most``, in their order."""
    taken, total = set[str](), 0
    for name, size in sorted(sizes.items(), key=itemgetter(1)):
        total += size
        if total > most:
            break
        taken.add(name)
    return tuple(name for name in sizes if name in taken)


def _bytes(instruction: Instruction) -> int:
    return sum(
        leaf.elements * leaf.element_type.numpy.itemsize for leaf in leaves(instruction.shape)
    )


def all_zeros(module: Module, arrays: tuple[Value, ...]) -> Value:
    """Return zeros instead of an evaluation, for programs whose values do not matter."""
    return zeros(module.entry.root_instruction.shape)


def _is_computed(instruction: Instruction) -> bool:
    return bool(instruction.operands) or instruction.opcode in ("rng", "after-all", "infeed")


def can_be_shown(instruction: Instruction) -> bool:
    """Return whether a value can be a result: async states cannot."""
    return instruction.opcode not in _PENDING and _has_data(instruction)


def _has_data(instruction: Instruction) -> bool:
    found = leaves(instruction.shape)
    return bool(found) and all(leaf.element_type.is_array for leaf in found)


def only(case: Case, values: Mapping[str, Value], kept: frozenset[str]) -> Case | None:
    """Extract some instructions as a program: its parameters are the operands that they lack, its
    results the values that others use."""
    entry = case.module.entry
    inside = _closed(entry, values, kept)
    needed = {name for i in entry.instructions if i.name in inside for name in i.operands}
    results = _results(entry, inside)
    instructions: list[Instruction] = []
    arrays: list[Value] = []
    for instruction in entry.instructions:
        name = instruction.name
        if name in inside or (name in needed and _is_leaf(instruction)):
            instructions.append(instruction)
        elif name in needed:
            number = {"parameter_number": len(arrays)}
            instructions.append(Instruction(name, instruction.shape, "parameter", (), number))
            arrays.append(values[name])
    if not results:
        return None
    return Case(_with_results(case.module, instructions, results), tuple(arrays))


def _is_leaf(instruction: Instruction) -> bool:
    return not instruction.operands and instruction.opcode != "parameter"


def _closed(
    entry: Computation, values: Mapping[str, Value], kept: frozenset[str]
) -> frozenset[str]:
    """Add producers that cannot be arguments (async starts and their like)."""
    inside, needed = set(kept), set[str]()
    for instruction in reversed(entry.instructions):
        name = instruction.name
        if name in needed and name not in values and instruction.operands:
            inside.add(name)
        if name in inside:
            needed.update(instruction.operands)
            if instruction.opcode.endswith(_LINKED):
                inside.add(instruction.operands[0])
    return frozenset(inside)


def _results(entry: Computation, inside: frozenset[str]) -> list[Instruction]:
    """Return the extracted instructions that any other uses."""
    users: dict[str, list[bool]] = {name: [] for name in inside}
    for instruction in entry.instructions:
        for name in instruction.operands:
            if name in inside:
                users[name].append(instruction.name in inside)
    return [
        i
        for i in entry.instructions
        if i.name in inside and can_be_shown(i) and (i.name == entry.root or not all_true(users, i))
    ]


def all_true(users: Mapping[str, list[bool]], instruction: Instruction) -> bool:
    found = users[instruction.name]
    return bool(found) and all(found)


def _with_results(
    module: Module, instructions: list[Instruction], results: Sequence[Instruction]
) -> Module:
    root = results[0].name
    if len(results) > 1:
        shape = TupleShape(tuple(i.shape for i in results))
        root = next(n for n in _fresh() if all(i.name != n for i in instructions))
        instructions.append(Instruction(root, shape, "tuple", tuple(i.name for i in results)))
    return with_entry(module, Computation(module.entry_name, tuple(instructions), root))


def _fresh() -> Iterator[str]:
    number = 0
    while True:
        yield f"{_ROOT}.{number}"
        number += 1

"""Which instructions of two programs are the same ones? For programs of which one came from the
other by a pass of a compiler.

Instructions with equal cones (opcode, attributes, and the same of all operands) compute the same.
Others are matched by their place in the result, by name, and by where they come from.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from hlo.attributes import COMPUTATION_ATTRIBUTES, Attribute
from hlo.codecs import CODECS
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.types import ArrayShape, Shape, without_layout

_STATEFUL = frozenset(("rng", "rng-get-and-update-state", "infeed", "recv"))  # by what ran before
_READS_LAYOUTS = frozenset(("bitcast",))
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*+)"')


class Cones:
    """A digest of what each instruction computes from the parameters."""

    def __init__(self, module: Module) -> None:
        self._computations = {c.name: c for c in module.computations}
        self._of: dict[str, Mapping[str, bytes]] = {}
        for computation in module.computations:  # callees stand before callers
            self._of[computation.name] = self._computation(computation)

    def of(self, computation: str) -> Mapping[str, bytes]:
        """Of each instruction of a computation, by name."""
        return self._of[computation]

    def _computation(self, computation: Computation) -> Mapping[str, bytes]:
        found: dict[str, bytes] = {}
        shapes = {i.name: i.shape for i in computation.instructions}
        ran: Counter[str] = Counter()
        for instruction in computation.instructions:
            ran[instruction.opcode] += 1
            digest = blake2b(digest_size=16)
            for part in self._parts(instruction, shapes, ran[instruction.opcode]):
                digest.update(len(part).to_bytes(8, "little") + part)
            for operand in instruction.operands:
                digest.update(found[operand])
            found[instruction.name] = digest.digest()
        return found

    def _parts(
        self, instruction: Instruction, shapes: Mapping[str, Shape], number: int
    ) -> Iterator[bytes]:
        yield instruction.opcode.encode()
        if instruction.opcode in _READS_LAYOUTS:
            yield f"{instruction.shape} {shapes[instruction.operands[0]]}".encode()
        else:
            yield str(without_layout(instruction.shape)).encode()
        if instruction.opcode in _STATEFUL:
            yield str(number).encode()
        for name, value in sorted(instruction.attributes.items()):
            yield name.encode()
            yield from self._attribute(name, value)

    def _attribute(self, name: str, value: Attribute) -> Iterator[bytes]:
        if isinstance(value, Literal):
            yield from _literal(value)
        elif name in COMPUTATION_ATTRIBUTES:
            for callee in (value,) if isinstance(value, str) else value:  # type: ignore[union-attr]
                yield self._of[str(callee)][self._computations[str(callee)].root]
        elif name in CODECS:
            yield CODECS[name].show(value).encode()
        else:
            yield repr(value).encode()


def _literal(literal: Literal) -> Iterator[bytes]:
    yield str(without_layout(literal.shape)).encode()
    if isinstance(literal.value, tuple):
        for element in literal.value:
            yield from _literal(element)
    elif literal.value is not None:
        yield literal.value.tobytes()


@dataclass(frozen=True, slots=True)
class Matches:
    """Names of the entry computations: ``equal`` are those of the later one whose cones are in the
    earlier one. ``pairs`` has others, later to earlier; of those the ``guessed`` are the same only
    if their values are alike. ``shared`` are those of the earlier one whose cones are in the later
    one, and that feed some whose are not."""

    equal: frozenset[str]
    pairs: Mapping[str, str]
    guessed: frozenset[str]
    shared: frozenset[str]


def matched(before: Module, after: Module) -> Matches:
    """Calls and fusions should be inlined in both."""
    cones = Cones(before).of(before.entry_name), Cones(after).of(after.entry_name)
    cones_before = set(cones[0].values())
    equal = frozenset(name for name, cone in cones[1].items() if cone in cones_before)
    also = set(cones[1].values())
    ours = {i.name: i for i in before.entry.instructions if cones[0][i.name] not in also}
    theirs = {i.name: i for i in after.entry.instructions if i.name not in equal}
    pairs = dict(_of_results(before.entry, after.entry, ours, theirs))
    everything = {i.name: i for i in before.entry.instructions}
    _pair(pairs, everything, theirs, lambda instruction: instruction.name)
    known_names = frozenset(pairs)
    for key in (_own_name, _origin):
        _pair(pairs, ours, theirs, key)
    known = frozenset(pairs.values())
    shared = _shared(before.entry, frozenset(everything) - frozenset(ours) - known)
    return Matches(equal, pairs, frozenset(pairs) - known_names, shared)


def _shared(entry: Computation, equal: frozenset[str]) -> frozenset[str]:
    """Arrays of ``equal`` that others read, but for what is certain in any case."""
    used = {name for i in entry.instructions if i.name not in equal for name in i.operands}
    return frozenset(
        i.name for i in entry.instructions if i.name in used and i.name in equal and _is_computed(i)
    )


def _is_computed(instruction: Instruction) -> bool:
    is_array = isinstance(instruction.shape, ArrayShape) and instruction.shape.element_type.is_array
    return is_array and instruction.opcode not in ("constant", "parameter", "iota")


def _of_results(
    before: Computation,
    after: Computation,
    ours: Mapping[str, Instruction],
    theirs: Mapping[str, Instruction],
) -> Iterator[tuple[str, str]]:
    one, other = before.root_instruction, after.root_instruction
    names: list[tuple[str, str]] = [(other.name, one.name)]
    if one.opcode == other.opcode == "tuple" and len(one.operands) == len(other.operands):
        names = list(zip(other.operands, one.operands, strict=True))
    for later, earlier in names:
        if later in theirs and earlier in ours and _alike(theirs[later], ours[earlier]):
            yield later, earlier


def _pair(
    pairs: dict[str, str],
    ours: Mapping[str, Instruction],
    theirs: Mapping[str, Instruction],
    key: Callable[[Instruction], Hashable],
) -> None:
    """Add those that have a key in common, which no other has."""
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


def _alike(one: Instruction, other: Instruction) -> bool:
    """Whether both are arrays of one type and one shape."""
    shapes = without_layout(one.shape), without_layout(other.shape)
    return isinstance(shapes[0], ArrayShape) and shapes[0] == shapes[1]


def _own_name(instruction: Instruction) -> Hashable:
    """Without the computations that it was in, and without marks of copies."""
    parts = instruction.name.split(".")
    while len(parts) > 1 and (parts[-1] == "clone" or parts[-2:-1] == ["clone"]):
        parts.pop()
    own = parts[-2:] if len(parts) > 1 and parts[-1].isdecimal() else parts[-1:]
    return (*own, instruction.opcode)


def _origin(instruction: Instruction) -> Hashable:
    match = _OP_NAME.search(instruction.annotations.get("metadata", ""))
    return (match[1], instruction.opcode, str(without_layout(instruction.shape))) if match else None

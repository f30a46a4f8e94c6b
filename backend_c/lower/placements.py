"""Place the parts of concatenations in the result's buffer, so that nothing is copied there later.

A concatenation then takes no step, but for parts that lie elsewhere already: a kernel copies each
of those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from backend_c.lower.plan import Buffer, View
from backend_c.lower.views import is_dense, reshaped, window
from hlo.module import Computation, Instruction
from hlo.opcodes import DATA_MOVEMENT, ELEMENTWISE, of_family
from hlo.passes.fusible import READERS
from hlo.passes.rewriting import array, integers, slices
from hlo.passes.updates_in_place import is_static_array
from hlo.types import ArrayShape
from hlo.walk import live

# Kernels of these take and write elements by their index, wherever in memory that is.
_HEROES = frozenset(("convolution", "dot", "reduce", "reduce-window"))
_BY_INDEX = of_family(ELEMENTWISE) | of_family(DATA_MOVEMENT) | _HEROES


@dataclass(frozen=True, slots=True)
class Part:
    """Describe an operand of a concatenation: instruction, shape, first index in the result.

    ``name`` is the instruction within the callee. ``source`` is the instruction outside of it that
    has the same elements in the same order; None if the callee computes the part.
    """

    name: str
    shape: ArrayShape
    starts: tuple[int, ...]
    source: str | None


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Hold a kernel that concatenates: its computation, the result's shape, and its parts."""

    callee: Computation
    shape: ArrayShape
    parts: tuple[Part, ...]


def concatenation(callee: Computation, operands: Sequence[str]) -> Concatenation | None:
    """Match a kernel whose root is a concatenate of static arrays; None if it is not."""
    root = callee.root_instruction
    if root.opcode != "concatenate" or not is_static_array(root.shape):
        return None
    by_name = {i.name: i for i in callee.instructions}
    given = {p.name: name for p, name in zip(callee.parameters, operands, strict=True)}
    (dimension,) = integers(root, "dimensions")
    parts, position = [], 0
    for name in root.operands:
        shape = by_name[name].shape
        if not is_static_array(shape):
            return None
        starts = [0] * array(shape).rank
        starts[dimension] = position
        position += array(shape).dims[dimension]
        source = given.get(_unreshaped(name, by_name))
        parts.append(Part(name, array(shape), tuple(starts), source))
    return Concatenation(callee, array(root.shape), tuple(parts))


def _unreshaped(name: str, by_name: Mapping[str, Instruction]) -> str:
    """Follow reshapes and copies back to the instruction that has the same elements in order."""
    while by_name[name].opcode in ("reshape", "copy") and is_static_array(by_name[name].shape):
        (name,) = by_name[name].operands
    return name


class Placements:
    """Decide for one computation which instructions write into the buffer of a concatenation.

    ``kernels`` maps an instruction to the computation of its kernel; None if it has none.
    """

    def __init__(
        self,
        computation: Computation,
        order: Sequence[Instruction],
        kernels: Mapping[str, Computation | None],
    ) -> None:
        self.kernels = kernels
        self._by_name = {i.name: i for i in order}
        self._root = computation.root
        self._users: dict[str, list[Instruction]] = {i.name: [] for i in order}
        for instruction in order:
            for name in dict.fromkeys(instruction.operands):
                self._users[name].append(instruction)
        self.found: dict[str, Concatenation] = {}
        self._places: dict[str, tuple[str, Part]] = {}
        # The later ones first: what lies in a part of theirs is placed with it.
        for instruction in reversed(order):
            self._note(instruction)

    def _note(self, instruction: Instruction) -> None:
        """Place the parts of an instruction, if it concatenates."""
        callee = self.kernels[instruction.name]
        found = None if callee is None else concatenation(callee, instruction.operands)
        if found is None or not found.shape.elements:
            return
        dims = self._memory_dims(instruction.name)
        placed = [part for part in found.parts if self._may_place(part, found, dims)]
        for part in placed:
            assert part.source is not None
            # Of x twice in one concatenation the first part is x, the other a copy of it (`left`).
            self._places.setdefault(part.source, (instruction.name, part))
        if placed:
            self.found[instruction.name] = found

    def _memory_dims(self, name: str) -> tuple[int, ...]:
        """Return the dims that linearise an instruction's indices: of a part, the whole's."""
        own = array(self._by_name[name].shape).dims
        if name not in self._places:
            return own
        whole, part = self._places[name]
        return self._memory_dims(whole) if part.shape.dims == own else own

    def _may_place(self, part: Part, found: Concatenation, dims: tuple[int, ...]) -> bool:
        """Return whether a part's kernel can write it into the concatenation's buffer."""
        source = part.source
        if source is None or source in self._places:
            return False
        instruction, callee = self._by_name[source], self.kernels[source]
        if callee is None or "output_to_operand_aliasing" in instruction.attributes:
            return False
        shape = array(instruction.shape)
        if not shape.elements or shape.element_type is not found.shape.element_type:
            return False
        if is_dense(part.shape, dims):
            return True
        is_reshaped = part.shape.dims != shape.dims
        by_index = callee.root_instruction.opcode in _BY_INDEX and source != self._root
        return not is_reshaped and by_index and self.is_read_by_index(source)

    def is_read_by_index(self, name: str) -> bool:
        """Return whether all users read an instruction by index, so that its strides may differ."""
        return name != self._root and all(map(self._reads_by_index, self._users[name]))

    def _reads_by_index(self, user: Instruction) -> bool:
        """Return whether a user's kernel reads its operands by index, through their strides."""
        callee = self.kernels[user.name]
        if callee is None or "output_to_operand_aliasing" in user.attributes:
            return False
        return not any(i.opcode in READERS for i in callee.instructions) and (
            user.opcode == "fusion" or user.opcode in _BY_INDEX
        )

    def view(self, name: str, result: Callable[[str], Buffer]) -> View | None:
        """Return an instruction's view of the concatenation it is part of; None if it has none.

        ``result`` returns the buffer of a concatenation by name.
        """
        if name not in self._places:
            return None
        whole, part = self._places[name]
        view, dims = window(result(whole), part.starts), array(self._by_name[name].shape).dims
        return view if dims == part.shape.dims else View(view.base, view.start, dims)

    def left(self, name: str) -> Iterator[tuple[Part, Computation, tuple[int, ...]]]:
        """Yield the parts of a concatenation that are not written in place.

        Each comes with the computation that computes it, and the numbers of the operands that this
        takes.
        """
        found = self.found[name]
        for part in found.parts:
            if part.source is None or self._places.get(part.source) != (name, part):
                yield part, *_computed_alone(found.callee, part.name)


def _computed_alone(callee: Computation, name: str) -> tuple[Computation, tuple[int, ...]]:
    """Extract one instruction with its producers from a computation; return it with the numbers of
    the parameters that it takes.
    """
    whole = Computation(callee.name, callee.instructions, name, callee.annotations)
    needed = live(whole, lambda instruction: False)
    taken = [n for n, p in enumerate(callee.parameters) if p.name in needed]
    parameters = [
        callee.parameters[n]._replace(attributes={"parameter_number": number})
        for number, n in enumerate(taken)
    ]
    rest = [i for i in callee.instructions if i.name in needed and i.opcode != "parameter"]
    if not rest:  # it is a parameter
        (one,) = parameters
        rest, name = [Instruction("part", one.shape, "copy", (one.name,), {})], "part"
    return Computation(callee.name, (*parameters, *rest), name, callee.annotations), tuple(taken)


def slice_view(callee: Computation, operand: Buffer) -> tuple[View, ArrayShape] | None:
    """Return the view of an operand that a chain of reshapes, copies and unit-stride slices is.

    None if the computation is anything else, or if a reshape follows a window that is not dense.
    """
    by_name = {i.name: i for i in callee.instructions}
    chain = [callee.root_instruction]
    while chain[-1].opcode in ("reshape", "copy", "slice") and len(chain) < len(by_name):
        chain.append(by_name[chain[-1].operands[0]])
    if chain[-1].opcode != "parameter" or len(chain) != len(by_name) or len(chain) < 2:
        return None
    at = operand
    for instruction in reversed(chain[:-1]):
        if not is_static_array(instruction.shape) or not array(instruction.shape).elements:
            return None
        shape = array(instruction.shape)
        view = _step(instruction, shape, at)
        if view is None:
            return None
        # Of no plan: nothing but its shape and view is asked for.
        at = Buffer(-1, ArrayShape(shape.element_type, shape.dims), None, view)
    assert at.view is not None
    return at.view, at.shape


def _step(instruction: Instruction, shape: ArrayShape, operand: Buffer) -> View | None:
    """Return the view that a slice, copy or reshape makes of an operand; None if it is none."""
    if instruction.opcode == "slice":
        ranges = slices(instruction, "slice")
        if any(stride != 1 for _, _, stride in ranges):
            return None
        return window(operand, [first for first, _, _ in ranges])
    if shape.dims == operand.shape.dims:
        return window(operand, [0] * shape.rank)
    if not is_dense(operand.shape, operand.memory_dims):
        return None
    return reshaped(operand, shape.dims)

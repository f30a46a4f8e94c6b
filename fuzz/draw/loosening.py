"""Make dimensions of static programs bounded, so that they get their sizes at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from fuzz.draw.choices import Choices
from fuzz.draw.generators.custom_call import MARKERS
from hlo.attributes import Attribute
from hlo.dynamic_sizes import declares_bounds, has_bounds, meaningless
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.ops.constraints import Violation
from hlo.passes.rewriting import Names, reachable
from hlo.types import S32, ArrayShape, Shape, TupleShape, bounded, is_bounded, leaves
from hlo.walk import Op, call, called, column, function_name, keywords

_SIZE = ArrayShape(S32)
_LARGEST = (1 << 31) - 1  # sizes are s32: larger dimensions stay static
_SITES = 4  # dimensions of this many values, at most, become bounded
_STARTED = ("-start", "-update")  # only what is done next may take it
# The text alone says which dimensions of these results are bounded.
_OWN_BOUNDS = frozenset(("bitcast", "dynamic-reshape", "iota", "reshape"))


class Odds(NamedTuple):
    """How often a value that the program is ``given`` (a parameter or constant) or that is
    ``computed`` gets a bounded dimension, and its size, and the dimension among those of the same
    sizes, is a ``shared`` one, where there is one: n in m times; and how often a parameter of the
    entry is ``declared`` bounded: once in so many."""

    given: tuple[int, int]
    computed: tuple[int, int]
    shared: tuple[int, int]
    declared: int


ANYWHERE = Odds(given=(1, 3), computed=(1, 3), shared=(1, 4), declared=2)
# Of the operands of one instruction, whose sizes have to agree mostly. Few compilers take bounded
# parameters: sizes are set.
OF_OPERANDS = Odds(given=(6, 8), computed=(1, 8), shared=(3, 4), declared=8)


def loosened(choices: Choices, module: Module, odds: Odds = ANYWHERE) -> Module:
    """Bound some dimensions of parameters and other values, and every dimension derived from them,
    also in called computations. Operands that an op requires to be static are made static again."""
    return _Loosening(choices, module, odds).done()


@cache
def _ops() -> Mapping[str, Op]:
    return column("hlo.ops")


class _Loosening:
    """Rewrite a program: its entry, and copies of the computations that it calls."""

    def __init__(self, choices: Choices, module: Module, odds: Odds) -> None:
        self.choices, self.module, self.odds = choices, module, odds
        self.sites = choices.integer(1, _SITES)
        self.dimensions: dict[Sequence[int], int] = {}  # that became bounded last, by all sizes
        # What is bound late or handed on keeps its shapes: its callee is said at each step.
        self.has_static_calls = any(_is_bound_late(c, module) for c in module.computations)
        self._names = Names(c.name for c in module.computations)
        # One for each way a computation is called: a chain of computations that each call the next
        # one twice would be copied exponentially often otherwise.
        self._made: dict[tuple[object, ...], Computation] = {}

    def done(self) -> Module:
        before = self.module.entry
        body = _Body(self, before, [p.shape for p in before.parameters])
        entry = body.named(before.name, body.root)
        others = [c for c in self.module.computations if c.name != entry.name]
        whole = replace(self.module, computations=(*others, *self._made.values(), entry))
        # Without what was copied: an asynchronous state that nobody passes comes from nowhere.
        return replace(whole, computations=tuple(reachable(whole, lambda instruction: True)))

    def copy(
        self,
        name: str,
        shapes: Sequence[Shape],
        result: Shape | None = None,
        *,
        may_grow: bool = True,
    ) -> Computation:
        """Copy a computation for parameters of these shapes and, if ``result`` is given, a result
        of that shape; calls with the same shapes share a copy."""
        key = name, tuple(shapes), result, may_grow
        if key in self._made:
            return self._made[key]
        body = _Body(self, self.module.computation(name), shapes, may_grow)
        root = body.root if result is None else body.of_shape(body.root, result)
        self._made[key] = body.named(self._names.fresh(f"{name}.loose"), root)
        return self._made[key]


class _Body:
    """Rewrite a computation from its first instruction to its last."""

    def __init__(
        self,
        loosening: _Loosening,
        before: Computation,
        parameters: Sequence[Shape],
        may_grow: bool = True,
    ) -> None:
        self._loosening, self._choices = loosening, loosening.choices
        self._before = {i.name: i.shape for i in before.instructions}
        self._names = Names(self._before)
        self._instructions: list[Instruction] = []
        self._shapes: dict[str, Shape] = {}
        self._renamed: dict[str, str] = {}
        self._is_entry = before.name == loosening.module.entry_name
        self._may_grow = may_grow
        for instruction in before.instructions:
            if instruction.opcode == "parameter":
                number = instruction.attributes["parameter_number"]
                assert isinstance(number, int)
                instruction = instruction._replace(shape=parameters[number])
            self._renamed[instruction.name] = self._loose(self._followed(instruction))
        self.root = self._renamed[before.root]

    def named(self, name: str, root: str) -> Computation:
        return Computation(name, tuple(self._instructions), root)

    def _add(self, instruction: Instruction) -> str:
        self._instructions.append(instruction)
        self._shapes[instruction.name] = instruction.shape
        return instruction.name

    def _fresh(self, opcode: str, shape: Shape, *operands: str, **attributes: Attribute) -> str:
        name = self._names.fresh("loose")
        return self._add(Instruction(name, shape, opcode, operands, attributes))

    # What is bounded

    def _loose(self, name: str) -> str:
        """Return the value itself, or a copy with one dimension bounded."""
        # The value is that of the last instruction: _followed adds it after all that it needs.
        shape, last = self._shapes[name], self._instructions[-1].opcode
        if (
            last.endswith(_STARTED)
            or not (self._may_grow and self._loosening.sites)
            or not isinstance(shape, ArrayShape)
            or not shape.rank
        ):
            return name
        odds = self._loosening.odds
        is_given = last in ("parameter", "constant")
        if not shape.element_type.is_array or not self._is_chosen(
            odds.given if is_given else odds.computed
        ):
            return name
        dimension = self._dimension(shape)
        if shape.dims[dimension] > _LARGEST:
            return name
        self._loosening.sites -= 1
        if last == "parameter" and self._is_entry and self._choices.chance(odds.declared):
            parameter = self._instructions.pop()
            return self._add(parameter._replace(shape=_with(shape, dimension, True)))
        result = _with(shape, dimension, True)
        size = self._size(shape.dims[dimension])
        return self._fresh("set-dimension-size", result, name, size, dimensions=(dimension,))

    def _dimension(self, shape: ArrayShape) -> int:
        """Draw which dimension becomes bounded: operands of one instruction have to agree."""
        there = self._loosening.dimensions
        if shape.dims not in there or not self._is_chosen(self._loosening.odds.shared):
            there[shape.dims] = self._choices.integer(0, shape.rank - 1)
        return there[shape.dims]

    def _is_chosen(self, odds: tuple[int, int]) -> bool:
        """Draw True ``odds[0]`` in ``odds[1]`` times; the lowest numbers are true."""
        return self._choices.integer(0, odds[1] - 1) < odds[0]

    def _size(self, bound: int) -> str:
        there = [
            instruction.name
            for instruction in self._instructions
            if instruction.shape == _SIZE and not instruction.opcode.endswith(_STARTED)
        ]
        if there and self._is_chosen(self._loosening.odds.shared):
            return self._choices.choice(there)
        # Sizes below 0 and above the bound are legal, and clamped.
        return self._number(self._choices.integer(-1, min(bound + 1, _LARGEST)))

    def _number(self, value: int) -> str:
        return self._fresh("constant", _SIZE, literal=Literal(_SIZE, np.asarray(value, np.int32)))

    def of_shape(self, name: str, wanted: Shape) -> str:
        """Convert a value to these bounds; a dimension that becomes static gets its bound as
        size."""
        shape = self._shapes[name]
        if shape == wanted:
            return name
        if isinstance(shape, TupleShape):
            assert isinstance(wanted, TupleShape)
            parts = [
                self.of_shape(self._fresh("get-tuple-element", part, name, index=n), other)
                for n, (part, other) in enumerate(zip(shape.elements, wanted.elements, strict=True))
            ]
            return self._fresh(
                "tuple", TupleShape(tuple(map(self._shapes.__getitem__, parts))), *parts
            )
        assert isinstance(wanted, ArrayShape)
        for d in range(shape.rank):
            dynamic = is_bounded(wanted, d)
            if dynamic != is_bounded(shape, d):
                size = self._size(shape.dims[d]) if dynamic else self._number(shape.dims[d])
                shape = _with(shape, d, dynamic)
                name = self._fresh("set-dimension-size", shape, name, size, dimensions=(d,))
        return name

    def _static(self, name: str) -> str:
        return self.of_shape(name, _without_bounds(self._shapes[name]))

    # What follows

    def _followed(self, instruction: Instruction) -> str:
        """Rebuild an instruction on its rewritten operands."""
        given = instruction.operands
        operands = tuple(self._renamed[name] for name in given)
        if self._loosening.has_static_calls and instruction.opcode.startswith("async-"):
            return self._add(instruction._replace(operands=tuple(map(self._static, operands))))
        attributes = {n: v for n, v in instruction.attributes.items() if _stays(instruction, n)}
        instruction = instruction._replace(operands=operands, attributes=attributes)
        shapes = [self._shapes[name] for name in operands]
        calling = _CALLING.get(instruction.opcode)
        # On static operands, too: while there are sites left, values of the callee may be bounded.
        if calling is not None and (self._loosening.sites or any(map(has_bounds, shapes))):
            return self._add(calling(self._loosening, instruction, shapes))
        if not any(map(has_bounds, shapes)):
            return self._add(instruction)
        if instruction.opcode == "custom-call":
            return self._add(self._foreign(instruction, given))
        shape = self._shape(instruction)
        if shape is not None:
            return self._add(instruction._replace(shape=shape))
        operands = tuple(map(self._static, operands))
        return self._add(instruction._replace(operands=operands))

    def _foreign(self, instruction: Instruction, given: Sequence[str]) -> Instruction:
        """Rebuild a custom call: a marker of one value takes that value's shape; operands of other
        targets are converted back to the declared shapes."""
        is_marker = instruction.attributes["custom_call_target"] in MARKERS and len(given) == 1
        if is_marker and "operand_layout_constraints" not in instruction.attributes:
            return instruction._replace(shape=self._shapes[instruction.operands[0]])
        pairs = zip(instruction.operands, given, strict=True)
        operands = tuple(self.of_shape(name, self._before[before]) for name, before in pairs)
        return instruction._replace(operands=operands)

    def _shape(self, instruction: Instruction) -> Shape | None:
        """Infer the result's shape; None if the op requires static operands."""
        declared = self._declared(instruction)
        instruction = instruction._replace(shape=declared)
        shapes = [self._shapes[name] for name in instruction.operands]
        op = _ops()[function_name(instruction.opcode)]
        if meaningless(instruction.opcode, shapes, instruction.attributes, declared):
            return None
        given = keywords(self._loosening.module, instruction, _entered)
        try:
            inferred = call(op, instruction, shapes, given, shapes)
        except Violation:
            return None
        if any(_is_too_large(leaf) for leaf in leaves(inferred)):
            return None
        # The text may declare a result static whose operands are bounded: zeros fill it up.
        if declares_bounds(instruction.opcode) and self._choices.integer(0, 7) == 0:
            return declared
        return _bounded_as(declared, inferred)

    def _declared(self, instruction: Instruction) -> Shape:
        """Return the declared shape, with drawn bounds if it does not follow from the operands."""
        shape = instruction.shape
        if instruction.opcode not in _OWN_BOUNDS or not isinstance(shape, ArrayShape):
            return shape
        for d in range(shape.rank):
            shape = _with(shape, d, shape.dims[d] <= _LARGEST and self._choices.boolean())
        return shape


def _is_bound_late(computation: Computation, module: Module) -> bool:
    """Return whether async calls get operands or results after their start, or their state is
    passed through other instructions."""
    opcodes = {i.name: i.opcode for i in computation.instructions}
    for instruction in computation.instructions:
        if instruction.opcode == "async-start":
            parameters = module.computation(_name(instruction, "calls")).parameters
            assert isinstance(instruction.shape, TupleShape)
            if instruction.shape.elements[1] == TupleShape(()):
                return True
            if len(parameters) != len(instruction.operands):
                return True
        elif instruction.opcode in ("async-update", "async-done"):
            state, *late = instruction.operands
            if late or not opcodes[state].startswith("async-"):
                return True
    return False


def _entered(computation: Computation) -> Callable[..., Shape]:
    return lambda *arguments: computation.root_instruction.shape


def _stays(instruction: Instruction, attribute: str) -> bool:
    """Return whether an attribute remains valid with the changed shapes: ``calls`` of updates and
    dones does not, as the callee is copied; nor do aliases of bounded results with static
    operands."""
    is_said_again = attribute == "calls" and instruction.opcode in ("async-update", "async-done")
    return not is_said_again and attribute != "output_to_operand_aliasing"


# Calls: of copies that take what the operands are now

_Calling = Callable[[_Loosening, Instruction, Sequence[Shape]], Instruction]


def _call(attribute: str) -> _Calling:
    def calling(
        loosening: _Loosening, instruction: Instruction, shapes: Sequence[Shape]
    ) -> Instruction:
        # On the main thread what is started is one instruction: no set-dimension-size may join it.
        is_start = instruction.opcode == "async-start"
        callee = loosening.copy(_name(instruction, attribute), shapes, may_grow=not is_start)
        shape = callee.root_instruction.shape
        if is_start:
            assert isinstance(instruction.shape, TupleShape)
            shape = TupleShape((TupleShape(tuple(shapes)), shape, *instruction.shape.elements[2:]))
        attributes = {**instruction.attributes, attribute: callee.name}
        return instruction._replace(shape=shape, attributes=attributes)

    return calling


def _while(loosening: _Loosening, instruction: Instruction, shapes: Sequence[Shape]) -> Instruction:
    condition = loosening.copy(_name(instruction, "condition"), shapes)
    body = loosening.copy(_name(instruction, "body"), shapes, shapes[0])
    attributes = {"condition": condition.name, "body": body.name}
    return instruction._replace(shape=shapes[0], attributes=attributes)


def _conditional(
    loosening: _Loosening, instruction: Instruction, shapes: Sequence[Shape]
) -> Instruction:
    """Give all branches the result shape of the first."""
    result: Shape | None = None
    branches: list[str] = []
    for name, shape in zip(called(instruction), shapes[1:], strict=True):
        branch = loosening.copy(name, [shape], result)
        result = branch.root_instruction.shape
        branches.append(branch.name)
    assert result is not None
    attributes: dict[str, Attribute] = {"branch_computations": tuple(branches)}
    if "true_computation" in instruction.attributes:
        attributes = dict(zip(("true_computation", "false_computation"), branches, strict=True))
    return instruction._replace(shape=result, attributes=attributes)


def _name(instruction: Instruction, attribute: str) -> str:
    name = instruction.attributes[attribute]
    assert isinstance(name, str)
    return name


_CALLING: dict[str, _Calling] = {
    "async-start": _call("calls"),
    "call": _call("to_apply"),
    "conditional": _conditional,
    "fusion": _call("calls"),
    "while": _while,
}


def _without_bounds(shape: Shape) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(_without_bounds, shape.elements)))
    return replace(shape, dynamic=())


def _with(shape: ArrayShape, dimension: int, dynamic: bool) -> ArrayShape:
    bounds = tuple(dynamic if d == dimension else is_bounded(shape, d) for d in range(shape.rank))
    made = bounded(shape.element_type, shape.dims, bounds)
    return replace(made, layout=shape.layout)


def _is_too_large(shape: ArrayShape) -> bool:
    return any(is_bounded(shape, d) and size > _LARGEST for d, size in enumerate(shape.dims))


def _bounded_as(shape: Shape, other: Shape) -> Shape:
    """Return a shape, layouts included, with the bounds of another."""
    if isinstance(shape, TupleShape) and isinstance(other, TupleShape):
        return TupleShape(tuple(map(_bounded_as, shape.elements, other.elements)))
    assert isinstance(shape, ArrayShape) and isinstance(other, ArrayShape)
    return replace(shape, dynamic=other.dynamic)

"""Each form of program that a pattern is there for is drawn, and valid."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import hlo
from fuzz.draw.builder import Builder
from fuzz.draw.choices import Choices, examples
from fuzz.draw.patterns import PATTERNS
from fuzz.draw.patterns.conversions import PATTERNS as CONVERSIONS
from fuzz.draw.patterns.loops import PATTERNS as LOOPS
from fuzz.draw.programs import menu
from fuzz.draw.shapes import TYPES, shape
from hlo.attributes import Window
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.types import F32, PRED, S32, ArrayShape, ElementType, TupleShape, leaves

_NO_STEPS = ("constant", "get-tuple-element", "parameter", "tuple")


def _drawn(
    name: str, choices: Choices, types: tuple[ElementType, ...] = TYPES, budget: int = 1
) -> Module:
    pattern = PATTERNS[name]
    builder = Builder(choices, menu(), types, budget)
    return builder.module([pattern.generator(builder, shape(choices, types, pattern.accepts, 64))])


class _One:
    """An instruction, and what is around it."""

    def __init__(self, module: Module, computation: Computation, instruction: Instruction) -> None:
        self._by_name = {i.name: i for i in computation.instructions}
        self._callees = {c.name: c for c in module.computations}
        self.shape, self.opcode = instruction.shape, instruction.opcode
        self.attributes = instruction.attributes
        self.operands = [self._by_name[name] for name in instruction.operands]

    def callee(self, attribute: str) -> Computation:
        name = self.attributes[attribute]
        assert isinstance(name, str)
        return self._callees[name]

    def reads_parts(self, attribute: str) -> bool:
        if attribute not in self.attributes:
            return False
        callee = self.callee(attribute)
        parameters = {i.name for i in callee.parameters}
        return any(
            i.opcode == "get-tuple-element" and i.operands[0] in parameters
            for i in callee.instructions
        )


def _instructions(module: Module) -> Iterator[_One]:
    for computation in module.computations:
        for instruction in computation.instructions:
            yield _One(module, computation, instruction)


def _has_several(one: _One) -> bool:
    return (
        one.opcode == "conditional"
        and isinstance(one.shape, TupleShape)
        and len(one.shape.elements) > 1
    )


def _in_other_order(shape: ArrayShape) -> bool:
    rows = tuple(reversed(range(shape.rank)))
    return shape.layout is not None and shape.layout.minor_to_major != rows


def _limit(one: _One) -> Instruction | None:
    """Return the counter of a loop that its condition compares, by its place in the state."""
    if one.opcode != "while":
        return None
    counters = (i for i in one.callee("condition").instructions if i.opcode == "get-tuple-element")
    return next(counters, None)


def _is_later(one: _One) -> bool:
    counter = _limit(one)
    return counter is not None and counter.attributes["index"] != 0


def _counts_down(one: _One) -> bool:
    return one.opcode == "while" and any(
        i.opcode == "subtract" for i in one.callee("body").instructions
    )


def _is_heavy(one: _One) -> bool:
    if one.opcode != "while":
        return False
    return sum(i.opcode not in _NO_STEPS for i in one.callee("body").instructions) >= 10


def _has_places(one: _One, opcode: str) -> bool:
    return one.opcode == opcode and any(operand.opcode == "iota" for operand in one.operands[1:])


def _overwrites(one: _One) -> bool:
    if one.opcode != "scatter":
        return False
    root = one.callee("to_apply").root_instruction
    return root.opcode == "parameter" and root.attributes["parameter_number"] == 1


def _ascends(one: _One) -> bool:
    literal = one.attributes.get("literal")
    if not isinstance(literal, Literal) or literal.value.ndim == 0 or literal.value.size < 3:
        return False
    numbers = literal.value.ravel().astype(np.float64)
    return bool((np.diff(numbers) >= 0).all() and numbers[0] < numbers[-1])


def _is_long(one: _One) -> bool:
    window = one.attributes.get("window")
    return isinstance(window, Window) and any(
        d.size >= 5 and d.stride > 1 and d.window_dilation > 1 for d in window.dimensions
    )


def _accumulates(one: _One) -> bool:
    window = one.attributes.get("window")
    return isinstance(window, Window) and any(
        d.size > 1 and d.padding_low == d.size - 1 and not d.padding_high for d in window.dimensions
    )


def _joins_parts(one: _One) -> bool:
    return one.opcode == "complex" and {i.opcode for i in one.operands} <= {"real", "imag"}


def _moves_no_byte(one: _One) -> bool:
    return one.opcode == "bitcast" and one.operands[0].opcode in ("bitcast", "reshape", "transpose")


def _is_given_tuple(one: _One) -> bool:
    return one.opcode == "parameter" and isinstance(one.shape, TupleShape)


def _is_given_in_a_layout(one: _One) -> bool:
    return one.opcode == "parameter" and any(map(_in_other_order, leaves(one.shape)))


_FORMS: tuple[tuple[str, Callable[[_One], bool]], ...] = (
    ("parts of tuples", lambda one: one.opcode == "call" and one.reads_parts("to_apply")),
    ("parts of tuples", lambda one: one.reads_parts("true_computation")),
    ("parts of tuples", _has_several),
    ("parts of tuples", _is_given_tuple),
    ("parts of tuples", _is_given_in_a_layout),
    ("long loop", _is_heavy),
    ("long loop", _is_later),
    ("long loop", _counts_down),
    ("places", lambda one: _has_places(one, "reduce")),
    ("places", lambda one: _has_places(one, "sort")),
    ("places", _ascends),
    ("overwritten", _overwrites),
    ("overwritten", _ascends),
    ("cumulative", _accumulates),
    ("long window", _is_long),
    ("parts of complex", _joins_parts),
    ("bitcasts", _moves_no_byte),
    ("bitcasts", _is_given_in_a_layout),
)


@pytest.mark.parametrize(("name", "has"), _FORMS)
def test_a_form_is_drawn_and_valid(name: str, has: Callable[[_One], bool]) -> None:
    drawn = examples(lambda choices: _drawn(name, choices), 40, f"forms of {name}")
    for module in drawn:
        hlo.verify(module)
    assert any(has(one) for module in drawn for one in _instructions(module))


@pytest.mark.parametrize("name", [*CONVERSIONS, *LOOPS, "bitcasts", "parts of complex"])
def test_a_choice_of_types_holds_for_patterns(name: str) -> None:
    """Patterns convert to no other types than the caller asks for, and count in none."""
    types = (F32, S32, PRED)
    for module in examples(lambda choices: _drawn(name, choices, types, 0), 40, name):
        for one in _instructions(module):
            assert {leaf.element_type for leaf in leaves(one.shape)} <= {*types}

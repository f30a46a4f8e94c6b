"""Emit control flow and loop nests inside a computation that is called per element.

One thread runs them; results are in local arrays on its stack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from backend_c.ir.element import Element, Value, array_reader
from backend_c.ir.scope import Scope
from backend_c.lower.columns import Columns
from backend_c.per_element.storage import Storage, as_shaped, local_writer
from hlo.errors import Unsupported
from hlo.literal import Literal
from hlo.module import Instruction
from hlo.passes.fusion_decisions import MOST_OPERATIONS
from hlo.types import ArrayShape, Shape, array_leaves
from hlo.walk import call, function_name, has_own_effect


def is_nested(columns: Columns, instruction: Instruction) -> bool:
    """Return whether an instruction in a per-element computation needs statements or a local array.

    That is a branch, a loop, a loop nest, or a constant that is no scalar.
    """
    name = function_name(instruction.opcode)
    is_array = isinstance(instruction.shape, ArrayShape) and instruction.shape.rank > 0
    is_constant = instruction.opcode == "constant" and is_array
    return name in columns.nested or name in columns.kernels or is_constant


def element_statements(
    columns: Columns,
    instruction: Instruction,
    operands: Sequence[Value],
    attributes: Mapping[str, object],
    operand_shapes: Sequence[Shape],
    scope: Scope,
) -> Value:
    """Emit an instruction's statements where the current element is computed; return its readers.

    Raises Unsupported for what has effects, and for arrays that the stack does not take.
    """
    name = function_name(instruction.opcode)
    if has_own_effect(instruction):
        raise Unsupported(
            f"%{instruction.name}: the C backend takes no {instruction.opcode}"
            " inside a computation that is called per element"
        )
    if instruction.opcode == "constant":
        return _constant(instruction, scope)
    given = {**attributes, "block": scope}
    with scope.inside_element():
        if name in columns.nested:
            return call(columns.nested[name], instruction, operands, given, operand_shapes)
        shape = instruction.shape
        write = local_writer([*array_leaves(shape)], scope)
        given["write"] = write
        call(columns.kernels[name], instruction, operands, given, operand_shapes)
        write.fill()
        return as_shaped(shape, [write.reader(number) for number in range(len(write.arrays))])


class Chains:
    """Cut the chains of operations in one computation that is called per element.

    Readers ask those of their operands, one inside another. Fusion limits how many of them, but
    such a computation is as long as its text.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._depths: dict[str, int] = {}

    def cut(self, instruction: Instruction, value: Value) -> Value:
        """Return the value of an instruction; computed here at the end of a long chain."""
        depth = 1 + max((self._depths.get(name, 0) for name in instruction.operands), default=0)
        if depth > MOST_OPERATIONS and isinstance(value, Element):
            depth = 0
            if value.shape.rank:
                with self._scope.inside_element():
                    value = Storage(instruction.shape, self._scope, value).value()
            else:
                value.at()  # memoised
        self._depths[instruction.name] = depth
        return value


def _constant(instruction: Instruction, scope: Scope) -> Element:
    """Return the reader of a constant array, which becomes a table passed to the kernel."""
    literal, shape = instruction.attributes["literal"], instruction.shape
    assert isinstance(literal, Literal) and isinstance(shape, ArrayShape)
    if literal.is_elided:
        raise Unsupported(f"%{instruction.name}: the text elides the value as {{...}}")
    return array_reader(scope.table(np.asarray(literal.value).ravel()), shape)

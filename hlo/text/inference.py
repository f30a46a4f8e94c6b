"""Infer shapes that a text omits from operands and attributes.

XLA's ``CanInferShape`` (``hlo_parser.cc``) names the opcodes; the shapes are those of ``hlo/ops``.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache

from hlo.attributes import COMPUTATION_ATTRIBUTES, Attribute
from hlo.module import Computation, Instruction
from hlo.opcodes import DECLARED, ELEMENTWISE, KEEPS_LAYOUT, having, of_family
from hlo.ops.constraints import Violation
from hlo.types import TOKEN, ArrayShape, Layout, Shape, bounded
from hlo.walk import Callee, Op, call, column, function_name

_DECLARED = having(DECLARED)
_KEEP_LAYOUT = of_family(ELEMENTWISE) | having(KEEPS_LAYOUT)
_ANY = ArrayShape(TOKEN)  # for rules that do not look at the declared shape


class NotInferred(ValueError):
    """A shape that cannot be inferred and must be written; the message says why."""


def inferred_shape(
    opcode: str,
    operands: Sequence[Shape],
    attributes: Mapping[str, Attribute],
    computations: Mapping[str, Computation],
) -> Shape:
    """Infer the shape of a result; raise NotInferred if the opcode needs it written, or the
    operands do not fit."""
    if opcode in _DECLARED:
        raise NotInferred(f"expected a shape: {opcode} needs one")
    op = _ops()[function_name(opcode)]
    given: dict[str, object] = {
        name: _callees(value, computations) if name in COMPUTATION_ATTRIBUTES else value
        for name, value in attributes.items()
    }
    shape = _wanted(opcode, operands, given) if "shape" in op.given else _ANY
    driver = dict.fromkeys(op.given)
    try:
        inspect.signature(op.function).bind(*operands, **given, **driver)
    except TypeError as error:  # the signature is the schema
        raise NotInferred(f"no shape can be inferred for {opcode}: {error}") from None
    try:
        result = call(op, Instruction("", shape, opcode), operands, given, operands)
    except Violation as violation:
        message = f"no shape can be inferred for {opcode}: {violation.label}: {violation.message}"
        raise NotInferred(message) from None
    return _with_layout(opcode, operands, attributes, result)


@cache
def _ops() -> Mapping[str, Op]:
    return column("hlo.ops")


def _callees(value: Attribute, computations: Mapping[str, Computation]) -> object:
    """Return the callees that an attribute names, as functions that return their result's shape."""

    def callee(name: str) -> Callee[Shape]:
        computation = computations[name]
        root = computation.root_instruction.shape
        return Callee(computation, lambda *arguments: root)

    if isinstance(value, str):
        return callee(value)
    assert isinstance(value, tuple)
    return tuple(callee(str(name)) for name in value)


def _wanted(opcode: str, operands: Sequence[Shape], attributes: Mapping[str, object]) -> Shape:
    """Return a stand-in for the declared result, from which rules take what they cannot infer."""
    combined = attributes.get("to_apply")
    if opcode == "scan" and isinstance(combined, Callee):  # a tuple of one, or that one
        return combined.computation.root_instruction.shape
    arrays = [shape for shape in operands if isinstance(shape, ArrayShape)]
    if not arrays:
        raise NotInferred(f"no shape: {opcode} of no arrays")
    if opcode == "broadcast":  # XLA puts sizes of 0 and 1 in front, which fits a scalar at most
        return ArrayShape(arrays[0].element_type, arrays[0].dims)
    if opcode == "set-dimension-size":
        bounds = attributes.get("dimensions")
        dims = range(arrays[0].rank)
        dynamic = arrays[0].dynamic or (False,) * arrays[0].rank
        grown = tuple(dynamic[d] or bounds == (d,) for d in dims)
        return bounded(arrays[0].element_type, arrays[0].dims, grown)
    first = arrays[0].element_type  # contractions: the wider of the operands' types, if comparable
    types = [shape.element_type for shape in arrays[:2]]
    alike = all(element_type.kind == first.kind for element_type in types)
    return ArrayShape(max(types, key=lambda t: t.bits) if alike else first)


def _with_layout(
    opcode: str,
    operands: Sequence[Shape],
    attributes: Mapping[str, Attribute],
    result: Shape,
) -> Shape:
    """Return the result with the layout that XLA infers: for elementwise ops the operand's, for a
    transpose the one that moves no data."""
    source = operands[0] if operands else None
    if not isinstance(source, ArrayShape) or not isinstance(result, ArrayShape):
        return result
    layout = source.layout
    if opcode == "transpose":
        order = layout.minor_to_major if layout else tuple(reversed(range(source.rank)))
        permutation = list(map(int, attributes["dimensions"]))  # type: ignore[arg-type]
        layout = Layout(tuple(map(permutation.index, order)))
    elif opcode not in _KEEP_LAYOUT:
        layout = result.layout
    if layout is None or source.rank != result.rank:
        return result
    return ArrayShape(result.element_type, result.dims, result.dynamic, layout)

"""Remove layouts: afterwards every array is stored in row-major order.

Layouts influence results only through ``bitcast``, which reinterprets memory: it reads the elements
in the order of the operand's layout and writes them in that of the result's. It becomes a transpose
to the order in memory, a reshape, and a transpose back. A ``copy`` only changes the layout, so it
is removed.
"""

from __future__ import annotations

from dataclasses import replace

from hlo.attributes import Attribute
from hlo.dynamic_sizes import meaningless
from hlo.errors import Unsupported
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.passes.rewriting import Rebuilt, array, each
from hlo.types import ArrayShape, ElementType, Shape, compatible, without_layout


def layouts(module: Module) -> Module:
    """Remove all layouts, every ``bitcast``, and every ``copy`` that changes no bounds."""
    # It declares the layouts of parameters and result that are removed.
    attributes = {k: v for k, v in module.attributes.items() if k != "entry_computation_layout"}
    return each(replace(module, attributes=attributes), _without_layouts)


def _without_layouts(computation: Computation) -> Computation:
    """Remove the layouts of one computation; expand its bitcasts."""
    rebuilt = Rebuilt(computation)
    # A bitcast needs the layout of its operand, which the rebuilt one lacks.
    shapes = {i.name: i.shape for i in computation.instructions}
    for instruction in computation.instructions:
        resolved = rebuilt.resolved(instruction)
        before = shapes[instruction.operands[0]] if instruction.operands else None
        if instruction.opcode == "copy" and before and compatible(instruction.shape, before):
            rebuilt.forward(instruction.name, resolved.operands[0])
        elif instruction.opcode == "bitcast":
            source = array(shapes[instruction.operands[0]])
            result = _Steps(rebuilt, resolved).bitcast(source, array(instruction.shape))
            rebuilt.forward(instruction.name, result)
        else:
            rebuilt.add(_stripped(resolved))
    return rebuilt.done()


def _stripped(instruction: Instruction) -> Instruction:
    """Remove the layout of an instruction's shape and literal."""
    shape: Shape = without_layout(instruction.shape)
    if shape is instruction.shape:
        return instruction
    literal = instruction.attributes.get("literal")
    if isinstance(literal, Literal):
        attributes = {**instruction.attributes, "literal": _stripped_literal(literal)}
        return instruction._replace(shape=shape, attributes=attributes)
    return instruction._replace(shape=shape)


def _stripped_literal(literal: Literal) -> Literal:
    """Remove the layouts in a literal."""
    value = literal.value
    if isinstance(value, tuple):
        value = tuple(map(_stripped_literal, value))
    return Literal(without_layout(literal.shape), value)


def _major_to_minor(shape: ArrayShape) -> tuple[int, ...]:
    """Return the dimensions from major to minor in memory; row-major without a layout."""
    if shape.layout is None:
        return tuple(range(shape.rank))
    return tuple(reversed(shape.layout.minor_to_major))


class _Steps:
    """Emit the row-major instructions that one bitcast expands to, as a chain."""

    def __init__(self, rebuilt: Rebuilt, instruction: Instruction) -> None:
        self._rebuilt, self._instruction = rebuilt, instruction
        self._name = instruction.operands[0]

    def bitcast(self, source: ArrayShape, target: ArrayShape) -> str:
        """Emit transpose, bitcast-convert, reshape, transpose; return the last one's name."""
        # f32[2,3]{0,1} to f32[6]: a transpose to f32[3,2], the order in memory, and a reshape.
        _require_defined(source, target)
        stored = _major_to_minor(target)
        shape = self._transposed(source, _major_to_minor(source))
        in_memory = _permuted(target, stored)
        shape = self._converted(shape, in_memory)
        shape = self._reshaped(shape, in_memory)
        back = tuple(stored.index(dimension) for dimension in range(target.rank))
        self._transposed(shape, back)
        return self._name

    def _add(self, opcode: str, shape: ArrayShape, attributes: dict[str, Attribute]) -> ArrayShape:
        """Append a unary instruction on the current value, named after the bitcast."""
        name = self._rebuilt.names.fresh(f"{self._instruction.name}.{opcode}")
        self._name = self._rebuilt.add(
            Instruction(
                name, shape, opcode, (self._name,), attributes, self._instruction.annotations
            )
        )
        return shape

    def _transposed(self, shape: ArrayShape, dimensions: tuple[int, ...]) -> ArrayShape:
        """Permute the dimensions, unless they are in order already."""
        if dimensions == tuple(range(shape.rank)):
            return array(without_layout(shape))
        return self._add("transpose", _permuted(shape, dimensions), {"dimensions": dimensions})

    def _reshaped(self, shape: ArrayShape, target: ArrayShape) -> ArrayShape:
        """Reshape, unless the shapes are equal."""
        return target if shape == target else self._add("reshape", target, {})

    def _converted(self, shape: ArrayShape, target: ArrayShape) -> ArrayShape:
        """Reinterpret the bits as the target's type; a wider type joins minor elements."""
        element_type: ElementType = target.element_type
        if element_type is shape.element_type:
            return shape
        ratio = shape.element_type.bits // element_type.bits
        if ratio >= 1:
            dims = shape.dims if ratio == 1 else (*shape.dims, ratio)
            shape = replace(shape, element_type=element_type, dims=dims)
            return self._add("bitcast-convert", shape, {})
        parts = element_type.bits // shape.element_type.bits
        self._reshaped(shape, ArrayShape(shape.element_type, (*target.dims, parts)))
        return self._add("bitcast-convert", target, {})


def _require_defined(source: ArrayShape, target: ArrayShape) -> None:
    """Raise Unsupported for a bitcast whose result the language does not define."""
    if why_not := meaningless("bitcast", (source,), {}, target):
        raise Unsupported(f"a bitcast of {why_not}")
    for one in (source, target) if source.element_type.bits != target.element_type.bits else ():
        if one.storage_bits != one.element_type.bits:
            raise Unsupported(
                f"a bitcast of {source} to {target}: what is in the spare bits of"
                f" {one.element_type} in bytes of their own is not defined"
            )


def _permuted(shape: ArrayShape, dimensions: tuple[int, ...]) -> ArrayShape:
    """Return the row-major shape of a transpose."""
    dims = tuple(shape.dims[d] for d in dimensions)
    dynamic = tuple(shape.dynamic[d] for d in dimensions) if shape.dynamic else ()
    return ArrayShape(shape.element_type, dims, dynamic)

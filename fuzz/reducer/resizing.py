"""Shrink dimensions, drop dimensions and simplify element types, consistently through a program.

A mapping of shapes is applied wherever a shape is written; results are inferred again, and
attributes that count elements are fitted. The verifier decides what is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fuzz.reducer.rewiring import pruned
from fuzz.reducer.search import Case
from hlo.attributes import Attribute
from hlo.errors import Error
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.ops.constraints import Violation
from hlo.passes.rewriting import with_entry
from hlo.types import ELEMENT_TYPES, ArrayShape, ElementType, Shape, TupleShape, leaves
from hlo.values import arrays_of
from hlo.walk import call, column, function_name, keywords
from interp.values import Value

Mapped = Callable[[ArrayShape], ArrayShape]


def smaller_dimensions(case: Case) -> Iterator[Case]:
    """Propose every dimension of one size made smaller, then one dimension of one array."""
    for size in _sizes(case.module):
        for new in _smaller(size):
            for at_end in (False, True):
                mapping = resizing(size, new)
                yield from transformed(case, mapping, at_end=at_end)
    entry = case.module.entry
    for instruction in entry.instructions:
        if instruction.operands or not isinstance(instruction.shape, ArrayShape):
            continue
        for d, size in enumerate(instruction.shape.dims):
            for new in _smaller(size):
                for at_end in (False, True):
                    one = frozenset([instruction.name])
                    yield from transformed(case, _one_dimension(d, new), one, at_end)


def filled_dimensions(case: Case) -> Iterator[Case]:
    """Propose all dimensions of size 0 made 1, filled with zeros: empty arrays print as mere
    braces."""
    yield from transformed(case, resizing(0, 1))


def fewer_dimensions(case: Case) -> Iterator[Case]:
    """Propose arrays of one shape made scalars, or without their dimensions of size 1."""
    shapes = [leaf for i in _instructions(case.module) for leaf in leaves(i.shape)]
    for dims in dict.fromkeys(shape.dims for shape in shapes if shape.rank):
        kept = tuple(size for size in dims if size != 1)
        for new in dict.fromkeys(((), kept)):
            if new != dims:
                yield from transformed(case, _of_dims(dims, new))
    yield from transformed(case, _scalar)


def _scalar(shape: ArrayShape) -> ArrayShape:
    return shape if shape.is_dynamic else replace(shape, dims=(), layout=None)


def simpler_types(case: Case) -> Iterator[Case]:
    """Propose every array of one element type converted to a simpler type."""
    types = {leaf.element_type for i in _instructions(case.module) for leaf in leaves(i.shape)}
    for element_type in sorted(types, key=lambda t: t.name):
        for name in _SIMPLER.get(element_type.kind, ()):
            if name == element_type.name:
                break
            yield from transformed(case, retyping(element_type, ELEMENT_TYPES[name]))


def retyping(old: ElementType, new: ElementType) -> Mapped:
    """Give all arrays of an element type another."""

    def mapping(shape: ArrayShape) -> ArrayShape:
        return replace(shape, element_type=new) if shape.element_type is old else shape

    return mapping


# The simplest first: a type is replaced only by those before it.
_SIMPLER = {
    "float": ("f32", "f64", "f16", "bf16"),
    "complex": ("f32", "c64"),
    "signed": ("s32", "s64"),
    "unsigned": ("s32", "u32"),
}


def _instructions(module: Module) -> Iterator[Instruction]:
    for computation in module.computations:
        yield from computation.instructions


def _sizes(module: Module) -> list[int]:
    found = {
        size
        for i in _instructions(module)
        for leaf in leaves(i.shape)
        for size in leaf.dims
        if not leaf.is_dynamic
    }
    return sorted((size for size in found if size > 1), reverse=True)


def _smaller(size: int) -> list[int]:
    # The smallest first: the first that still fails is taken.
    return sorted({new for new in (1, 2, 3, size // 4, size // 2, size - 1) if 0 < new < size})


def resizing(old: int, new: int) -> Mapped:
    """Give all static dimensions of a size another."""

    def mapping(shape: ArrayShape) -> ArrayShape:
        if shape.is_dynamic:
            return shape
        return replace(shape, dims=tuple(new if size == old else size for size in shape.dims))

    return mapping


def _one_dimension(dimension: int, new: int) -> Mapped:
    def mapping(shape: ArrayShape) -> ArrayShape:
        if shape.is_dynamic:
            return shape
        dims = (*shape.dims[:dimension], new, *shape.dims[dimension + 1 :])
        return replace(shape, dims=dims)

    return mapping


def _of_dims(old: tuple[int, ...], new: tuple[int, ...]) -> Mapped:
    def mapping(shape: ArrayShape) -> ArrayShape:
        is_it = shape.dims == old and not shape.is_dynamic
        return replace(shape, dims=new, layout=None) if is_it else shape

    return mapping


def transformed(
    case: Case, mapping: Mapped, only: frozenset[str] = frozenset(), at_end: bool = False
) -> Iterator[Case]:
    """Propose the case with a mapping applied to all written shapes, or to those of the
    instructions ``only``; nothing if that is impossible. Shrunk arguments keep their first
    elements, or with ``at_end`` their last."""
    module = transformed_module(case.module, mapping, only, at_end)
    if module is None or module == case.module:
        return
    try:
        shapes = [p.shape for p in module.entry.parameters]
        arrays = tuple(_fitted(a, s, at_end) for a, s in zip(case.arrays, shapes, strict=True))
    except _Impossible:
        return
    if all(_is_there(array) for array in arrays_of(arrays)):
        yield pruned(Case(module, arrays), module.entry)


def transformed_module(
    module: Module, mapping: Mapped, only: frozenset[str] = frozenset(), at_end: bool = False
) -> Module | None:
    """Apply a mapping to the written shapes of a module, as :func:`transformed` does, and infer the
    others again; None if that is impossible."""
    try:
        return _Transformation(module, mapping, only, at_end).module()
    except (Violation, Error, _Impossible):
        return None


class _Impossible(Exception):
    """Raised if the mapping cannot be applied."""


def _is_there(array: object) -> bool:
    return isinstance(array, np.ndarray)


def _fitted(value: Value, shape: Shape, at_end: bool) -> Value:
    if isinstance(shape, TupleShape):
        pairs = zip(value, shape.elements, strict=True)
        return tuple(_fitted(part, element, at_end) for part, element in pairs)
    if value is None or shape.is_dynamic:
        return value
    return _resized(value, shape, at_end)


def _resized(array: np.ndarray, shape: ArrayShape, at_end: bool) -> np.ndarray:
    if not array.size and shape.elements:
        return np.zeros(shape.dims, shape.element_type.numpy)
    if shape.elements > array.size:
        raise _Impossible
    if array.ndim != shape.rank:
        kept = array.reshape(-1)
        kept = kept[len(kept) - shape.elements :] if at_end else kept[: shape.elements]
        array = kept.reshape(shape.dims)
    parts = zip(array.shape, shape.dims, strict=True)
    window = tuple(slice(old - new, old) if at_end else slice(0, new) for old, new in parts)
    with np.errstate(all="ignore"):
        values = array[window]
        if values.dtype.kind == "c" and not shape.is_complex:
            values = values.real
        # ascontiguousarray returns rank 1 for rank 0.
        return np.ascontiguousarray(values.astype(shape.element_type.numpy)).reshape(shape.dims)


@dataclass(slots=True)
class _Transformation:
    """One application of a mapping to a module, callees first."""

    old: Module
    mapping: Mapped
    only: frozenset[str]
    at_end: bool
    done: list[Computation] = field(default_factory=list)

    def module(self) -> Module:
        for computation in self.old.computations:
            self.done.append(self._computation(computation))
        whole = replace(self.old, computations=tuple(self.done))
        return with_entry(whole, whole.entry)

    def _computation(self, computation: Computation) -> Computation:
        if self.only and computation.name != self.old.entry_name:
            return computation
        shapes: dict[str, Shape] = {}
        instructions = []
        for instruction in computation.instructions:
            new = self._instruction(instruction, [shapes[name] for name in instruction.operands])
            shapes[new.name] = new.shape
            instructions.append(new)
        return replace(computation, instructions=tuple(instructions))

    def _instruction(self, instruction: Instruction, operands: Sequence[Shape]) -> Instruction:
        declared = self._mapped(instruction)
        if instruction.opcode in ("parameter", "constant", "iota"):
            return self._leaf(instruction._replace(shape=declared))
        attributes, declared = fitted(instruction, operands, declared)
        new = instruction._replace(shape=declared, attributes=attributes)
        module = replace(self.old, computations=tuple(self.done))
        # A callee is a function of shapes here, and has its result's shape by now.
        given = keywords(module, new, lambda c: lambda *_: c.root_instruction.shape)
        op = column("hlo.ops").get(function_name(instruction.opcode))
        if op is None:
            raise _Impossible
        shape = call(op, new, operands, given, operands)
        return new._replace(shape=shape)

    def _mapped(self, instruction: Instruction) -> Shape:
        if self.only and instruction.name not in self.only:
            return instruction.shape
        return mapped_leaves(self.mapping, instruction.shape)

    def _leaf(self, instruction: Instruction) -> Instruction:
        literal = instruction.attributes.get("literal")
        shape = instruction.shape
        if instruction.opcode != "constant" or not isinstance(literal, Literal):
            return instruction
        if not isinstance(shape, ArrayShape) or not isinstance(literal.value, np.ndarray):
            raise _Impossible
        value = _resized(literal.value, shape, self.at_end)
        return instruction._replace(attributes={"literal": Literal(shape, value)})


def mapped_leaves(mapping: Mapped, shape: Shape) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(mapped_leaves(mapping, part) for part in shape.elements))
    return mapping(shape) if shape.element_type.is_array else shape


def fitted(
    instruction: Instruction, operands: Sequence[Shape], declared: Shape
) -> tuple[Mapping[str, Attribute], Shape]:
    """Fit attributes and a declared shape to operands of other sizes."""
    first = operands[0] if operands else None
    rule = _FITTED.get(instruction.opcode)
    if rule is None or not isinstance(first, ArrayShape) or not isinstance(declared, ArrayShape):
        return instruction.attributes, declared
    changed, dims = rule(instruction.attributes, first, declared.dims)
    return {**instruction.attributes, **changed}, replace(declared, dims=dims)


_Attributes = Mapping[str, Any]
_Fit = Callable[[_Attributes, ArrayShape, tuple[int, ...]], tuple[_Attributes, tuple[int, ...]]]


def _broadcast(
    given: _Attributes, operand: ArrayShape, dims: tuple[int, ...]
) -> tuple[_Attributes, tuple[int, ...]]:
    kept = tuple(d for d in given.get("dimensions", ()) if d < len(dims))[: operand.rank]
    result = list(dims)
    for d, size in zip(kept, operand.dims):
        result[d] = size
    return {"dimensions": kept}, tuple(result)


def _slice(
    given: _Attributes, operand: ArrayShape, dims: tuple[int, ...]
) -> tuple[_Attributes, tuple[int, ...]]:
    parts = tuple(
        (min(start, max(size - 1, 0)), min(limit, size), stride)
        for (start, limit, stride), size in zip(given["slice"], operand.dims)
    )
    return {"slice": parts}, dims


def _reshape(
    given: _Attributes, operand: ArrayShape, dims: tuple[int, ...]
) -> tuple[_Attributes, tuple[int, ...]]:
    """Fit a reshape to another number of elements: scale the first dimension that divides."""
    elements = int(np.prod(dims, dtype=np.int64))
    for d, size in enumerate(dims):
        rest = elements // max(size, 1)
        if elements != operand.elements and rest and operand.elements % rest == 0:
            return {}, (*dims[:d], operand.elements // rest, *dims[d + 1 :])
    return {}, dims


def _clipped(name: str) -> _Fit:
    """Clip sizes to the operand's dimensions."""

    def fit(
        given: _Attributes, operand: ArrayShape, dims: tuple[int, ...]
    ) -> tuple[_Attributes, tuple[int, ...]]:
        return {name: tuple(map(min, given[name], operand.dims))}, dims

    return fit


def _topk(
    given: _Attributes, operand: ArrayShape, dims: tuple[int, ...]
) -> tuple[_Attributes, tuple[int, ...]]:
    return {"k": min(given["k"], operand.dims[-1])}, dims


_FITTED: dict[str, _Fit] = {
    "broadcast": _broadcast,
    "slice": _slice,
    "reshape": _reshape,
    "dynamic-slice": _clipped("dynamic_slice_sizes"),
    "gather": _clipped("slice_sizes"),
    "topk": _topk,
}

"""Count the work of instructions, for roofline models: operations by type, and bytes moved.

Operations of dots, convolutions and elementwise instructions are counted as written; a
multiplication and an addition are two. An elementary function counts as the polynomial of f32 that
is known to suffice. What only moves, compares or selects elements counts as bytes alone. A loop
counts by its trip count where that is constant, else once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import cast

import numpy as np

from hlo.attributes import ConvolutionDimensions, Window
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import (
    BITWISE,
    ELEMENTARY,
    ELEMENTWISE,
    MOVES,
    PRODUCTS,
    ROUNDS,
    having,
    of_family,
)
from hlo.types import ArrayShape, ElementType, Shape, array_leaves, leaves
from hlo.walk import called

_ELEMENTARY = having(ELEMENTARY)
_ARITHMETIC = (having(ROUNDS) | _ELEMENTARY) - {"convert"}
# A decision: what processors do with integers in one instruction and floats do not have.
_OF_INTEGERS = (
    (_ARITHMETIC - _ELEMENTARY)
    | having(BITWISE)
    | {"mulhi", "popcnt", "count-leading-zeros", "shift-left"}
    | {"shift-right-arithmetic", "shift-right-logical"}
)
_FUNCTION = 12  # operations of an exponential in f32: reduction, six of a polynomial, scaling
# These read of their first operand what they give, and not all of it.
_PARTIAL = frozenset(("gather", "dynamic-slice", "slice"))
# Each element of the result is one of the operand, or made of one: parts of one are parts of the
# other.
_SAME_ELEMENTS = of_family(ELEMENTWISE) | having(MOVES)
_KINDS = {"f16": "f32", "f8e4m3fn": "f32", "f8e5m2": "f32", "c64": "f32", "c128": "f64"}
_UNITS = {"bf16": "bf16", "s8": "s8", "u8": "s8"}  # types with a matrix unit of their own
_PRODUCTS = having(PRODUCTS)
# These apply a computation to elements, or to slices.
_APPLYING = frozenset(("map", "reduce", "reduce-window", "scan", "scatter"))
INTEGERS = frozenset(("s32", "s64"))  # kinds of operations on integers of up to so many bits

# Operations by the type whose peak bounds them, and whether they are of products.
Counts = Mapping[tuple[str, bool], float]


def byte_count(shape: Shape) -> int:
    """Return the bytes of all arrays in a shape, in memory, where each element takes a byte or
    more; tokens have none."""
    return sum(leaf.elements * leaf.element_type.numpy.itemsize for leaf in array_leaves(shape))


def bytes_read(computation: Computation, *, in_place: bool = False) -> int:
    """Return the bytes that a kernel must read of its parameters; of sliced ones, only the slices.

    With ``in_place``, the root is a dynamic-update-slice whose operand shares the result's buffer,
    and is not read.
    """
    root = computation.root_instruction
    updated = root.operands[0] if in_place else ""
    taken = _taken(computation)
    return sum(taken[p.name] for p in computation.parameters if p.name != updated)


def _taken(computation: Computation) -> dict[str, int]:
    """Return the bytes of each value that must be read: the sum over its users' needs, at most all
    of it. Slices and elementwise users need the part that is needed of their own result."""
    taken: dict[str, int] = defaultdict(int)
    taken[computation.root] = byte_count(computation.root_instruction.shape)
    shapes = {i.name: i.shape for i in computation.instructions}
    for user in reversed(computation.instructions):
        own = byte_count(user.shape)
        if not own and any(leaf.element_type.is_array for leaf in leaves(user.shape)):
            continue  # of empty arrays nothing is computed
        # What is needed of the user's result, as a part of it.
        part = taken[user.name] / own if own else 0.0
        for number, name in enumerate(user.operands):
            whole = byte_count(shapes[name])
            needed = whole
            if user.opcode in _PARTIAL and not number:
                needed = math.ceil(part * own)
            elif user.opcode in _SAME_ELEMENTS and _elements(shapes[name]) == _elements(user.shape):
                needed = math.ceil(part * whole)
            taken[name] = min(whole, taken[name] + needed)
    return taken


def _elements(shape: Shape) -> int:
    """Return the number of elements of an array, 0 for a tuple."""
    return shape.elements if isinstance(shape, ArrayShape) else 0


def bytes_written(computation: Computation, *, in_place: bool = False) -> int:
    """Return the bytes of the result; with ``in_place``, of the update alone."""
    root = computation.root_instruction
    if not in_place:
        return byte_count(root.shape)
    update = next(i for i in computation.instructions if i.name == root.operands[1])
    return byte_count(update.shape)


class Operations:
    """Count the operations of a module's computations, each computation once."""

    def __init__(self, module: Module) -> None:
        self._computations = {c.name: c for c in module.computations}
        self._known: dict[str, Counts] = {}
        for computation in module.computations:  # callees come first
            self._known[computation.name] = self.counted(computation)

    def of(self, name: str) -> Counts:
        """Return the operations of one evaluation of a computation."""
        return self._known[name]

    def counted(self, computation: Computation) -> Counts:
        """Count the operations of one evaluation of a computation with callees in the module."""
        found: dict[tuple[str, bool], float] = defaultdict(float)
        shapes = {i.name: i.shape for i in computation.instructions}
        for instruction in computation.instructions:
            for kind, count in self.of_instruction(instruction, computation, shapes).items():
                found[kind] += count
        return dict(found)

    def of_instruction(
        self, instruction: Instruction, computation: Computation, shapes: Mapping[str, Shape]
    ) -> Counts:
        """Count the operations of one instruction."""
        opcode = instruction.opcode
        if opcode == "while":
            count = trips(instruction, computation, self._computations)
            return self._times(count, called(instruction))
        if opcode in ("fusion", "call", "async-start"):
            return self._times(1, called(instruction))
        if opcode == "select-and-scatter":
            return self._selections(instruction, shapes)
        if opcode in _APPLYING:
            return self._times(_applications(instruction, shapes), called(instruction))
        special = _SPECIAL.get(opcode)
        if special is not None:
            return special(instruction, shapes)
        return _elementwise(instruction)

    def _times(self, count: int, names: Iterable[str]) -> Counts:
        """Count ``count`` evaluations of each of some computations."""
        found: dict[tuple[str, bool], float] = defaultdict(float)
        for name in names:
            for kind, each in self._known[name].items():
                found[kind] += each * count
        return found

    def _selections(self, instruction: Instruction, shapes: Mapping[str, Shape]) -> Counts:
        """Count a select-and-scatter: a window of n elements selects one by n - 1 comparisons, and
        an element of the source is scattered there."""
        window, source = _window(instruction), _array(shapes[instruction.operands[1]])
        others = math.prod(dimension.size for dimension in window.dimensions) - 1
        select, scatter = (str(instruction.attributes[name]) for name in ("select", "scatter"))
        found = dict(self._times(others * source.elements, (select,)))
        for kind, count in self._times(source.elements, (scatter,)).items():
            found[kind] = found.get(kind, 0.0) + count
        return found


def _elementwise(instruction: Instruction) -> Counts:
    """Count one operation per element of the result; twelve for an elementary function."""
    opcode, shape = instruction.opcode, instruction.shape
    if not isinstance(shape, ArrayShape):
        return {}
    if shape.element_type.is_integer:
        each = 1 if opcode in _OF_INTEGERS else 0
    elif shape.element_type.is_float:
        each = _FUNCTION if opcode in _ELEMENTARY else int(opcode in _ARITHMETIC)
    else:
        each = 0
    return {(_kind(shape.element_type), False): each * shape.elements} if each else {}


def _kind(element_type: ElementType) -> str:
    """Return the type whose peak bounds elementwise operations on a type."""
    if element_type.is_integer:
        return "s64" if element_type.bits > 32 else "s32"
    name = _KINDS.get(element_type.name, element_type.name)
    return "f32" if name == "bf16" else name


def multiply_accumulates(module: Module) -> int:
    """Count the multiply-accumulates of dots and convolutions, those on padding included, with each
    computation evaluated once."""
    total = 0
    for computation in module.computations:
        shapes = {i.name: i.shape for i in computation.instructions}
        total += sum(
            _products(i, shapes) for i in computation.instructions if i.opcode in _PRODUCTS
        )
    return total


def _products(instruction: Instruction, shapes: Mapping[str, Shape]) -> int:
    """Count the multiplications of a dot or convolution: result elements * length of each sum."""
    left, right = (_array(shapes[name]) for name in instruction.operands[:2])
    labels = instruction.attributes.get("dim_labels")
    if isinstance(labels, ConvolutionDimensions):
        features = right.dims[labels.kernel_output_feature]
        depth = math.prod(right.dims) // max(1, features)
    else:
        contracted = instruction.attributes.get("lhs_contracting_dims", ())
        assert isinstance(contracted, tuple)
        depth = math.prod(left.dims[d] for d in contracted if isinstance(d, int))
    return depth * _array(instruction.shape).elements


def _contraction(instruction: Instruction, shapes: Mapping[str, Shape]) -> Counts:
    """Count two operations per multiplication; eight for complex numbers."""
    element_type = _array(shapes[instruction.operands[0]]).element_type
    name = element_type.name
    factor = 8 if element_type.is_complex else 2
    kind = _UNITS.get(name, _KINDS.get(name, name))
    return {(kind, True): factor * _products(instruction, shapes)}


def _fourier(instruction: Instruction, shapes: Mapping[str, Shape]) -> Counts:
    """Count an FFT of length n: 5 n log2(n) operations, half of that if one side is real;
    split-radix, which takes a fifth less, makes it 4 n log2(n)."""
    result = _array(instruction.shape)
    lengths = instruction.attributes["fft_length"]
    assert isinstance(lengths, tuple)
    length = math.prod(one for one in lengths if isinstance(one, int))
    kind = _KINDS.get(result.element_type.name, "f32")
    return {(kind, False): 2 * result.elements * math.log2(max(2, length))}


_SPECIAL: Mapping[str, Callable[[Instruction, Mapping[str, Shape]], Counts]] = {
    "conditional": lambda instruction, shapes: {},
    **dict.fromkeys(_PRODUCTS, _contraction),
    "fft": _fourier,
}


def _applications(instruction: Instruction, shapes: Mapping[str, Shape]) -> int:
    """Return how often an instruction of _APPLYING applies its computation."""
    # The operands of a scatter are N arrays, the indices, and N arrays of updates.
    operand = _array(shapes[instruction.operands[-1 if instruction.opcode == "scatter" else 0]])
    match instruction.opcode:
        case "scan":  # to a slice at a time
            (dimension,) = cast("tuple[int]", instruction.attributes["dimensions"])
            return operand.dims[dimension]
        case "reduce-window":
            return _terms(_window(instruction), operand, leaves(instruction.shape)[0])
        case _:
            return operand.elements


def _terms(window: Window, operand: ArrayShape, result: ArrayShape) -> int:
    """Count the elements that windows add to their results, those of padding included.

    Windows as long as their dimension are counted once: there is either one, or they make a
    cumulative sum, where each result is its neighbour's and one element more.
    """
    count = 1
    for extent, positions, dimension in zip(
        operand.dims, result.dims, window.dimensions, strict=True
    ):
        is_whole = dimension.size >= extent
        count *= max(extent, positions) if is_whole else positions * dimension.size
    return count


def _window(instruction: Instruction) -> Window:
    """Return an instruction's window; that of a scalar is not written."""
    window = instruction.attributes.get("window", Window())
    assert isinstance(window, Window)
    return window


def _array(shape: Shape) -> ArrayShape:
    """Narrow a shape to an array's."""
    assert isinstance(shape, ArrayShape)
    return shape


def trips(
    loop: Instruction, computation: Computation, computations: Mapping[str, Computation]
) -> int:
    """Return the trip count of a loop whose condition is ``counter < constant``, where the
    counter, an integer, begins as a constant, with steps of 1 (assumed); 1 for other loops."""
    condition = computations[str(loop.attributes["condition"])]
    inside = {i.name: i for i in condition.instructions}
    root = condition.root_instruction
    if root.opcode != "compare" or root.attributes.get("direction") != "LT":
        return 1
    counter, bound = (inside[name] for name in root.operands)
    outside = {i.name: i for i in computation.instructions}
    state = outside[loop.operands[0]]
    if counter.opcode != "get-tuple-element" or state.opcode != "tuple":
        return 1
    if inside[counter.operands[0]].opcode != "parameter":  # an element of another tuple
        return 1
    number = counter.attributes["index"]
    assert isinstance(number, int)
    first, last = _constant(outside.get(state.operands[number])), _constant(bound)
    return 1 if first is None or last is None else max(1, last - first)


def _constant(instruction: Instruction | None) -> int | None:
    """Return the value of an integer scalar constant; None for any other instruction."""
    if instruction is None or instruction.opcode != "constant":
        return None
    literal, shape = instruction.attributes["literal"], instruction.shape
    value = literal.value if isinstance(literal, Literal) else None
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_integer or shape.rank:
        return None
    return int(value) if isinstance(value, np.ndarray) else None

"""Count what a program must do at least: bytes of arguments and results, and operations by type.

Operations of dots, convolutions and elementwise instructions are counted as written; a
multiplication and an addition are two. An elementary function counts as the polynomial of f32 that
is known to suffice. A loop counts its trips where its counter shows them, else one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.speed.peers.subject import array_leaves
from hlo.attributes import ConvolutionDimensions
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import ELEMENTARY, ROUNDS, having
from hlo.passes.inline import inline
from hlo.types import ArrayShape, Shape
from hlo.walk import called

_ELEMENTARY = having(ELEMENTARY)
_ARITHMETIC = (having(ROUNDS) | _ELEMENTARY) - {"convert"}
_FUNCTION = 12  # operations of an exponential in f32: reduction, six of a polynomial, scaling
_IRREGULAR = frozenset(
    ("sort", "gather", "scatter", "topk", "reduce-window", "select-and-scatter")
    + ("convolution", "fft", "cholesky", "triangular-solve", "custom-call", "rng-bit-generator")
)
# These read of their first operand what they give, and not all of it.
_PARTIAL = frozenset(("gather", "dynamic-slice", "slice"))
_KINDS = {"f16": "f32", "f8e4m3fn": "f32", "f8e5m2": "f32", "c64": "f32", "c128": "f64"}
_UNITS = {"bf16": "bf16", "s8": "s8", "u8": "s8"}  # types with a matrix unit of their own


@dataclass(frozen=True, slots=True)
class Work:
    """``read`` and ``written``: bytes of arguments and results. ``operations``: by the type whose
    peak bounds them; ``products`` of them are those of dots and convolutions. ``irregular``: bytes
    that are sorted, gathered, scattered, transformed or factored. ``trips``: those of the longest
    loop, as far as counters show."""

    read: int
    written: int
    operations: Mapping[str, float]
    products: float
    irregular: int
    trips: int


def work(module: Module) -> Work:
    """Count the work of a program."""
    module = inline(module)
    counter = _Operations(module)
    counted = counter.of(module.entry_name)
    operations: dict[str, float] = defaultdict(float)
    for (kind, _), count in counted.items():
        operations[kind] += count
    products = sum(count for (_, is_product), count in counted.items() if is_product)
    result = byte_count(module.entry.root_instruction.shape)
    return Work(_read(module.entry), result, dict(operations), products, *_structure(module))


def _structure(module: Module) -> tuple[int, int]:
    """The bytes of irregular instructions, and the trips of the longest loop."""
    computations = {c.name: c for c in module.computations}
    irregular, longest = 0, 0
    for computation in module.computations:
        shapes = {i.name: i.shape for i in computation.instructions}
        for instruction in computation.instructions:
            if instruction.opcode in _IRREGULAR:
                irregular += _moved(instruction, shapes)
            if instruction.opcode == "while":
                longest = max(longest, trips(instruction, computation, computations))
    return irregular, longest


def _moved(instruction: Instruction, shapes: Mapping[str, Shape]) -> int:
    """The bytes that an irregular instruction moves: of a scatter its updates, of a gather its
    result, of others the larger of operand and result."""
    first = byte_count(shapes[instruction.operands[0]]) if instruction.operands else 0
    match instruction.opcode:
        case "scatter":
            return byte_count(shapes[instruction.operands[-1]])
        case "gather":
            return byte_count(instruction.shape)
        case _:
            return max(first, byte_count(instruction.shape))


def byte_count(shape: Shape) -> int:
    """Return the bytes of all arrays of a shape."""
    return sum(
        math.ceil(leaf.elements * leaf.element_type.bits / 8) for leaf in array_leaves(shape)
    )


def _read(entry: Computation) -> int:
    """Bytes of the arguments that are needed: of those that are only indexed, what is taken."""
    total = 0
    for parameter in entry.parameters:
        users = [i for i in entry.instructions if parameter.name in i.operands]
        taken = [
            byte_count(user.shape)
            if user.opcode in _PARTIAL and user.operands.index(parameter.name) == 0
            else byte_count(parameter.shape)
            for user in users
        ]
        needed = sum(taken) if parameter.name != entry.root else byte_count(parameter.shape)
        total += min(byte_count(parameter.shape), needed)
    return total


# By type, and whether they are of products.
_Counts = Mapping[tuple[str, bool], float]


class _Operations:
    """Count operations of computations, each once."""

    def __init__(self, module: Module) -> None:
        self._computations = {c.name: c for c in module.computations}
        self._known: dict[str, _Counts] = {}
        for computation in module.computations:  # callees come first
            self._known[computation.name] = self._counted(computation)

    def of(self, name: str) -> _Counts:
        """Return the operations of one run of a computation."""
        return self._known[name]

    def _counted(self, computation: Computation) -> _Counts:
        found: dict[tuple[str, bool], float] = defaultdict(float)
        shapes = {i.name: i.shape for i in computation.instructions}
        for instruction in computation.instructions:
            for kind, count in self._instruction(instruction, computation, shapes).items():
                found[kind] += count
        return found

    def _instruction(
        self, instruction: Instruction, computation: Computation, shapes: Mapping[str, Shape]
    ) -> _Counts:
        opcode = instruction.opcode
        if opcode == "while":
            return self._times(trips(instruction, computation, self._computations), instruction)
        if opcode == "conditional":
            return {}
        if opcode in ("dot", "convolution"):
            return _products(instruction, shapes)
        if opcode in ("reduce", "reduce-window", "map", "scatter"):
            return self._times(_applications(instruction, shapes), instruction)
        if opcode == "fft":
            return _fourier(instruction)
        if opcode not in _ARITHMETIC or not isinstance(instruction.shape, ArrayShape):
            return {}
        element_type = instruction.shape.element_type
        if not element_type.is_float:
            return {}
        each = _FUNCTION if opcode in _ELEMENTARY else 1
        kind = _KINDS.get(element_type.name, element_type.name)
        return {("f32" if kind == "bf16" else kind, False): each * instruction.shape.elements}

    def _times(self, count: int, instruction: Instruction) -> _Counts:
        found: dict[tuple[str, bool], float] = defaultdict(float)
        for name in called(instruction):
            for kind, each in self._known[name].items():
                found[kind] += each * count
        return found


def _products(instruction: Instruction, shapes: Mapping[str, Shape]) -> _Counts:
    """Two operations for each product of a dot or a convolution."""
    result, left, right = (
        instruction.shape,
        shapes[instruction.operands[0]],
        shapes[instruction.operands[1]],
    )
    assert isinstance(result, ArrayShape)
    assert isinstance(left, ArrayShape) and isinstance(right, ArrayShape)
    if instruction.opcode == "dot":
        contracted = instruction.attributes.get("lhs_contracting_dims", ())
        assert isinstance(contracted, tuple)
        depth = math.prod(left.dims[d] for d in contracted if isinstance(d, int))
    else:
        labels = instruction.attributes["dim_labels"]
        assert isinstance(labels, ConvolutionDimensions)
        depth = math.prod(right.dims) // right.dims[labels.kernel_output_feature]
    name = left.element_type.name
    factor = 8 if left.element_type.is_complex else 2
    return {(_UNITS.get(name, _KINDS.get(name, name)), True): factor * depth * result.elements}


def _fourier(instruction: Instruction) -> _Counts:
    """A transform of n numbers takes 5/2 n log n operations where they are real on one side, and
    twice that otherwise; by the split-radix algorithm a fifth less."""
    assert isinstance(instruction.shape, ArrayShape)
    lengths = instruction.attributes["fft_length"]
    assert isinstance(lengths, tuple)
    length = math.prod(one for one in lengths if isinstance(one, int))
    kind = _KINDS.get(instruction.shape.element_type.name, "f32")
    return {(kind, False): 2 * instruction.shape.elements * math.log2(max(2, length))}


def _applications(instruction: Instruction, shapes: Mapping[str, Shape]) -> int:
    """How often a reduction, a map or a scatter applies its computation."""
    which = -1 if instruction.opcode == "scatter" else 0
    shape = shapes[instruction.operands[which]]
    return shape.elements if isinstance(shape, ArrayShape) else 0


def trips(
    loop: Instruction, computation: Computation, computations: Mapping[str, Computation]
) -> int:
    """Return how often a loop runs whose condition compares a counter from a constant with a
    constant, by ``<``; 1 for others."""
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
    number = counter.attributes["index"]
    assert isinstance(number, int)
    first, last = _constant(outside.get(state.operands[number])), _constant(bound)
    return 1 if first is None or last is None else max(1, last - first)


def _constant(instruction: Instruction | None) -> int | None:
    if instruction is None or instruction.opcode != "constant":
        return None
    literal = instruction.attributes["literal"]
    value = literal.value if isinstance(literal, Literal) else None
    return int(value) if isinstance(value, np.ndarray) and value.ndim == 0 else None

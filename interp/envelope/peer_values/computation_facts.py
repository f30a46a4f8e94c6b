"""Find what a computation's text says of its values: which products may be contracted, which values
no compiler computes twice, which are factorisations, and which are only laid out anew."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hlo.attributes import ConvolutionDimensions, Window
from hlo.custom_calls import MARKERS
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import IDENTITY, MOVES, having
from hlo.passes.rewriting import integers
from hlo.types import ArrayShape, Shape
from interp.envelope.anchors import LAYS_OUT
from interp.envelope.defining_equations.all_results import factorisations
from interp.envelope.recorded_values import state_sources

_PART = LAYS_OUT | {"get-tuple-element"}
# Products, and what only moves them or may be one: a sum of one of these may be contracted with the
# product. A branch may be inlined, a window may have one element.
_PRODUCTS = (
    having(MOVES)
    | having(IDENTITY)
    | {"conditional", "get-tuple-element", "map", "multiply", "negate", "reduce-window"}
)
# In loops or calls of their own, however often they are used: the value that is shown is the one
# that the peer goes on with. What is done element by element may be done again in each loop that
# needs it, each time with other roundings. So may a branch that is inlined or selected, a window
# whose elements are reduced where they are read, and the last step of a triangular solve.
_MADE_ONCE = frozenset(
    (
        *("cholesky", "convolution", "custom-call", "dot", "fft", "ragged-dot", "rng"),
        *("scaled-dot", "scan", "scatter", "select-and-scatter", "sort", "topk", "while"),
    )
)


class Facts:
    """Cache sets of a computation's instructions: products that may be contracted, values computed
    once, factorisations, and the operands of copies, reshapes and transposes."""

    def __init__(self, module: Module, computation: Computation) -> None:
        self.products = _products(computation)
        self.made_once = made_once(module, computation)
        self.factorisations = factorisations(computation)
        self.laid_out = frozenset(
            name
            for instruction in computation.instructions
            if instruction.opcode in LAYS_OUT
            for name in instruction.operands
        )


def _products(computation: Computation) -> frozenset[str]:
    """Find values that a consumer may contract with a sum: multiplications, sums of a single
    product per element, and moved or negated products."""
    shapes = {i.name: i.shape for i in computation.instructions}
    return frozenset(
        i.name
        for i in computation.instructions
        if i.opcode in _PRODUCTS or _has_one_term(i, shapes)
    )


def made_once(module: Module, computation: Computation) -> Mapping[str, Instruction]:
    """Find values that no compiler computes twice (dots, sorts, loops, random numbers, …), and
    copies or elements of these, each with the instruction that makes it: the value that a compiler
    returns of them is also the one that its users read. Those of loops only if the loop takes two
    trips or more; a compiler inlines the others."""
    shapes = {i.name: i.shape for i in computation.instructions}
    found: dict[str, Instruction] = {}
    for instruction in computation.instructions:
        if instruction.opcode in _MADE_ONCE:
            if not _has_one_term(instruction, shapes):
                found[instruction.name] = instruction
        elif instruction.opcode in _PART and instruction.operands[0] in found:
            maker = found[instruction.operands[0]]
            if not _is_handed_on(module, maker, instruction):
                found[instruction.name] = maker
    return found


def _is_handed_on(module: Module, maker: Instruction, part: Instruction) -> bool:
    """Test for an element of a loop's state that no trip changes: a compiler takes it from before
    the loop."""
    if maker.opcode != "while" or part.opcode != "get-tuple-element":
        return False
    number = part.attributes["index"]
    assert isinstance(number, int)
    body = module.computation(str(maker.attributes["body"]))
    root = body.root_instruction
    if root.opcode != "tuple" or part.operands[0] != maker.name:
        return root.name == body.parameters[0].name
    source = state_sources(module, maker)[number]
    is_element = source.opcode == "get-tuple-element" and source.attributes["index"] == number
    return is_element and source.operands[0] == body.parameters[0].name


def _has_one_term(instruction: Instruction, shapes: Mapping[str, Shape]) -> bool:
    """Test for a sum, sort or loop over one element at most, which compilers replace by what is
    done with that element."""
    given = instruction.attributes
    sizes = [
        x.dims if isinstance(x, ArrayShape) else () for x in map(shapes.get, instruction.operands)
    ]
    match instruction.opcode:
        case "dot" | "ragged-dot" | "scaled-dot":
            extents = [sizes[0][d] for d in integers(instruction, "lhs_contracting_dims")]
        case "convolution":
            labels = given["dim_labels"]
            assert isinstance(labels, ConvolutionDimensions)
            extents = [n for d, n in enumerate(sizes[1]) if d != labels.kernel_output_feature]
        case "reduce" | "scan" | "sort":
            extents = [sizes[0][d] for d in integers(instruction, "dimensions")]
        case "select-and-scatter":
            window = given.get("window", Window())
            assert isinstance(window, Window)
            extents = [dimension.size for dimension in window.dimensions]
        case "scatter":
            vector = given["index_vector_dim"]
            indices = sizes[len(sizes) // 2]
            extents = [n for d, n in enumerate(indices) if d != vector]
        case "cholesky" | "topk":
            extents = [*sizes[0][-1:]]
        case "custom-call":
            return given["custom_call_target"] in MARKERS
        case _:
            return False
    return math.prod(extents) <= 1

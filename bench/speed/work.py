"""Count the minimal work of a program: bytes of arguments and results, and operations by type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from hlo.module import Instruction, Module
from hlo.passes.inline import inline
from hlo.types import Shape
from hlo.work import INTEGERS, Operations, byte_count, bytes_read, trips

_IRREGULAR = frozenset(
    ("sort", "gather", "scatter", "topk", "reduce-window", "select-and-scatter")
    + ("convolution", "fft", "cholesky", "triangular-solve", "custom-call", "rng-bit-generator")
)


@dataclass(frozen=True, slots=True)
class Work:
    """``read`` and ``written``: bytes of arguments and results. ``operations``: by the type whose
    peak bounds them; ``products`` of them are those of dots and convolutions. ``irregular``: bytes
    that are sorted, gathered, scattered, transformed or factored. ``trips``: of the longest loop,
    as far as counters show."""

    read: int
    written: int
    operations: Mapping[str, float]
    products: float
    irregular: int
    trips: int


def work(module: Module) -> Work:
    """Count the work of a program."""
    module = inline(module)
    counted = Operations(module).of(module.entry_name)
    operations: dict[str, float] = defaultdict(float)
    for (kind, _), count in counted.items():
        if kind not in INTEGERS:  # the figures are of floats: flops
            operations[kind] += count
    products = sum(count for (_, is_product), count in counted.items() if is_product)
    result = byte_count(module.entry.root_instruction.shape)
    return Work(bytes_read(module.entry), result, dict(operations), products, *_structure(module))


def _structure(module: Module) -> tuple[int, int]:
    """Return the bytes of irregular instructions, and the trip count of the longest loop."""
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
    """Count the bytes that an irregular instruction moves: of a scatter its updates, of a gather
    its result, of others the larger of operand and result."""
    first = byte_count(shapes[instruction.operands[0]]) if instruction.operands else 0
    match instruction.opcode:
        case "scatter":
            return byte_count(shapes[instruction.operands[-1]])
        case "gather":
            return byte_count(instruction.shape)
        case _:
            return max(first, byte_count(instruction.shape))

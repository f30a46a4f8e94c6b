"""Generate pairs of instructions: a consumer and the producer of its operand.

Passes that move data (slices through elementwise instructions, transposes into dots, padding into
convolutions, …) match an instruction together with the producer of its operand. Each consumer is a
pattern; its producer is any of ``PRODUCERS``, which sometimes has one of them as its producer.
"""

from __future__ import annotations

from functools import partial

from fuzz.draw.builder import Builder
from fuzz.draw.generators import (
    contraction,
    data_movement,
    elementwise,
    indexing,
    reduction,
    sort,
    window,
)
from fuzz.draw.patterns.pattern import Pattern, Patterns, changed
from fuzz.draw.shapes import Accepts
from hlo.types import ArrayShape

_ACCEPTS: dict[str, Accepts] = {
    opcode: accepts
    for family in (*(contraction, data_movement, elementwise, indexing, reduction, sort, window),)
    for opcode, (_, accepts) in family.GENERATORS.items()
}

READERS = (
    *("bitcast-convert", "broadcast", "concatenate", "convert", "convolution", "dot"),
    *("dynamic-slice", "dynamic-update-slice", "gather", "negate", "pad", "reduce"),
    *("reduce-window", "reshape", "reverse", "scatter", "select", "slice", "sort", "transpose"),
)
PRODUCERS = (
    *READERS,
    *("abs", "add", "bitcast", "clamp", "compare", "conditional", "constant", "copy", "divide"),
    *("exponential", "get-tuple-element", "iota", "maximum", "multiply", "reduce-precision"),
    *("select-and-scatter", "subtract", "while"),
)


def reading(reader: str, builder: Builder, shape: ArrayShape) -> str:
    """Draw an instruction with this opcode whose operand has a drawn producer."""
    makers = [opcode for opcode in PRODUCERS if opcode in builder.opcodes]
    chain = [reader, builder.choice(makers)]
    if builder.chance(3):
        chain.append(builder.choice(makers))
    # Counts the intent: no producer is drawn that cannot make the shape of an operand.
    builder.drew(f"{reader} of {chain[1]}")
    return changed(builder, shape, builder.chained(chain, shape))


PATTERNS: Patterns = {
    f"{reader} of another": Pattern(partial(reading, reader), (reader,), _ACCEPTS[reader])
    for reader in READERS
}

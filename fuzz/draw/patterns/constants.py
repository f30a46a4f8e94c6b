"""Generate constant arrays that a compiler may write in short: splats and sequences.

XLA makes a broadcast of a constant whose elements are all alike, and an iota of one that counts
from 0 (``IsR1Iota``). Near misses are drawn as well: a zero of the other sign, one other element.
"""

from __future__ import annotations

import numpy as np

from fuzz.draw.builder import Builder
from fuzz.draw.patterns.pattern import Pattern, Patterns, changed
from hlo.literal import Literal
from hlo.types import PRED, ArrayShape

_MOST_ELEMENTS = 4096  # each is in the text
_FIRST, _STEP = (0, 0, 1, -1), (1, 1, 0, 2, -1)


def sequence(builder: Builder, shape: ArrayShape) -> str:
    """Draw a constant that counts along one dimension, or does not count, and may all but be one;
    it may be changed by elementwise instructions."""
    dtype = shape.element_type.numpy
    dimension = builder.integer(0, shape.rank - 1)
    counted = np.arange(shape.dims[dimension]) * builder.choice(_STEP) + builder.choice(_FIRST)
    along = [1] * shape.rank
    along[dimension] = -1
    values = np.array(np.broadcast_to(counted.reshape(along), shape.dims).astype(dtype))
    # Of negative numbers an unsigned type has others; of large ones narrow types have infinities.
    near = builder.choice(("exact", "exact", "zeros", "other"))
    if near == "zeros" and not shape.element_type.is_integer:
        values[values == 0] = np.array(-0.0, dtype)
    if near == "other" and values.size:
        values.reshape(-1)[builder.integer(0, values.size - 1)] = np.array(3, dtype)
    literal = Literal(shape, values)
    return changed(builder, shape, builder.emit("constant", shape, literal=literal))


def _is_counted(shape: ArrayShape) -> bool:
    kind = shape.element_type
    has_zero = kind.name != "f8e8m0fnu"
    return bool(shape.rank) and kind is not PRED and has_zero and shape.elements <= _MOST_ELEMENTS


PATTERNS: Patterns = {"sequence": Pattern(sequence, ("constant",), _is_counted)}

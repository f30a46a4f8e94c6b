"""Generate batch normalisation along any dimension, and its gradients."""

from __future__ import annotations

import math

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.shapes import MOST_ELEMENTS, MOST_RANK, Accepts, extent, nonzero
from hlo.types import ArrayShape, TupleShape

# None, usual ones, less than none, the ends of f32, and what it has no number for.
_EPSILONS = (0.0, 1e-5, 0.001, 0.125, 1.0, -1.0, -0.0, 1e-40, 1e-60, 3e38, math.nan)


def _normalised(opcode: str, vectors: int, *, several: bool) -> Generator:
    """Return a generator for an opcode with an operand, ``vectors`` per-feature operands, and, for
    batch-norm-grad, another of the operand's shape. With ``several`` results, two are
    per-feature."""

    def generator(builder: Builder, shape: ArrayShape) -> str:
        is_vector = several and shape.rank == 1 and builder.boolean()
        whole = _around(builder, shape) if is_vector else shape
        features = [
            d for d, size in enumerate(whole.dims) if not is_vector or size == shape.dims[0]
        ]
        feature = builder.choice(features)
        vector = ArrayShape(whole.element_type, (whole.dims[feature],))
        shapes = [whole, *[vector] * vectors, *[whole] * (opcode == "batch-norm-grad")]
        operands = [builder.value(one) for one in shapes]
        given = {"epsilon": builder.choice(_EPSILONS), "feature_index": feature}
        if not several:
            return builder.emit(opcode, whole, *operands, **given)
        found = builder.emit(opcode, TupleShape((whole, vector, vector)), *operands, **given)
        index = builder.integer(1, 2) if is_vector else 0
        return builder.emit("get-tuple-element", shape, found, index=index)

    return generator


def _around(builder: Builder, vector: ArrayShape) -> ArrayShape:
    """Draw the shape of an operand that has one feature per element of a vector."""
    dims: list[int] = []
    for _ in range(builder.integer(0, MOST_RANK - 1)):
        dims.append(extent(builder, MOST_ELEMENTS * 2 // nonzero((*vector.dims, *dims))))
    dims.insert(builder.integer(0, len(dims)), vector.dims[0])
    return ArrayShape(vector.element_type, tuple(dims))


def _has_features(shape: ArrayShape) -> bool:
    return shape.rank > 0 and shape.is_float


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "batch-norm-training": (_normalised("batch-norm-training", 2, several=True), _has_features),
    "batch-norm-inference": (_normalised("batch-norm-inference", 4, several=False), _has_features),
    "batch-norm-grad": (_normalised("batch-norm-grad", 3, several=True), _has_features),
}

"""Look up the implementation of an ATen operation."""

from __future__ import annotations

from hlo_oracle.frontends.torch.aten import (
    bessel,
    contraction,
    counting,
    ctc,
    data_movement,
    distances,
    elementwise,
    embedding_bag,
    gamma,
    indexing,
    linear_algebra,
    losses,
    order_statistics,
    polynomials,
    pooling,
    quantization,
    reductions,
    resampling,
    segments,
)
from hlo_oracle.frontends.torch.aten.promotion import Operation

_FAMILIES = (
    elementwise, reductions, data_movement, indexing, contraction, pooling, linear_algebra,
    order_statistics, counting, embedding_bag, distances, quantization, resampling,
    losses, ctc, bessel, gamma, polynomials, segments,
)  # fmt: skip
_OPS: dict[str, Operation] = {
    name: operation for family in _FAMILIES for name, operation in family.OPS.items()
}


def operation_of(name: str, overload: str) -> Operation | None:
    """Find the implementation of a name and overload (``add``, ``Tensor``); None if there is none.

    An implementation of the overload takes precedence over one of the name.
    """
    name = name.removesuffix("_copy") if name not in _OPS else name  # of views: arrays are copies
    return _OPS.get(f"{name}.{overload}", _OPS.get(name))

"""Evaluate custom calls by a table of targets; nothing else may run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from hlo.aliasing import Alias
from hlo.attributes import ConvolutionDimensions, Window
from hlo.custom_calls import MARKERS, require_fitting, sharded
from hlo.errors import Unsupported
from hlo.literal import Literal
from hlo.text.suggestion import suggestion
from hlo.types import ArrayShape, Shape, TupleShape
from hlo.walk import Callee
from interp import bounded_arrays
from interp.lapack import routines, untyped_calls
from interp.ops import indexing
from interp.values import Value, copied

__all__ = ("custom_call",)

_NO_WINDOW = Window()
# (operands, result shape, backend_config as text) -> value
Target = Callable[[tuple[Value, ...], Shape, str], Value]
_REGISTERED: ContextVar[Mapping[str, Target]] = ContextVar("registered")


def custom_call(
    *operands: Value,
    custom_call_target: str,
    shape: Shape,
    operand_shapes: tuple[Shape, ...],
    backend_config: str = "",
    window: Window = _NO_WINDOW,
    dim_labels: ConvolutionDimensions | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_layout_constraints: tuple[Shape, ...] | None = None,
    custom_call_has_side_effect: bool = False,
    to_apply: Callee[Value] | None = None,
    called_computations: tuple[Callee[Value], ...] = (),
    output_to_operand_aliasing: tuple[Alias, ...] = (),
    padding_type: str = "",
    literal: Literal | None = None,
    operand_precision: tuple[str, ...] = (),
    schedule: str = "",
    api_version: str = "",
) -> Value:
    """Evaluate a custom call by :func:`target_of`."""
    del window, dim_labels, feature_group_count, batch_group_count, operand_layout_constraints
    del custom_call_has_side_effect, to_apply, called_computations, output_to_operand_aliasing
    del padding_type, literal, operand_precision, schedule, api_version
    target = target_of(custom_call_target)
    if target is not TARGETS.get(custom_call_target):
        # Nothing is known of a caller's function: it may keep what it returns, and write on it.
        return copied(target(operands, shape, backend_config))
    require_fitting(custom_call_target, operand_shapes, shape, backend_config)
    return target(operands, shape, backend_config)


def target_of(name: str) -> Target:
    """Look a target up among those registered for this run (:func:`registered`), then in
    ``TARGETS``; else raise Unsupported."""
    known = {**TARGETS, **_REGISTERED.get({})}
    target = known.get(name)
    if target is None:
        if what := sharded(name):
            raise Unsupported(f"the custom call target {name!r} has no meaning here{what}")
        others = [one for one in sorted(known) if not one.startswith(("blas_", "lapack_"))]
        raise Unsupported(
            f"no function is registered for the custom call target {name!r}:"
            " interp.evaluate(module, …, custom_calls={target: function}) registers one;"
            f" there are {', '.join(others)}, and {len(known) - len(others)} of BLAS and LAPACK"
            f"{suggestion(name, known)}"
        )
    return target


@contextmanager
def registered(targets: Mapping[str, Target] | None) -> Iterator[None]:
    """Make functions callable as targets within a block, in preference to TARGETS."""
    token = _REGISTERED.set(targets or {})
    try:
        yield
    finally:
        _REGISTERED.reset(token)


def _identity(operands: tuple[Value, ...], shape: Shape, config: str) -> Value:
    """Return the operand: this target only marks it."""
    del shape, config
    return operands[0] if len(operands) == 1 else operands


def _topk(operands: tuple[Value, ...], shape: Shape, config: str) -> Value:
    """Return the k largest of the last dimension and their indices; k is the result's size."""
    del config
    assert isinstance(shape, TupleShape) and isinstance(shape.elements[0], ArrayShape)
    return indexing.topk(operands[0], k=shape.elements[0].dims[-1])


def _slice_to_dynamic(operands: tuple[Value, ...], shape: Shape, config: str) -> Value:
    """Cut (padded data, size of each dimension) to these sizes."""
    del shape, config
    return operands[0][tuple(np.s_[: max(0, int(size))] for size in operands[1:])]


def _pad_to_static(operands: tuple[Value, ...], shape: Shape, config: str) -> Value:
    """Pad data with zeros to its bounds; return (padded data, its actual sizes)."""
    del config
    assert isinstance(shape, TupleShape) and isinstance(shape.elements[0], ArrayShape)
    (operand,) = operands
    padded = bounded_arrays.filled(operand, shape.elements[0])
    return padded, *(np.asarray(size, np.int32) for size in operand.shape)


TARGETS: dict[str, Target] = {
    **dict.fromkeys(MARKERS, _identity),
    "TopK": _topk,
    "SliceToDynamic": _slice_to_dynamic,
    "PadToStatic": _pad_to_static,
    **routines.TARGETS,
    **untyped_calls.TARGETS,
}

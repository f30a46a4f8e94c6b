"""Tell how large the terms of a sum are: beside them the width of a sum of narrow operands is
small, however much of it cancels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlo.module import Instruction, Module
from hlo.opcodes import PRODUCTS, having
from hlo.types import ArrayShape
from hlo.values import Array
from hlo.walk import called, monoid
from interp.envelope.anchors import LAYS_OUT
from interp.envelope.enclosure import Enclosure, Value, all_certain
from interp.envelope.midpoints import is_wide_anywhere, middle
from interp.envelope.verdict import WIDEST, in_double, typical

# Of nearly equal numbers little but roundings is left of a sum, or a decision between numbers.
_SUMS = frozenset(("add", "subtract", "reduce", "reduce-window"))
_PRODUCTS = having(PRODUCTS)
# What carries a scale on, and what makes one, shown or not.
MEASURED = _SUMS | _PRODUCTS | LAYS_OUT | {"broadcast", "divide", "multiply", "negate", "select"}
_DECISIONS = frozenset(
    (
        *("ceil", "compare", "floor", "is-finite"),
        *("round-nearest-afz", "round-nearest-even", "sign"),
    )
)


@dataclass(frozen=True, slots=True)
class Scale:
    """A magnitude that widths may be compared with: ``typical`` for all elements, or one for each
    if that is larger (None: for none)."""

    typical: float
    each: Array | None = None


def scale_of(
    module: Module, instruction: Instruction, operands: Sequence[Enclosure], value: Enclosure
) -> Scale:
    """Compute the scale of a result: the largest root mean square of the terms of a sum, the
    product of those of the factors of a contraction, and where the result is wide that of the terms
    of each element; infinity for a decision (any width will do); zero for all other functions,
    which may amplify a rounding."""
    if instruction.opcode in _DECISIONS or _gives_integers(instruction):
        return Scale(math.inf)
    sizes = map(_typical, operands)
    if instruction.opcode in _PRODUCTS:
        return Scale(math.prod(sizes), _terms(instruction, operands, value))
    # Empty for add and subtract, which call nothing; {None} for a reducer that is no monoid.
    combined = [monoid(module.computation(name)) for name in called(instruction)]
    if instruction.opcode not in _SUMS or not set(combined) <= {"add"}:
        return Scale(0.0)
    return Scale(max(sizes), _terms(instruction, operands, value))


def carried(
    instruction: Instruction,
    operands: Sequence[Value],
    scales: Sequence[Scale | None],
) -> Scale | None:
    """Carry the scale of a sum on to what is linear in it: (x - y) z is as narrow beside x z as the
    difference is beside x. Other operands are narrow; None where nothing is carried."""
    has_scale = [scale is not None and 0 < scale.typical < math.inf for scale in scales]
    if not any(has_scale) or not all(isinstance(one, Enclosure) for one in operands):
        return None
    if not all(has or is_narrow(one) for has, one in zip(has_scale, operands, strict=True)):
        return None
    each = [
        _sizes(scale, one) if has and scale else _magnitudes(one)
        for has, scale, one in zip(has_scale, scales, operands, strict=True)
    ]
    with np.errstate(all="ignore"):
        match instruction.opcode, has_scale:
            case "negate", _:
                return _of_each(each[0])
            case "multiply", [True, False] | [False, True]:
                return _of_each(each[0] * each[1])
            case "divide", [True, False]:
                return _of_each(each[0] / each[1])
            case "select", [False, _, _]:
                return _of_each(np.where(operands[0].low, each[1], each[2]))
            case "broadcast", _ if isinstance(instruction.shape, ArrayShape):
                return _of_each(_broadcast(each[0], instruction, instruction.shape.dims))
    return None


def laid_out(scale: Scale, instruction: Instruction) -> Scale:
    """Lay the scale of an operand out as a copy, reshape or transpose does, or a conversion."""
    each = scale.each
    if each is not None and instruction.opcode == "transpose":
        return Scale(scale.typical, each.transpose(_axes(instruction)))
    if each is not None and isinstance(instruction.shape, ArrayShape):
        dims = instruction.shape.dims
        is_same = each.size == math.prod(dims)  # a bitcast may divide elements
        return Scale(scale.typical, each.reshape(dims) if is_same else None)
    return Scale(scale.typical)


def is_narrow_beside(value: Enclosure, scale: Scale) -> Array:
    """Test which widths are small beside a scale; those of integers are if it is infinite."""
    if not value.element_type.is_inexact:
        return np.broadcast_to(np.bool_(scale.typical == math.inf), value.shape)
    width = np.abs(value.high.astype(np.complex128) - value.low.astype(np.complex128))
    large = scale.typical if scale.each is None else np.maximum(scale.typical, scale.each)
    return np.asarray((width <= WIDEST * large) & ~value.nan)


def _terms(
    instruction: Instruction, operands: Sequence[Enclosure], value: Enclosure
) -> Array | None:
    """Compute the root mean square of the terms of each element, of two terms the larger one; None
    where that is not needed, as no element is wide, or not known."""
    numbers = all(operand.element_type.is_inexact for operand in operands)
    if not numbers or not is_wide_anywhere(value):
        return None
    with np.errstate(all="ignore"):
        match instruction.opcode:
            case "add" | "subtract":
                found = np.maximum(*map(_magnitudes, operands))
            case "reduce" if len(operands) == 2:
                squares = np.square(_magnitudes(operands[0]))
                found = np.sqrt(squares.mean(axis=_axes(instruction)))
            case "dot":
                found = _terms_of_dot(instruction, *map(_magnitudes, operands))
            case _:
                return None
    return _finite(found) if found.shape == value.shape else None


def _terms_of_dot(instruction: Instruction, lhs: Array, rhs: Array) -> Array:
    """Compute the root mean square of the products that each element of a dot adds up."""
    summed, batch = (
        [_axes(instruction, f"{side}_{kind}_dims") for side in ("lhs", "rhs")]
        for kind in ("contracting", "batch")
    )
    left, right = list(range(lhs.ndim)), list(range(lhs.ndim, lhs.ndim + rhs.ndim))
    for one, other in (*zip(*summed, strict=True), *zip(*batch, strict=True)):
        right[other] = left[one]
    first = [left[axis] for axis in batch[0]]
    gone = {left[axis] for axis in (*summed[0], *batch[0])}
    kept = [*first, *(label for label in (*left, *right) if label not in gone)]
    terms = math.prod(lhs.shape[axis] for axis in summed[0])
    squares = np.einsum(np.square(lhs), left, np.square(rhs), right, kept, optimize=True)
    return np.asarray(np.sqrt(squares / max(terms, 1)))


def _axes(instruction: Instruction, attribute: str = "dimensions") -> tuple[int, ...]:
    axes = instruction.attributes.get(attribute, ())
    return axes if isinstance(axes, tuple) else ()  # type: ignore[return-value]


def _broadcast(each: Array, instruction: Instruction, dims: Sequence[int]) -> Array:
    places = _axes(instruction)
    ones = [dims[axis] if axis in places else 1 for axis in range(len(dims))]
    order = sorted(range(each.ndim), key=places.__getitem__)
    return np.broadcast_to(each.transpose(order).reshape(ones), dims)


def _sizes(scale: Scale, value: Enclosure) -> Array:
    """Spread a scale over the elements of its value."""
    each = np.float64(scale.typical) if scale.each is None else scale.each
    return np.broadcast_to(each, value.shape)


def _of_each(each: Array) -> Scale:
    found = _finite(each)
    return Scale(typical(found) if found.size else 0.0, found)


def _finite(sizes: Array) -> Array:
    return np.asarray(np.where(np.isfinite(sizes), sizes, 0.0))


def is_narrow(value: Value) -> bool:
    """Test for certain integers, and floats whose intervals are narrow everywhere."""
    if not isinstance(value, Enclosure):
        return False
    if not value.element_type.is_inexact:
        return all_certain(value)
    return not is_wide_anywhere(value)


def _magnitudes(value: Enclosure) -> Array:
    return np.asarray(np.abs(in_double(middle(value))))


def _typical(value: Enclosure) -> float:
    """Compute the root mean square of an enclosure's midpoints; 0 for integers and empty arrays."""
    if not value.element_type.is_inexact or not value.low.size:
        return 0.0
    return typical(middle(value))


def _gives_integers(instruction: Instruction) -> bool:
    """Test for a conversion of floats to integers, or for their bits."""
    shape = instruction.shape
    if instruction.opcode not in ("bitcast-convert", "convert"):
        return False
    return isinstance(shape, ArrayShape) and not shape.element_type.is_inexact

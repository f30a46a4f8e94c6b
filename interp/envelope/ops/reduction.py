"""Enclose reduce: folds of many elements into one, in any order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from hlo.types import leaves
from hlo.values import Array
from hlo.walk import Callee
from interp.envelope import budget
from interp.envelope.boolean_masks import is_always
from interp.envelope.budget import Folds
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosed_values import hull_of, spread
from interp.envelope.enclosure import (
    Enclosure,
    Value,
    anything,
    between,
    finfo,
    is_certain,
    is_nan,
    is_nan_alone,
    moved,
    point,
    rounded_down,
    rounded_up,
    where,
)
from interp.envelope.float_sums.addends import of_folds
from interp.envelope.float_sums.sums import exactly_summed, sum_of
from interp.envelope.folds import arg_extremes, fold_orders
from interp.envelope.folds.fold_orders import disagree, ends_of, in_rows, of_other_orders
from interp.envelope.interval_rules import (
    compared,
    flushed,
)
from interp.envelope.sums_in_order import added_along, or_rounded, step_by_step
from interp.exact import sums
from interp.ops import reduction as exact

__all__ = ["reduce"]


_MOST_STEPS = 4096  # a fold in order of more uncertain elements is not followed


def reduce(*operands: Enclosure, dimensions: tuple[int, ...], to_apply: Callee[Value]) -> Value:
    """Enclose reduce with the elements in any order. The fold of a single element may also be that
    element itself, as compilers take the init for an identity."""
    arity = len(operands) // 2
    inputs, inits = operands[:arity], operands[arity:]
    result = _folded(inputs, inits, dimensions, to_apply)
    if math.prod(inputs[0].shape[axis] for axis in dimensions) != 1:
        return result
    kept = tuple(n for axis, n in enumerate(inputs[0].shape) if axis not in dimensions)
    return or_elements(result, [moved(lambda array: array.reshape(kept), x) for x in inputs])


def separately(
    to_apply: Callee[Value],
    totals: Sequence[Callable[[], Enclosure]],
    in_order: Callable[[], Value],
    dims: tuple[int, ...],
) -> Value:
    """Enclose a fold of several values whose computation combines each with its own elements: float
    sums by ``totals``, folds without rounding by ``in_order``, and anything for the rest."""
    types = [x.element_type for x in leaves(to_apply.computation.root_instruction.shape)]
    opcodes = fold_orders.separate(to_apply.computation)
    found = [anything(dims, element_type) for element_type in types]
    if opcodes is None:
        return to_apply.bundled(found)
    result: Value = None
    for number, (opcode, element_type) in enumerate(zip(opcodes, types, strict=True)):
        if opcode == "add" and element_type.is_float:
            found[number] = totals[number]()
        elif opcode in fold_orders.MONOIDS and (
            opcode not in budget.ROUNDED or element_type.is_integer
        ):
            result = result or in_order()
            found[number] = compared(result[number])
    return tuple(found)


def or_elements(result: Value, elements: Sequence[Enclosure]) -> Value:
    if budget.current() is budget.EXACT:
        return result
    return hull_of(result, tuple(elements) if isinstance(result, tuple) else elements[0])


def _folded(
    inputs: tuple[Enclosure, ...],
    inits: tuple[Enclosure, ...],
    dimensions: tuple[int, ...],
    to_apply: Callee[Value],
) -> Value:
    arity = len(inputs)
    monoid = to_apply.monoid if arity == 1 else None
    element_type = inputs[0].element_type
    rounds = budget.current() is not budget.EXACT
    if monoid == "add" and element_type.is_float:
        return sum_along(inputs[0], dimensions, inits[0])
    if monoid == "add" and element_type.is_complex:
        sums = [sum_along(x, dimensions, i) for x, i in zip(parts(inputs[0]), parts(inits[0]))]
        return joined(*sums)
    if fold_orders.grows(monoid, inputs[0], inits[0]):
        return _folded_ends(inputs[0], inits[0], dimensions, to_apply)
    if fold_orders.has_one_result(monoid, inputs[0], inits[0]):
        ends = inputs[0].low, inits[0].low
        return point(exact.reduce(*ends, dimensions=dimensions, to_apply=to_apply))
    is_in_order = budget.current().folds in (Folds.IN_ORDER, Folds.IN_BLOCKS)
    given = inputs, inits, dimensions, to_apply
    found = arg_extremes.enclosed(*given, in_order=is_in_order) if rounds else None
    if found is not None:
        return found
    if is_in_order:
        with step_by_step():
            return _in_order(*given)
    steps = math.prod(inputs[0].shape[axis] for axis in dimensions)
    is_product = monoid == "multiply" and element_type.is_float
    if rounds and steps > 1 and not is_product and fold_orders.rounds(to_apply.computation):
        # Called only for those outputs that are sums, in `separately`.
        totals = [partial(sum_along, x, dimensions, init) for x, init in zip(inputs, inits)]
        in_order = partial(_in_order, *given)
        kept = tuple(n for axis, n in enumerate(inputs[0].shape) if axis not in dimensions)
        return separately(to_apply, totals, in_order, kept)
    if rounds and not is_product and (not monoid or element_type.is_complex):
        return _in_some_order(*given)
    result = _in_order(*given)
    if is_product and rounds:
        return in_any_order(
            result,
            inputs[0],
            inits[0],
            lambda array, operation: np.asarray(operation.reduce(array, axis=dimensions)),
        )
    return result


def _in_some_order(
    inputs: tuple[Enclosure, ...],
    inits: tuple[Enclosure, ...],
    dimensions: tuple[int, ...],
    to_apply: Callee[Value],
) -> Value:
    """Enclose a fold by its result in order, and by anything where another order may give
    another."""
    steps = math.prod(inputs[0].shape[axis] for axis in dimensions)
    if steps == 0 or steps > _MOST_STEPS:  # the init, or all of it is open
        return _in_order(inputs, inits, dimensions, to_apply)

    def fold(callee: Callee[Value], backwards: bool, end: str) -> Sequence[Array]:
        arrays = [getattr(x, end) for x in inputs]
        turned = [np.flip(x, dimensions) if backwards else x for x in arrays]
        starts = [getattr(x, end) for x in inits]
        given = exact.reduce(*turned, *starts, dimensions=dimensions, to_apply=callee)
        return given if isinstance(given, tuple) else (given,)

    ends = ends_of(*inputs, *inits)
    open_: Array = np.asarray(np.False_)
    for value, init in zip(inputs, inits):  # a NaN is neither above nor below
        open_ = open_ | np.asarray(value.nan.any(axis=dimensions) | init.nan)
    pairs = list(zip(inputs, inits, strict=True))
    for end in ends:
        rows = [in_rows(getattr(x, end), getattr(y, end), dimensions) for x, y in pairs]
        open_ = open_ | fold_orders.lawless(to_apply, rows)
    if is_always(open_):  # without following it
        found = [anything(open_.shape, x.element_type) for x in inputs]
        return to_apply.bundled(found)
    open_ = open_ | disagree(fold, to_apply, ends)
    result = _in_order(inputs, inits, dimensions, to_apply)
    return of_other_orders(open_, result)


def sum_along(operand: Enclosure, dimensions: tuple[int, ...], init: Enclosure) -> Enclosure:
    """Enclose a sum of floats along some dimensions, in any order."""
    if budget.current() is budget.EXACT:

        def summed(array: Array, start: Array) -> Array:
            return sums.sum_along(array, dimensions, start, operand.element_type)

        return exactly_summed(
            summed, lambda mask: np.asarray(mask.any(axis=dimensions)), operand, init
        )
    values, start = flushed(operand), flushed(init)
    terms = math.prod(operand.shape[axis] for axis in dimensions) + 1  # the init
    finite = [np.isfinite(x.low) & np.isfinite(x.high) & ~x.nan for x in (values, start)]
    ends = [
        [np.where(mask, end, 0).astype(np.float64) for end in (x.low, x.high)]
        for x, mask in zip((values, start), finite, strict=True)
    ]
    low, high = (a.sum(axis=dimensions) + b for a, b in zip(*ends, strict=True))
    most = [np.maximum(np.abs(a), np.abs(b)) for a, b in ends]
    magnitudes = most[0].sum(axis=dimensions) + most[1]

    def fold(array: Array, operation: np.ufunc) -> Array:
        first = np.inf if operation is np.minimum else 0.0  # of no elements
        return np.asarray(operation.reduce(array, axis=dimensions, initial=first))

    known = of_folds(ends[0], ends[1], fold, terms, operand.element_type)
    result = sum_of(low, high, magnitudes, known, operand.element_type)
    in_order = partial(added_along, dimensions=dimensions)
    result = or_rounded(result, (operand, init), in_order)
    if all(is_always(mask) for mask in finite):
        return result
    special = ~finite[0].all(axis=dimensions) | ~finite[1]
    result = where(special, anything(result.shape, result.element_type), result)

    def total(values: Array) -> Array:
        return np.asarray(values.sum(axis=dimensions))

    return with_specials(result, special & is_small(magnitudes, operand), operand, init, total)


def is_small(magnitudes: Array, operand: Enclosure) -> Array:
    """Test which sums of finite addends overflow in no order."""
    return np.asarray(magnitudes < float(finfo(operand.low.dtype).max) / 2)


def with_specials(
    result: Enclosure,
    known: Array,
    operand: Enclosure,
    init: Enclosure,
    total: Callable[[Array], Array],
) -> Enclosure:
    """Replace sums, where ``known`` is set, by that of their infinities and NaNs alone, which is
    the same in any order, if these are certain; and all sums of a certain NaN by NaN."""

    def met(one: Array, other: Array) -> Array:
        return (total(one.astype(np.float64)) > 0) | other

    special = [~np.isfinite(x.low) | ~np.isfinite(x.high) | x.nan for x in (operand, init)]
    sure = [mask & is_certain(x) for mask, x in zip(special, (operand, init), strict=True)]
    only = [
        np.where(mask, x.low, 0).astype(np.float64)
        for mask, x in zip(sure, (operand, init), strict=True)
    ]
    with np.errstate(all="ignore"):
        value = (total(only[0]) + only[1]).astype(operand.low.dtype)
    known = known & ~met(*(mask & ~one for mask, one in zip(special, sure, strict=True)))
    known = known | met(*map(is_nan, only))
    return where(known, Enclosure(value, value, is_nan(value)), result)


def _folded_ends(
    operand: Enclosure, init: Enclosure, dimensions: tuple[int, ...], to_apply: Callee[Value]
) -> Enclosure:
    """Enclose a fold that is monotone in every element by the folds of the ends; NaN is legal if an
    element may be NaN."""
    fold = Callee(to_apply.computation, lambda *ends: ends)  # only its monoid is asked for
    low = exact.reduce(operand.low, init.low, dimensions=dimensions, to_apply=fold)
    points = operand.is_point and init.is_point
    high = low
    if not points:
        high = exact.reduce(operand.high, init.high, dimensions=dimensions, to_apply=fold)
    nan = operand.nan.any(axis=dimensions) | init.nan
    return compared(Enclosure(low, high, np.broadcast_to(nan, low.shape)))


def _in_order(
    inputs: tuple[Enclosure, ...],
    inits: tuple[Enclosure, ...],
    dimensions: tuple[int, ...],
    to_apply: Callee[Value],
) -> Value:
    reduced = sorted(dimensions)
    kept = [axis for axis in range(len(inputs[0].shape)) if axis not in dimensions]
    dims = tuple(inputs[0].shape[axis] for axis in kept)
    steps = math.prod(inputs[0].shape[axis] for axis in reduced)
    if steps > _MOST_STEPS or 0 in dims:
        found = [anything(dims, x.element_type) for x in inputs]
        return to_apply.bundled(found)
    rows = [
        [x.transpose(*reduced, *kept).reshape(steps, *dims) for x in (v.low, v.high, v.nan)]
        for v in inputs
    ]
    state = [spread(x, dims) for x in inits]
    for step in range(steps):
        others = [Enclosure(*(part[step, ...] for part in row)) for row in rows]
        result = to_apply(*state, *others)
        state = list(result) if isinstance(result, tuple) else [result]
    return to_apply.bundled(state)


def in_any_order(
    product: Enclosure,
    operand: Enclosure,
    init: Enclosure,
    fold: Callable[[Array, np.ufunc], Array],
) -> Enclosure:
    """Enclose a product in any order, given that in the order written, of which zeros and NaN are
    kept; anything where a partial product could overflow or underflow. ``fold`` folds the factors
    by an operation."""
    element_type, info = product.element_type, finfo(product.low.dtype)
    units = 2 * budget.current().of("multiply", element_type) + 1
    # Relative to a power of two, whose unit is the largest.
    error = units * 2.0 ** -(int(info.nmant) + 1)
    steps = fold(np.ones(operand.shape), np.add)
    if units < 2:  # else not even a product with 1 is exact
        steps = np.maximum(steps - ((init.low == 1) & (init.high == 1)), 0)
    (high, low), (init_high, init_low) = map(_logarithms, (operand, init))
    most = fold(np.maximum(high, 0.0), np.add) + np.maximum(init_high, 0.0)
    fewest = fold(np.minimum(low, 0.0), np.add) + np.minimum(init_low, 0.0)
    # 1: the logarithms are rounded; and roundings may add up.
    margin = 1 - steps * np.log2(max(1 - error, 0.0))
    within = (most < float(info.maxexp) - margin) & (fewest > float(info.minexp) + margin)
    signs = [np.where(x.low < 0, -1.0, 1.0) for x in (operand, init)]
    negative = fold(signs[0], np.multiply) != signs[1]
    least, greatest = _rounded_products(operand, init, fold, steps, error)
    ends = np.where(negative, -greatest, least), np.where(negative, -least, greatest)
    known = within & (steps > 0) & (least > 0)
    low, high = (np.where(known, end, 1.0) for end in ends)
    low, high = rounded_down(low, element_type), rounded_up(high, element_type)
    result = where(known, between(low, high, product.nan), product)
    unsure = ~within & ~is_nan_alone(product)
    return where(unsure, anything(product.shape, element_type), result)


def _rounded_products(
    operand: Enclosure,
    init: Enclosure,
    fold: Callable[[Array, np.ufunc], Array],
    steps: Array,
    error: float,
) -> tuple[Array, Array]:
    """Bound the magnitudes of products of certain sign by the real one times (1 - error)^steps and
    (1 + error)^steps, as each step rounds what the others made (Higham, "Accuracy and Stability of
    Numerical Algorithms", 2002, section 3.1)."""
    ends = [[np.abs(end.astype(np.float64)) for end in (x.low, x.high)] for x in (operand, init)]
    found = []
    for better, sign in ((np.minimum, -1), (np.maximum, 1)):
        factors, first = (better(*pair) for pair in ends)
        real = fold(factors, np.multiply) * first
        # 2**-53: here each step rounds, too. 2**-40: so does what follows.
        logarithm = np.log1p(sign * error) + np.log1p(sign * 2.0**-53)
        off = np.expm1(steps * logarithm) * (1 + 2.0**-40)
        found.append(np.nextafter(real + real * off, sign * np.inf))
    return found[0], found[1]


def _logarithms(value: Enclosure) -> tuple[Array, Array]:
    """Compute log2 of the largest and the least magnitude; 0 for certain zeros, which stay zero in
    any order."""
    low, high = (np.abs(end.astype(np.float64)) for end in (value.low, value.high))
    least = np.where((value.low <= 0) & (value.high >= 0), 0.0, np.minimum(low, high))
    logs = np.log2(np.maximum(low, high)), np.log2(least)
    always_zero = (low == 0) & (high == 0)
    return np.where(always_zero, 0.0, logs[0]), np.where(always_zero, 0.0, logs[1])

"""Rewrite integer arithmetic, which modulo 2^n is associative, commutative and distributive."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzz.rewrites.site import Place, Rewrite, is_array, is_static, parameter
from hlo.module import Computation, Instruction
from hlo.opcodes import BITWISE, MONOID, having
from hlo.passes.rewriting import integers
from hlo.types import PRED, ArrayShape, ElementType
from hlo.walk import called, monoid


def _is_integer_dot(place: Place) -> bool:
    if place.value.opcode != "dot" or not (is_array(place) and place.shape.is_integer):
        return False
    operands = [place.defined[name].shape for name in place.value.operands]
    return all(is_static(o) and isinstance(o, ArrayShape) and o.is_integer for o in operands)


def _dot_as_reduce(place: Place) -> str:
    """dot(a, b) as reduce(broadcast(a) * broadcast(b)) over the contracting dimensions."""
    # s32[B,M,K] by s32[B,K,N]: both are spread over s32[B,M,N,K], and dimension 3 is summed.
    dot = place.value
    kept = place.shape.rank
    sides = []
    free_at = len(integers(dot, "lhs_batch_dims"))
    for side, name in zip(("lhs", "rhs"), dot.operands):
        batch, contracted = (
            integers(dot, f"{side}_{kind}_dims") for kind in ("batch", "contracting")
        )
        operand = place.array(name)
        free = [d for d in range(operand.rank) if d not in (*batch, *contracted)]
        order = {d: n for n, d in enumerate(batch)}
        order |= {d: free_at + n for n, d in enumerate(free)}
        order |= {d: kept + n for n, d in enumerate(contracted)}
        free_at += len(free)
        summed = tuple(operand.dims[d] for d in contracted)
        sides.append((name, order))
    wide = ArrayShape(place.shape.element_type, (*place.shape.dims, *summed))
    factors = [_spread(place, name, order, wide) for name, order in sides]
    product = place.add("multiply", wide, *factors)
    zero = place.constant(0, wide.element_type)
    dimensions = tuple(range(kept, wide.rank))
    add = _adding(place, wide.element_type)
    return place.add("reduce", place.shape, product, zero, dimensions=dimensions, to_apply=add)


def _spread(place: Place, name: str, order: dict[int, int], wide: ArrayShape) -> str:
    """Broadcast an operand along the dimensions of the products."""
    narrow = ArrayShape(wide.element_type, place.array(name).dims)
    # Before the product, which would overflow in the operands' type: s8 100 * 2 is 200 in s32.
    if place.array(name).element_type is not wide.element_type:
        name = place.add("convert", narrow, name)
    by_place = sorted(order, key=order.__getitem__)
    turned = ArrayShape(wide.element_type, tuple(narrow.dims[d] for d in by_place))
    name = place.add("transpose", turned, name, dimensions=tuple(by_place))
    return place.add("broadcast", wide, name, dimensions=tuple(sorted(order.values())))


def _adding(place: Place, element_type: ElementType) -> str:
    """Make a computation that adds two scalars."""
    scalar = ArrayShape(element_type)
    given = (parameter(0, scalar, "a"), parameter(1, scalar, "b"))
    name = place.names.fresh("adding")
    total = Instruction("total", scalar, "add", ("a", "b"))
    place.define(Computation(name, (*given, total), "total"))
    return name


def _is_integer_sum(place: Place) -> bool:
    if place.value.opcode != "reduce" or not (is_array(place) and place.shape.is_integer):
        return False
    (added,) = called(place.value)
    is_sum = monoid(place.module.computation(added)) == "add"
    return is_sum and len(place.value.operands) == 2 and _all_static(place)


def _all_static(place: Place) -> bool:
    return all(is_static(place.defined[name].shape) for name in place.value.operands)


def _sum_as_dot(place: Place) -> str:
    """reduce(a, init) by addition as dot(a, ones) + init."""
    values, init = place.value.operands
    dimensions = integers(place.value, "dimensions")
    sizes = tuple(place.array(values).dims[d] for d in dimensions)
    ones = place.filled(1, ArrayShape(place.shape.element_type, sizes))
    contracted = {
        "lhs_contracting_dims": dimensions,
        "rhs_contracting_dims": tuple(range(len(sizes))),
    }
    total = place.add("dot", place.shape, values, ones, **contracted)
    first = place.add("broadcast", place.shape, init, dimensions=())
    return place.add("add", place.shape, total, first)


def _is_associative(place: Place) -> bool:
    if place.value.opcode not in _REGROUPED or not (is_array(place) and _all_static(place)):
        return False
    kinds = _TRUTH if place.shape.element_type is PRED else _REGROUPED
    return place.value.opcode in kinds and (place.shape.is_integer or kinds is _TRUTH)


def _regrouped(place: Place) -> str:
    """op(a, op(b, c)) as op(op(a, b), c); where no operand has that form, an equal form of op(a,
    b)."""
    opcode = place.value.opcode
    for operands in (place.value.operands, place.value.operands[::-1]):
        inner = place.defined[operands[1]]
        if inner.opcode == opcode:
            rest = list(inner.operands)
            # All these ops are commutative as well: b and c may change places.
            place.rng.shuffle(rest)
            once = place.add(opcode, place.shape, operands[0], rest[0])
            return place.add(opcode, place.shape, once, rest[1])
    return _REGROUPED[opcode](place, place.value.operands)


def _shifted(back: str) -> Callable[[Place, Sequence[str]], str]:
    """op(a, b) as op(op(a, k), back(b, k)) for any k: one of the operands, or a number."""

    def of(place: Place, operands: Sequence[str]) -> str:
        number = place.filled(place.rng.randint(0, 1), place.shape)
        k = place.rng.choice([*operands, number])
        one = place.add(place.value.opcode, place.shape, operands[0], k)
        other = place.add(back, place.shape, operands[1], k)
        return place.add(place.value.opcode, place.shape, one, other)

    return of


def _negated(place: Place, operands: Sequence[str]) -> str:
    """a * b as (-b) * (-a)."""
    one, other = (place.add("negate", place.shape, name) for name in operands)
    return place.add("multiply", place.shape, other, one)


def _again(place: Place, operands: Sequence[str]) -> str:
    """op(a, b) as op(b, op(a, b)), for an idempotent op."""
    once = place.add(place.value.opcode, place.shape, *operands)
    return place.add(place.value.opcode, place.shape, operands[1], once)


_REGROUPED: dict[str, Callable[[Place, Sequence[str]], str]] = {
    "add": _shifted("subtract"),
    "multiply": _negated,
    "xor": _shifted("xor"),
    "and": _again,
    "or": _again,
    "minimum": _again,
    "maximum": _again,
}
# Of preds only and, or, xor: add is or there, which no subtract undoes.
_TRUTH = having(BITWISE | MONOID)

REWRITES = {
    "dot as multiply and reduce": Rewrite(_is_integer_dot, _dot_as_reduce),
    "sum as dot": Rewrite(_is_integer_sum, _sum_as_dot),
    "regroup": Rewrite(_is_associative, _regrouped),
}

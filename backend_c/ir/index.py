"""Build index expressions (INDEX, int64) as folded affine forms: sums of atoms times integers.

Offsets of reshapes, transposes and slices are affine in the loop variables, whose bounds are known,
so most divisions fold away: ``(8*i + j) / 8`` is ``i`` for 0 <= j < 8, and ``8*(i/8) + i%8`` is
``i``. An *atom* is what the constructors do not see into: a variable, a load, a quotient, a clamp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from backend_c.ir.gpu import LARGEST_BLOCK
from backend_c.ir.loop_ir import INDEX, Apply, Constant, Expr, Load, Variable, subexpressions

_LIMIT = 2**62
_AffineForm = tuple[dict[Expr, int], int]  # coefficients of atoms, and a constant


def constant(value: int) -> Constant:
    """Return an INDEX constant."""
    return Constant(INDEX, value)


def value_of(expression: Expr) -> int | None:
    """Return the number that an expression is, or None if it is not constant."""
    return int(expression.value) if isinstance(expression, Constant) else None  # type: ignore[arg-type]


def affine_form(expression: Expr) -> _AffineForm:
    """Return an expression as (coefficients of atoms, constant)."""
    terms: dict[Expr, int] = {}
    offset = _gather(expression, 1, terms)
    return terms, offset


def coefficients(expression: Expr) -> dict[Expr, int]:
    """Return the atoms of an expression with their coefficients."""
    return affine_form(expression)[0]


def _gather(expression: Expr, factor: int, terms: dict[Expr, int]) -> int:
    """Add ``factor`` times the atoms of an expression to ``terms``; return the constant part.

    ``_affine_expression`` nests sums to the left, so a right operand is a single term.
    """
    # Types are compared, not matched, for speed: every index expression passes here.
    if type(expression) is Constant:
        return factor * int(expression.value)  # type: ignore[arg-type]
    if type(expression) is Apply:
        operation, (lhs, *rest), _ = expression
        if operation == "add":
            before = _gather(lhs, factor, terms)
            return before + _gather(rest[0], factor, terms)
        if operation == "multiply" and type(rest[0]) is Constant:
            return _gather(lhs, factor * int(rest[0].value), terms)  # type: ignore[arg-type]
    terms[expression] = terms.get(expression, 0) + factor
    return 0


def _sum(parts: Iterable[tuple[Expr, int]], offset: int = 0) -> Expr:
    """Build Σ factor · expression + offset, folded."""
    terms: dict[Expr, int] = {}
    for expression, factor in parts:
        offset += _gather(expression, factor, terms)
    # Terms that cancel must go: equal values are to be equal expressions, which are keys.
    if 0 in terms.values():
        terms = {atom: factor for atom, factor in terms.items() if factor}
    return _affine_expression(*_with_quotients_recombined(terms, offset))


def _with_quotients_recombined(terms: dict[Expr, int], constant_part: int) -> _AffineForm:
    """Replace ``k*c*(x/k) + c*(x%k)`` by ``c*x``: what linearising a delinearised offset leaves.

    Where the quotient goes round (a rotation of rows of k), the whole does: ``k*c*((x/k + a) % m) +
    c*(x%k)`` is ``c*((x + k*a) % (k*m))``.
    """
    for atom, coefficient in terms.items():
        if type(atom) is not Apply or atom.operation != "modulo":
            continue
        for other, factor in terms.items():
            if factor != coefficient * (value_of(atom.operands[1]) or 0):
                continue
            whole = _put_together(atom, other)
            if whole is None:
                continue
            rest = {a: c for a, c in terms.items() if a not in (atom, other)}
            constant_part += _gather(whole, coefficient, rest)
            kept = {a: c for a, c in rest.items() if c}
            return _with_quotients_recombined(kept, constant_part)
    return terms, constant_part


def _put_together(remainder: Apply, digit: Expr) -> Expr | None:
    """Return ``k*digit + x%k``, without its parts, of a remainder ``x%k`` and a digit ``x/k`` or
    ``(x/k + a) % m``; None of any other digit."""
    x, k = remainder.operands[0], value_of(remainder.operands[1]) or 0
    quotient = divide(x, k)
    if digit == quotient:
        return x
    if type(digit) is not Apply or digit.operation != "modulo":
        return None
    terms, ahead = affine_form(digit.operands[0])
    # Without a term it is a digit like any other (:mod:`backend_c.ir.digits`).
    if terms != {quotient: 1} or not ahead:
        return None
    return modulo(add(x, k * ahead), k * (value_of(digit.operands[1]) or 0))


def _affine_expression(terms: dict[Expr, int], offset: int) -> Expr:
    """Build the expression of an affine form, in the order of its terms."""
    result: Expr | None = None
    for atom, coefficient in terms.items():
        term = atom
        if coefficient != 1:
            term = Apply("multiply", (atom, constant(coefficient)), INDEX)
        result = term if result is None else Apply("add", (result, term), INDEX)
    if result is None:
        return constant(offset)
    return Apply("add", (result, constant(offset)), INDEX) if offset else result


def add(*expressions: Expr | int) -> Expr:
    """Build a sum."""
    offset = sum(e for e in expressions if isinstance(e, int))
    return _sum(((e, 1) for e in expressions if not isinstance(e, int)), offset)


def subtract(lhs: Expr | int, rhs: Expr | int) -> Expr:
    """Build a difference."""
    return add(lhs, multiply(rhs, -1) if not isinstance(rhs, int) else -rhs)


def multiply(expression: Expr, factor: int) -> Expr:
    """Build the product with an integer."""
    if type(expression) is Variable and factor == 1:
        return expression
    return _sum([(expression, factor)])


def bounds(expression: Expr) -> tuple[int, int]:
    """Enclose the value (interval arithmetic), both ends included, saturated at 2**62."""
    match expression:
        case Constant(_, value):
            return int(value), int(value)  # type: ignore[arg-type]
        case Variable(_, _, low, high, _):
            return max(low, -_LIMIT), min(high, _LIMIT)
        case Apply("add", (lhs, rhs), _):
            one, other = bounds(lhs), bounds(rhs)
            return one[0] + other[0], one[1] + other[1]
        case Apply("multiply" | "divide", (lhs, rhs), _):
            return _bounds_of_two(expression.operation, bounds(lhs), bounds(rhs))
        case Apply("modulo", (_, Constant(_, divisor)), _):
            return 0, int(divisor) - 1  # type: ignore[arg-type]
        case Apply("clamp", (low_end, _, high_end), _):
            return bounds(low_end)[0], bounds(high_end)[1]
        case Apply("select", (_, one_way, other_way), _):
            (low, high), (least, greatest) = bounds(one_way), bounds(other_way)
            return min(low, least), max(high, greatest)
        case Apply("convert", (source,), _) if source.type.is_integer and source.type is not INDEX:
            # An index read from memory (a start index, a size) is bounded by its type at least.
            low, high = _integer_bounds(source)
            return max(low, -_LIMIT), min(high, _LIMIT)
        case Apply("thread" | "threads", (), _):
            return 0, LARGEST_BLOCK
        case _:
            return -_LIMIT, _LIMIT


def _bounds_of_two(
    operation: str, left: tuple[int, int], right: tuple[int, int]
) -> tuple[int, int]:
    """Enclose a product, or a quotient rounded down."""
    if operation == "multiply":
        ends = [one * other for one in left for other in right]
    elif right[0] > 0:
        ends = [one // other for one in left for other in right]
    else:
        return -_LIMIT, _LIMIT
    return max(min(ends), -_LIMIT), min(max(ends), _LIMIT)


def is_inside(load: Load) -> bool:
    """Return whether a load's offset is provably within its array."""
    low, high = bounds(load.offset)
    return low >= 0 and high < load.array.elements


def _integer_bounds(expression: Expr) -> tuple[int, int]:
    """Return the range of an integer's type, or of a narrower type that it was converted from."""
    is_signed = expression.type.kind == "signed"
    end = 2 ** (expression.type.bits - is_signed)
    low, high = -end * is_signed, end - 1
    match expression:
        case Apply("convert", (source,), _) if source.type.is_integer and source.type is not INDEX:
            least, greatest = _integer_bounds(source)
            if low <= least and greatest <= high:
                return least, greatest
    return low, high


def _split(expression: Expr, divisor: int) -> tuple[Expr, Expr]:
    """Split an affine form in two: q and r with expression = divisor · q + r, r the other terms."""
    # 8 i + 4 j + 13 by 8: q = i + 1, r = 4 j + 5.
    terms, offset = affine_form(expression)
    whole = {a: c // divisor for a, c in terms.items() if c % divisor == 0}
    rest = {a: c for a, c in terms.items() if c % divisor}
    return _affine_expression(whole, offset // divisor), _affine_expression(rest, offset % divisor)


def _digits(expression: Expr, divisor: int) -> tuple[int, Expr, Expr] | None:
    """Write an affine form as ``g * high + low`` for 0 <= low < g and a divisor g of ``divisor``,
    the greatest that is one of a coefficient too; None if there is no such g."""
    # For 0 <= l < g: (g h + l) / (g d) = h / d, and (g h + l) % (g d) = g (h % d) + l. So
    # (16 i + j) / 512 is i / 32 for 0 <= j < 16: of what is read in groups of 16, the row of 512 is
    # found again.
    common = {math.gcd(factor, divisor) for factor in coefficients(expression).values()}
    for g in sorted(common - {1}, reverse=True):
        high, low = _split(expression, g)
        least, greatest = bounds(low)
        if least >= 0 and greatest < g:
            return g, high, low
    return None


def divide(expression: Expr, divisor: int) -> Expr:
    """Build the quotient of a value >= 0, rounded down; by 0, in code that never runs, 0."""
    if divisor < 2:
        return expression if divisor else constant(0)
    whole, rest = _split(expression, divisor)
    low, high = bounds(rest)
    # The terms that ``divisor`` divides come out whole; what is left adds a number that is known,
    # if no multiple of ``divisor`` lies between its bounds. If it may be negative (though the whole
    # value is not), C's division, which truncates, must see the whole value.
    if low // divisor == high // divisor:
        return add(whole, low // divisor)
    if low < 0:
        return Apply("divide", (expression, constant(divisor)), INDEX)
    digits = _digits(rest, divisor)
    if digits is not None:
        g, high_digits, _ = digits
        return add(whole, divide(high_digits, divisor // g))
    if type(rest) is Apply and rest.operation == "divide" and bounds(rest.operands[0])[0] >= 0:
        dividend, inner = rest.operands  # (x / 3) / 3 = x / 9
        if type(inner) is Constant:
            return add(whole, divide(dividend, int(inner.value) * divisor))  # type: ignore[arg-type]
    return add(whole, Apply("divide", (rest, constant(divisor)), INDEX))


def share(number: Expr, parts: Expr, extent: int) -> tuple[Expr, Expr]:
    """Build the ends [first, end) of one of ``parts`` nearly equal shares of ``extent`` places."""
    known = value_of(parts)

    def end(place: Expr) -> Expr:
        return Apply("divide", (place, parts), INDEX) if known is None else divide(place, known)

    return end(multiply(number, extent)), end(multiply(add(number, 1), extent))


def modulo(expression: Expr, divisor: int) -> Expr:
    """Build the remainder of a value >= 0; by 0, in code that never runs, 0."""
    if divisor < 2:
        return constant(0)
    _, rest = _split(expression, divisor)
    low, high = bounds(rest)
    if low // divisor == high // divisor:
        return subtract(rest, low // divisor * divisor)
    if low < 0:
        return Apply("modulo", (expression, constant(divisor)), INDEX)
    digits = _digits(rest, divisor)
    if digits is not None:
        g, high_digits, low_digit = digits
        return add(multiply(modulo(high_digits, divisor // g), g), low_digit)
    return Apply("modulo", (rest, constant(divisor)), INDEX)


def clamp(low: int, expression: Expr, high: Expr | int) -> Expr:
    """Build ``min(max(low, expression), high)``, or just the expression where its bounds allow."""
    high_end = constant(high) if isinstance(high, int) else high
    least, greatest = bounds(expression)
    if low <= least and greatest <= bounds(high_end)[0]:
        return expression
    last = value_of(high_end)
    if last is not None and low <= last <= least:
        return high_end
    if last is not None and greatest <= low <= last:
        return constant(low)
    return Apply("clamp", (constant(low), expression, high_end), INDEX)


def refolded(value: Apply) -> Expr:
    """Rebuild an operation on indices by the constructors above, which fold it if they can."""
    match value:
        case Apply("add", (one, other), _):
            return add(one, other)
        case Apply("multiply", (one, Constant(_, factor)), _):
            return multiply(one, int(factor))  # type: ignore[arg-type]
        case Apply("divide", (one, Constant(_, divisor)), _):
            return divide(one, int(divisor))  # type: ignore[arg-type]
        case Apply("modulo", (one, Constant(_, divisor)), _):
            return modulo(one, int(divisor))  # type: ignore[arg-type]
        case Apply("clamp", (Constant(_, low), one, high), _):
            return clamp(int(low), one, high)  # type: ignore[arg-type]
        case _:
            return value


def linearize(index: Sequence[Expr], dims: Sequence[int]) -> Expr:
    """Build the row-major offset of an index."""
    # The common case of flat loops, for speed.
    if len(index) == 1 and type(index[0]) in (Variable, Constant):
        return index[0]
    stride, strides = 1, []
    for dim in reversed(dims):
        strides.append(stride)
        stride *= dim
    return _sum(zip(index, reversed(strides), strict=True))


def delinearize(offset: Expr, dims: Sequence[int]) -> tuple[Expr, ...]:
    """Build the index of a row-major offset, for dims without 0."""
    index: list[Expr] = []
    for position, dim in reversed(list(enumerate(dims))):
        # The first dimension needs no remainder: offsets are in bounds.
        index.append(modulo(offset, dim) if position else offset)
        offset = divide(offset, dim)
    return tuple(reversed(index))


def with_atoms(expression: Expr, named_atom: Callable[[Expr], Expr]) -> Expr:
    """Replace every atom of the affine form that is no variable by ``named_atom(atom)``."""
    if type(expression) in (Variable, Constant):
        return expression
    terms, offset = affine_form(expression)
    if all(isinstance(atom, Variable) for atom in terms):
        return expression
    parts = [
        multiply(atom if isinstance(atom, Variable) else named_atom(atom), coefficient)
        for atom, coefficient in terms.items()
    ]
    return add(*parts, offset)


def is_quotient(expression: Expr) -> bool:
    """Return whether an expression divides, and consists of variables and constants only."""
    operations = {"add", "multiply", "divide", "modulo"}
    for part in subexpressions(expression):
        if type(part) is Apply:
            if part.operation not in operations:
                return False
        elif type(part) not in (Variable, Constant):
            return False
    return has_division(expression)


def has_division(expression: Expr) -> bool:
    """Return whether evaluating an expression takes a division of indices."""
    match expression:
        case Apply("divide" | "modulo", _, element_type) if element_type is INDEX:
            return True
        case Apply(_, inner, _):
            return any(map(has_division, inner))
        case Load(_, offset):
            return has_division(offset)
        case _:
            return False

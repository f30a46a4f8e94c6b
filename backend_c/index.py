"""Index arithmetic: constructors that keep every INDEX expression a folded linear form.

Offsets of reshapes, transposes and slices are sums of products with known bounds, so most
divisions disappear: ``(8*i + j) / 8`` is ``i`` and ``8*(i/8) + i%8`` is ``i``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend_c.loop_ir import INDEX, Apply, Constant, Expr, Load, Variable

_LIMIT = 2**62
_Linear = tuple[dict[Expr, int], int]  # coefficients of atoms, and a constant


def constant(value: int) -> Constant:
    return Constant(INDEX, value)


def value_of(expression: Expr) -> int | None:
    """The number, if the expression is one."""
    return int(expression.value) if isinstance(expression, Constant) else None  # type: ignore[arg-type]


def _linear(expression: Expr) -> _Linear:
    match expression:
        case Constant(_, value):
            return {}, int(value)  # type: ignore[arg-type]
        case Apply("add", (lhs, rhs), _):
            return _combine(_linear(lhs), _linear(rhs), 1)
        case Apply("multiply", (lhs, Constant(_, factor)), _):
            terms, offset = _linear(lhs)
            scale = int(factor)  # type: ignore[arg-type]
            return {atom: c * scale for atom, c in terms.items()}, offset * scale
        case _:
            return {expression: 1}, 0


def _combine(one: _Linear, other: _Linear, sign: int) -> _Linear:
    terms = dict(one[0])
    for atom, coefficient in other[0].items():
        terms[atom] = terms.get(atom, 0) + sign * coefficient
    return _merged({a: c for a, c in terms.items() if c}, one[1] + sign * other[1])


def _merged(terms: dict[Expr, int], constant_part: int) -> _Linear:
    """``k*c*(x/k) + c*(x%k)`` becomes ``c*x``."""
    for atom, coefficient in terms.items():
        if not (isinstance(atom, Apply) and atom.operation == "modulo"):
            continue
        x, k = atom.operands
        quotient = Apply("divide", (x, k), INDEX)
        if terms.get(quotient) == coefficient * (value_of(k) or 0):
            rest = {a: c for a, c in terms.items() if a not in (atom, quotient)}
            whole, offset = _linear(x)
            for part, factor in whole.items():
                rest[part] = rest.get(part, 0) + factor * coefficient
            kept = {a: c for a, c in rest.items() if c}
            return _merged(kept, constant_part + coefficient * offset)
    return terms, constant_part


def _built(terms: dict[Expr, int], offset: int) -> Expr:
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
    total: _Linear = ({}, 0)
    for expression in expressions:
        linear = ({}, expression) if isinstance(expression, int) else _linear(expression)
        total = _combine(total, linear, 1)
    return _built(*total)


def subtract(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return add(lhs, multiply(rhs, -1) if not isinstance(rhs, int) else -rhs)


def multiply(expression: Expr, factor: int) -> Expr:
    terms, offset = _linear(expression)
    return _built({a: c * factor for a, c in terms.items() if factor}, offset * factor)


def bounds(expression: Expr) -> tuple[int, int]:
    """Numbers between which the value lies, both included; saturated at 2**62."""
    match expression:
        case Constant(_, value):
            return int(value), int(value)  # type: ignore[arg-type]
        case Variable(_, _, low, high, _):
            return max(low, -_LIMIT), min(high, _LIMIT)
        case Apply("add", (lhs, rhs), _):
            one, other = bounds(lhs), bounds(rhs)
            return one[0] + other[0], one[1] + other[1]
        case Apply("multiply", (lhs, Constant(_, factor)), _):
            ends = sorted(end * int(factor) for end in bounds(lhs))  # type: ignore[arg-type]
            return ends[0], ends[1]
        case Apply("divide", (lhs, Constant(_, divisor)), _):
            low, high = bounds(lhs)
            return low // int(divisor), high // int(divisor)  # type: ignore[arg-type]
        case Apply("modulo", (_, Constant(_, divisor)), _):
            return 0, int(divisor) - 1  # type: ignore[arg-type]
        case Apply("clamp", (low_end, _, high_end), _):
            return bounds(low_end)[0], bounds(high_end)[1]
        case Apply("convert", (source,), _) if source.type.is_integer and source.type is not INDEX:
            signed = source.type.kind == "signed"
            end = 2 ** (source.type.bits - signed)
            return max(-end * signed, -_LIMIT), min(end - 1, _LIMIT)
        case _:
            return -_LIMIT, _LIMIT


def _split(expression: Expr, divisor: int) -> tuple[Expr, Expr]:
    """The part of a linear form that ``divisor`` divides, divided; and the rest."""
    terms, offset = _linear(expression)
    whole = {a: c // divisor for a, c in terms.items() if c % divisor == 0}
    rest = {a: c for a, c in terms.items() if c % divisor}
    return _built(whole, offset // divisor), _built(rest, offset % divisor)


def divide(expression: Expr, divisor: int) -> Expr:
    """Division of a non-negative value, rounded down; by 0, in code that never runs, 0."""
    if divisor < 2:
        return expression if divisor else constant(0)
    whole, rest = _split(expression, divisor)
    low, high = bounds(rest)
    if low >= 0 and high < divisor:
        return whole
    if low < 0:
        return Apply("divide", (expression, constant(divisor)), INDEX)
    return add(whole, Apply("divide", (rest, constant(divisor)), INDEX))


def modulo(expression: Expr, divisor: int) -> Expr:
    """The remainder of a non-negative value; by 0, in code that never runs, 0."""
    if divisor < 2:
        return constant(0)
    _, rest = _split(expression, divisor)
    low, high = bounds(rest)
    if low >= 0 and high < divisor:
        return rest
    if low < 0:
        return Apply("modulo", (expression, constant(divisor)), INDEX)
    return Apply("modulo", (rest, constant(divisor)), INDEX)


def clamp(low: int, expression: Expr, high: Expr | int) -> Expr:
    """``min(max(low, expression), high)``; without effect where the bounds show it."""
    high_end = constant(high) if isinstance(high, int) else high
    least, greatest = bounds(expression)
    if low <= least and greatest <= bounds(high_end)[0]:
        return expression
    number = value_of(expression)
    if number is not None and isinstance(high, int):
        return constant(min(max(number, low), high))
    return Apply("clamp", (constant(low), expression, high_end), INDEX)


def linearize(index: Sequence[Expr], dims: Sequence[int]) -> Expr:
    """The offset of an index in a row-major array."""
    offset: Expr = constant(0)
    for position, dim in zip(index, dims, strict=True):
        offset = add(multiply(offset, dim), position)
    return offset


def delinearize(offset: Expr, dims: Sequence[int]) -> tuple[Expr, ...]:
    """The index of an offset in a row-major array without zero-sized dimensions."""
    index: list[Expr] = []
    for position, dim in reversed(list(enumerate(dims))):
        index.append(modulo(offset, dim) if position else offset)
        offset = divide(offset, dim)
    return tuple(reversed(index))


def with_atoms(expression: Expr, named: Callable[[Expr], Expr]) -> Expr:
    """The linear form with every atom that takes computing replaced by ``named(atom)``."""
    terms, offset = _linear(expression)
    if all(isinstance(atom, Variable) for atom in terms):
        return expression
    parts = [
        multiply(atom if isinstance(atom, Variable) else named(atom), coefficient)
        for atom, coefficient in terms.items()
    ]
    return add(*parts, offset)


def divisions(expression: Expr) -> bool:
    """Whether evaluating it takes a division."""
    match expression:
        case Apply("divide" | "modulo", _, _):
            return True
        case Apply(_, inner, _):
            return any(map(divisions, inner))
        case Load(_, offset):
            return divisions(offset)
        case _:
            return False

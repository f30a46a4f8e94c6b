"""Index arithmetic: constructors that keep every INDEX expression a folded linear form.

Offsets of reshapes, transposes and slices are sums of products with known bounds, so most
divisions disappear: ``(8*i + j) / 8`` is ``i`` and ``8*(i/8) + i%8`` is ``i``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from backend_c.ir.loop_ir import INDEX, Apply, Constant, Expr, Load, Variable

_LIMIT = 2**62
_Linear = tuple[dict[Expr, int], int]  # coefficients of atoms, and a constant


def constant(value: int) -> Constant:
    return Constant(INDEX, value)


def value_of(expression: Expr) -> int | None:
    """The number, if the expression is one."""
    return int(expression.value) if isinstance(expression, Constant) else None  # type: ignore[arg-type]


def _linear(expression: Expr) -> _Linear:
    terms: dict[Expr, int] = {}
    offset = _gather(expression, 1, terms)
    return terms, offset


def _gather(expression: Expr, factor: int, terms: dict[Expr, int]) -> int:
    """Adds so many times the atoms of an expression to ``terms``; the constant part. (What was
    built here has each sum's rest on the left.)"""
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
    """Each expression so many times, and a number."""
    terms: dict[Expr, int] = {}
    for expression, factor in parts:
        offset += _gather(expression, factor, terms)
    if 0 in terms.values():
        terms = {atom: factor for atom, factor in terms.items() if factor}
    return _built(*_merged(terms, offset))


def _merged(terms: dict[Expr, int], constant_part: int) -> _Linear:
    """``k*c*(x/k) + c*(x%k)`` becomes ``c*x``."""
    for atom, coefficient in terms.items():
        if type(atom) is not Apply or atom.operation != "modulo":
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
    offset = sum(e for e in expressions if isinstance(e, int))
    return _sum(((e, 1) for e in expressions if not isinstance(e, int)), offset)


def subtract(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return add(lhs, multiply(rhs, -1) if not isinstance(rhs, int) else -rhs)


def multiply(expression: Expr, factor: int) -> Expr:
    if type(expression) is Variable and factor == 1:
        return expression
    return _sum([(expression, factor)])


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
    if len(index) == 1 and type(index[0]) in (Variable, Constant):
        return index[0]
    stride, strides = 1, []
    for dim in reversed(dims):
        strides.append(stride)
        stride *= dim
    return _sum(zip(index, reversed(strides), strict=True))


def delinearize(offset: Expr, dims: Sequence[int]) -> tuple[Expr, ...]:
    """The index of an offset in a row-major array without zero-sized dimensions."""
    index: list[Expr] = []
    for position, dim in reversed(list(enumerate(dims))):
        index.append(modulo(offset, dim) if position else offset)
        offset = divide(offset, dim)
    return tuple(reversed(index))


def with_atoms(expression: Expr, named: Callable[[Expr], Expr]) -> Expr:
    """The linear form with every atom that takes computing replaced by ``named(atom)``."""
    if type(expression) in (Variable, Constant):
        return expression
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

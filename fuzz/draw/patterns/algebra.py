"""Generate arithmetic that algebraic simplifications rewrite, by templates.

The rows follow the rewrites of XLA's algebraic simplifier (``algebraic_simplifier.cc``), right ones
and tempting wrong ones: what holds of reals and not of floats, of numbers and not of NaN, of
unbounded integers and not modulo 2^n.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fuzz.draw.builder import Builder
from fuzz.draw.patterns.pattern import Pattern, Patterns
from fuzz.draw.patterns.templates import drawn, fits, predicated
from hlo.opcodes import SHIFT, having
from hlo.types import PRED, ArrayShape

_SHIFTS = sorted(having(SHIFT))

# Arithmetic of the result's own type.
_ROWS: Mapping[str, str] = {
    "sums": """
        add(a, 0); add(0, a); add(add(a, k), k); add(k, add(a, k)); add(a, negate(b));
        add(negate(a), b); add(multiply(a, c), multiply(b, c)); add(multiply(a, c), multiply(c, b));
        add(a, a); add(a, multiply(a, k)); subtract(a, 0); subtract(0, a); subtract(a, k);
        subtract(a, a); subtract(subtract(a, k), k); subtract(k, subtract(k, a));
        subtract(k, add(a, k)); subtract(add(a, b), b); subtract(a, add(a, b));
        add(subtract(a, b), b); negate(subtract(a, b)); negate(negate(a)); negate(add(a, k));
        subtract(multiply(a, c), multiply(b, c)); subtract(negate(a), negate(b))""",
    "products": """
        multiply(a, 1); multiply(a, 0); multiply(0, a); multiply(a, -1); multiply(a, 2);
        multiply(multiply(a, k), k); multiply(k, multiply(k, a)); multiply(add(a, k), k);
        multiply(multiply(a, k), multiply(b, k)); multiply(negate(a), negate(b)); multiply(a, a);
        multiply(abs(a), abs(a)); multiply(abs(a), abs(b)); multiply(multiply(a, a), a);
        multiply(negate(a), k); multiply(subtract(a, b), c); multiply(a, multiply(b, k))""",
    "quotients": """
        divide(divide(a, b), c); divide(a, divide(b, c)); divide(divide(a, b), divide(c, d));
        divide(divide(a, k), k); divide(k, divide(a, k)); divide(divide(k, a), k); divide(a, k);
        divide(k, a); divide(a, exponential(b)); divide(a, power(b, c)); divide(a, sqrt(b));
        divide(a, rsqrt(b)); divide(a, cbrt(b)); divide(a, a); divide(0, a); divide(a, 0);
        divide(a, 1); divide(a, -1); divide(a, 2); divide(a, 3); divide(a, 0.5); divide(1, a);
        divide(1, divide(1, a)); divide(multiply(a, b), b); multiply(divide(a, b), b);
        divide(multiply(a, k), k); multiply(divide(a, k), k); divide(negate(a), negate(b));
        divide(negate(a), k); divide(a, min); divide(add(a, b), c); divide(multiply(a, b), a);
        multiply(a, divide(1, b)); divide(abs(a), abs(b))""",
    "remainders": """
        remainder(a, 1); remainder(a, 2); remainder(a, 8); remainder(a, -1); remainder(a, k);
        remainder(k, a); remainder(remainder(a, k), k); remainder(remainder(a, b), b);
        remainder(multiply(a, k), k); remainder(add(a, k), k); remainder(a, a); remainder(a, min);
        remainder(0, a); remainder(a, 0); subtract(a, multiply(divide(a, b), b));
        remainder(negate(a), k); remainder(add(remainder(a, k), b), k); remainder(a, divide(a, b))
        """,
    "powers": """
        power(a, 0); power(a, 1); power(a, 2); power(a, 3); power(a, 4); power(a, -1);
        power(a, -2); power(a, 0.5); power(a, -0.5); power(a, 0.25); power(a, k); power(k, a);
        power(exponential(a), b); power(exponential(a), 2); power(power(a, b), c);
        power(power(a, 2), 0.5); power(1, a); power(2, a); power(0, a); power(-1, a); power(a, a);
        multiply(power(a, b), power(a, c)); multiply(power(a, b), a);
        divide(power(a, b), power(a, c)); power(sqrt(a), 2); sqrt(power(a, 2)); power(negate(a), 2);
        power(negate(a), 3); power(abs(a), 2); power(multiply(a, b), 2); power(divide(a, b), 2);
        power(divide(1, a), 3); power(divide(1, a), k); power(k, k); power(power(a, 3), 3);
        divide(k, power(a, k)); power(a, min); power(a, max); power(a, nan)""",
    "exponentials and logarithms": """
        exponential(log(a)); log(exponential(a)); multiply(exponential(a), exponential(b));
        divide(exponential(a), exponential(b)); divide(1, exponential(a)); exponential(negate(a));
        subtract(exponential(a), 1); exponential-minus-one(log-plus-one(a)); log(add(a, 1));
        log(add(1, exponential(a))); log-plus-one(exponential-minus-one(a));
        log-plus-one(subtract(a, 1)); log(multiply(a, b)); log(divide(a, b)); log(sqrt(a));
        log(rsqrt(a)); log(power(a, b)); log(power(a, 2)); log(exponential(multiply(a, b)));
        divide(1, add(1, exponential(negate(a)))); divide(k, add(k, exponential(negate(a))));
        log(logistic(a)); subtract(1, logistic(a)); multiply(a, logistic(a));
        add(multiply(tanh(multiply(a, 0.5)), 0.5), 0.5); exponential(multiply(a, log(b)));
        exponential(add(a, b)); log(k); exponential(k); exponential(multiply(log(a), k));
        subtract(log(a), log(b)); add(log(a), log(b))""",
    "roots": """
        sqrt(multiply(a, a)); multiply(sqrt(a), sqrt(a)); multiply(rsqrt(a), rsqrt(a));
        divide(1, sqrt(a)); divide(1, rsqrt(a)); divide(a, sqrt(a)); multiply(a, rsqrt(a));
        divide(sqrt(a), a); rsqrt(multiply(a, a)); sqrt(sqrt(a)); sqrt(divide(1, a));
        rsqrt(divide(1, a)); multiply(sqrt(a), sqrt(b)); cbrt(multiply(a, multiply(a, a)));
        sqrt(power(a, k)); multiply(sqrt(a), rsqrt(a)); sqrt(add(multiply(a, a), multiply(b, b)));
        sqrt(exponential(a)); rsqrt(power(a, 2)); rsqrt(add(a, k)); sqrt(k); rsqrt(k); cbrt(k);
        divide(a, sqrt(multiply(b, b))); power(rsqrt(a), 2); power(cbrt(a), 3)""",
    "trigonometry": """
        sine(negate(a)); cosine(negate(a)); cosine(abs(a)); divide(sine(a), cosine(a));
        add(multiply(sine(a), sine(a)), multiply(cosine(a), cosine(a))); atan2(a, 1); atan2(0, a);
        atan2(a, 0); atan2(sine(a), cosine(a)); atan2(a, a); atan2(a, negate(a)); tanh(negate(a));
        divide(sinh(a), cosh(a)); atanh(tanh(a)); asin(sine(a)); acos(cosine(a)); acosh(cosh(a));
        asinh(sinh(a)); tan(atan2(a, b)); erf(negate(a)); multiply(0.5, add(1, erf(a)));
        sine(k); cosine(k); tan(k); tanh(k); erf(k); atan2(k, k); sinh(k); cosh(k); asinh(k);
        acos(k); asin(k); atanh(k); acosh(k)""",
    "signs": """
        abs(abs(a)); abs(negate(a)); negate(abs(a)); sign(sign(a)); sign(abs(a)); sign(negate(a));
        multiply(sign(a), abs(a)); multiply(a, sign(a)); abs(multiply(a, a)); abs(subtract(a, b));
        maximum(a, negate(a)); select(compare.LT(a, 0), negate(a), a); subtract(abs(a), a);
        select(compare.GE(a, 0), a, negate(a)); abs(k); sign(k); negate(k); abs(multiply(a, k));
        abs(exponential(a)); abs(sqrt(a)); abs(maximum(a, 0)); divide(a, abs(a));
        sign(multiply(a, b))
        """,
    "extremes": """
        maximum(maximum(a, k), k); minimum(maximum(a, k), k); maximum(minimum(a, k), k);
        maximum(a, a); minimum(a, min); minimum(a, max); maximum(a, min); maximum(a, max);
        clamp(k, a, k); clamp(min, a, max); clamp(max, a, min); clamp(k, clamp(k, a, k), k);
        clamp(b, a, c); clamp(b, a, b); maximum(a, minimum(a, b)); minimum(a, maximum(a, b));
        minimum(maximum(a, b), maximum(a, c)); maximum(add(a, k), add(b, k)); maximum(a, 0);
        maximum(negate(a), negate(b)); maximum(maximum(a, 0), 0);
        maximum(maximum(a, b), maximum(a, c));
        select(compare.GT(a, b), a, b); select(compare.LE(a, b), a, b); maximum(a, nan);
        minimum(nan, a); maximum(k, k); clamp(k, k, k); clamp(0, a, k); minimum(clamp(k, a, k), k)
        """,
    "bits": """
        and(a, 0); and(a, -1); or(a, 0); or(a, -1); xor(a, 0); xor(a, -1); and(a, a); or(a, a);
        xor(a, a); not(not(a)); and(a, not(a)); or(a, not(a)); xor(a, not(a)); and(and(a, k), k);
        or(or(a, k), k); xor(xor(a, k), k); and(or(a, b), a); or(and(a, b), a); and(or(a, k), k);
        not(and(not(a), not(b))); xor(not(a), not(b)); or(and(a, b), and(a, c)); and(a, 1);
        xor(xor(a, b), b); not(k); and(k, k); or(xor(a, b), and(a, b)); popcnt(not(a));
        popcnt(and(a, k)); count-leading-zeros(or(a, 1)); popcnt(k); count-leading-zeros(k);
        not(negate(a)); add(not(a), 1); subtract(a, and(a, k)); mulhi(a, 2); mulhi(a, k);
        mulhi(k, k)
        """,
    "shifts": "; ".join(
        f"{one}(a, 0); {one}(a, width); {one}(a, -1); {one}(0, a); {one}(a, k); {one}(k, a);"
        f" and({one}(a, k), k); {one}(and(a, k), k); {one}({one}(a, 1), 1); {one}(k, k);"
        f" {one}({other}(a, k), k); {one}({other}(a, 3), 3); {one}({other}(a, b), b);"
        f" {one}(a, and(b, 7)); {one}(add(a, b), k); {one}(negate(a), 1)"
        for one in _SHIFTS
        for other in _SHIFTS
    )
    + "; multiply(a, shift-left(1, b)); divide(a, shift-left(1, b));"
    " remainder(a, shift-left(1, b));"
    " or(shift-left(a, 3), shift-right-logical(a, 5)); shift-left(multiply(a, k), k)",
    "roundings": """
        floor(floor(a)); ceil(floor(a)); floor(ceil(a)); round-nearest-afz(floor(a));
        round-nearest-even(ceil(a)); floor(negate(a)); negate(ceil(negate(a))); floor(add(a, 0.5));
        subtract(a, floor(a)); round-nearest-even(multiply(a, 0.5)); round-nearest-afz(add(a, k));
        round-nearest-even(k); round-nearest-afz(k); floor(k); ceil(k); floor(divide(a, b));
        multiply(floor(divide(a, k)), k); round-nearest-even(round-nearest-afz(a))""",
    "selections": """
        select(p, a, a); select(not(p), a, b); select(p, select(p, a, b), c);
        select(p, a, select(p, b, c)); select(p, a, select(q, b, c)); select(true, a, b);
        select(0, a, b); select(k, a, b); select(compare.EQ(a, b), a, b);
        select(compare.NE(a, b), a, b); select(compare.NE(a, 0), a, 0); select(and(p, q), a, b);
        select(or(p, q), a, b); select(xor(p, true), a, b); add(select(p, a, 0), b);
        multiply(select(p, 1, 0), a); select(p, k, k); select(p, add(a, b), add(a, c));
        select(p, negate(a), negate(b)); negate(select(p, k, a)); add(select(p, k, k), k);
        select(and(p, p), a, b); select(compare.?(a, k), a, k); select(not(not(p)), a, b)""",
}

# Preds of data of any type.
_PREDICATES: Mapping[str, str] = {
    "comparisons with constants": """
        compare.?(a, k); compare.?(k, a); compare.?(a, 0); compare.?(a, 1); compare.?(a, min);
        compare.?(a, max); compare.?(min, a); compare.?(max, a); compare.?(a, nan); compare.?(k, k);
        compare.?(abs(a), 0); compare.?(abs(a), k); compare.?(negate(a), k);
        compare.?(add(a, k), k); compare.?(subtract(a, k), k); compare.?(subtract(k, a), k);
        compare.?(multiply(a, k), k); compare.?(multiply(a, 2), k); compare.?(divide(a, k), k);
        compare.?(maximum(a, k), k); compare.?(minimum(a, k), k); compare.?(clamp(k, a, k), k);
        compare.?(and(a, k), 0); compare.?(and(a, k), k); compare.?(or(a, k), 0);
        compare.?(xor(a, k), k); compare.?(not(a), k); compare.?(remainder(a, k), 0);
        compare.?(remainder(a, k), k); compare.?(select(p, k, k), k); compare.?(select(p, a, k), k);
        compare.?(sign(a), 0); compare.?(popcnt(a), 0); compare.?(popcnt(a), k);
        compare.?(count-leading-zeros(a), 0); compare.?(sqrt(a), k); compare.?(exponential(a), 0);
        compare.?(power(a, 2), 0); compare.?(floor(a), k); compare.?(shift-left(a, k), k);
        compare.?(shift-right-logical(a, k), k); compare.?(multiply(a, a), 0)""",
    "comparisons": """
        compare.?(a, a); compare.?(a, b); not(compare.?(a, b)); compare.?(subtract(a, b), 0);
        compare.?(negate(a), negate(b)); compare.?(add(a, c), add(b, c));
        compare.?(multiply(a, c), multiply(b, c)); compare.?(a, add(a, 1)); compare.?(a, abs(a));
        and(compare.?(a, k), compare.?(a, k)); or(compare.?(a, k), compare.?(a, k));
        and(compare.?(a, b), compare.?(b, a)); or(compare.?(a, b), not(compare.?(a, b)));
        xor(compare.?(a, b), true); and(compare.?(a, b), true); or(compare.?(a, b), 0);
        compare.?(maximum(a, b), a); compare.?(minimum(a, b), b); compare.?(a, not(a));
        select(compare.?(a, b), p, q); select(p, compare.?(a, b), compare.?(b, a));
        not(and(compare.?(a, b), compare.?(a, c))); compare.?(select(p, a, b), a)""",
}


def _templates(text: str) -> tuple[str, ...]:
    return tuple(" ".join(one.split()) for one in text.split(";"))


def _accepts(templates: tuple[str, ...], shape: ArrayShape) -> bool:
    data = shape.element_type
    return any(fits(template, data, data) for template in templates)


def _of_data(templates: tuple[str, ...], builder: Builder, shape: ArrayShape) -> str:
    return drawn(builder, shape, templates)


def _of_any(templates: tuple[str, ...], builder: Builder, shape: ArrayShape) -> str:
    return predicated(builder, shape, templates)


def _arithmetic(text: str) -> Pattern:
    templates = _templates(text)
    return Pattern(partial(_of_data, templates), (), partial(_accepts, templates))


def _predicate(text: str) -> Pattern:
    templates = _templates(text)
    make = partial(_of_any, templates)
    return Pattern(make, ("compare",), lambda shape: shape.element_type is PRED)


PATTERNS: Patterns = {
    **{name: _arithmetic(text) for name, text in _ROWS.items()},
    **{name: _predicate(text) for name, text in _PREDICATES.items()},
}

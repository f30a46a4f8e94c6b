"""Functions of one element at a time."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from against_jax.case import (
    COMPLEX,
    COMPLEX_PARTS,
    COMPOSITE,
    ELEMENTARY,
    EXACT,
    FLOATS,
    NARROW,
    ONE,
    UNSTABLE,
    WIDE,
    Case,
    row,
)
from hlo.types import ELEMENT_TYPES

_UNARY, _BINARY = ("T[]:edges",), ("T[]:rows", "T[]:columns")
# Functions by what their results may differ by.
_PLAIN = (
    (_UNARY, EXACT, "ceil floor neg real imag conj is_finite bitwise_not clz population_count"),
    (_UNARY, EXACT, "abs sign square sqrt stop_gradient round"),
    (_UNARY, ELEMENTARY, "acos acosh asin asinh atan atanh cbrt cos cosh erf exp exp2 expm1 log"),
    (_UNARY, ELEMENTARY, "log1p logistic reciprocal rsqrt sin sinh tan tanh"),
    (_UNARY, COMPOSITE, "bessel_i0e bessel_i1e digamma erf_inv erfc lgamma"),
    (_BINARY, EXACT, "add sub mul div max min rem bitwise_and bitwise_or bitwise_xor mulhi"),
    (_BINARY, EXACT, "eq ne lt le gt ge nextafter complex"),
    (_BINARY, EXACT, "shift_left shift_right_arithmetic shift_right_logical"),
    (_BINARY, ELEMENTARY, "atan2 pow"),
)


def _plain() -> list[Case]:
    return [
        row(f"lax.{name}", getattr(lax, name), *specs, bound=bound, complex_bound=COMPLEX_PARTS)
        for specs, bound, names in _PLAIN
        for name in names.split()
    ]


def _complex() -> list[Case]:
    """Numbers of moderate size, where complex functions are smooth."""
    unary = "abs sign sqrt square acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log"
    unary += " log1p logistic reciprocal rsqrt sin sinh tan tanh conj neg real imag"
    rows = [(name, ("T[40]",)) for name in unary.split()]
    rows += [(name, ("T[40]", "T[40]")) for name in ["add", "sub", "mul", "div", "pow", "atan2"]]
    return [
        row(f"lax.{name}/complex", getattr(lax, name), *specs, types=COMPLEX, bound=COMPLEX_PARTS)
        for name, specs in rows
    ]


def _converted() -> list[Case]:
    """List conversions from each type to each other one."""
    return [
        row(
            f"lax.convert_element_type/{name}",
            lambda x, to=kind.numpy: lax.convert_element_type(x, to),
            "T[]:edges",
        )
        for name, kind in ELEMENT_TYPES.items()
        if kind.is_array and name not in ("s1", "u1", "f6e2m3fn", "f6e3m2fn")
    ]


def _derivatives() -> list[Case]:
    names = (
        "acos acosh asin asinh atan atanh cbrt cos cosh digamma erf erf_inv erfc exp exp2 expm1"
        " lgamma log log1p logistic rsqrt sin sinh sqrt tan tanh bessel_i0e bessel_i1e square abs"
    )
    return [
        row(
            f"grad lax.{name}",
            jax.vmap(jax.grad(getattr(lax, name))),
            "T[30]:fraction",
            types=FLOATS,
            bound=UNSTABLE,
        )
        for name in names.split()
    ]


_EIGHTHS = ("T[9]:fraction", "T[9]:fraction", "T[9]:fraction")

CASES = (
    *_plain(),
    *_complex(),
    *_converted(),
    *_derivatives(),
    row("lax.round/even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), *_UNARY),
    row("lax.integer_pow/3", lambda x: lax.integer_pow(x, 3), *_UNARY, bound=ELEMENTARY),
    row("lax.integer_pow/-2", lambda x: lax.integer_pow(x, -2), *_UNARY, bound=ELEMENTARY),
    row("lax.pow/int", lax.pow, "T[]:rows", "s32[]", types=FLOATS, bound=ELEMENTARY),
    row("lax.clamp", lax.clamp, "T[3,4]", "T[3,4]", "T[3,4]"),
    row("lax.clamp/scalars", lax.clamp, "T[]:zero", "T[40]", "T[]:one"),
    row("lax.clamp/edges", lambda x: lax.clamp(x[3], x, x[5]), *_UNARY),
    row("lax.select", lax.select, "pred[5,3]", "T[5,3]", "T[5,3]"),
    row("lax.select/scalar", lambda p, x, y: jnp.where(p, x, y), "pred[]", "T[5,3]", "T[5,3]"),
    row("lax.select_n", lax.select_n, "pred[4]", "T[4]", "T[4]"),
    row("lax.select_n/three", lax.select_n, "s32[9]:index3", "T[9]", "T[9]", "T[9]"),
    row("lax.select_n/scalar", lax.select_n, "s32[]:index3", "T[9]", "T[9]", "T[9]"),
    *(
        row(
            f"lax.reduce_precision/{e},{m}",
            lambda x, e=e, m=m: lax.reduce_precision(x, e, m),
            "T[]:edges",
            types=(*FLOATS, *NARROW),
        )
        for e, m in ((5, 10), (8, 7), (4, 3), (2, 1), (1, 0), (8, 0), (11, 52), (5, 23))
    ),
    row("lax.betainc", lax.betainc, *_EIGHTHS, types=(*FLOATS, *NARROW[:-1]), bound=UNSTABLE),
    row("lax.igamma", lax.igamma, *_EIGHTHS[:2], types=(*FLOATS, *NARROW), bound=UNSTABLE),
    row("lax.igammac", lax.igammac, *_EIGHTHS[:2], types=(*FLOATS, *NARROW), bound=UNSTABLE),
    row(
        "lax.igamma/large", lax.igamma, "T[9]:positive", "T[9]:positive", types=WIDE, bound=UNSTABLE
    ),
    row("lax.igamma_grad_a", lax.igamma_grad_a, *_EIGHTHS[:2], types=WIDE, bound=UNSTABLE),
    row("lax.random_gamma_grad", lax.random_gamma_grad, *_EIGHTHS[:2], types=WIDE, bound=UNSTABLE),
    row(
        "lax.polygamma",
        lambda x: lax.polygamma(jnp.full_like(x, 2), x),
        "T[9]:positive",
        types=(*FLOATS, *NARROW),
        bound=UNSTABLE,
    ),
    row(
        "lax.zeta",
        lambda x: lax.zeta(x + 1, x),
        "T[9]:positive",
        types=(*FLOATS, *NARROW),
        bound=UNSTABLE,
    ),
    row(
        "lax.exp/accuracy",
        lambda x: lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST),
        *_UNARY,
        types=ONE,
        bound=ELEMENTARY,
    ),
    row(
        "lax.tanh/tolerance",
        lambda x: lax.tanh(x, accuracy=lax.Tolerance(1e-5, 0.0, 2)),
        *_UNARY,
        types=ONE,
        bound=ELEMENTARY,
    ),
)

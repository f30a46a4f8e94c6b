"""Orthogonal polynomials of ATen, by their recurrences and, of Chebyshev's, by cosines.

The formulas are those of ATen/native/Math.h. The degree is an operand, converted to an integer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax

from hlo_oracle.frontends.torch.aten.promotion import Operation, promoted

Step = Callable[[Any, Any, Any, Any], Any]  # x, the degree so far, the two last values


def _recurrence(x: Any, degree: Any, first: Any, step: Step) -> Any:
    """Compute polynomials of each degree from those of the degrees 0 and 1."""

    def is_left(state: Any) -> Any:
        k, _, last = state
        return (k < degree) & ~jnp.isnan(last)

    def following(state: Any) -> Any:
        k, before, last = state
        goes_on = is_left(state)
        new = step(x, k.astype(x.dtype), before, last)
        return k + 1, jnp.where(goes_on, last, before), jnp.where(goes_on, new, last)

    start = jnp.ones((), "int64"), jnp.ones_like(x), first
    value = lax.while_loop(lambda state: jnp.any(is_left(state)), following, start)[2]
    return jnp.where(degree < 0, 0, jnp.where(degree == 0, 1, value)).astype(x.dtype)


def _given(x: Any, degree: Any) -> tuple[Any, Any]:
    x, degree = jnp.broadcast_arrays(x, degree)
    return x, degree.astype("int64")


def _hermite(step: Step, first: float, x: Any, degree: Any) -> Any:
    is_number = jnp.isfinite(degree)
    x, degree = _given(x, jnp.where(is_number, degree, -1))
    most = {"float32": 128, "float64": 512}.get(str(x.dtype), 1024)
    value = _recurrence(x, jnp.minimum(degree, most), first * x, step)
    return jnp.where(degree > most, jnp.nan, value).astype(x.dtype)


def _laguerre(x: Any, degree: Any) -> Any:
    def step(x: Any, k: Any, before: Any, last: Any) -> Any:
        return ((k + k + (1 - x)) * last - k * before) / (k + 1)

    x, degree = _given(x, degree)
    value = _recurrence(x, degree, 1 - x, step)
    return jnp.where((x == 0) & (degree >= 0), 1, value).astype(x.dtype)


def _legendre(x: Any, degree: Any) -> Any:
    def step(x: Any, k: Any, before: Any, last: Any) -> Any:
        return ((k + k + 1) * x * last - k * before) / (k + 1)

    x, degree = _given(x, degree)
    value = _recurrence(x, degree, x, step)
    at_end = jnp.where((x > 0) | (degree % 2 == 0), 1, -1)
    return jnp.where((jnp.abs(x) == 1) & (degree >= 0), at_end, value).astype(x.dtype)


def _chebyshev(kind: str, bound: int, is_shifted: bool, x: Any, degree: Any) -> Any:
    """Compute a polynomial of the first, second, third or fourth kind (t, u, v, w): between -1 and
    1, if its degree is above ``bound``, by cosines and sines."""
    x, n = _given(x, degree)
    if is_shifted:
        x = x + x - 1
    first = {"t": x, "u": x + x, "v": x + x - 1, "w": x + x + 1}[kind]
    is_inside = (n > bound) & (jnp.abs(x) < 1)
    value = _recurrence(
        x, jnp.where(is_inside, 0, n), first, lambda x, k, before, last: (x + x) * last - before
    )
    # Of 1 and -1: the ends of the third kind are those of the fourth the other way round.
    sign = jnp.where(n % 2 == 0, 1, -1)
    high, low = {
        "t": (jnp.ones_like(n), sign), "u": (n + 1, sign * (n + 1)),
        "v": (jnp.ones_like(n), sign * (n + n + 1)), "w": (n + n + 1, sign),
    }[kind]  # fmt: skip
    angle = jnp.arccos(jnp.clip(x, -1, 1))
    degrees = n.astype(x.dtype)
    if kind == "t":
        inside = jnp.cos(degrees * angle)
    elif kind == "u":
        inside = jnp.sin((degrees + 1) * angle) / jnp.sin(angle)
    elif kind == "v":
        inside = jnp.cos((degrees + 0.5) * angle) / jnp.cos(angle / 2)
    else:
        inside = jnp.sin((degrees + 0.5) * angle) / jnp.sin(angle / 2)
    value = jnp.where(is_inside, inside, value)
    value = jnp.where(x == 1, high, jnp.where(x == -1, low, value))
    return jnp.where(n < 0, 0, value).astype(x.dtype)


OPS: dict[str, Operation] = {
    "special_hermite_polynomial_h": promoted(
        partial(_hermite, lambda x, k, before, last: (x + x) * last - (k + k) * before, 2)
    ),
    "special_hermite_polynomial_he": promoted(
        partial(_hermite, lambda x, k, before, last: x * last - k * before, 1)
    ),
    "special_laguerre_polynomial_l": promoted(_laguerre),
    "special_legendre_polynomial_p": promoted(_legendre),
    **{
        f"special_chebyshev_polynomial_{kind}": promoted(partial(_chebyshev, kind, bound, False))
        for kind, bound in (("t", 6), ("u", 8), ("v", 8), ("w", 8))
    },
    **{
        f"special_shifted_chebyshev_polynomial_{kind}": promoted(
            partial(_chebyshev, kind, bound, True)
        )
        for kind, bound in (("t", 6), ("u", 6), ("v", 6), ("w", 4))
    },
}

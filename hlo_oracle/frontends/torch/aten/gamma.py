"""Derivatives of the logarithm of the gamma function, and Hurwitz's zeta function, of ATen.

The formulas are those of ATen/native/Math.h: JAX's hold where the operand is no negative number.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from hlo_oracle.frontends.torch.aten.promotion import Operation, promoted, typed

_LEAST = 1.11022302462515654042e-16  # a term of a sum that is smaller does not count
_EULER_MACLAURIN = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10,
    -2.950130727918164224e12, 1.1646782814350067249e14, -4.5979787224074726105e15,
    1.8152105401943546773e17, -7.1661652561756670113e18,
)  # fmt: skip


def _digamma(x: Any) -> Any:
    # JAX's formula is NaN at all poles; PyTorch's has a limit at each zero.
    return jnp.where(x == 0, jnp.copysign(jnp.asarray(jnp.inf, x.dtype), -x), lax.digamma(x))


def _trigamma(x: Any) -> Any:
    """Compute the second derivative, of numbers below 1/2 by reflection."""
    is_reflected = x < 0.5
    root = jnp.asarray(math.pi, x.dtype)
    sine = jnp.sin(root * x)
    reflected = jnp.where(is_reflected, root * root / (sine * sine), 0)
    x = jnp.where(is_reflected, 1 - x, x)
    value = jnp.where(is_reflected, -reflected, jnp.zeros_like(x))
    for _ in range(6):
        value = value + 1 / (x * x)
        x = x + 1
    w = 1 / (x * x)
    value = value + (1 + 1 / (2 * x) + w * (1 / 6 - w * (1 / 30 - w / 42))) / x
    return jnp.where(is_reflected, -value, value)


def _zeta(x: Any, q: Any) -> Any:
    """Compute Σ (q + k)⁻ˣ: terms until q + k is above 9, then the formula of Euler and Maclaurin.

    A sum ends where a term no longer counts. It is added up in the type of the operands, as ATen's
    kernel does, of narrow ones in f32: a wider type would leave that kernel no rounding.
    """
    kind = x.dtype
    wide = jnp.promote_types(kind, "float32")
    x, q = (operand.astype(wide) for operand in jnp.broadcast_arrays(x, q))
    is_pole = (x == 1) | (~(x < 1) & (q <= 0) & (q == jnp.floor(q)))
    is_nan = (x < 1) | ((q <= 0) & (x != jnp.floor(x)))

    def step(state: Any) -> Any:
        i, a, total, goes_on, is_done = state
        a = jnp.where(goes_on, a + 1, a)
        term = a**-x
        total = jnp.where(goes_on, total + term, total)
        is_done = is_done | (goes_on & (-_LEAST * total < term) & (term < _LEAST * total))
        return i + 1, a, total, goes_on & ~is_done & ((i < 8) | (a <= 9)), is_done

    is_summed = ~is_pole & ~is_nan
    start = jnp.zeros((), "int64"), q, q**-x, is_summed, ~is_summed
    _, a, total, _, is_done = lax.while_loop(lambda state: jnp.any(state[3]), step, start)
    term = a**-x
    total = jnp.where(is_done, total, total + term * a / (x - 1) - 0.5 * term)
    factor = jnp.ones_like(x)
    for k, divisor in enumerate(_EULER_MACLAURIN):
        factor, term = factor * (x + 2 * k), term / a
        part = factor * term / divisor
        total = jnp.where(is_done, total, total + part)
        is_done = is_done | (jnp.abs(part / total) < _LEAST)
        factor, term = factor * (x + 2 * k + 1), term / a
    return jnp.where(is_pole, jnp.inf, jnp.where(is_nan, jnp.nan, total)).astype(kind)


def _polygamma(result: Any, order: int, x: Any) -> Any:
    """Compute the derivative of an order, counted from that of the logarithm."""
    x = jnp.asarray(x, result)
    if order < 2:
        return _trigamma(x) if order else _digamma(x)
    wide = x.astype(jnp.promote_types(result, "float32"))
    factorial = jnp.exp(jnp.asarray(math.lgamma(order + 1), wide.dtype))
    found = (1 if order % 2 else -1) * factorial * _zeta(jnp.full_like(wide, order + 1), wide)
    return found.astype(result)


OPS: dict[str, Operation] = {
    "digamma": promoted(_digamma),
    "polygamma": typed(_polygamma),
    "special_zeta": promoted(_zeta),
}

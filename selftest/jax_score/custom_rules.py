"""Define functions with derivatives of their own, for the tables of calls."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


@jax.custom_jvp
def sine(x: Any) -> Any:
    """Compute sin x, with a custom derivative."""
    return jnp.sin(x)


@sine.defjvp
def _sine(primals: Any, tangents: Any) -> Any:
    return jnp.sin(primals[0]), jnp.cos(primals[0]) * tangents[0]


@jax.custom_vjp
def clipped(x: Any) -> Any:
    """Return x, with a gradient clipped to [-1, 1]."""
    return x


def _forward(x: Any) -> Any:
    return x, x


def _backward(x: Any, cotangent: Any) -> Any:
    return (jnp.clip(cotangent * jnp.sign(x), -1, 1),)


clipped.defvjp(_forward, _backward)

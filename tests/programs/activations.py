"""Chains of elementwise operations and activations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from programs.function import of


@of("f32[32,100]")
def softmax(x: Array) -> Array:
    return jax.nn.softmax(x)


@of("f32[32,100]:scaled10")
def softmax_without_maximum(x: Array) -> Array:
    e = jnp.exp(x)
    return e / e.sum(-1, keepdims=True)


@of("f32[32,100]:scaled4")
def log_softmax(x: Array) -> Array:
    return jax.nn.log_softmax(x)


@of("f32[32,100]:scaled4")
def log_sum_exp(x: Array) -> Array:
    return jax.nn.logsumexp(x, axis=-1)


@of("f32[32,100]")
def log_sum_exp_by_hand(x: Array) -> Array:
    return jnp.log(jnp.sum(jnp.exp(x), axis=1))


@of("f32[4096]")
def gelu(x: Array) -> Array:
    return jax.nn.gelu(x)


@of("f32[4096]")
def exact_gelu(x: Array) -> Array:
    return jax.nn.gelu(x, approximate=False)


@of("f32[4096]:scaled5")
def softplus(x: Array) -> Array:
    return jax.nn.softplus(x)


@of("f32[4096]:scaled5")
def softplus_by_hand(x: Array) -> Array:
    return jnp.log(1 + jnp.exp(x))


@of("f32[4096]:scaled3")
def mish(x: Array) -> Array:
    return x * jnp.tanh(jax.nn.softplus(x))


@of("f32[4096]:scaled3")
def gradient_of_swish(x: Array) -> Array:
    return jax.vmap(jax.grad(jax.nn.swish))(x)


@of("f32[4096]:scaled3")
def selu_and_elu(x: Array) -> tuple[Array, Array]:
    return jax.nn.selu(x), jax.nn.elu(x)


@of("f32[4096]:positive")
def log_of_sqrt(x: Array) -> Array:
    return jnp.log(jnp.sqrt(x))


@of("f32[4096]", "f32[4096]")
def ratio_of_exponentials(x: Array, y: Array) -> Array:
    return jnp.exp(x) / jnp.exp(y)


@of("f32[4096]:scaled20", "f32[4096]:scaled20")
def ratio_of_large_exponentials(x: Array, y: Array) -> Array:
    return jnp.exp(x) / jnp.exp(y)


@of("f32[4096]:positive", "f32[4096]:positive")
def log_of_quotient(x: Array, y: Array) -> Array:
    return jnp.log(x / y) + jnp.log(x * y)


@of("f32[4096]")
def there_and_back(x: Array) -> Array:
    return (x + 1000.0) - 1000.0


@of("f32[64,16]")
def there_and_back_by_row(x: Array) -> Array:
    return jax.vmap(lambda row: (row + 1e4) - 1e4)(x)


@of("f32[256]")
def there_and_back_in_nested_jits(x: Array) -> Array:
    away = jax.jit(lambda y: y + 100.0)
    back = jax.jit(lambda y: y - 100.0)
    return back(away(x)) * 3.0


@of("f32[256]:scaled50")
def log_of_exp_in_nested_jits(x: Array) -> Array:
    return jax.jit(jnp.log)(jax.jit(jnp.exp)(x))


@of("f32[256]")
def divided_by_a_huge_number(x: Array) -> Array:
    return x / 1e38


@of("f32[256]")
def divided_by_a_third(x: Array) -> Array:
    return x / 3.0 / 7.0


@of("f32[4096]")
def cube_root(x: Array) -> Array:
    return jnp.cbrt(x)


@of("f32[256]:positive", "f32[256]:positive", "f32[256]:positive")
def quotients_of_quotients(a: Array, b: Array, c: Array) -> Array:
    return (a / b) / (c / a) + a / (b / c)


@of("f32[4096]:positive")
def powers(x: Array) -> tuple[Array, ...]:
    return x**0.5, x**-0.5, x**3, x**-2, x**1.5, x**x


@of("f32[4096]:unit")
def trigonometric_identities(x: Array) -> tuple[Array, ...]:
    s, c = jnp.sin(x), jnp.cos(x)
    return s * s + c * c, s / c - jnp.tan(x), jnp.arctan2(s, c)


@of("f32[4096]:unit")
def inverse_hyperbolic(x: Array) -> tuple[Array, ...]:
    return jnp.arcsinh(x), jnp.arctanh(x * 0.9), jnp.arccosh(1 + x * x)


@of("f32[4096]:magnitude")
def square_of_root(x: Array) -> Array:
    return jnp.sqrt(x) * jnp.sqrt(x) - x


@of("f32[4096]:scaled3")
def sigmoid_by_hand(x: Array) -> Array:
    return 1 / (1 + jnp.exp(-x))


@of("f32[4096]:scaled3")
def logit_of_sigmoid(x: Array) -> Array:
    p = jax.nn.sigmoid(x)
    return jnp.log(p) - jnp.log(1 - p)


@of("f32[64,32]")
def normalised_rows(x: Array) -> Array:
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


@of("f32[64,32]", "f32[64,32]")
def cosine_similarity(x: Array, y: Array) -> Array:
    return (x * y).sum(1) / (jnp.linalg.norm(x, axis=1) * jnp.linalg.norm(y, axis=1) + 1e-8)


@of("f32[64,32]")
def standardised_columns(x: Array) -> Array:
    return (x - x.mean(0)) / x.std(0)


@of("f64[1000]:scaled20")
def wide_hyperbolics(x: Array) -> tuple[Array, ...]:
    return jnp.tanh(x), jnp.sinh(x / 10), jnp.cosh(x / 10)


@of("f64[1000]:unit")
def wide_inverse_hyperbolic(x: Array) -> tuple[Array, ...]:
    return jnp.arcsinh(x), jnp.arctanh(x * 0.9), jnp.arccosh(1 + x * x)


@of("f64[1000]:scaled5")
def wide_softplus_and_gelu(x: Array) -> tuple[Array, Array]:
    return jax.nn.softplus(x), jax.nn.gelu(x, approximate=False)


@of("f32[4096]:scaled30")
def hyperbolic_by_exponentials(x: Array) -> tuple[Array, Array]:
    return (jnp.exp(x) - jnp.exp(-x)) / 2, (jnp.exp(x) - jnp.exp(-x)) / (jnp.exp(x) + jnp.exp(-x))


@of("f32[1024]:fraction", "f32[1024]:fraction")
def binary_entropy(p: Array, q: Array) -> Array:
    return -(p * jnp.log(q) + (1 - p) * jnp.log1p(-q)).mean()


@of("f32[1024]")
def log_cosh(x: Array) -> Array:
    return jnp.log(jnp.cosh(x)) + jnp.logaddexp(x, -x)

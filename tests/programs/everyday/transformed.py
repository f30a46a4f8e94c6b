"""Nested maps, scans and branches, derivatives of one's own, recomputation, keys."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax, random

from programs.function import of


@of("f32[3,4,5]", "f32[5]")
def scans_inside_of_maps(x: Array, a: Array) -> object:
    def cell(h: Array, x: Array) -> tuple[Array, Array]:
        h = jnp.tanh(a * h + x)
        return h, h.sum()

    return jax.vmap(lambda rows: lax.scan(cell, jnp.zeros(5), rows))(x)


@of("f32[6]", "s32[6]:below4")
def branches_inside_of_maps(x: Array, which: Array) -> Array:
    branches = (jnp.sin, lambda v: v * v, lambda v: jnp.exp(-v), lambda v: -v)
    return jax.vmap(lambda v, i: lax.switch(i, branches, v))(x, which)


@of("f32[8]:positive")
def loops_of_different_lengths_in_a_map(x: Array) -> object:
    def halved(v: Array) -> tuple[Array, Array]:
        return lax.while_loop(
            lambda s: s[0] > 0.3, lambda s: (s[0] * 0.7, s[1] + 1), (v, jnp.int32(0))
        )

    return jax.vmap(halved)(x)


@of("f32[5]", "s32[8]:below3")
def programs_run_by_a_scan(x: Array, code: Array) -> object:
    def step(x: Array, op: Array) -> tuple[Array, Array]:
        x = lax.switch(op, (lambda v: v + 1, lambda v: v * 0.5, lambda v: jnp.roll(v, 1)), x)
        return x, x.max()

    return lax.scan(step, x, code)


@of("f32[4,4]", "f32[4]")
def second_derivatives(w: Array, x: Array) -> object:
    def f(x: Array) -> Array:
        return jnp.log(jnp.cosh(w @ x)).sum() + jax.nn.logsumexp(x)

    h = jax.hessian(f)(x)
    return h, jnp.linalg.solve(h + jnp.eye(4), jax.grad(f)(x)), jax.jvp(jax.grad(f), (x,), (x,))[1]


@jax.custom_vjp
def _clipped(x: Array) -> Array:
    return jnp.exp(x)


def _clipped_ahead(x: Array) -> tuple[Array, Array]:
    y = jnp.exp(x)
    return y, y


def _clipped_back(y: Array, g: Array) -> tuple[Array]:
    return (jnp.clip(g * y, -1, 1),)


_clipped.defvjp(_clipped_ahead, _clipped_back)


@of("f32[12]")
def gradient_that_is_clipped(x: Array) -> object:
    return jax.value_and_grad(lambda x: (_clipped(x) ** 2).sum())(x)


@jax.custom_jvp
def _log1pexp(x: Array) -> Array:
    return jnp.log1p(jnp.exp(x))


@_log1pexp.defjvp
def _log1pexp_slope(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return _log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t


@of("f32[12]:scaled10")
def derivative_of_ones_own_ahead(x: Array) -> object:
    f = jax.grad(_log1pexp)
    return jax.vmap(f)(x), jax.vmap(jax.grad(f))(x)


@of("f32[6,8]", "f32[3,8,8]")
def recomputed_layers_by_policy(x: Array, ws: Array) -> object:
    def loss(ws: Array) -> Array:
        @jax.checkpoint
        def layer(h: Array, w: Array) -> tuple[Array, None]:
            return jnp.sin(h @ w / 3), None

        h, _ = lax.scan(layer, x, ws)
        return (h**2).mean()

    return jax.value_and_grad(loss)(ws)


@of("f32[4]", "f32[6,4]")
def gradient_of_each_example(w: Array, x: Array) -> object:
    def loss(w: Array, x: Array) -> Array:
        return jax.nn.softplus(-(x @ w)) + 0.1 * w @ w

    g = jax.vmap(jax.grad(loss), (None, 0))(w, x)
    norm = jnp.linalg.norm(g, axis=1, keepdims=True)
    return (g / jnp.maximum(norm, 1)).mean(0), norm


@of("f32[3]", "f32[3]")
def inner_steps_of_meta_learning(w: Array, x: Array) -> object:
    def inner(w: Array) -> Array:
        return lax.fori_loop(0, 3, lambda _, w: w - 0.1 * jax.grad(task)(w), w)

    def task(w: Array) -> Array:
        return ((jnp.tanh(w) - x) ** 2).sum()

    def outer(w: Array) -> Array:
        steps = lax.scan(lambda w, _: (w - 0.1 * jax.grad(task)(w), None), w, None, 3)[0]
        return task(steps)

    return jax.value_and_grad(outer)(w), inner(w)


@of("u32[2]")
def keys_split_folded_and_drawn(key: Array) -> object:
    k = random.wrap_key_data(key)
    a, b = random.split(k)
    c = random.fold_in(a, 7)
    many = jax.vmap(lambda i: random.uniform(random.fold_in(b, i), (3,)))(jnp.arange(4))
    return (
        random.normal(c, (5,)),
        many,
        random.randint(a, (6,), -5, 5),
        random.bits(c, (3,), jnp.uint8),
    )


@of("u32[2]", "f32[10]")
def dropout_and_mixup_with_keys(key: Array, x: Array) -> object:
    k = random.split(random.wrap_key_data(key), 4)
    keep = random.bernoulli(k[0], 0.8, x.shape)
    lam = random.beta(k[1], 0.4, 0.4)
    order = random.permutation(k[2], 10)
    return (
        jnp.where(keep, x / 0.8, 0),
        lam * x + (1 - lam) * x[order],
        random.categorical(k[3], x, shape=(4,)),
    )


@of("u32[2]", "f32[4]")
def langevin_with_keys_in_a_scan(key: Array, x: Array) -> object:
    def step(x: Array, k: Array) -> tuple[Array, Array]:
        x = x - 0.05 * x**3 + 0.3 * random.normal(k, (4,))
        return x, (x**2).mean()

    return lax.scan(step, x, random.split(random.wrap_key_data(key), 8))


@of("u32[2]", "f32[3]")
def metropolis_with_branches(key: Array, x: Array) -> object:
    def step(i: int, s: tuple[Array, Array]) -> tuple[Array, Array]:
        x, n = s
        a, b = random.split(random.fold_in(random.wrap_key_data(key), i))
        y = x + 0.5 * random.normal(a, (3,))
        ok = jnp.log(random.uniform(b)) < (x @ x - y @ y) / 2
        return lax.cond(ok, lambda: (y, n + 1), lambda: (x, n))

    return lax.fori_loop(0, 10, step, (x, jnp.int32(0)))


@of("f32[5,5]", "f32[5]")
def derivative_through_a_solve_in_a_scan(a: Array, x: Array) -> object:
    def loss(a: Array) -> Array:
        def step(x: Array, _: None) -> tuple[Array, None]:
            return jnp.linalg.solve(a + 6 * jnp.eye(5), x), None

        return (lax.scan(step, x, None, 3)[0] ** 2).sum() * 1e4

    return jax.value_and_grad(loss)(a)


@of("f32[6]", "f32[]:positive")
def nested_branches_and_loops(x: Array, limit: Array) -> object:
    def inner(v: Array) -> Array:
        return lax.cond(
            v.sum() > 0,
            lambda v: v - 0.1,
            lambda v: lax.fori_loop(0, 3, lambda _, u: u * 1.1, v),
            v,
        )

    def step(v: Array, _: None) -> tuple[Array, Array]:
        v = lax.cond(jnp.abs(v).max() < limit, inner, jnp.sin, v)
        return v, v.mean()

    return lax.scan(step, x, None, 6)


@of("f32[4,3]", "f32[3,2]")
def linearised_and_transposed(x: Array, w: Array) -> object:
    y, push = jax.linearize(lambda w: jnp.tanh(x @ w), w)
    pull = jax.linear_transpose(push, w)
    return y, push(w), pull(y)[0]


@of("f32[3,5]")
def outer_products_of_three_maps(x: Array) -> object:
    f = jax.vmap(jax.vmap(lambda a, b: jnp.dot(a, b) / (1 + jnp.dot(a, a)), (None, 0)), (0, None))
    return f(x, x), jax.jacrev(lambda x: f(x, x).sum(1))(x)

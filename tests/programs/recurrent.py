"""Recurrent networks by scan, and their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


def _tanh_states(xs: Array, w: Array, u: Array) -> Array:
    def step(h: Array, x: Array) -> tuple[Array, Array]:
        h = jnp.tanh(x @ w + h @ u)
        return h, h

    return lax.scan(step, jnp.zeros(u.shape[0], xs.dtype), xs)[1]


@of("f32[24,8]", "f32[8,16]", "f32[16,16]:hundredths")
def tanh_network(xs: Array, w: Array, u: Array) -> Array:
    return _tanh_states(xs, w, u)


@of("f32[24,8]", "f32[8,16]", "f32[16,16]:hundredths")
def gradient_of_tanh_network(xs: Array, w: Array, u: Array) -> tuple[Array, Array]:
    return jax.grad(lambda w, u: (_tanh_states(xs, w, u)[-1] ** 2).sum(), (0, 1))(w, u)


@of("f32[40,8]", "f32[8,8]", "f32[8,8]")
def chaotic_tanh_network(xs: Array, w: Array, u: Array) -> Array:
    return _tanh_states(xs, w, u)


def _gru(h: Array, x: Array, w: Array, u: Array) -> Array:
    a, b = jnp.split(x @ w, 3), jnp.split(h @ u, 3)
    z, r = jax.nn.sigmoid(a[0] + b[0]), jax.nn.sigmoid(a[1] + b[1])
    return (1 - z) * h + z * jnp.tanh(a[2] + r * b[2])


def _gru_states(xs: Array, w: Array, u: Array) -> Array:
    def step(h: Array, x: Array) -> tuple[Array, Array]:
        h = _gru(h, x, w, u)
        return h, h

    return lax.scan(step, jnp.zeros(u.shape[0]), xs)[1]


@of("f32[20,6]", "f32[6,30]", "f32[10,30]:unit")
def gated_recurrent_unit(xs: Array, w: Array, u: Array) -> Array:
    return _gru_states(xs, w, u)


@of("f32[12,6]", "f32[6,30]", "f32[10,30]:hundredths")
def gradient_of_gated_recurrent_unit(xs: Array, w: Array, u: Array) -> tuple[Array, Array]:
    return jax.grad(lambda w, u: _gru_states(xs, w, u).mean(), (0, 1))(w, u)


def _lstm_states(xs: Array, w: Array, u: Array, b: Array) -> Array:
    hidden = u.shape[0]

    def step(state: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], Array]:
        h, c = state
        i, f, g, o = jnp.split(x @ w + h @ u + b, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (jnp.zeros(hidden), jnp.zeros(hidden)), xs)[1]


@of("f32[20,6]", "f32[6,32]", "f32[8,32]", "f32[32]")
def long_short_term_memory(xs: Array, w: Array, u: Array, b: Array) -> Array:
    return _lstm_states(xs, w, u, b)


@of("f32[10,6]", "f32[6,32]", "f32[8,32]:hundredths", "f32[32]")
def gradient_of_long_short_term_memory(xs: Array, w: Array, u: Array, b: Array) -> Array:
    return jax.grad(lambda w: _lstm_states(xs, w, u, b)[-1].sum())(w)


@of("f32[4,16,6]", "f32[6,32]", "f32[8,32]:unit", "f32[32]")
def batch_of_long_short_term_memories(xs: Array, w: Array, u: Array, b: Array) -> Array:
    return jax.vmap(_lstm_states, (0, None, None, None))(xs, w, u, b)


@of("f32[50,4]:fraction", "f32[50,4]")
def linear_recurrence(a: Array, b: Array) -> Array:
    def joined(x: tuple[Array, Array], y: tuple[Array, Array]) -> tuple[Array, Array]:
        return x[0] * y[0], x[1] * y[0] + y[1]

    return lax.associative_scan(joined, (a, b))[1]


@of("f32[32,6]:fraction", "f32[6,6]:fraction", "f32[6]:fraction")
def forward_algorithm(emissions: Array, transitions: Array, start: Array) -> Array:
    def step(state: Array, emission: Array) -> tuple[Array, Array]:
        state = jax.nn.logsumexp(state[:, None] + jnp.log(transitions), axis=0) + jnp.log(emission)
        return state, state

    return lax.scan(step, jnp.log(start), emissions)[1]


@of("f32[20,6]", "f32[6,6]")
def viterbi_path(emissions: Array, transitions: Array) -> tuple[Array, Array]:
    def step(best: Array, emission: Array) -> tuple[Array, Array]:
        scores = best[:, None] + transitions
        return scores.max(0) + emission, scores.argmax(0)

    best, back = lax.scan(step, emissions[0], emissions[1:])
    last = best.argmax()
    path = lax.scan(lambda at, row: (row[at], at), last, back, reverse=True)[1]
    return best, path


@of("f32[30,4]", "f32[4,4]", "f32[4]")
def state_space_model(u: Array, a: Array, b: Array) -> Array:
    def step(x: Array, v: Array) -> tuple[Array, Array]:
        x = 0.4 * (a @ x) + b * v
        return x, x.sum()

    return lax.scan(step, jnp.zeros(4), u[:, 0])[1]


@of("f32[6,5]", "f32[7,5]")
def edit_distance_like(x: Array, y: Array) -> Array:
    costs = ((x[:, None] - y[None]) ** 2).sum(-1)

    def row(above: Array, cost: Array) -> tuple[Array, None]:
        def cell(left: Array, given: tuple[Array, ...]) -> tuple[Array, Array]:
            up, diagonal, price = given
            value = price + jnp.minimum(jnp.minimum(left, up), diagonal)
            return value, value

        diagonals = jnp.concatenate([jnp.array([1e9]), above[:-1]])
        return lax.scan(cell, jnp.float32(1e9), (above, diagonals, cost))[1], None

    first = jnp.cumsum(costs[0])
    return lax.scan(row, first, costs[1:])[0]

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


@of("f32[16,8]", "f32[64,8]", "f32[64,8]")
def online_softmax_attention(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    """Attention in blocks of 16 keys, as flash attention computes it."""
    State = tuple[Array, Array, Array]

    def block(state: State, given: tuple[Array, Array]) -> tuple[State, None]:
        most, total, out = state
        keys, values = given
        scores = q @ keys.T / jnp.sqrt(jnp.asarray(8, q.dtype))
        highest = jnp.maximum(most, scores.max(-1))
        kept, p = jnp.exp(most - highest), jnp.exp(scores - highest[:, None])
        return (highest, total * kept + p.sum(-1), out * kept[:, None] + p @ values), None

    zeros = jnp.zeros(16, q.dtype)
    init = (jnp.full(16, -jnp.inf, q.dtype), zeros, jnp.zeros((16, 8), q.dtype))
    blocks = (k.reshape(4, 16, 8), v.reshape(4, 16, 8))
    (most, total, out), _ = lax.scan(block, init, blocks)
    return out / total[:, None], most + jnp.log(total)


@of("f32[20,6]", "s32[5]:below6")
def connectionist_likelihood(x: Array, labels: Array) -> tuple[Array, Array]:
    """The forward algorithm of connectionist temporal classification."""
    emissions = jax.nn.log_softmax(x)
    states = jnp.zeros(11, jnp.int32).at[1::2].set(labels)
    never = jnp.asarray(-1e30, x.dtype)
    may_skip = (states != 0) & (states != jnp.roll(states, 2))

    def step(a: Array, emission: Array) -> tuple[Array, Array]:
        one = jnp.concatenate([never[None], a[:-1]])
        two = jnp.where(may_skip, jnp.concatenate([never[None], never[None], a[:-2]]), never)
        return jax.nn.logsumexp(jnp.stack([a, one, two]), axis=0) + emission[states], a

    first = jnp.full(11, never).at[:2].set(emissions[0, states[:2]])
    last, _ = lax.scan(step, first, emissions[1:])
    return jnp.logaddexp(last[-1], last[-2]), last


@of("f32[6,5]", "f32[5,5]")
def beam_search(x: Array, transitions: Array) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
    emissions, moves = jax.nn.log_softmax(x), jax.nn.log_softmax(transitions)
    Beams = tuple[Array, Array]

    def step(beams: Beams, emission: Array) -> tuple[Beams, tuple[Array, Array, Array]]:
        scores, last = beams
        best, place = lax.top_k((scores[:, None] + moves[last] + emission).reshape(-1), 3)
        return (best, place % 5), (best, place // 5, place % 5)

    return lax.scan(step, tuple(lax.top_k(emissions[0], 3)), emissions[1:])


@of("f32[60]", "f32[5]")
def biquad_filter(x: Array, c: Array) -> Array:
    b0, b1, b2, a1, a2 = jnp.tanh(c) / 2
    Memory = tuple[Array, Array]

    def step(memory: Memory, sample: Array) -> tuple[Memory, Array]:
        y = b0 * sample + memory[0]
        return (b1 * sample - a1 * y + memory[1], b2 * sample - a2 * y), y

    return lax.scan(step, (jnp.zeros_like(b0), jnp.zeros_like(b0)), x)[1]


@of("f32[30]", "f32[30]:magnitude")
def weighted_running_variance(x: Array, w: Array) -> tuple[Array, Array]:
    """Welford's algorithm."""
    Sums = tuple[Array, Array, Array]

    def step(sums: Sums, given: tuple[Array, Array]) -> tuple[Sums, Array]:
        (total, mean, squares), (sample, weight) = sums, given
        total = total + weight
        apart = sample - mean
        mean = mean + apart * weight / total
        squares = squares + weight * apart * (sample - mean)
        return (total, mean, squares), squares / total

    zero = jnp.zeros((), x.dtype)
    (_, mean, _), path = lax.scan(step, (zero, zero, zero), (x, w))
    return mean, path

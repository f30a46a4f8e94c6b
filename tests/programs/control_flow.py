"""Loops until something holds, loops in loops, branches by data, updates in place."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("f32[16,16]:definite", "f32[16]")
def inverse_iteration_until_converged(a: Array, x: Array) -> tuple[Array, Array, Array]:
    def more(state: tuple[Array, Array, Array]) -> Array:
        return (state[2] > 1e-3) & (state[1] < 60)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, n, _ = state
        y = jnp.linalg.solve(a, x)
        y = y / jnp.linalg.norm(y)
        return y, n + 1, jnp.linalg.norm(y - x * jnp.sign(x @ y))

    x, n, _ = lax.while_loop(more, step, (x / jnp.linalg.norm(x), 0, jnp.float32(1)))
    return x @ a @ x, x, n


@of("f32[2]")
def minimum_with_a_line_search(x: Array) -> tuple[Array, Array]:
    """Gradient steps on Rosenbrock's function, halved in an inner loop until they go down."""

    def cost(x: Array) -> Array:
        return (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        x, total = state
        slope = jax.grad(cost)(x)

        def worse(s: Array) -> Array:
            return cost(x - s * slope) > cost(x) - 0.3 * s * (slope @ slope)

        size = lax.while_loop(worse, lambda s: s / 2, jnp.float32(1))
        return (x - size * slope, total + 1), size

    (x, _), sizes = lax.scan(step, (x, jnp.int32(0)), None, length=12)
    return x, sizes


@of("bf16[8]", "s32[6]:below4")
def programs_by_switch_in_a_scan(x: Array, codes: Array) -> tuple[Array, Array]:
    branches = (
        lambda s: s * jnp.bfloat16(1.5),
        lambda s: jnp.roll(s, 1),
        lambda s: jnp.cumsum(s),
        lambda s: jnp.where(s > 0, s, -s / 2),
    )

    def step(s: Array, code: Array) -> tuple[Array, Array]:
        s = lax.switch(code, branches, s)
        return s, s.max()

    return lax.scan(step, x, codes)


@of("f32[10,10]:positive", "s32[]:below10")
def shortest_paths(weights: Array, start: Array) -> tuple[Array, Array]:
    """Dijkstra's algorithm, and Floyd's beside it."""
    weights = jnp.where(weights > 2.5, jnp.inf, weights)

    def visit(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        distance, done = state
        at = jnp.argmin(jnp.where(done, jnp.inf, distance))
        return jnp.minimum(distance, distance[at] + weights[at]), done.at[at].set(True)

    first = jnp.full(10, jnp.inf).at[start].set(0)
    distance, _ = lax.fori_loop(0, 10, visit, (first, jnp.zeros(10, bool)))

    def through(k: int, d: Array) -> Array:
        row, column = lax.dynamic_slice(d, (k, 0), (1, 10)), lax.dynamic_slice(d, (0, k), (10, 1))
        return jnp.minimum(d, row + column)

    return distance, lax.fori_loop(0, 10, through, weights)


@of("s32[8]:below12", "s32[8]:below30")
def knapsack_by_updates_of_a_row(sizes: Array, values: Array) -> tuple[Array, Array]:
    def item(i: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        best, taken = state
        moved = jnp.roll(best, sizes[i]) + values[i]
        better = (jnp.arange(30) >= sizes[i]) & (moved > best)
        return jnp.where(better, moved, best), lax.dynamic_update_slice(taken, better[None], (i, 0))

    start = jnp.zeros(30, jnp.int32), jnp.zeros((8, 30), bool)
    return lax.fori_loop(0, 8, item, start)


@of("s32[14]:below4", "s32[12]:below4")
def local_alignment_of_two_strings(a: Array, b: Array) -> tuple[Array, Array]:
    """Smith and Waterman: a scan of rows, in each a scan of columns."""

    def row(above: Array, x: Array) -> tuple[Array, Array]:
        def cell(left: tuple[Array, Array], at: tuple[Array, Array]) -> tuple[object, Array]:
            before, corner = left
            y, up = at
            best = jnp.maximum(0, corner + jnp.where(x == y, 3, -2))
            best = jnp.maximum(best, jnp.maximum(before, up) - 2)
            return (best, up), best

        zero = jnp.int32(0)
        _, new = lax.scan(cell, (zero, zero), (b, above))
        return new, new

    _, table = lax.scan(row, jnp.zeros(12, jnp.int32), a)
    return table, table.max()


@of("f16[6,8]", "f16[8,8]:hundredths", "f16[8]")
def deep_equilibrium_layer(x: Array, w: Array, b: Array) -> tuple[Array, Array]:
    def more(state: tuple[Array, Array, Array]) -> Array:
        return (jnp.abs(state[1] - state[0]).max() > 1e-2) & (state[2] < 30)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        _, z, n = state
        return z, jnp.tanh(z @ w * 10 + x + b), n + 1

    _, z, n = lax.while_loop(more, step, (x + 1, jnp.zeros_like(x), 0))
    return z, n


@of("bf16[6,12]", "bf16[12,12]", "bf16[12]", "f32[]:fraction")
def early_exit_by_confidence(x: Array, w: Array, gain: Array, bar: Array) -> tuple[Array, Array]:
    """Layers of a while loop until every row is sure; rows that are sure stay."""

    def sure(h: Array) -> Array:
        return jax.nn.softmax(h.astype(jnp.float32)).max(-1) > 0.5 + bar / 4

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        h, n = state
        new = h + jax.nn.relu(h @ w * gain) / 8
        return jnp.where(sure(h)[:, None], h, new), n + 1

    return lax.while_loop(lambda s: ~sure(s[0]).all() & (s[1] < 8), step, (x, 0))


@of("s32[5,12]:below20", "bf16[20,8]", "bf16[8,20]")
def greedy_decoding_with_a_cache(
    prompt: Array, embedding: Array, out: Array
) -> tuple[Array, Array]:
    def step(i: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        tokens, cache, done = state
        x = embedding[lax.dynamic_index_in_dim(tokens, i, 1, False)]
        cache = lax.dynamic_update_slice(cache, x[:, None], (0, i, 0))
        scores = jnp.einsum("bd,btd->bt", x, cache).astype(jnp.float32)
        scores = jax.nn.softmax(jnp.where(jnp.arange(12) <= i, scores, -jnp.inf))
        h = jnp.einsum("bt,btd->bd", scores.astype(jnp.bfloat16), cache)
        following = jnp.where(done, 0, jnp.argmax(h @ out, -1).astype(jnp.int32))
        given = lax.dynamic_index_in_dim(tokens, i + 1, 1, False)
        following = jnp.where(i + 1 < 4, given, following)
        tokens = lax.dynamic_update_slice(tokens, following[:, None], (0, i + 1))
        return tokens, cache, done | (following == 3)

    start = prompt, jnp.zeros((5, 12, 8), jnp.bfloat16), jnp.zeros(5, bool)
    tokens, _, done = lax.fori_loop(0, 11, step, start)
    return tokens, done


@of("f32[4]", "f32[4,4]:hundredths", "pred[]")
def gradients_through_conditions_and_scans(x: Array, w: Array, flag: Array) -> object:
    def body(x: Array, w: Array) -> Array:
        def outer(s: Array, k: Array) -> tuple[Array, None]:
            def inner(s: Array, _: None) -> tuple[Array, None]:
                return jnp.sin(s + 10 * w @ s), None

            s, _ = lax.scan(inner, s, None, length=3)
            return lax.cond(s.sum() > 0, lambda s: s * k, lambda s: jnp.exp(s) - 1, s), None

        s, _ = lax.scan(outer, x, jnp.arange(1.0, 4.0))
        return lax.cond(flag, lambda s: (s**2).sum(), lambda s: jnp.prod(s), s)

    return jax.value_and_grad(body, (0, 1))(x, w)


@of("f32[12]:positive", "f32[12]:fraction")
def kepler_by_newton_for_each_element(mean: Array, eccentricity: Array) -> tuple[Array, Array]:
    def solve(m: Array, e: Array) -> tuple[Array, Array]:
        def more(state: tuple[Array, Array, Array]) -> Array:
            return (jnp.abs(state[1]) > 1e-5) & (state[2] < 40)

        def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            x, _, n = state
            change = (x - e * jnp.sin(x) - m) / (1 - e * jnp.cos(x))
            return x - change, change, n + 1

        x, _, n = lax.while_loop(more, step, (m + e * jnp.sin(m), jnp.float32(1), 0))
        return x, n

    return jax.vmap(solve)(mean, 0.9 * eccentricity)


@of("bf16[5,8]", "s32[5]:below4", "bf16[3,8,8]")
def rows_through_branches_of_their_own(x: Array, kinds: Array, w: Array) -> tuple[Array, Array]:
    branches = (
        lambda r: jax.nn.gelu(r @ w[0]),
        lambda r: r / (1 + jnp.abs(r @ w[1])),
        lambda r: jax.nn.softmax(r @ w[2]),
        jnp.zeros_like,
    )
    found = lax.map(lambda row: lax.switch(row[1], branches, row[0]), (x, kinds))
    return found, jax.vmap(lambda k, r: lax.switch(k, branches, r))(kinds, x)

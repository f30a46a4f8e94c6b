"""Routing to experts, caches with positions, search, and likelihoods of labels."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of

_BF16 = jnp.bfloat16


def _rotated(x: Array, places: Array, base: float = 1e4) -> Array:
    half = x.shape[-1] // 2
    rate = base ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angle = places[:, None].astype(jnp.float32) * rate
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    a, b = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)


@of("bf16[10,8]", "bf16[8,4]", "bf16[4,8,12]", "bf16[4,12,8]")
def top_two_of_four_experts(x: Array, router: Array, w1: Array, w2: Array) -> object:
    logits = (x @ router).astype(jnp.float32)
    weights, experts = lax.top_k(jax.nn.softmax(logits), 2)
    weights = weights / weights.sum(-1, keepdims=True)
    h = jax.nn.silu(jnp.einsum("td,edf->tef", x, w1))
    every = jnp.einsum("tef,efd->ted", h, w2)
    chosen = jnp.take_along_axis(every, experts[..., None], 1)
    counts = jnp.zeros(4, jnp.int32).at[experts.reshape(-1)].add(1)
    return (chosen * weights[..., None].astype(x.dtype)).sum(1), counts


@of("f32[12,6]", "f32[6,3]", "f32[3,6,6]")
def experts_with_places_that_fill(x: Array, router: Array, w: Array) -> object:
    probabilities = jax.nn.softmax(x @ router)
    expert = probabilities.argmax(-1)
    mask = jax.nn.one_hot(expert, 3)
    place = (jnp.cumsum(mask, 0) * mask).sum(-1).astype(jnp.int32) - 1
    kept = place < 5
    slots = jnp.zeros((3, 5, 6)).at[expert, jnp.where(kept, place, 5)].set(x, mode="drop")
    out = jnp.einsum("ecd,edf->ecf", slots, w)
    y = out.at[expert, place].get(mode="fill", fill_value=0)
    balance = 3 * (mask.mean(0) * probabilities.mean(0)).sum()
    return y * probabilities.max(-1, keepdims=True), balance


@of("bf16[8,6]", "bf16[6,4]", "bf16[4,6,6]", "bf16[8,6]")
def gradients_through_a_router(x: Array, router: Array, w: Array, y: Array) -> object:
    def loss(router: Array, w: Array) -> Array:
        gates = jax.nn.softmax((x @ router).astype(jnp.float32))
        top, experts = lax.top_k(gates, 2)
        combine = (jax.nn.one_hot(experts, 4) * top[..., None]).sum(1).astype(x.dtype)
        out = jnp.einsum("te,td,edf->tf", combine, x, w)
        load = jnp.mean(jax.nn.one_hot(experts[:, 0], 4), 0)
        return jnp.mean((out - y).astype(jnp.float32) ** 2) + 0.01 * (load * gates.mean(0)).sum()

    return jax.value_and_grad(loss, (0, 1))(router, w)


@of("f32[16,8]", "s32[16]:below4", "f32[4,8,8]")
def tokens_sorted_by_expert_and_back(x: Array, expert: Array, w: Array) -> Array:
    order = jnp.argsort(expert)
    sizes = jnp.bincount(expert, length=4)
    y = lax.ragged_dot(x[order], w, sizes.astype(jnp.int32))
    return jnp.zeros_like(y).at[order].set(y)


@of("bf16[2,1,8]", "bf16[2,16,8]", "bf16[2,16,8]", "s32[]:below15")
def rotary_step_into_a_cache(q: Array, keys: Array, values: Array, place: Array) -> object:
    here = place[None]
    q = jax.vmap(lambda h: _rotated(h, here))(q)
    keys = lax.dynamic_update_slice(keys, q * _BF16(0.5), (0, place, 0))
    values = lax.dynamic_update_slice_in_dim(values, q, place, 1)
    scores = jnp.einsum("hqd,hkd->hqk", q, keys).astype(jnp.float32) * 8**-0.5
    scores = jnp.where(jnp.arange(16) <= place, scores, -1e9)
    p = jax.nn.softmax(scores).astype(_BF16)
    return jnp.einsum("hqk,hkd->hqd", p, values), keys


@of("bf16[5,8]", "bf16[8,24]", "bf16[8,8]")
def decoding_with_a_rotary_cache_in_a_scan(x: Array, qkv: Array, out: Array) -> object:
    def step(
        cache: tuple[Array, Array], xs: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], Array]:
        i, h = xs
        q, k, v = jnp.split(h @ qkv / 3, 3)
        at = i[None]
        q, k = _rotated(q[None], at), _rotated(k[None], at)
        keys, values = cache
        keys = lax.dynamic_update_slice(keys, k, (i, 0))
        values = lax.dynamic_update_slice(values, v[None], (i, 0))
        scores = (q @ keys.T).astype(jnp.float32)[0] / 8**0.5
        p = jax.nn.softmax(jnp.where(jnp.arange(8) <= i, scores, -jnp.inf))
        return (keys, values), p.astype(_BF16) @ values @ out / 3

    empty = jnp.zeros((8, 8), _BF16)
    return lax.scan(step, (empty, empty), (jnp.arange(5), x))


@of("f32[6,4,8]", "s32[6]:below100000")
def rotary_with_scaled_frequencies(x: Array, places: Array) -> Array:
    rate = 5e5 ** (-jnp.arange(4, dtype=jnp.float32) / 4)
    wave = 2 * jnp.pi / rate
    smooth = (8192 / wave - 1) / (4 - 1)
    mixed = (1 - smooth) * rate / 8 + smooth * rate
    rate = jnp.where(wave > 8192, rate / 8, jnp.where(wave < 2048, rate, mixed))
    angle = places[:, None, None].astype(jnp.float32) * rate
    even, odd = x[..., ::2], x[..., 1::2]
    turned = (
        even * jnp.cos(angle) - odd * jnp.sin(angle),
        even * jnp.sin(angle) + odd * jnp.cos(angle),
    )
    return jnp.stack(turned, -1).reshape(x.shape)


@of("f32[8,8]", "f32[8,12]", "f32[8]")
def beams_with_lengths_and_an_end(w: Array, out: Array, h: Array) -> object:
    def step(state: tuple[Array, ...], i: Array) -> tuple[tuple[Array, ...], None]:
        scores, hidden, tokens, done = state
        hidden = jnp.tanh(hidden @ w + tokens[:, i, None] * 0.1)
        logs = jax.nn.log_softmax(hidden @ out)
        stay = jnp.full((3, 12), -jnp.inf).at[:, 0].set(0)
        logs = jnp.where(done[:, None], stay, logs)
        best, flat = lax.top_k((scores[:, None] + logs).reshape(-1), 3)
        parent, token = flat // 12, flat % 12
        tokens = tokens[parent].at[:, i + 1].set(token)
        return (best, hidden[parent], tokens, done[parent] | (token == 0)), None

    start = (
        jnp.array([0.0, -jnp.inf, -jnp.inf]),
        jnp.broadcast_to(h, (3, 8)),
        jnp.ones((3, 7), jnp.int32),
        jnp.zeros(3, bool),
    )
    (scores, _, tokens, done), _ = lax.scan(step, start, jnp.arange(6))
    lengths = jnp.where(done, (tokens != 0).sum(1), 7)
    return scores / lengths.astype(jnp.float32) ** 0.6, tokens


@of("bf16[6,20]", "bf16[20,20]")
def greedy_tokens_until_the_end(w: Array, table: Array) -> object:
    def more(state: tuple[Array, Array, Array]) -> Array:
        i, _, tokens = state
        return (i < 8) & (tokens[i] != 3)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        i, h, tokens = state
        h = jnp.tanh(h + w @ table[tokens[i]] / 4)
        token = jnp.argmax(h @ w).astype(jnp.int32)
        return i + 1, h, tokens.at[i + 1].set(token)

    start = jnp.int32(0), jnp.zeros(6, _BF16), jnp.zeros(10, jnp.int32)
    return lax.while_loop(more, step, start)


def _ctc(logits: Array, labels: Array) -> Array:
    logs = jax.nn.log_softmax(logits)
    n = 2 * labels.shape[0] + 1
    extended = jnp.zeros(n, jnp.int32).at[1::2].set(labels)
    skip = (jnp.arange(n) % 2 == 1) & (jnp.arange(n) > 1)
    skip = skip & (extended != jnp.roll(extended, 2))
    low = -1e5

    def step(a: Array, log: Array) -> tuple[Array, None]:
        one = jnp.concatenate([jnp.full(1, low, a.dtype), a[:-1]])
        two = jnp.where(skip, jnp.concatenate([jnp.full(2, low, a.dtype), a[:-2]]), low)
        return jnp.logaddexp(jnp.logaddexp(a, one), two) + log[extended], None

    start = jnp.full(n, low).at[:2].set(logs[0, extended[:2]])
    last, _ = lax.scan(step, start, logs[1:])
    return -jnp.logaddexp(last[-1], last[-2])


@of("f32[8,5]", "s32[3]:below4")
def ctc_loss_and_gradient(logits: Array, labels: Array) -> object:
    return jax.value_and_grad(_ctc)(logits, labels + 1)


@of("f32[2,7,5]", "s32[2,3]:below4")
def ctc_losses_of_a_batch(logits: Array, labels: Array) -> object:
    return jax.vmap(_ctc)(logits, labels + 1)


def _crf(emissions: Array, transitions: Array, tags: Array) -> Array:
    def step(a: Array, e: Array) -> tuple[Array, None]:
        return jax.nn.logsumexp(a[:, None] + transitions, 0) + e, None

    total, _ = lax.scan(step, emissions[0], emissions[1:])
    path = emissions[jnp.arange(len(tags)), tags].sum() + transitions[tags[:-1], tags[1:]].sum()
    return jax.nn.logsumexp(total) - path


@of("f32[8,5]", "f32[5,5]", "s32[8]:below5")
def crf_loss_and_gradients(emissions: Array, transitions: Array, tags: Array) -> object:
    return jax.value_and_grad(_crf, (0, 1))(emissions, transitions, tags)


@of("bf16[6,4]", "bf16[4,4]", "s32[6]:below4")
def crf_loss_in_bf16(emissions: Array, transitions: Array, tags: Array) -> Array:
    return _crf(emissions, transitions, tags)


@of("f32[8,5]", "f32[5,5]")
def crf_marginals_by_gradient(emissions: Array, transitions: Array) -> Array:
    def total(e: Array) -> Array:
        a = e[0]
        for row in e[1:]:
            a = jax.nn.logsumexp(a[:, None] + transitions, 0) + row
        return jax.nn.logsumexp(a)

    return jax.grad(total)(emissions)


@of("f32[30]", "f32[30]:fraction")
def sampling_by_top_p_and_gumbel(logits: Array, noise: Array) -> object:
    order = jnp.argsort(-logits)
    p = jax.nn.softmax(logits[order] / 0.7)
    kept = jnp.cumsum(p) - p < 0.9
    masked = jnp.where(kept, logits[order], -jnp.inf)
    gumbel = -jnp.log(-jnp.log(noise + 1e-6) + 1e-6)
    return order[jnp.argmax(masked + gumbel)], kept.sum(), jax.nn.softmax(masked)


@of("f32[5,12]", "f32[5,12]", "s32[5]:below12", "f32[5]:fraction")
def speculative_acceptance(draft: Array, target: Array, tokens: Array, u: Array) -> object:
    p, q = jax.nn.softmax(target), jax.nn.softmax(draft)
    rows = jnp.arange(5)
    ratio = p[rows, tokens] / q[rows, tokens]
    accepted = jnp.cumprod((u < ratio).astype(jnp.int32))
    rest = jnp.maximum(p - q, 0)
    return accepted.sum(), rest / rest.sum(-1, keepdims=True)

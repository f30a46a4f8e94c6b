"""Parts of language models: positions, attention, routing, search, sampling and caches."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax, random

from programs.function import of

State = tuple[Array, ...]
_BF16 = jnp.bfloat16


@of("bf16[6,2,8]", "s32[6]:below5000")
def rotations_as_complex_numbers(x: Array, places: Array) -> Array:
    rate = 1e4 ** (-jnp.arange(4) / 4.0)
    turn = jnp.exp(1j * places[:, None] * rate).astype(jnp.complex64)
    pair = x.astype(jnp.float32).reshape(6, 2, 4, 2)
    z = lax.complex(pair[..., 0], pair[..., 1]) * turn[:, None]
    return jnp.stack([z.real, z.imag], -1).reshape(x.shape).astype(x.dtype)


@of("bf16[4,10,8]", "bf16[4,10,8]", "bf16[4,10,8]")
def attention_with_slopes_by_head(q: Array, k: Array, v: Array) -> Array:
    slopes = 2.0 ** (-2.0 * jnp.arange(1, 5))
    far = jnp.arange(10)[None] - jnp.arange(10)[:, None]
    scores = jnp.einsum("hqd,hkd->hqk", q, k).astype(jnp.float32) / jnp.sqrt(8.0)
    scores = jnp.where(far <= 0, scores + slopes[:, None, None] * far, -jnp.inf)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores).astype(_BF16), v)


def _flash_ahead(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    def block(carry: State, kv: tuple[Array, Array]) -> tuple[State, None]:
        top, total, out = carry
        s = q @ kv[0].T / jnp.sqrt(8.0)
        new = jnp.maximum(top, s.max(1))
        p, decay = jnp.exp(s - new[:, None]), jnp.exp(top - new)
        return (new, total * decay + p.sum(1), out * decay[:, None] + p @ kv[1]), None

    n = q.shape[0]
    start = jnp.full(n, -jnp.inf), jnp.zeros(n), jnp.zeros((n, 8))
    (top, total, out), _ = lax.scan(block, start, (k.reshape(4, 4, 8), v.reshape(4, 4, 8)))
    return out / total[:, None], top + jnp.log(total)


@jax.custom_vjp
def _flash(q: Array, k: Array, v: Array) -> Array:
    return _flash_ahead(q, k, v)[0]


def _flash_kept(q: Array, k: Array, v: Array) -> tuple[Array, State]:
    out, logs = _flash_ahead(q, k, v)
    return out, (q, k, v, out, logs)


def _flash_back(kept: State, g: Array) -> State:
    q, k, v, out, logs = kept
    delta = (g * out).sum(1)

    def block(dq: Array, kv: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        k, v = kv
        p = jnp.exp(q @ k.T / jnp.sqrt(8.0) - logs[:, None])
        ds = p * (g @ v.T - delta[:, None]) / jnp.sqrt(8.0)
        return dq + ds @ k, (ds.T @ q, p.T @ g)

    blocks = k.reshape(4, 4, 8), v.reshape(4, 4, 8)
    dq, (dk, dv) = lax.scan(block, jnp.zeros_like(q), blocks)
    return dq, dk.reshape(16, 8), dv.reshape(16, 8)


_flash.defvjp(_flash_kept, _flash_back)


@of("f32[6,8]", "f32[16,8]", "f32[16,8]")
def attention_in_blocks_with_its_own_gradient(q: Array, k: Array, v: Array) -> State:
    return _flash(q, k, v), *jax.grad(lambda *x: (_flash(*x) ** 2).sum(), (0, 1, 2))(q, k, v)


@of("bf16[12,8]", "f32[8,4]", "bf16[4,8,16]", "bf16[4,16,8]")
def experts_by_one_hot_dispatch(x: Array, gate: Array, up: Array, down: Array) -> State:
    p = jax.nn.softmax(x.astype(jnp.float32) @ gate)
    weight, chosen = lax.top_k(p, 2)
    hot = jax.nn.one_hot(chosen, 4)
    place = jnp.cumsum(hot.reshape(24, 4), 0).reshape(12, 2, 4) - 1
    room = jax.nn.one_hot(place, 6) * (hot * (place < 6))[..., None]
    send = room.sum(1).astype(_BF16)
    back = (room * weight[..., None, None]).sum(1).astype(_BF16)
    inside = jnp.einsum("tec,td->ecd", send, x)
    out = jnp.einsum("ecf,efd->ecd", jax.nn.silu(jnp.einsum("ecd,edf->ecf", inside, up)), down)
    balance = 4 * jnp.sum(p.mean(0) * hot[:, 0].mean(0))
    return jnp.einsum("tec,ecd->td", back, out), balance


@of("f32[10,6]", "f32[6,3]", "f32[3,6,6]")
def experts_choose_their_tokens(x: Array, gate: Array, w: Array) -> Array:
    p = jax.nn.softmax(x @ gate, axis=1)
    weight, rows = lax.top_k(p.T, 4)
    out = jnp.einsum("ecd,edf->ecf", x[rows], w) * weight[..., None]
    return jnp.zeros_like(x).at[rows.reshape(-1)].add(out.reshape(-1, 6))


@of("f32[7,7]", "f32[7]")
def search_with_beams_and_lengths(table: Array, first: Array) -> State:
    logs = jax.nn.log_softmax(table)
    score, last = lax.top_k(jax.nn.log_softmax(first), 3)
    start = score, last, jnp.zeros((3, 5), jnp.int32).at[:, 0].set(last), last == 0

    def step(carry: State, t: Array) -> tuple[State, None]:
        score, last, text, ended = carry
        stay = jnp.where(jnp.arange(7) == 0, 0.0, -1e9)
        all_ = score[:, None] + jnp.where(ended[:, None], stay, logs[last])
        score, flat = lax.top_k(all_.reshape(-1), 3)
        beam, last = flat // 7, flat % 7
        text = text[beam].at[:, t].set(last)
        return (score, last, text, ended[beam] | (last == 0)), None

    (score, _, text, ended), _ = lax.scan(step, start, jnp.arange(1, 5))
    return score / ((5 + (text != 0).sum(1)) / 6) ** 0.6, text, ended


@of("bf16[2,8,2,4]", "bf16[2,8,2,4]", "bf16[2,3,2,4]", "s32[2]:below9")
def tokens_into_a_cache_and_attention(k: Array, v: Array, new: Array, at: Array) -> State:
    put = jax.vmap(lambda c, x, i: lax.dynamic_update_slice(c, x, (i, 0, 0)))
    k, v = put(k, new, at), put(v, -new, at)
    at = jnp.clip(at, 0, 5)
    seen = jnp.arange(8) <= at[:, None, None] + jnp.arange(3)[:, None]
    scores = jnp.einsum("bqhd,bkhd->bhqk", new, k).astype(jnp.float32) / 2
    p = jax.nn.softmax(jnp.where(seen[:, None], scores, -1e9))
    return k, v, jnp.einsum("bhqk,bkhd->bqhd", p.astype(_BF16), v)


@of("f32[4,20]", "u32[2]", "s32[4,6]:below20")
def sampling_with_penalties_and_a_nucleus(logits: Array, key: Array, text: Array) -> State:
    counts = jax.vmap(lambda t: jnp.bincount(t, length=20))(text)
    logits = jnp.where(counts > 0, jnp.where(logits > 0, logits / 1.3, logits * 1.3), logits)
    order = jnp.argsort(-logits, axis=-1)
    p = jax.nn.softmax(jnp.take_along_axis(logits, order, -1) / 0.8)
    kept = jnp.cumsum(p, -1) - p < 0.9
    floor = p >= 0.05 * p[:, :1]
    masked = jnp.where(kept & floor, jnp.log(p), -jnp.inf)
    noise = random.gumbel(random.wrap_key_data(key), masked.shape)
    drawn = jnp.argmax(masked + noise, -1)
    return jnp.take_along_axis(order, drawn[:, None], -1)[:, 0], kept.sum(-1)


@of("f32[4,9]", "f32[5,9]", "s32[4]:below9", "u32[2]")
def drafts_accepted_by_a_larger_model(small: Array, large: Array, text: Array, key: Array) -> State:
    q, p = jax.nn.softmax(small), jax.nn.softmax(large)
    at = jnp.arange(4)
    u, pick = random.split(random.wrap_key_data(key))
    good = random.uniform(u, (4,)) < jnp.minimum(1, p[at, text] / q[at, text])
    n = jnp.sum(jnp.cumprod(good.astype(jnp.int32)))
    rest = jnp.maximum(p[n] - jnp.where(n < 4, q[jnp.minimum(n, 3)], 0), 0)
    rest = rest / rest.sum()
    return n, rest, random.categorical(pick, jnp.log(rest))


@of("bf16[6,4,8]", "s32[3,2]:below6", "s32[3]:below9", "bf16[3,8]")
def pages_of_a_cache(pages: Array, table: Array, lengths: Array, q: Array) -> Array:
    keys = pages[table].reshape(3, 8, 8)
    scores = jnp.einsum("bd,btd->bt", q, keys).astype(jnp.float32)
    scores = jnp.where(jnp.arange(8) < lengths[:, None], scores, -1e30)
    p = jax.nn.softmax(scores) * (lengths > 0)[:, None]
    return jnp.einsum("bt,btd->bd", p.astype(_BF16), keys)


@of("f32[16,6]", "f32[16,6]", "f32[16,6]", "f32[]:fraction")
def retention_by_chunks_and_by_steps(q: Array, k: Array, v: Array, g: Array) -> State:
    g = 0.5 + g / 2

    def step(s: Array, row: State) -> tuple[Array, Array]:
        s = g * s + jnp.outer(row[1], row[2])
        return s, row[0] @ s

    _, slow = lax.scan(step, jnp.zeros((6, 6)), (q, k, v))
    n = jnp.arange(4)
    decay = jnp.where(n[:, None] >= n, g ** (n[:, None] - n), 0)

    def chunk(s: Array, row: State) -> tuple[Array, Array]:
        q, k, v = row
        out = (q @ k.T * decay) @ v + (g ** (n + 1))[:, None] * (q @ s)
        return g**4 * s + (k * (g ** (3 - n))[:, None]).T @ v, out

    _, fast = lax.scan(chunk, jnp.zeros((6, 6)), tuple(x.reshape(4, 4, 6) for x in (q, k, v)))
    return slow, fast.reshape(16, 6) - slow


@of("f32[32,4]", "f32[32,4]", "f32[4]:positive")
def long_convolution_with_gates(x: Array, gate: Array, decay: Array) -> Array:
    t = jnp.arange(32.0)[:, None]
    kernel = jnp.exp(-decay * t / 8) * jnp.cos(t * decay)
    y = jnp.fft.irfft(jnp.fft.rfft(x, 64, 0) * jnp.fft.rfft(kernel, 64, 0), 64, 0)[:32]
    return y * jax.nn.sigmoid(gate)


@of("s32[20]:below50000", "f32[3,16,4]")
def hashed_grams_of_words(text: Array, tables: Array) -> Array:
    two = jnp.stack([text[:-2], text[1:-1], text[2:]], 1).astype(jnp.uint32)
    keys = jnp.array([2654435761, 805459861, 3674653429], jnp.uint32)
    mixed = (two[:, None] * keys[:, None]) ^ (two[:, None] >> 7)
    code = (mixed[..., 0] ^ mixed[..., 1] ^ mixed[..., 2]) % 16
    return tables[jnp.arange(3), code.astype(jnp.int32)].mean(1)


@of("s32[24]:below6")
def merges_of_the_commonest_pairs(text: Array) -> tuple[Array, Array]:
    def step(carry: tuple[Array, Array], new: Array) -> tuple[tuple[Array, Array], Array]:
        text, n = carry
        at = jnp.arange(24)
        code = text * 16 + jnp.roll(text, -1)
        valid = at < n - 1
        counts = jnp.zeros(256, jnp.int32).at[code % 256].add(valid)
        best = counts.argmax()

        def mark(taken: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
            hit = x[0] & ~taken
            return hit, hit

        _, hit = lax.scan(mark, jnp.bool_(False), ((code == best) & valid, at))
        gone = jnp.roll(hit, 1).at[0].set(False)
        text = jnp.where(hit, new, text)
        order = jnp.argsort(gone | (at >= n), stable=True)
        return (text[order], n - gone.sum()), best

    return lax.scan(step, (text, jnp.int32(24)), jnp.arange(6, 10))


@of("bf16[8,16]", "bf16[16,30]", "s32[8]:below30")
def loss_with_a_penalty_of_the_partition(x: Array, w: Array, labels: Array) -> State:
    def loss(x: Array, w: Array) -> Array:
        logits = (x @ w).astype(jnp.float32)
        logits = 30 * jnp.tanh(logits / 30)
        z = jax.nn.logsumexp(logits, axis=-1)
        rest = z - jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]
        return jnp.where(labels == 0, 0, rest + 1e-4 * z**2).sum() / (labels != 0).sum()

    return jax.value_and_grad(loss, (0, 1))(x, w)


@of("f32[5,8]", "f32[8,8]", "f32[8,2]", "f32[2,8]")
def gradients_of_low_rank_updates(x: Array, w: Array, a: Array, b: Array) -> State:
    @partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    def layer(x: Array, a: Array, b: Array) -> Array:
        return jax.nn.gelu(x @ w + 2 * (x @ a) @ b)

    return jax.grad(lambda a, b: layer(layer(x, a, b), a, b).sum(), (0, 1))(a, b)


@jax.custom_vjp
def _norm(x: Array, w: Array) -> Array:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w


def _norm_ahead(x: Array, w: Array) -> tuple[Array, State]:
    r = lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    return x * r * w, (x, w, r)


def _norm_back(kept: State, g: Array) -> State:
    x, w, r = kept
    gw = g * w
    return r * (gw - x * r * r * (gw * x).mean(-1, keepdims=True)), (g * x * r).sum(0)


_norm.defvjp(_norm_ahead, _norm_back)


@of("f32[6,10]", "f32[10]")
def norm_with_its_own_gradient(x: Array, w: Array) -> State:
    return jax.vjp(lambda x, w: jnp.sin(_norm(x, w)), x, w)[1](jnp.ones((6, 10)))


@of("f32[12,8]", "f32[12,8]", "f32[12]:fraction")
def memory_by_scalar_gates(k: Array, v: Array, a: Array) -> Array:
    """The dual form of a selective state space: one masked product of matrices."""
    total = jnp.cumsum(jnp.log(0.2 + 0.8 * a))
    far = total[:, None] - total
    mask = jnp.where(jnp.tril(jnp.ones((12, 12), bool)), jnp.exp(far), 0)
    return (k @ k.T * mask) @ v


@of("bf16[6,8]", "bf16[6,8]", "s32[6]:below3")
def preferences_between_documents(q: Array, d: Array, document: Array) -> Array:
    same = document[:, None] == document
    causal = jnp.tril(jnp.ones((6, 6), bool))
    bucket = jnp.minimum(jnp.abs(jnp.arange(6)[:, None] - jnp.arange(6)), 3)
    bias = jnp.array([0.5, 0.25, 0.0, -0.5], _BF16)[bucket]
    scores = jnp.where(same & causal, q @ d.T + bias, jnp.finfo(_BF16).min)
    return jax.nn.softmax(scores, where=same & causal) @ d

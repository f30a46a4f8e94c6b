"""Blocks of transformers, state spaces, diffusion and image nets in f16, bf16 and in both."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of

BF16, F16, F32 = jnp.bfloat16, jnp.float16, jnp.float32


def _rms_norm(x: Array, gain: Array) -> Array:
    wide = x.astype(F32)
    return (wide * lax.rsqrt(jnp.mean(wide**2, -1, keepdims=True) + 1e-6)).astype(x.dtype) * gain


def _rotated(x: Array, theta: float = 10000.0) -> Array:
    """Rotate pairs of neighbours; positions are the second axis from the end."""
    length, size = x.shape[-2:]
    rates = theta ** (-jnp.arange(0, size, 2, dtype=F32) / size)
    angles = jnp.arange(length, dtype=F32)[:, None] * rates
    wide = x.astype(F32).reshape(*x.shape[:-1], size // 2, 2)
    even, odd = wide[..., 0], wide[..., 1]
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    turned = jnp.stack([even * cos - odd * sin, even * sin + odd * cos], -1)
    return turned.reshape(x.shape).astype(x.dtype)


def _llama(x: Array, *weights: Array) -> Array:
    """A decoder block: four query heads, two of keys and values, SwiGLU."""
    g, wq, wkv, wo, w1, w2 = weights
    length, size = x.shape
    h = _rms_norm(x, g)
    q = (h @ wq).reshape(length, 4, -1).transpose(1, 0, 2)
    k, v = jnp.split((h @ wkv).reshape(length, 4, -1).transpose(1, 0, 2), 2)
    q, k = _rotated(q), _rotated(k)
    k, v = jnp.repeat(k, 2, axis=0), jnp.repeat(v, 2, axis=0)
    scores = jnp.einsum("hqd,hkd->hqk", q, k).astype(F32) / jnp.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tri(length, dtype=bool), scores, jnp.finfo(F32).min)
    mixed = jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores).astype(x.dtype), v)
    x = x + mixed.transpose(1, 0, 2).reshape(length, -1) @ wo
    gate, up = jnp.split(_rms_norm(x, g) @ w1, 2, axis=-1)
    return x + (jax.nn.silu(gate) * up) @ w2


_LLAMA = ("[12,32]", "[32]", "[32,32]:hundredths", "[32,32]", "[32,32]", "[32,64]", "[32,32]")
_LLAMA_BF16 = tuple(f"bf16{dims}" for dims in _LLAMA)


@of(*_LLAMA_BF16)
def decoder_block_with_grouped_queries(x: Array, *weights: Array) -> Array:
    return _llama(x, *weights)


@of(*_LLAMA_BF16)
def gradients_of_a_decoder_block(x: Array, *weights: Array) -> object:
    def loss(x: Array, weights: tuple[Array, ...]) -> Array:
        return jnp.mean(_llama(x, *weights).astype(F32) ** 2)

    return jax.grad(loss, (0, 1))(x, weights)


@of("f16[2,16,32]", "f16[32,96]:hundredths", "f16[32,32]", "f16[16,16]")
def attention_with_relative_bias_f16(x: Array, w: Array, out: Array, bias: Array) -> Array:
    q, k, v = jnp.split((x @ w).reshape(2, 16, 3, 4, 8).transpose(2, 0, 3, 1, 4), 3)
    scores = jnp.einsum("zbhqd,zbhkd->bhqk", q, k) * F16(8**-0.5) + bias
    y = jnp.einsum("bhqk,zbhkd->bqhd", jax.nn.softmax(scores, -1), v)
    return y.reshape(2, 16, 32) @ out


@of("bf16[4,24,8]", "bf16[4,24,8]", "bf16[4,24,8]", "bf16[4,4,8]")
def sliding_window_with_sinks(q: Array, k: Array, v: Array, sink: Array) -> Array:
    rows, columns = jnp.arange(24)[:, None], jnp.arange(24)
    seen = (columns <= rows) & (columns > rows - 6)
    near = jnp.where(seen, jnp.einsum("hqd,hkd->hqk", q, k), -jnp.inf)
    scores = jnp.concatenate([jnp.einsum("hqd,hsd->hqs", q, sink), near], -1).astype(F32)
    weights = jax.nn.softmax(scores / jnp.sqrt(8.0), axis=-1)[..., 4:].astype(BF16)
    return jnp.einsum("hqk,hkd->hqd", weights, v)


@of(
    "bf16[4,1,16]",
    "bf16[4,32,16]",
    "bf16[4,32,16]",
    "bf16[4,1,16]",
    "bf16[4,1,16]",
    "s32[]:below32",
)
def one_token_with_a_cache(q: Array, ks: Array, vs: Array, k: Array, v: Array, at: Array) -> object:
    ks = lax.dynamic_update_slice(ks, k, (0, at, 0))
    vs = lax.dynamic_update_slice(vs, v, (0, at, 0))
    scores = jnp.einsum("hqd,hkd->hqk", q, ks, preferred_element_type=F32) * 0.25
    scores = jnp.where(jnp.arange(32) <= at, scores, -1e30)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores).astype(BF16), vs), ks, vs


@of("bf16[4,16,8]", "bf16[4,16,8]", "bf16[4,16,8]", "bf16[8]", "bf16[8]")
def softcapped_scores_of_normed_queries(q: Array, k: Array, v: Array, a: Array, b: Array) -> Array:
    q, k = _rotated(_rms_norm(q, a)), _rotated(_rms_norm(k, b))
    scores = jnp.einsum("hqd,hkd->hqk", q, k)
    scores = BF16(30) * jnp.tanh(scores / BF16(30))
    scores = jnp.where(jnp.tri(16, dtype=bool), scores, BF16(-2.4e38))
    return jax.nn.softmax(scores.astype(F32)).astype(BF16) @ v


@of("bf16[12,32]", "bf16[32,16]", "bf16[16,64]", "bf16[32,32]")
def latent_attention(x: Array, down: Array, up: Array, query: Array) -> Array:
    latent = _rms_norm(x @ down, jnp.ones(16, BF16))
    k, v = jnp.split((latent @ up).reshape(12, 4, 16), 2, axis=-1)
    q = (x @ query).reshape(12, 4, 8)
    scores = jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(BF16(8))
    return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores), v).reshape(12, 32)


@of("f16[16,8]", "f16[16,8]", "f16[16,8]")
def attention_in_blocks_of_keys(q: Array, k: Array, v: Array) -> Array:
    """Flash attention: a running maximum and sum in f32 over blocks of four keys."""

    def block(state: tuple[Array, ...], kv: tuple[Array, Array]) -> tuple[tuple[Array, ...], None]:
        top, total, out = state
        k, v = kv
        scores = jnp.matmul(q, k.T, preferred_element_type=F32) * 8**-0.5
        new = jnp.maximum(top, scores.max(-1))
        p, fade = jnp.exp(scores - new[:, None]), jnp.exp(top - new)
        added = jnp.matmul(p.astype(F16), v, preferred_element_type=F32)
        return (new, total * fade + p.sum(-1), out * fade[:, None] + added), None

    start = jnp.full(16, -jnp.inf), jnp.zeros(16), jnp.zeros((16, 8))
    blocks = k.reshape(4, 4, 8), v.reshape(4, 4, 8)
    (_, total, out), _ = lax.scan(block, start, blocks)
    return (out / total[:, None]).astype(F16)


@of("bf16[16,16]", "f32[16,4]", "bf16[4,16,32]", "bf16[4,32,16]")
def experts_with_capacity(x: Array, router: Array, w: Array, v: Array) -> tuple[Array, Array]:
    """A switch layer: the best expert, at most five tokens each, and the loss of the balance."""
    gates = jax.nn.softmax(x.astype(F32) @ router)
    expert = jnp.argmax(gates, -1)
    mask = jax.nn.one_hot(expert, 4, dtype=jnp.int32)
    place = (jnp.cumsum(mask, 0) * mask).sum(-1) - 1
    kept = place < 5
    sent = jax.nn.one_hot(expert, 4, dtype=BF16)[:, :, None]
    sent = sent * jax.nn.one_hot(place, 5, dtype=BF16)[:, None] * kept[:, None, None]
    inputs = jnp.einsum("td,tec->ecd", x, sent)
    hidden = jax.nn.gelu(jnp.einsum("ecd,edf->ecf", inputs, w))
    outputs = jnp.einsum("ecf,efd->ecd", hidden, v)
    combined = sent * jnp.max(gates, -1)[:, None, None].astype(BF16)
    balance = 4 * jnp.sum(gates.mean(0) * mask.astype(F32).mean(0))
    return jnp.einsum("ecd,tec->td", outputs, combined), balance


@of("bf16[12,16]", "bf16[16,6]", "bf16[6]", "bf16[6,16,16]", "bf16[16,16]")
def sigmoid_routed_experts_and_a_shared_one(
    x: Array, router: Array, bias: Array, experts: Array, shared: Array
) -> Array:
    scores = jax.nn.sigmoid(x.astype(F32) @ router.astype(F32))
    _, chosen = lax.top_k(scores + bias.astype(F32), 2)
    weights = jnp.take_along_axis(scores, chosen, -1)
    weights = weights / (weights.sum(-1, keepdims=True) + 1e-20) * 2.5
    y = jnp.einsum("td,tkdf->tkf", x, experts[chosen])
    y = jax.nn.relu(y) ** 2 * weights[..., None].astype(BF16)
    return x + y.sum(1) + jax.nn.relu(x @ shared) ** 2


@of("bf16[12,16]", "bf16[16,3]", "bf16[3,16,16]")
def gradients_of_routed_experts(x: Array, router: Array, experts: Array) -> object:
    def loss(x: Array, router: Array, experts: Array) -> Array:
        gates, chosen = lax.top_k(jax.nn.softmax((x @ router).astype(F32)), 1)
        y = jnp.einsum("td,tdf->tf", x, experts[chosen[:, 0]])
        return ((jnp.tanh(y) * gates.astype(BF16)) ** 2).sum()

    return jax.grad(loss, (0, 1, 2))(x, router, experts)


@of("bf16[20,12]", "bf16[12,12]", "bf16[12,4]", "bf16[12,4]", "f32[12,4]", "bf16[12]")
def selective_state_space_with_skip(
    x: Array, dt: Array, b: Array, c: Array, a: Array, skip: Array
) -> Array:
    """The scan of Mamba: Δ, B and C depend on the input; the state is f32."""
    delta = jax.nn.softplus((x @ dt).astype(F32) - 3)
    decays = jnp.exp(delta[..., None] * -jnp.exp(a))
    inputs = delta[..., None] * (x @ b).astype(F32)[:, None] * x.astype(F32)[..., None]

    def step(h: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        decay, u, c = row
        h = decay * h + u
        return h, (h @ c).astype(BF16)

    _, y = lax.scan(step, jnp.zeros((12, 4)), (decays, inputs, (x @ c).astype(F32)))
    return (y + x * skip) * jax.nn.silu(x)


@of("bf16[24,8]", "bf16[24,8]", "bf16[24,8]", "bf16[24,8]:fraction", "bf16[8]")
def time_mixing_with_decay(r: Array, k: Array, v: Array, w: Array, bonus: Array) -> Array:
    def step(s: Array, row: tuple[Array, ...]) -> tuple[Array, Array]:
        r, k, v, w = row
        kv = k[:, None] * v
        y = r @ (s + bonus[:, None] * kv)
        return s * jnp.exp(-jnp.exp(w))[:, None] + kv, y

    return lax.scan(step, jnp.zeros((8, 8), BF16), (r, k, v, w))[1]


@of("bf16[16,8]", "bf16[16,8]", "bf16[16,8]", "bf16[16]:fraction")
def delta_rule_memory(q: Array, k: Array, v: Array, beta: Array) -> Array:
    k = k / jnp.linalg.norm(k.astype(F32), axis=-1, keepdims=True).astype(BF16)

    def step(s: Array, row: tuple[Array, ...]) -> tuple[Array, Array]:
        q, k, v, beta = row
        s = s + jnp.outer(beta * (v - s @ k), k)
        return s, s @ q

    return lax.scan(step, jnp.zeros((8, 8), BF16), (q, k, v, beta))[1]


@of(
    "bf16[2,12,12,3]",
    "bf16[3,3,3,16]:hundredths",
    "bf16[16]",
    "bf16[3,3,16,16]",
    "f32[2]:fraction",
    "bf16[16,32]",
)
def unet_block_with_time(
    x: Array, w1: Array, gain: Array, w2: Array, t: Array, project: Array
) -> Array:
    """Convolution, group norm, a shift by the embedding of time, SiLU, convolution."""

    def conv(x: Array, w: Array) -> Array:
        return lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def norm(x: Array) -> Array:
        groups = x.astype(F32).reshape(2, 12, 12, 4, 4)
        mean = groups.mean((1, 2, 4), keepdims=True)
        variance = ((groups - mean) ** 2).mean((1, 2, 4), keepdims=True)
        y = (groups - mean) * lax.rsqrt(variance + 1e-5)
        return y.reshape(x.shape).astype(x.dtype) * gain

    rates = jnp.exp(-jnp.log(10000.0) * jnp.arange(8) / 8)
    angles = 1000 * t[:, None] * rates
    embedded = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1).astype(BF16)
    scale, shift = jnp.split(embedded @ project, 2, axis=-1)
    h = conv(x, w1)
    h = norm(h) * (1 + scale[:, None, None]) + shift[:, None, None]
    return h + conv(jax.nn.silu(h), w2)


@of("bf16[2,8,8,4]", "bf16[2,8,8,4]", "s32[2]:below1000", "u32[2]")
def diffusion_loss_and_previous_step(x: Array, score: Array, t: Array, key: Array) -> object:
    betas = jnp.linspace(1e-4, 0.02, 1000)
    kept = jnp.cumprod(1 - betas)
    noise = jax.random.normal(jax.random.wrap_key_data(key), x.shape, BF16)
    root, rest = jnp.sqrt(kept[t]), jnp.sqrt(1 - kept[t])
    noisy = root[:, None, None, None] * x + rest[:, None, None, None] * noise
    loss = jnp.mean((score - noise).astype(F32) ** 2)
    slope = (betas[t] / rest)[:, None, None, None]
    previous = (noisy - slope * score) / jnp.sqrt(1 - betas[t])[:, None, None, None]
    return loss, noisy.astype(BF16), previous.astype(BF16)


@of("f16[2,16]", "f16[2,16]", "f32[]:fraction")
def guided_step_by_ddim(x: Array, noise: Array, t: Array) -> Array:
    def kept(t: Array) -> Array:
        return jnp.cos((t + 0.008) / 1.008 * jnp.pi / 2) ** 2

    guided = noise[0] + F16(7.5) * (noise[1] - noise[0])
    now, then = kept(t), kept(jnp.maximum(t - 0.02, 0))
    clean = (x - jnp.sqrt(1 - now).astype(F16) * guided) / jnp.sqrt(now).astype(F16)
    clean = jnp.clip(clean, -1, 1)
    return jnp.sqrt(then).astype(F16) * clean + jnp.sqrt(1 - then).astype(F16) * guided


@of("bf16[2,16,16,3]", "bf16[4,4,3,24]", "bf16[24]", "bf16[17,24]", "bf16[24,10]")
def image_patches_to_logits(x: Array, w: Array, cls: Array, place: Array, head: Array) -> Array:
    names = ("NHWC", "HWIO", "NHWC")
    patches = lax.conv_general_dilated(x, w, (4, 4), "VALID", dimension_numbers=names)
    rows = patches.reshape(2, 16, 24)
    rows = jnp.concatenate([jnp.broadcast_to(cls, (2, 1, 24)), rows], 1) + place
    mean, variance = rows.mean(-1, keepdims=True), rows.var(-1, keepdims=True)
    normed = (rows - mean) / jnp.sqrt(variance + BF16(1e-6))
    return jax.nn.log_softmax((normed[:, 0] @ head).astype(F32))


@of("f16[2,10,10,8]", "f16[7,7,1,8]", "f16[8,32]", "f16[32,8]", "f16[8]")
def convnext_block(x: Array, depth: Array, up: Array, down: Array, scale: Array) -> Array:
    names = ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(
        x, depth, (1, 1), "SAME", dimension_numbers=names, feature_group_count=8
    )
    wide = y.astype(F32)
    wide = (wide - wide.mean(-1, keepdims=True)) * lax.rsqrt(wide.var(-1, keepdims=True) + 1e-6)
    y = jax.nn.gelu(wide.astype(F16) @ up) @ down
    return x + scale * y


@of("bf16[2,8,8,8]", "bf16[8,2]", "bf16[2,8]", "bf16[3,3,8,8]")
def squeeze_and_excite_with_gradients(x: Array, w: Array, v: Array, kernel: Array) -> object:
    def block(x: Array, w: Array, v: Array, kernel: Array) -> Array:
        names = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=names)
        squeezed = jax.nn.relu(y.mean((1, 2)) @ w)
        return (y * jax.nn.sigmoid(squeezed @ v)[:, None, None]).astype(F32).sum()

    return jax.grad(block, (0, 1, 2, 3))(x, w, v, kernel)

"""Numbers of few bits: scales, packing, stochastic rounding and steps of training."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax, random

from programs.function import of

State = tuple[Array, ...]
_BF16, _F16 = jnp.bfloat16, jnp.float16


@of("f32[6,32]", "f32[32,10]")
def int8_product_by_channels(x: Array, w: Array) -> Array:
    sx = jnp.max(jnp.abs(x), axis=1, keepdims=True) / 127
    sw = jnp.max(jnp.abs(w), axis=0) / 127
    qx = jnp.clip(jnp.round(x / sx), -127, 127).astype(jnp.int8)
    qw = jnp.clip(jnp.round(w / sw), -127, 127).astype(jnp.int8)
    return lax.dot(qx, qw, preferred_element_type=jnp.int32) * sx * sw


@of("u8[16,8]", "bf16[8]", "bf16[4,32]")
def product_of_packed_nibbles(packed: Array, scale: Array, x: Array) -> Array:
    low = (packed & 15).astype(jnp.int8) - 8
    high = (packed >> 4).astype(jnp.int8) - 8
    w = jnp.stack([low, high], 1).reshape(32, 8).astype(_BF16) * scale
    return x @ w


@of("f32[64]")
def normal_floats_of_four_bits(x: Array) -> State:
    levels = jax.scipy.special.ndtri(jnp.linspace(0.03, 0.97, 16))
    levels = levels / levels[-1]
    blocks = x.reshape(8, 8)
    scale = jnp.abs(blocks).max(1, keepdims=True)
    codes = jnp.argmin(jnp.abs((blocks / scale)[..., None] - levels), axis=-1)
    return codes, levels[codes] * scale


@of("f32[8,16]", "f32[16,8]")
def e4m3_product_with_two_scales(x: Array, w: Array) -> Array:
    sx, sw = 448 / jnp.abs(x).max(), 448 / jnp.abs(w).max()
    q = (x * sx).astype(jnp.float8_e4m3fn), (w * sw).astype(jnp.float8_e4m3fn)
    return jnp.dot(*q, preferred_element_type=jnp.float32) / (sx * sw)


@of("f32[4,32]")
def blocks_with_a_shared_power_of_two(x: Array) -> State:
    blocks = x.reshape(4, 4, 8)
    _, exponent = jnp.frexp(jnp.abs(blocks).max(-1, keepdims=True))
    scale = jnp.ldexp(jnp.float32(1), exponent - 3)
    codes = jnp.clip(jnp.round(blocks / scale * 2), -15, 15).astype(jnp.int8)
    return codes, (codes * scale / 2).reshape(4, 32), exponent


@of("u32[2]", "f32[50]")
def rounding_by_chance_to_bf16_and_int8(key: Array, x: Array) -> State:
    one, two = random.split(random.wrap_key_data(key))
    bits = lax.bitcast_convert_type(x, jnp.uint32)
    noise = random.bits(one, x.shape, jnp.uint32) & 0xFFFF
    narrow = lax.bitcast_convert_type((bits + noise) & jnp.uint32(0xFFFF0000), jnp.float32)
    low = jnp.floor(x * 16)
    up = random.uniform(two, x.shape) < x * 16 - low
    return narrow.astype(_BF16), jnp.clip(low + up, -128, 127).astype(jnp.int8)


@of("f32[8,8]:definite", "f32[5,8]")
def column_by_column_with_compensation(h: Array, w: Array) -> Array:
    """The steps of GPTQ: what rounding loses is made up for by later columns."""
    factor = jnp.linalg.cholesky(jnp.linalg.inv(h)).T

    def step(w: Array, j: Array) -> tuple[Array, Array]:
        column = w[:, j]
        q = jnp.round(column * 4) / 4
        error = (column - q) / factor[j, j]
        later = jnp.where(jnp.arange(8) > j, factor[j], 0)
        return w - error[:, None] * later, q

    return lax.scan(step, w, jnp.arange(8))[1].T


@of("f32[4,16]", "f32[16,6]")
def product_turned_by_hadamard(x: Array, w: Array) -> Array:
    h = jnp.ones((1, 1))
    for _ in range(4):
        h = jnp.block([[h, h], [h, -h]])
    h = h / 4
    turned = x @ h
    scale = jnp.abs(turned).max(-1, keepdims=True) / 7
    q = jnp.clip(jnp.round(turned / scale), -8, 7)
    return (q * scale) @ (h.T @ w)


@of("f32[12,12]", "bf16[3,12]")
def ternary_weights(w: Array, x: Array) -> tuple[Array, Array]:
    scale = jnp.abs(w).mean()
    q = jnp.clip(jnp.round(w / (scale + 1e-5)), -1, 1)
    top = jnp.abs(x).max(-1, keepdims=True)
    qx = jnp.round(x * 127 / top).astype(jnp.int8)
    y = lax.dot(qx, q.astype(jnp.int8), preferred_element_type=jnp.int32)
    return q, (y * (scale * top.astype(jnp.float32) / 127)).astype(_BF16)


@of("bf16[24]", "bf16[24]", "f32[24]:hundredths", "f32[24]:magnitude")
def adam_with_bf16_weights(w: Array, g: Array, m: Array, v: Array) -> State:
    g = g.astype(jnp.float32)
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    move = 1e-2 * (m / (1 - 0.9**3)) / (jnp.sqrt(v / (1 - 0.999**3)) + 1e-8)
    return (w - (move + 1e-4 * w).astype(_BF16)), m.astype(_BF16), v


@of("f16[16,8]", "f16[8,4]", "f16[16,4]", "f32[]:positive")
def step_with_scaled_loss_in_f16(x: Array, w: Array, y: Array, scale: Array) -> State:
    def loss(w: Array) -> Array:
        return ((jax.nn.relu(x @ w) - y) ** 2).mean().astype(jnp.float32) * scale * 256

    value, g = jax.value_and_grad(loss)(w)
    g = g.astype(jnp.float32) / (scale * 256)
    finite = jnp.isfinite(g).all()
    return jnp.where(finite, w - 0.1 * g, w).astype(_F16), jnp.where(finite, scale * 2, scale / 2)


@of("bf16[32]", "bf16[20,32]:hundredths")
def descent_with_a_compensated_sum(w: Array, gradients: Array) -> State:
    def step(carry: State, g: Array) -> tuple[State, None]:
        w, lost = carry
        move = -(g + lost)
        new = w + move
        return (new, (new - w) - move), None

    (w, lost), _ = lax.scan(step, (w, jnp.zeros_like(w)), gradients)
    return w, lost


@of("f32[8,12]", "f32[12,8]")
def product_of_split_numbers(a: Array, b: Array) -> Array:
    """Three products of bf16 for one of f32."""

    def split(x: Array) -> tuple[Array, Array]:
        high = lax.reduce_precision(x, 8, 7)
        return high.astype(_BF16), (x - high).astype(_BF16)

    (ah, al), (bh, bl) = split(a), split(b)
    dot = lambda x, y: jnp.dot(x, y, preferred_element_type=jnp.float32)  # noqa: E731
    return dot(al, bh) + dot(ah, bl) + dot(ah, bh)


@of("f32[6,10]", "f32[6,10]")
def adafactor_of_factors(w: Array, g: Array) -> State:
    square = g * g + 1e-30
    r, c = square.mean(1), square.mean(0)
    u = g / jnp.sqrt(r[:, None] * c / r.mean())
    u = u / jnp.maximum(1, jnp.sqrt((u * u).mean()))
    return w - 1e-2 * jnp.maximum(1e-3, jnp.sqrt((w * w).mean())) * u, r, c


@of("s8[40]", "f32[40]", "f32[5]:positive")
def moments_of_eight_bits(codes: Array, g: Array, scale: Array) -> State:
    m = codes.reshape(5, 8) * scale[:, None] / 127
    m = 0.9 * m + 0.1 * g.reshape(5, 8)
    top = jnp.abs(m).max(1)
    curved = jnp.sign(m) * jnp.sqrt(jnp.abs(m) / top[:, None])
    return jnp.round(curved * 127).astype(jnp.int8), top


@of("f32[24]", "f32[]:positive")
def learned_step_sizes(x: Array, s: Array) -> tuple[Array, Array]:
    @jax.custom_vjp
    def rounded(x: Array) -> Array:
        return jnp.round(x)

    rounded.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))

    def loss(x: Array, s: Array) -> Array:
        return (rounded(jnp.clip(x / s, -4, 3)) * s * x).sum()

    return jax.grad(loss, (0, 1))(x, s)


@of("f32[10,12]", "f32[3,8,4]")
def product_quantisation(x: Array, books: Array) -> State:
    parts = x.reshape(10, 3, 4)
    far = ((parts[:, :, None] - books) ** 2).sum(-1)
    codes = far.argmin(-1).astype(jnp.uint8)
    table = jnp.einsum("nsd,skd->nsk", parts, books)
    return codes, table[:, jnp.arange(3), codes].sum(1), far.min(-1).sum(1)


@of("f32[9,4]", "f32[3,16,4]")
def residual_codes(x: Array, books: Array) -> tuple[Array, Array]:
    def step(rest: Array, book: Array) -> tuple[Array, Array]:
        far = (rest**2).sum(1, keepdims=True) - 2 * rest @ book.T + (book**2).sum(1)
        code = far.argmin(1)
        return rest - book[code], code

    return lax.scan(step, x, books)


@of("bf16[2,6,16]", "bf16[2,16]", "f32[2,6]:positive")
def attention_to_a_cache_of_int8(keys: Array, query: Array, scale: Array) -> Array:
    q = jnp.clip(jnp.round(keys / scale[..., None] * 32), -128, 127).astype(jnp.int8)
    wide = q.astype(_BF16) * (scale[..., None] / 32).astype(_BF16)
    scores = jnp.einsum("bd,btd->bt", query, wide) / 4
    return jnp.einsum("bt,btd->bd", jax.nn.softmax(scores.astype(jnp.float32)).astype(_BF16), wide)


@of("f16[40]", "f16[40]:hundredths")
def norms_and_products_near_the_ends_of_f16(x: Array, y: Array) -> State:
    big, small = x * 300, y * _F16(1e-3)
    return big * big, jnp.sqrt((big * big).sum()), small * small, small / (small * 8), big + small


@of("f32[20]")
def through_every_narrow_float(x: Array) -> State:
    kinds = (jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float8_e4m3fnuz, jnp.float8_e5m2fnuz)
    kinds += (jnp.float8_e4m3b11fnuz, jnp.float8_e3m4, jnp.float4_e2m1fn)
    return tuple(x.astype(kind).astype(jnp.float32) * x for kind in kinds)


@of("u8[12]", "u8[8,12]", "s32[8]:below1000")
def layer_of_unsigned_bytes(x: Array, w: Array, bias: Array) -> Array:
    """A layer as TFLite has it: zero points, a multiplier of 31 bits and a rounding shift."""
    total = (w.astype(jnp.int32) - 128) @ (x.astype(jnp.int32) - 3) + bias
    high = jnp.right_shift(total.astype(jnp.int32) * 77 + (1 << 9), 10)
    return jnp.clip(high + 128, 0, 255).astype(jnp.uint8)

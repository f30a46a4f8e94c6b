"""Integers, bits, quantisation and narrow storage."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from programs.everyday_torch.function import of


@of("f32[6,8]")
def symmetric_bytes(x: Any) -> Any:
    scale = x.abs().amax(1, keepdim=True) / 127
    q = (x / scale).round().clamp(-128, 127).to(torch.int8)
    return q, q.to(x.dtype) * scale


@of("f32[6,8]")
def unsigned_bytes_with_zero_point(x: Any) -> Any:
    low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
    scale = (high - low) / 255
    zero = (-low / scale).round()
    q = (x / scale + zero).round().clamp(0, 255).to(torch.uint8)
    return q, (q.to(x.dtype) - zero) * scale


@of("s8[4,16]", "s8[5,16]", "f32[4,1]:positive", "f32[5]:positive")
def product_of_bytes(a: Any, b: Any, sa: Any, sb: Any) -> Any:
    return (a.int() @ b.int().T).to(sa.dtype) * sa * sb


@of("f32[6,8]", "f32[8]")
def straight_through_rounding(x: Any, up: Any) -> Any:
    def loss(x: Any) -> Any:
        q = (x * 8).round().clamp(-8, 7) / 8
        return ((x + (q - x).detach()) * up).sum()

    return loss(x), torch.func.grad(loss)(x)


@of("f32[6,8]")
def fake_quantisation(x: Any) -> Any:
    per_row = torch.fake_quantize_per_channel_affine(
        x.float(), torch.linspace(0.01, 0.06, 6), torch.zeros(6, dtype=torch.int32), 0, -128, 127
    )
    return torch.fake_quantize_per_tensor_affine(x.float(), 0.03, 2, 0, 255), per_row


@of("u8[6,8]", "f32[6,4]:positive")
def nibbles_unpacked(packed: Any, scale: Any) -> Any:
    low, high = packed & 15, packed >> 4
    w = torch.stack((low, high), -1).flatten(1).to(scale.dtype) - 8
    return (w.view(6, 4, 4) * scale[..., None]).flatten(1)


@of("f32[4,16]")
def codes_of_normal_floats(x: Any) -> Any:
    levels = torch.tensor(
        [-1.0, -0.7, -0.5, -0.35, -0.2, -0.1, 0.0, 0.1, 0.25, 0.4, 0.6, 1.0], dtype=x.dtype
    )
    top = x.abs().amax(1, keepdim=True)
    code = (x[..., None] / top[..., None] - levels).abs().argmin(-1)
    return code.to(torch.uint8), levels[code] * top


@of("f32[5,6]")
def cast_to_eight_bits(x: Any) -> Any:
    scale = 448 / x.abs().max().float().clamp(min=1e-12)
    q = (x.float() * scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    return q.float() / scale, x.float().to(torch.float8_e5m2).float()


@of("s32[20]", "s32[20]")
def bits(a: Any, b: Any) -> Any:
    return a & b, a | b, a ^ b, ~a, a << 3, a >> 5, torch.bitwise_not(b) + 1


@of("s64[20]:below100000", "s64[20]:below97")
def whole_divisions(a: Any, b: Any) -> Any:
    b = b - 48
    b = torch.where(b == 0, 1, b)
    return (
        a // b,
        a % b,
        torch.div(-a, b, rounding_mode="trunc"),
        torch.fmod(-a, b),
        torch.gcd(a, b),
        torch.lcm(a % 100, b),
    )


@of("s64[20]:below1000000")
def hashes(x: Any) -> Any:
    h = x * 0x9E3779B1 & 0xFFFFFFFF
    h = (h ^ (h >> 15)) * 0x85EBCA77 & 0xFFFFFFFF
    return h ^ (h >> 13), (h & 0xFF).to(torch.uint8), (h % 1000).to(torch.float32) / 1000


@of("s32[16]")
def counted_bits(x: Any) -> Any:
    v = x.long() & 0xFFFFFFFF
    v = v - ((v >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    v = (v + (v >> 4)) & 0x0F0F0F0F
    return (v * 0x01010101 & 0xFFFFFFFF) >> 24


@of("pred[4,32]")
def packed_masks(m: Any) -> Any:
    weights = 2 ** torch.arange(8, dtype=torch.int32)
    packed = (m.view(4, 4, 8).int() * weights).sum(-1).to(torch.uint8)
    return packed, (packed[..., None].int() & weights).ne(0).view(4, 32), m.cumsum(1)


@of("f32[10]:scaled10")
def floats_as_bits(x: Any) -> Any:
    u = x.float().view(torch.int32)
    return (u >> 23 & 255) - 127, u & 0x7FFFFF, torch.ldexp(x.float(), torch.tensor(3))


@of("u8[3,6,6]", "u8[3,6,6]")
def blended_bytes(a: Any, b: Any) -> Any:
    mean = ((a.int() + b.int() + 1) >> 1).to(torch.uint8)
    return (
        mean,
        a + b,
        (a.float() * 0.3 + b.float() * 0.7).round().clamp(0, 255).byte(),
        torch.bincount(a.flatten().int()),
    )


@of("s64[6]:below5000")
def dates(days: Any) -> Any:
    z = days + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    return yoe + era * 400, doy - (153 * mp + 2) // 5 + 1, torch.where(mp < 10, mp + 3, mp - 9)


@of("f32[4,6]", "f32[5,6]")
def ternary_weights(x: Any, w: Any) -> Any:
    scale = w.abs().mean().clamp(min=1e-5)
    t = (w / scale).round().clamp(-1, 1)
    return F.linear(x, t) * scale, t.to(torch.int8)


@of("f32[5,8]")
def groups_of_two_of_four(x: Any) -> Any:
    g = x.view(5, 2, 4)
    keep = torch.zeros_like(g, dtype=torch.bool).scatter(2, g.abs().topk(2, -1).indices, True)
    return (g * keep).view(5, 8), keep.sum((1, 2))

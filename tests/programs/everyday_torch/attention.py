"""Attention in its variants: masks, groups of heads, rotations, biases, windows, caches."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from programs.everyday_torch.function import of


@of("f32[2,3,7,8]", "f32[2,3,7,8]", "f32[2,3,7,8]")
def plain(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v)


@of("f32[2,2,9,8]:scaled4", "f32[2,2,9,8]:scaled4", "f32[2,2,9,8]")
def causal(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@of("f32[2,2,6,8]", "f32[2,2,10,8]", "f32[2,2,10,8]", "pred[2,1,6,10]")
def with_a_mask_of_padding(q: Any, k: Any, v: Any, mask: Any) -> Any:
    mask = mask.clone()
    mask[..., 0] = True
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@of("f32[2,2,6,8]", "f32[2,2,6,8]", "f32[2,2,6,8]", "f32[2,6,6]")
def with_a_bias(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.5)


@of("f32[1,8,6,4]", "f32[1,2,6,4]", "f32[1,2,6,4]")
def grouped_queries(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


@of("f32[2,5,3,4]", "f32[2,5,3,4]", "f32[2,5,3,4]")
def by_einsum(q: Any, k: Any, v: Any) -> Any:
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(torch.triu(torch.ones(5, 5, dtype=torch.bool), 1), -torch.inf)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)


@of("f32[2,4,10,8]", "f32[2,4,10,8]")
def rotary_embedding(q: Any, k: Any) -> Any:
    inverse = 1.0 / (10000 ** (torch.arange(0, 8, 2, dtype=torch.float32) / 8))
    angles = torch.outer(torch.arange(10, dtype=torch.float32), inverse)
    angles = torch.cat((angles, angles), -1)
    cos, sin = angles.cos().to(q.dtype), angles.sin().to(q.dtype)

    def half(x: Any) -> Any:
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    return q * cos + half(q) * sin, k * cos + half(k) * sin


@of("f32[1,6,2,8]")
def rotary_by_complex_numbers(x: Any) -> Any:
    inverse = 1.0 / (10000.0 ** (torch.arange(0, 8, 2).float() / 8))
    turns = torch.polar(torch.ones(6, 4), torch.outer(torch.arange(6).float(), inverse))
    pairs = torch.view_as_complex(x.float().reshape(1, 6, 2, 4, 2))
    return torch.view_as_real(pairs * turns[None, :, None]).flatten(3).type_as(x)


@of("f32[1,4,7,8]", "f32[1,4,7,8]", "f32[1,4,7,8]")
def with_linear_biases(q: Any, k: Any, v: Any) -> Any:
    slopes = torch.tensor([2.0 ** (-8 * (i + 1) / 4) for i in range(4)])
    distance = (torch.arange(7)[None] - torch.arange(7)[:, None]).clamp(max=0)
    bias = slopes[:, None, None] * distance
    scores = q @ k.mT / 8**0.5 + bias.to(q.dtype)
    scores = scores + torch.full((7, 7), float("-inf")).triu(1).to(q.dtype)
    return F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype) @ v


@of("f32[1,2,12,4]:scaled3", "f32[1,2,12,4]:scaled3", "f32[1,2,12,4]")
def sliding_window(q: Any, k: Any, v: Any) -> Any:
    i = torch.arange(12)
    seen = (i[:, None] >= i) & (i[:, None] - i < 4)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)


@of("f32[2,1,16]", "f32[2,9,16]", "f32[2,9,16]", "f32[2,1,16]", "s64[]:below9")
def one_step_with_a_cache(q: Any, k: Any, v: Any, new: Any, at: Any) -> Any:
    place = torch.arange(9)[None, :, None] == at
    k, v = torch.where(place, new, k), torch.where(place, new * 2, v)
    scores = (q @ k.transpose(1, 2)) * 16**-0.5
    scores = scores.masked_fill(torch.arange(9) > at, torch.finfo(q.dtype).min)
    return torch.softmax(scores, -1) @ v


@of("f32[2,2,6,4]", "f32[2,2,6,4]", "f32[2,2,6,4]", "f32[2,2,6,4]")
def gradients_of_causal(q: Any, k: Any, v: Any, up: Any) -> Any:
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return torch.autograd.grad(out, (q, k, v), up)


@of("f32[2,8,6]", "f32[2,8,6]", "f32[2,8,6]")
def linear_attention(q: Any, k: Any, v: Any) -> Any:
    q, k = F.elu(q) + 1, F.elu(k) + 1
    kv = torch.einsum("bnd,bne->bde", k, v)
    z = 1 / (torch.einsum("bnd,bd->bn", q, k.sum(1)) + 1e-6)
    return torch.einsum("bnd,bde,bn->bne", q, kv, z)


@of("f32[3,5,8]:scaled20", "f32[3,5,8]:scaled20")
def with_capped_logits(q: Any, k: Any) -> Any:
    scores = q @ k.mT
    return (50.0 * torch.tanh(scores / 50.0)).softmax(-1)


@of("f32[1,2,5,8]", "f32[1,2,5,8]", "f32[1,2,5,8]")
def of_normalised_queries(q: Any, k: Any, v: Any) -> Any:
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    return (10 * q @ k.transpose(-2, -1)).softmax(-1) @ v

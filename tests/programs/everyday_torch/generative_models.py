"""Generative models: diffusion, flows, autoencoders, adversaries."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from programs.everyday_torch.function import module_of, of


def _alphas(dtype: Any) -> Any:
    beta = torch.linspace(1e-4, 0.02, 50)
    return torch.cumprod(1 - beta, 0).to(dtype)


@of("f32[3,2,4,4]", "f32[3,2,4,4]", "s64[3]:below50")
def noised_images(x: Any, noise: Any, t: Any) -> Any:
    a = _alphas(x.dtype)[t][:, None, None, None]
    return a.sqrt() * x + (1 - a).sqrt() * noise


@of("f32[2,3,4]", "f32[2,3,4]")
def implicit_denoising_steps(x: Any, eps: Any) -> Any:
    a = _alphas(x.dtype)
    for now, then in ((49, 30), (30, 10)):
        x0 = ((x - (1 - a[now]).sqrt() * eps) / a[now].sqrt()).clamp(-3, 3)
        x = a[then].sqrt() * x0 + (1 - a[then]).sqrt() * eps
    return x


@of("f32[5]:positive")
def sinusoidal_embedding_of_time(t: Any) -> Any:
    f = torch.exp(-math.log(10000) * torch.arange(8, dtype=torch.float32) / 8)
    a = t[:, None].float() * 100 * f
    return torch.cat((a.sin(), a.cos()), -1).to(t.dtype)


@of("f32[4,6]", "f32[4,6]", "f32[4,6]", "f32[4,6]")
def bound_of_an_autoencoder(x: Any, logits: Any, mu: Any, log_var: Any) -> Any:
    kl = -0.5 * (1 + log_var - mu.pow(2) - log_var.exp()).sum()
    return F.binary_cross_entropy_with_logits(logits, x.sigmoid(), reduction="sum") + kl


@of("f32[5,4]", "f32[2,4]", "f32[4,2]", "f32[4]")
def coupling_layer(x: Any, w1: Any, w2: Any, b: Any) -> Any:
    a, c = x.chunk(2, 1)
    shift, scale = F.linear(torch.tanh(a @ w1), w2.new_tensor([[1.0] * 4] * 4), b).chunk(2, 1)
    scale = torch.tanh(scale)
    return torch.cat((a, c * scale.exp() + shift), 1), scale.sum(1)


@of("f32[6]:unit", "f32[6,15]")
def rational_quadratic_spline(x: Any, p: Any) -> Any:
    w, h, d = p[:, :5].softmax(-1), p[:, 5:10].softmax(-1), F.softplus(p[:, 9:15]) + 1e-3
    cw = F.pad(w.cumsum(-1), (1, 0)) * 2 - 1
    ch = F.pad(h.cumsum(-1), (1, 0)) * 2 - 1
    k = (torch.searchsorted(cw.contiguous(), x[:, None].contiguous()) - 1).clamp(0, 4)

    def at(z: Any, shift: int = 0) -> Any:
        return z.gather(1, k + shift).squeeze(1)

    width, height = at(w) * 2, at(h) * 2
    slope, t = height / width, (x - at(cw)) / width
    d0, d1 = at(d), at(d, 1)
    top = height * (slope * t**2 + d0 * t * (1 - t))
    return at(ch) + top / (slope + (d0 + d1 - 2 * slope) * t * (1 - t))


@of("f32[4,3]:scaled10", "f32[4,3]:scaled10")
def losses_of_adversaries(real: Any, fake: Any) -> Any:
    d = F.softplus(-real).mean() + F.softplus(fake).mean()
    hinge = F.relu(1 - real).mean() + F.relu(1 + fake).mean()
    return d, F.softplus(-fake).mean(), hinge


@of("f32[5,3]", "f32[4,3]", "f32[4]")
def penalty_of_gradients(x: Any, w: Any, v: Any) -> Any:
    x = x.detach().requires_grad_()
    score = torch.tanh(F.linear(x, w)) @ v
    (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    return ((g.norm(2, dim=1) - 1) ** 2).mean()


@of("f32[3,4]", "f32[3,4,4]")
def score_matching_by_slices(x: Any, w: Any) -> Any:
    def score(x: Any, w: Any) -> Any:
        return torch.tanh(w @ x) - x

    jac = torch.vmap(torch.func.jacrev(score))(x, w)
    s = torch.vmap(score)(x, w)
    return jac.diagonal(dim1=1, dim2=2).sum(-1) + 0.5 * s.pow(2).sum(-1)


@of("f32[4,8]", "f32[6,8]")
def codebook_with_a_straight_through_gradient(z: Any, codes: Any) -> Any:
    def loss(z: Any, codes: Any) -> Any:
        q = codes[torch.cdist(z, codes).argmin(1)]
        out = z + (q - z).detach()
        return (out**2).sum() + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())

    return torch.func.grad(loss, argnums=(0, 1))(z, codes)


@of("f32[2,4,5,5]", "f32[2,8]", "f32[8,8]")
def modulated_features(x: Any, style: Any, w: Any) -> Any:
    scale, shift = (style @ w).chunk(2, 1)
    x = F.group_norm(x, 2)
    return F.silu(x * (1 + scale[..., None, None]) + shift[..., None, None])


@of("f32[3,6]", "f32[3,6]")
def spherical_interpolation(a: Any, b: Any) -> Any:
    u, v = F.normalize(a, dim=1), F.normalize(b, dim=1)
    omega = torch.acos((u * v).sum(1, keepdim=True).clamp(-0.999, 0.999))
    return torch.sin(0.3 * omega) / omega.sin() * a + torch.sin(0.7 * omega) / omega.sin() * b


@module_of("f32[1,3,8,8]")
def small_unet() -> Any:
    class Unet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 6, 3, 2, 1)
            self.up, self.c = nn.ConvTranspose2d(6, 4, 2, 2), nn.Conv2d(8, 3, 3, padding=1)
            self.norm = nn.GroupNorm(2, 6)

        def forward(self, x: Any) -> Any:
            a = F.silu(self.a(x))
            b = F.silu(self.norm(self.b(a)))
            return self.c(torch.cat((a, self.up(b)), 1))

    return Unet()

"""Steps of optimizers, by hand and of torch.optim, schedules, averages, clipping."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from programs.everyday_torch.function import made_of, of


@of("f32[4,3]", "f32[4,3]", "f32[4,3]", "f32[4,3]:positive")
def adam_by_hand(p: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    step = (m / (1 - 0.9**3)) / ((v / (1 - 0.999**3)).sqrt() + 1e-8)
    return p - 1e-3 * step, m, v


@of("f32[4,3]", "f32[4,3]", "f32[4,3]")
def momentum_in_place(p: Any, g: Any, m: Any) -> Any:
    m.mul_(0.9).add_(g)
    p.add_(g.add(m, alpha=0.9), alpha=-0.01)
    return p, m


@of("f32[5]", "f32[5]", "f32[5]")
def lion_by_hand(p: Any, g: Any, m: Any) -> Any:
    update = (m * 0.9 + g * 0.1).sign()
    return p * (1 - 1e-4) - 1e-3 * update, m.lerp(g, 0.01)


@of("f32[6,4]", "f32[6,4]")
def orthogonalised_momentum(p: Any, g: Any) -> Any:
    x = g.T / (g.norm() + 1e-7)
    for _ in range(3):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return p - 0.02 * x.T


@of("f32[5,4]", "f32[5,4]", "f32[5]:positive", "f32[4]:positive")
def factored_second_moments(p: Any, g: Any, row: Any, column: Any) -> Any:
    g2 = g * g + 1e-30
    row, column = 0.8 * row + 0.2 * g2.mean(1), 0.8 * column + 0.2 * g2.mean(0)
    u = g / (torch.outer(row, column) / row.mean()).sqrt()
    u = u / (u.norm() / 20**0.5).clamp(min=1)
    return p - 0.01 * u


@of("f32[5]", "f32[3,4]")
def clipped_by_the_global_norm(a: Any, b: Any) -> Any:
    norm = torch.linalg.vector_norm(torch.stack([x.norm() for x in (a, b)]))
    scale = (1.0 / (norm + 1e-6)).clamp(max=1.0)
    return norm, a * scale, b * scale


@of("f32[8,4]", "f32[8,3]", "f32[3,4]", "f32[3]")
def descent_with_momentum(x: Any, y: Any, w: Any, b: Any) -> Any:
    w, b = w.clone().requires_grad_(), b.clone().requires_grad_()
    v = [torch.zeros_like(w), torch.zeros_like(b)]
    for _ in range(2):
        loss = F.mse_loss(F.linear(x, w, b), y)
        for n, (p, g) in enumerate(zip((w, b), torch.autograd.grad(loss, (w, b)))):
            v[n] = 0.9 * v[n] + g
            with torch.no_grad():
                p -= 0.05 * v[n]
    return w.detach(), b.detach()


def _trained(floats: Any, make: Any) -> Any:
    """Make a step of a small network in training."""
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).to(floats)
    optimizer = make(model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach(), *(p.detach().clone() for p in model.parameters())

    return step


@of("f32[6]", "f32[6]", "f32[6]:positive")
def rmsprop_and_adagrad(p: Any, g: Any, s: Any) -> Any:
    r = 0.99 * s + 0.01 * g.square()
    a = s + g.square()
    return p.addcdiv(g, r.sqrt().add(1e-8), value=-0.01), p - 0.01 * g / (a.sqrt() + 1e-10)


@of("f32[6,3]", "f32[6,3]")
def average_of_weights(p: Any, ema: Any) -> Any:
    decay = min(0.999, (1 + 10) / (10 + 10))
    return ema * decay + p * (1 - decay), torch.lerp(p, ema, 0.75)


@of("f32[5,4]", "f32[5,4]")
def trust_ratio(p: Any, u: Any) -> Any:
    pn, un = p.norm(), u.norm()
    ratio = torch.where((pn > 0) & (un > 0), pn / un, torch.ones_like(pn))
    return p - 0.01 * ratio * u


@of("f32[3,4]", "f32[3,4]")
def step_towards_the_worst(x: Any, w: Any) -> Any:
    def loss(w: Any) -> Any:
        return (torch.tanh(x * w).sum(1) ** 2).sum()

    g = torch.func.grad(loss)(w)
    up = w + 0.05 * g / (g.norm() + 1e-12)
    return w - 0.1 * torch.func.grad(loss)(up)


@of("f32[6]", "f32[6]")
def loss_scaled_in_mixed_precision(w: Any, x: Any) -> Any:
    scale = 1024.0
    g = torch.func.grad(
        lambda w: ((w.to(torch.bfloat16) * x.to(torch.bfloat16)).sum() ** 2).float() * scale
    )(w)
    g = g / scale
    return torch.where(g.isfinite().all(), w - 0.01 * g, w)


@of("f32[5,3]", "f32[5]", "f32[3]")
def soft_thresholds(a: Any, b: Any, x: Any) -> Any:
    for _ in range(4):
        x = F.softshrink(x - 0.05 * a.T @ (a @ x - b), 0.02)
    return x


@of("f32[4,4]:definite", "f32[4]")
def conjugate_gradients(a: Any, b: Any) -> Any:
    x, r = torch.zeros_like(b), b
    p = r
    for _ in range(3):
        ap = a @ p
        alpha = (r @ r) / (p @ ap)
        x, new = x + alpha * p, r - alpha * ap
        p = new + (new @ new) / (r @ r) * p
        r = new
    return x, r.norm()


@made_of("f32[6,4]", "s64[6]:below2")
def step_of_adamw(floats: Any) -> Any:
    return _trained(floats, lambda p: torch.optim.AdamW(p, lr=1e-2))


@made_of("f32[6,4]", "s64[6]:below2")
def step_of_nesterov(floats: Any) -> Any:
    return _trained(floats, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True))


@of("f32[4,4]", "f32[4,2]")
def inner_steps_of_meta_learning(x: Any, w: Any) -> Any:
    def loss(w: Any) -> Any:
        return ((x @ w).sigmoid() - 0.5).pow(2).mean()

    def outer(w: Any) -> Any:
        return loss(w - 0.5 * torch.func.grad(loss)(w))

    return torch.func.grad(outer)(w), copy.copy(w) * 1

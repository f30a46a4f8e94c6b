"""Reinforcement learning: returns, advantages, policies, values."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.distributions import Categorical, Normal

from programs.everyday_torch.function import of


@of("f32[12]", "pred[12]")
def discounted_returns(reward: Any, done: Any) -> Any:
    total, out = torch.zeros((), dtype=reward.dtype), []
    for r, d in zip(reward.flip(0), done.flip(0)):
        total = r + 0.99 * total * (~d)
        out.append(total)
    out = torch.stack(out).flip(0)
    return (out - out.mean()) / (out.std() + 1e-8)


@of("f32[10]", "f32[11]", "pred[10]")
def generalised_advantages(reward: Any, value: Any, done: Any) -> Any:
    live = 1 - done.to(reward.dtype)
    delta = reward + 0.99 * value[1:] * live - value[:-1]
    last, out = torch.zeros_like(delta[0]), []
    for t in reversed(range(10)):
        last = delta[t] + 0.99 * 0.95 * live[t] * last
        out.insert(0, last)
    return torch.stack(out), torch.stack(out) + value[:-1]


@of("f32[8,4]", "f32[8,4]", "s64[8]:below4", "f32[8]")
def clipped_policy_loss(logits: Any, old: Any, action: Any, advantage: Any) -> Any:
    def loss(logits: Any) -> Any:
        new = Categorical(logits=logits, validate_args=False)
        ratio = (
            new.log_prob(action) - Categorical(logits=old, validate_args=False).log_prob(action)
        ).exp()
        clipped = ratio.clamp(0.8, 1.2)
        policy = -torch.min(ratio * advantage, clipped * advantage).mean()
        return policy - 0.01 * new.entropy().mean()

    return loss(logits), torch.func.grad(loss)(logits)


@of("f32[6,3]", "f32[6,3]", "f32[6]", "s64[6]:below3", "pred[6]")
def double_q_target(q: Any, q_target: Any, reward: Any, action: Any, done: Any) -> Any:
    best = q.argmax(1, keepdim=True)
    target = reward + 0.99 * q_target.gather(1, best).squeeze(1) * (~done)
    chosen = q.gather(1, action[:, None]).squeeze(1)
    return F.smooth_l1_loss(chosen, target, reduction="none"), target


@of("f32[5,2]", "f32[5,2]", "f32[5,2]")
def squashed_gaussian(mean: Any, log_std: Any, noise: Any) -> Any:
    std = log_std.clamp(-5, 2).exp()
    u = mean + std * noise
    log_prob = Normal(mean, std, validate_args=False).log_prob(u)
    log_prob = log_prob - 2 * (torch.log(torch.tensor(2.0)) - u - F.softplus(-2 * u))
    return torch.tanh(u), log_prob.sum(-1)


@of("f32[4,11]", "f32[4]", "pred[4]")
def distribution_of_values_projected(logits: Any, reward: Any, done: Any) -> Any:
    p = logits.softmax(-1)
    atoms = torch.linspace(-5, 5, 11, dtype=p.dtype)
    z = (reward[:, None] + 0.9 * atoms * (~done)[:, None]).clamp(-5, 5)
    b = z + 5
    low = b.floor().long().clamp(0, 10)
    high = b.ceil().long().clamp(0, 10)
    out = torch.zeros_like(p)
    out = out.scatter_add(1, low, p * (high.to(b.dtype) + (low == high) - b))
    return out.scatter_add(1, high, p * (b - low.to(b.dtype)))


@of("f32[6,5]", "f32[6]")
def quantile_huber_loss(quantiles: Any, target: Any) -> Any:
    tau = (torch.arange(5, dtype=quantiles.dtype) + 0.5) / 5
    u = target[:, None] - quantiles
    huber = F.huber_loss(quantiles, target[:, None].expand_as(quantiles), reduction="none")
    return ((tau - (u < 0).to(u.dtype)).abs() * huber).sum(1).mean()


@of("f32[3,20]", "f32[3,20]", "f32[]:positive")
def update_of_running_moments(mean: Any, batch: Any, count: Any) -> Any:
    b, v = batch.mean(0), batch.var(0, unbiased=False)
    delta, total = b - mean, count + 3
    new = mean + delta * 3 / total
    m2 = v * 3 + delta**2 * count * 3 / total
    return new, (batch - new) / torch.sqrt(m2 / total + 1e-8)


@of("f32[7]", "f32[7]", "f32[8]", "f32[7]")
def vtrace(log_rho: Any, reward: Any, value: Any, discount: Any) -> Any:
    rho = log_rho.exp().clamp(max=1.0)
    d = discount.sigmoid()
    delta = rho * (reward + d * value[1:] - value[:-1])
    acc, out = torch.zeros_like(delta[0]), []
    for t in reversed(range(7)):
        acc = delta[t] + d[t] * rho[t] * acc
        out.insert(0, acc + value[t])
    return torch.stack(out)


@of("f32[4,6]", "f32[4,6]:fraction")
def gumbel_softmax(logits: Any, u: Any) -> Any:
    g = -torch.log(-torch.log(u.clamp(1e-3, 1 - 1e-3)))
    soft = ((logits + g) / 0.5).softmax(-1)
    hard = F.one_hot(soft.argmax(-1), 6).to(soft.dtype)
    return hard - soft.detach() + soft, soft

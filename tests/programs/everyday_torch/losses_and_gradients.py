"""Losses and their gradients, as training computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd import grad

from programs.everyday_torch.function import of


def with_gradient(loss: Callable[..., Any], x: Any) -> Any:
    x = x.detach().requires_grad_()
    value = loss(x)
    return value.detach(), *grad(value, x)


@of("f32[6,5]:scaled10", "s64[6]:below5", "f32[5]:positive")
def cross_entropy_smoothed_and_weighted(x: Any, y: Any, w: Any) -> Any:
    return with_gradient(lambda x: F.cross_entropy(x, y, weight=w, label_smoothing=0.1), x)


@of("f32[4,7]", "f32[4,7]")
def cross_entropy_of_soft_targets(x: Any, y: Any) -> Any:
    return with_gradient(lambda x: F.cross_entropy(x, y.softmax(-1)), x)


@of("f32[5,6]:scaled50", "f32[5,6]:fraction", "f32[6]:positive")
def binary_cross_entropy_of_large_logits(x: Any, y: Any, w: Any) -> Any:
    return with_gradient(lambda x: F.binary_cross_entropy_with_logits(x, y, pos_weight=w), x)


@of("f32[5,6]:fraction", "f32[5,6]:fraction")
def binary_cross_entropy_of_probabilities(x: Any, y: Any) -> Any:
    return with_gradient(lambda x: F.binary_cross_entropy(x, y), x)


@of("f32[8,3]", "f32[8,3]")
def errors_of_regression(x: Any, y: Any) -> Any:
    def loss(x: Any) -> Any:
        return (
            F.mse_loss(x, y)
            + F.l1_loss(x, y)
            + F.smooth_l1_loss(x, y, beta=0.5)
            + F.huber_loss(x, y)
        )

    return with_gradient(loss, x)


@of("f32[4,6]:scaled5", "f32[4,6]:scaled5")
def divergence_of_distributions(x: Any, y: Any) -> Any:
    def loss(x: Any) -> Any:
        p, q = x.log_softmax(-1), y.log_softmax(-1)
        return F.kl_div(p, q, log_target=True, reduction="batchmean")

    return with_gradient(loss, x)


@of("f32[5,4]", "f32[5,4]", "f32[5,4]")
def triplets_and_cosines(a: Any, p: Any, n: Any) -> Any:
    def loss(a: Any) -> Any:
        y = torch.tensor([1, -1, 1, -1, 1])
        return F.triplet_margin_loss(a, p, n) + F.cosine_embedding_loss(a, p, y, margin=0.2)

    return with_gradient(loss, a)


@of("f32[8,6]", "s64[8]:below3")
def supervised_contrast(x: Any, y: Any) -> Any:
    def loss(x: Any) -> Any:
        z = F.normalize(x, dim=1)
        s = z @ z.T / 0.1
        own = torch.eye(8, dtype=torch.bool)
        log_p = s - torch.logsumexp(s.masked_fill(own, -torch.inf), 1, keepdim=True)
        same = ((y[:, None] == y) & ~own).to(s.dtype)
        return -((same * log_p).sum(1) / same.sum(1).clamp(min=1)).mean()

    return with_gradient(loss, x)


@of("f32[6,5]:scaled3", "f32[6,5]:fraction")
def focal_loss_of_sigmoids(x: Any, y: Any) -> Any:
    def loss(x: Any) -> Any:
        p, t = x.sigmoid(), (y > 0.5).to(x.dtype)
        ce = F.binary_cross_entropy_with_logits(x, t, reduction="none")
        p_t = p * t + (1 - p) * (1 - t)
        return (ce * (1 - p_t) ** 2).mean()

    return with_gradient(loss, x)


@of("f32[2,4,5,5]", "f32[2,4,5,5]")
def barlow_and_variance(x: Any, y: Any) -> Any:
    def loss(x: Any) -> Any:
        a, b = x.mean((2, 3)), y.mean((2, 3))
        a, b = (a - a.mean(0)) / (a.std(0) + 1e-4), (b - b.mean(0)) / (b.std(0) + 1e-4)
        c = a.T @ b / 2
        return (torch.diagonal(c) - 1).pow(2).sum() + 0.01 * c.fill_diagonal_(0).pow(2).sum()

    return with_gradient(loss, x)


@of("f32[4,5]", "s64[4]:below5")
def margins(x: Any, y: Any) -> Any:
    def loss(x: Any) -> Any:
        many = F.one_hot(y, 5).to(x.dtype)
        return (
            F.multi_margin_loss(x, y)
            + F.multilabel_soft_margin_loss(x, many)
            + F.soft_margin_loss(x, 2 * many - 1)
            + F.hinge_embedding_loss(x, 2 * many - 1)
        )

    return with_gradient(loss, x)


@of("f32[6]", "f32[6]:positive", "f32[6]")
def likelihoods_of_counts_and_gaussians(x: Any, y: Any, v: Any) -> Any:
    def loss(x: Any) -> Any:
        poisson = F.poisson_nll_loss(x, y.round(), full=True)
        gaussian = 0.5 * (v + (x - y) ** 2 * torch.exp(-v))
        return poisson + gaussian.mean()

    return with_gradient(loss, x)


@of("f32[6,2,5]:scaled3", "s64[2,2]:below4")
def connectionist_loss(x: Any, y: Any) -> Any:
    lengths = torch.full((2,), 6), torch.full((2,), 2)
    return with_gradient(lambda x: F.ctc_loss(x.log_softmax(-1), y + 1, *lengths), x)


@of("f32[3,4,6]", "s64[3,6]:below4")
def loss_per_token_with_ignored(x: Any, y: Any) -> Any:
    y = torch.where(y == 3, -100, y)
    return with_gradient(lambda x: F.nll_loss(x.log_softmax(1), y), x)


@of("f32[5,8]", "f32[10,8]", "s64[5]:below10")
def angular_margin(x: Any, w: Any, y: Any) -> Any:
    def loss(x: Any) -> Any:
        cosine = F.linear(F.normalize(x), F.normalize(w)).clamp(-0.99, 0.99)
        turned = torch.cos(torch.acos(cosine) + 0.3)
        one = F.one_hot(y, 10).to(x.dtype)
        return F.cross_entropy(16 * (one * turned + (1 - one) * cosine), y)

    return with_gradient(loss, x)


@of("f32[3,5]", "f32[3,5]", "f32[5,4]")
def product_of_hessian_and_vector(x: Any, v: Any, w: Any) -> Any:
    def loss(x: Any) -> Any:
        return torch.logsumexp(torch.tanh(x) @ w, -1).sum()

    return torch.func.jvp(torch.func.grad(loss), (x,), (v,))


@of("f32[4,3]", "f32[5,3]", "f32[5]", "f32[4,5]")
def gradients_per_sample(x: Any, w: Any, b: Any, y: Any) -> Any:
    def loss(w: Any, b: Any, x: Any, y: Any) -> Any:
        return F.mse_loss(F.gelu(F.linear(x, w, b)), y)

    return torch.vmap(torch.func.grad(loss, argnums=(0, 1)), (None, None, 0, 0))(w, b, x, y)

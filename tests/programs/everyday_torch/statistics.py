"""Statistics: moments, correlations, tests, densities, medians, regressions."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from programs.everyday_torch.function import of


@of("f32[50]")
def moments(x: Any) -> Any:
    z = (x - x.mean()) / x.std()
    return x.mean(), x.var(), x.std(unbiased=False), (z**3).mean(), (z**4).mean() - 3


@of("f32[4,20]")
def covariance_and_correlation(x: Any) -> Any:
    return torch.cov(x), torch.corrcoef(x)


@of("f32[20,3]", "f32[20]")
def least_squares_by_normal_equations(x: Any, y: Any) -> Any:
    x = torch.cat((torch.ones_like(x[:, :1]), x), 1).float()
    y = y.float()
    beta = torch.linalg.solve(x.T @ x + 1e-3 * torch.eye(4), x.T @ y)
    r = y - x @ beta
    return beta, r.pow(2).sum() / 16, 1 - r.pow(2).sum() / ((y - y.mean()) ** 2).sum()


@of("f32[15]", "f32[12]")
def welch_statistic(x: Any, y: Any) -> Any:
    a, b = x.var() / 15, y.var() / 12
    t = (x.mean() - y.mean()) / (a + b).sqrt()
    return t, (a + b) ** 2 / (a**2 / 14 + b**2 / 11)


@of("f32[30]", "f32[10]")
def density_by_kernels(x: Any, at: Any) -> Any:
    h = 1.06 * x.std() * 30**-0.2
    z = (at[:, None] - x) / h
    return (-0.5 * z**2).exp().sum(1) / (30 * h * math.sqrt(2 * math.pi))


@of("f32[25]")
def quantiles_and_deviations(x: Any) -> Any:
    m = x.median()
    levels = torch.tensor([0.1, 0.25, 0.5, 0.9], dtype=torch.float32)
    return torch.quantile(x.float(), levels), (x - m).abs().median(), x.nanmean(), x.mode()


@of("f32[20]", "f32[20]")
def rank_correlation(x: Any, y: Any) -> Any:
    a, b = (z.argsort().argsort().float() for z in (x, y))
    a, b = a - a.mean(), b - b.mean()
    return (a * b).sum() / (a.norm() * b.norm())


@of("f32[10,3]", "f32[4,3]", "f32[4,3]", "f32[4]")
def responsibilities_of_a_mixture(x: Any, mean: Any, log_std: Any, weight: Any) -> Any:
    z = (x[:, None] - mean) / log_std.exp()
    log_p = (-0.5 * z**2 - log_std).sum(-1) - 1.5 * math.log(2 * math.pi)
    joint = log_p + weight.log_softmax(0)
    total = joint.logsumexp(1, keepdim=True)
    return (joint - total).exp(), total.mean()


@of("f32[12,4]", "s64[12]:below2", "f32[4]")
def logistic_regression_by_newton(x: Any, y: Any, w: Any) -> Any:
    x, w = x.float(), w.float()
    for _ in range(2):
        p = (x @ w).sigmoid()
        h = x.T @ (x * (p * (1 - p))[:, None]) + 0.1 * torch.eye(4)
        w = w - torch.linalg.solve(h, x.T @ (p - y) + 0.1 * w)
    return w


@of("f32[6,6]:definite", "f32[6]")
def log_density_of_a_gaussian(cov: Any, x: Any) -> Any:
    chol = torch.linalg.cholesky(cov.float())
    z = torch.linalg.solve_triangular(chol, x.float()[:, None], upper=False)[:, 0]
    return -0.5 * z @ z - chol.diagonal().log().sum() - 3 * math.log(2 * math.pi)


@of("f32[8,5]:scaled20")
def entropies(x: Any) -> Any:
    p = x.softmax(-1)
    return (
        -(p * x.log_softmax(-1)).sum(-1),
        torch.special.entr(p).sum(-1),
        torch.xlogy(p, p).sum(-1),
    )


@of("f32[10,2]", "f32[8,2]")
def maximum_mean_discrepancy(x: Any, y: Any) -> Any:
    def k(a: Any, b: Any) -> Any:
        return torch.exp(-0.5 * (a[:, None] - b).pow(2).sum(-1)).mean()

    return k(x, x) + k(y, y) - 2 * k(x, y)


@of("f32[6,5]:positive", "f32[6]:fraction", "f32[5]:fraction")
def sinkhorn_in_logarithms(cost: Any, a: Any, b: Any) -> Any:
    a, b = (a + 0.1).log(), (b + 0.1).log()
    f, g = torch.zeros_like(a), torch.zeros_like(b)
    for _ in range(4):
        f = a - torch.logsumexp(g - cost / 0.5, 1)
        g = b - torch.logsumexp(f[:, None] - cost / 0.5, 0)
    return (f[:, None] + g - cost / 0.5).exp()


@of("f32[5,12]")
def principal_components(x: Any) -> Any:
    x = x.float() - x.float().mean(1, keepdim=True)
    values, vectors = torch.linalg.eigh(x @ x.T / 11)
    return values, vectors @ torch.diag(values.clamp(min=1e-5).rsqrt()) @ vectors.T


@of("f32[9]:fraction", "s64[9]:below2")
def area_under_the_curve(score: Any, label: Any) -> Any:
    y = label[score.argsort(descending=True)].float()
    hit, miss = y.cumsum(0) / y.sum().clamp(min=1), (1 - y).cumsum(0) / (1 - y).sum().clamp(min=1)
    return torch.trapezoid(hit, miss), F.binary_cross_entropy(score, label.to(score.dtype))

"""Time series: windows, smoothing, recurrences, networks with memory."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from programs.everyday_torch.function import module_of, of


@of("f32[30]")
def moving_averages(x: Any) -> Any:
    mean = F.avg_pool1d(x[None, None], 5, 1)[0, 0]
    windows = x.unfold(0, 5, 1)
    return mean, windows.std(-1), windows.amax(-1), windows.median(-1).values


@of("f32[2,20]")
def exponential_smoothing(x: Any) -> Any:
    level, trend, out = x[:, 0], x[:, 1] - x[:, 0], []
    for t in range(1, 20):
        new = 0.3 * x[:, t] + 0.7 * (level + trend)
        trend = 0.1 * (new - level) + 0.9 * trend
        level = new
        out.append(level + trend)
    return torch.stack(out, 1)


@of("f32[40]")
def returns_and_drawdown(x: Any) -> Any:
    price = torch.exp(torch.cumsum(x / 20, 0))
    change = price[1:] / price[:-1] - 1
    peak = torch.cummax(price, 0).values
    return (
        change.mean() / change.std() * 252**0.5,
        ((price - peak) / peak).min(),
        price.log().diff(),
    )


@of("f32[24]", "f32[4]")
def autoregression(x: Any, phi: Any) -> Any:
    lags = x.unfold(0, 4, 1)[:-1]
    e = x[4:] - lags @ (phi / 4)
    acf = torch.stack([(x[k:] * x[: 24 - k]).sum() for k in range(4)])
    return e.pow(2).mean(), acf / acf[0]


@of("f32[3,16,2]")
def normalised_by_the_last_window(x: Any) -> Any:
    mean, std = x.mean(1, keepdim=True), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
    z = (x - mean) / std
    trend = F.avg_pool1d(F.pad(z.transpose(1, 2), (2, 2), mode="replicate"), 5, 1).transpose(1, 2)
    return z - trend, trend * std + mean


@of("f32[12]", "f32[12]", "f32[]:positive")
def kalman_of_one_dimension(z: Any, u: Any, r: Any) -> Any:
    m, p, out = torch.zeros_like(r), torch.ones_like(r), []
    for t in range(12):
        m, p = 0.9 * m + 0.1 * u[t], 0.81 * p + 0.1
        k = p / (p + r)
        m, p = m + k * (z[t] - m), (1 - k) * p
        out.append(m)
    return torch.stack(out), p


@of("f32[5,8]", "f32[6,8]")
def dynamic_time_warping(a: Any, b: Any) -> Any:
    cost = torch.cdist(a, b)
    rows = [[torch.full((), torch.inf, dtype=a.dtype)] * 7 for _ in range(6)]
    rows[0][0] = torch.zeros((), dtype=a.dtype)
    for i in range(1, 6):
        for j in range(1, 7):
            best = torch.minimum(torch.minimum(rows[i - 1][j], rows[i][j - 1]), rows[i - 1][j - 1])
            rows[i][j] = cost[i - 1, j - 1] + best
    return rows[5][6]


@of("f32[8,3]", "f32[8]")
def pinball_and_scaled_errors(q: Any, y: Any) -> Any:
    e = y[:, None] - q
    tau = torch.tensor([0.1, 0.5, 0.9], dtype=q.dtype)
    pinball = torch.maximum(tau * e, (tau - 1) * e).mean()
    smape = (2 * e.abs() / (y.abs()[:, None] + q.abs()).clamp(min=1e-3)).mean()
    return pinball, smape, e[:, 1].abs().mean() / y.diff().abs().mean()


@of("f32[2,10,4]", "f32[4,3]", "f32[2,10,3]", "f32[2,10,3]")
def selective_state_space(x: Any, a: Any, b: Any, c: Any) -> Any:
    delta = F.softplus(x)
    decay = torch.exp(delta[..., None] * -torch.exp(a / 2))
    h, out = torch.zeros(2, 4, 3, dtype=x.dtype), []
    for t in range(10):
        h = decay[:, t] * h + (delta * x)[:, t, :, None] * b[:, t, None]
        out.append((h * c[:, t, None]).sum(-1))
    return torch.stack(out, 1)


@of("f32[6,2,5]", "f32[2,4]", "f32[2,4]", "f32[16,5]", "f32[16,4]", "f32[16]", "f32[16]")
def memory_of_long_and_short_terms(x: Any, h: Any, c: Any, *weights: Any) -> Any:
    return torch._VF.lstm(x, (h[None], c[None]), list(weights), True, 1, 0.0, False, False, False)


@module_of("f32[2,6,3]")
def gated_recurrence_both_ways() -> Any:
    return nn.GRU(3, 4, bidirectional=True, batch_first=True)


@module_of("f32[4,5]", "f32[4,6]")
def cell_of_a_recurrence() -> Any:
    return nn.GRUCell(5, 6)


@module_of("f32[3,2,5]")
def recurrence_of_two_layers_with_relu() -> Any:
    return nn.RNN(5, 4, num_layers=2, nonlinearity="relu")


@module_of("f32[2,3,12]")
def temporal_convolutions() -> Any:
    return nn.Sequential(
        nn.ConstantPad1d((2, 0), 0), nn.Conv1d(3, 6, 3), nn.BatchNorm1d(6), nn.ELU(),
        nn.ConstantPad1d((4, 0), 0), nn.Conv1d(6, 3, 3, dilation=2),
    ).train()  # fmt: skip

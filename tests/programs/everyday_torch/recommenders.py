"""Recommenders and tables of data: factors, towers, rankings, features."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from programs.everyday_torch.function import module_of, of


@of("f32[10,4]", "f32[12,4]", "f32[10]", "f32[12]", "s64[8]:below10", "s64[8]:below12")
def factors_with_biases(u: Any, i: Any, bu: Any, bi: Any, user: Any, item: Any) -> Any:
    return (u[user] * i[item]).sum(1) + bu[user] + bi[item] + 3.5


@of("f32[10,4]", "s64[6]:below10", "s64[6]:below10", "s64[6]:below10")
def personalised_ranking(e: Any, user: Any, good: Any, bad: Any) -> Any:
    def loss(e: Any) -> Any:
        x = (e[user] * (e[good] - e[bad])).sum(1)
        return -F.logsigmoid(x).mean() + 1e-3 * (e[user].pow(2).sum() + e[good].pow(2).sum())

    return loss(e), torch.func.grad(loss)(e)


@of("f32[6,8]", "f32[6,8]")
def contrast_within_a_batch(a: Any, b: Any) -> Any:
    logits = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T / 0.07
    y = torch.arange(6)
    return (F.cross_entropy(logits, y) + F.cross_entropy(logits.T, y)) / 2


@of("f32[5,6,4]", "f32[5,6]", "f32[]")
def factorisation_machine(v: Any, w: Any, bias: Any) -> Any:
    pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)
    return torch.sigmoid(bias + w.sum(1) + pairs)


@of("f32[4,10]", "f32[4,10]:digits")
def gain_at_five(score: Any, relevance: Any) -> Any:
    def gain(order: Any) -> Any:
        r = relevance.clamp(min=0).gather(1, order)[:, :5]
        return ((2**r - 1) / torch.log2(torch.arange(2, 7).to(r.dtype))).sum(1)

    best = gain(relevance.argsort(dim=1, descending=True, stable=True))
    return gain(score.argsort(1, descending=True)) / best.clamp(min=1)


@of("f32[3,5,4]", "f32[3,5,4]", "pred[3,5]")
def attention_over_history(history: Any, candidate: Any, valid: Any) -> Any:
    score = (history * candidate).sum(-1) / 2
    score = score.masked_fill(~valid, -1e4)
    return (score.softmax(-1)[..., None] * history).sum(1)


@of("f32[6,4]", "f32[4]", "f32[4]", "f32[4,4]")
def cross_network(x0: Any, w: Any, b: Any, m: Any) -> Any:
    x = x0 * (x0 @ w)[:, None] + b + x0
    return x0 * (x @ m.T + b) + x


@of("s64[10]:below1000", "s64[10]:below1000", "f32[16,3]")
def hashed_crosses(a: Any, b: Any, table: Any) -> Any:
    h = (a * 2654435761 + b * 40503) % 16
    return table[h], torch.bincount(h, minlength=16)


@of("f32[20]", "f32[6]:ascending")
def features_in_buckets(x: Any, edges: Any) -> Any:
    b = torch.bucketize(x, edges.contiguous())
    return F.one_hot(b, 7), torch.histc(x.float(), 5, -2, 2), torch.log1p(x.abs()) * x.sign()


@of("f32[5,8]", "s64[5,3]:below8")
def sampled_softmax(logits: Any, negative: Any) -> Any:
    good = logits[:, :1]
    bad = logits.gather(1, negative) - torch.log(torch.tensor(3.0 / 8))
    return F.cross_entropy(torch.cat((good, bad), 1), torch.zeros(5, dtype=torch.long))


@module_of("f32[5,6]", "s64[5,3]:below10")
def wide_and_deep() -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.wide = nn.Embedding(10, 4), nn.Linear(6, 1)
            self.deep = nn.Sequential(nn.Linear(18, 8), nn.ReLU(), nn.Linear(8, 1))

        def forward(self, x: Any, ids: Any) -> Any:
            deep = self.deep(torch.cat((x, self.table(ids).flatten(1)), 1))
            return torch.sigmoid(self.wide(x) + deep)

    return Model()

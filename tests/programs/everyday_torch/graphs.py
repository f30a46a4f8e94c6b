"""Networks over graphs: messages, attention over edges, pooling, random walks."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from programs.everyday_torch.function import of

EDGES = ("s64[20]:below8", "s64[20]:below8")


@of("f32[8,5]", *EDGES, "f32[5,4]")
def graph_convolution(x: Any, source: Any, target: Any, w: Any) -> Any:
    degree = torch.zeros(8, dtype=x.dtype).scatter_add(0, target, torch.ones(20, dtype=x.dtype)) + 1
    norm = degree.pow(-0.5)
    h = x @ w
    out = torch.zeros_like(h).index_add(
        0, target, h[source] * (norm[source] * norm[target])[:, None]
    )
    return F.relu(out + h / degree[:, None])


@of("f32[8,4]", *EDGES, "f32[4]", "f32[4]")
def graph_attention(h: Any, source: Any, target: Any, a: Any, b: Any) -> Any:
    e = F.leaky_relu((h @ a)[source] + (h @ b)[target], 0.2)
    top = torch.full((8,), -torch.inf, dtype=e.dtype).scatter_reduce(0, target, e, "amax")
    weight = (e - top[target]).exp()
    total = torch.zeros(8, dtype=e.dtype).index_add(0, target, weight)
    weight = weight / (total[target] + 1e-16)
    return torch.zeros_like(h).index_add(0, target, weight[:, None] * h[source])


@of("f32[8,3]", *EDGES)
def aggregations_of_neighbours(x: Any, source: Any, target: Any) -> Any:
    index = target[:, None].expand(20, 3)
    start = torch.zeros_like(x)
    return tuple(
        start.scatter_reduce(0, index, x[source], how, include_self=False)
        for how in ("sum", "mean", "amax", "amin", "prod")
    )


@of("f32[12,4]", "s64[12]:below3")
def pooling_of_graphs_and_their_norm(x: Any, batch: Any) -> Any:
    count = torch.bincount(batch, minlength=3).clamp(min=1).to(x.dtype)
    mean = torch.zeros(3, 4, dtype=x.dtype).index_add_(0, batch, x) / count[:, None]
    centred = x - mean[batch]
    var = torch.zeros(3, 4, dtype=x.dtype).index_add_(0, batch, centred**2) / count[:, None]
    return mean, centred / (var + 1e-5).sqrt()[batch]


@of("f32[6,6]:fraction", "f32[6]:fraction")
def page_rank(a: Any, start: Any) -> Any:
    p = a / a.sum(0)
    rank = start / start.sum()
    for _ in range(6):
        rank = 0.85 * p @ rank + 0.15 / 6
    return rank


@of("f32[7,3]", "s64[10]:below7", "s64[10]:below7", "f32[7,4]", "f32[1,8]")
def equivariant_layer(place: Any, i: Any, j: Any, h: Any, w: Any) -> Any:
    r = place[i] - place[j]
    d = r.pow(2).sum(-1, keepdim=True)
    m = F.silu(torch.cat((h[i], h[j]), -1) @ w.T + d)
    move = torch.zeros_like(place).index_add(0, i, r * m)
    return place + move / 6


@of("f32[8,4]", *EDGES, "f32[8,4]")
def gradients_through_messages(x: Any, source: Any, target: Any, up: Any) -> Any:
    x = x.detach().requires_grad_()
    out = torch.zeros_like(x).index_add(0, target, torch.tanh(x[source]) * x[target])
    return torch.autograd.grad(out, x, up)


@of("f32[6,6]:fraction")
def spectrum_of_the_laplacian(a: Any) -> Any:
    a = (a + a.T).float() / 2
    d = a.sum(1)
    lap = torch.eye(6) - d.rsqrt()[:, None] * a * d.rsqrt()
    return torch.linalg.eigvalsh(lap), torch.matrix_power(lap, 3)


@of("f32[9,4]", "s64[15]:below9", "s64[15]:below9", "s64[15]:below9")
def translation_of_relations(e: Any, head: Any, relation: Any, tail: Any) -> Any:
    score = (e[head] + e[relation] - e[tail]).norm(p=1, dim=1)
    worse = (e[head] + e[relation] - e[tail.flip(0)]).norm(p=2, dim=1)
    return F.margin_ranking_loss(worse, score, torch.ones_like(score), margin=1.0)


@of("f32[5,5]:positive")
def shortest_paths(d: Any) -> Any:
    d = d.clone().fill_diagonal_(0)
    for k in range(5):
        d = torch.minimum(d, d[:, k : k + 1] + d[k : k + 1])
    return d

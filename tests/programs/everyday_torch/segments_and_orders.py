"""Gathers, scatters, segments; sorts, top k, cumulative folds; with gradients and ties."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd import grad

from programs.everyday_torch.function import of


@of("f32[30,4]", "s64[30]:below6")
def sums_and_means_of_segments(x: Any, ids: Any) -> Any:
    total = torch.zeros(6, 4, dtype=x.dtype).index_add_(0, ids, x)
    count = torch.zeros(6, dtype=x.dtype).index_add_(0, ids, torch.ones(30, dtype=x.dtype))
    return total, total / count.clamp(min=1)[:, None]


@of("f32[30]", "s64[30]:below6")
def softmax_of_segments(x: Any, ids: Any) -> Any:
    top = torch.full((6,), -torch.inf, dtype=x.dtype).index_reduce_(0, ids, x, "amax")
    e = torch.exp(x - top[ids])
    return e / torch.zeros(6, dtype=x.dtype).index_add(0, ids, e)[ids]


@of("f32[12,3]", "s64[4]:below3")
def segments_by_lengths(x: Any, lengths: Any) -> Any:
    lengths = torch.cat((lengths, 12 - lengths.sum(0, keepdim=True)))
    return [
        torch.segment_reduce(x, how, lengths=lengths, unsafe=True) for how in ("sum", "mean", "max")
    ]


@of("f32[5,6]", "s64[5,6]:below5", "f32[5,6]")
def scatters(x: Any, i: Any, v: Any) -> Any:
    return (
        x.scatter_add(0, i, v), x.scatter_reduce(0, i, v, "mean"),
        x.scatter_reduce(1, i, v, "prod"),
        x.gather(1, i), torch.take_along_dim(x, i, 1), x.index_put((i[0],), v[0], accumulate=True),
    )  # fmt: skip


@of("f32[6,5]", "s64[8]:below6", "f32[8,5]")
def gradient_of_rows_taken(x: Any, i: Any, up: Any) -> Any:
    x = x.detach().requires_grad_()
    return grad(x[i] * x[i.flip(0)], x, up)


@of("f32[10,6]", "s64[3,4]:below10", "f32[3,4,6]")
def gradient_of_an_embedding(table: Any, ids: Any, up: Any) -> Any:
    table = table.detach().requires_grad_()
    return grad(F.embedding(ids, table, padding_idx=2), table, up)


@of("f32[10,6]", "s64[9]:below10", "f32[3,6]")
def gradient_of_bags(table: Any, ids: Any, up: Any) -> Any:
    table = table.detach().requires_grad_()
    offsets = torch.tensor([0, 2, 6])
    return [
        grad(F.embedding_bag(ids, table, offsets, mode=m), table, up)[0]
        for m in ("sum", "mean", "max")
    ]


@of("f32[6,8]:digits")
def orders_with_ties(x: Any) -> Any:
    values, index = torch.sort(x, dim=1, stable=True)
    return (
        values,
        index,
        x.argsort(dim=1, stable=True, descending=True),
        torch.topk(x, 3).values,
        x.msort(),
    )


@of("f32[5,9]", "f32[5,9]")
def gradient_of_a_sort(x: Any, up: Any) -> Any:
    x = x.detach().requires_grad_()
    return (
        grad(x.sort(1).values, x, up),
        grad(x.topk(4, 1).values, x, up[:, :4]),
        grad(x.median(1).values, x, up[:, 0]),
    )


@of("f32[4,30]")
def cumulative_folds(x: Any) -> Any:
    return x.cumsum(1), x.cumprod(1), x.cummax(1), x.cummin(1), x.logcumsumexp(1)


@of("f32[3,10]", "f32[3,10]")
def gradients_of_cumulative_folds(x: Any, up: Any) -> Any:
    x = x.detach().requires_grad_()
    folds = x.cumsum(1), x.cumprod(1), x.logcumsumexp(1), x.cummax(1).values
    return [grad(y, x, up)[0] for y in folds]


@of("f32[4,25]:scaled20")
def folds_of_large_numbers(x: Any) -> Any:
    return (
        x.logsumexp(1),
        x.sum(),
        x.mean(0),
        x.norm(dim=1),
        x.norm(1),
        x.norm(float("inf")),
        x.prod(0),
    )


@of("f32[3,4,6]")
def extremes(x: Any) -> Any:
    return x.max(1), x.amin((0, 2)), x.argmax(), x.aminmax(dim=2), x.std((0, 1)), x.count_nonzero(0)


@of("f32[5,6]", "pred[5,6]")
def numbers_chosen_by_masks(x: Any, m: Any) -> Any:
    mean = (x * m).sum(1) / m.sum(1).clamp(min=1)
    return (
        torch.where(m, x, mean[:, None]),
        x.masked_fill(m, 0).sum(0),
        x.masked_scatter(m, x.flip(0)),
    )


@of("f32[4,12]:digits")
def neighbours_in_a_sorted_row(x: Any) -> Any:
    ordered = x.sort(1).values
    places = torch.searchsorted(ordered, x.contiguous(), right=True)
    new = torch.cat(
        (torch.ones_like(x[:, :1], dtype=torch.bool), ordered[:, 1:] != ordered[:, :-1]), 1
    )
    return places, new.cumsum(1), ordered.diff(dim=1)


@of("f32[20]", "f32[20]")
def rolled_and_flipped(x: Any, y: Any) -> Any:
    return (
        x.roll(3) * y.flip(0),
        torch.outer(x[:4], y[:5]),
        torch.trapezoid(y, x),
        x.view(4, 5).rot90(),
    )


@of("f32[7,3]")
def pairs_and_distances(x: Any) -> Any:
    return (
        torch.pdist(x),
        torch.cdist(x, x, p=1),
        F.pairwise_distance(x[:3], x[3:6]),
        F.cosine_similarity(x[:3], x[4:]),
    )


@of("f32[6,7]")
def differences_along_axes(x: Any) -> Any:
    return torch.gradient(x), x.diff(n=2), torch.vander(x[0], 4), torch.kron(x[:2, :2], x[2:4, 2:4])

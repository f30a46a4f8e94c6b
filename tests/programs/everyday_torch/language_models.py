"""Language models: embeddings, heads, sampling, losses of tokens, n-grams, mixtures of experts."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from programs.everyday_torch.function import module_of, of


@of("f32[3,12]:scaled30", "s64[3]:below12")
def loss_of_tokens_with_large_logits(logits: Any, target: Any) -> Any:
    return F.cross_entropy(logits, target), F.cross_entropy(logits, target, reduction="none")


@of("f32[2,5,11]:scaled5", "s64[2,5]:below11", "pred[2,5]")
def perplexity_of_shifted_tokens(logits: Any, ids: Any, padded: Any) -> Any:
    labels = ids.masked_fill(padded, -100)
    loss = F.cross_entropy(
        logits[:, :-1].reshape(-1, 11).float(), labels[:, 1:].reshape(-1), ignore_index=-100
    )
    return loss, loss.exp()


@of("f32[2,20]:scaled4")
def top_k_then_top_p(logits: Any) -> Any:
    kth = torch.topk(logits, 10, dim=-1).values[:, -1:]
    logits = logits.masked_fill(logits < kth, float("-inf"))
    ordered, index = torch.sort(logits, descending=True, dim=-1)
    total = ordered.softmax(-1).cumsum(-1)
    drop = total > 0.9
    drop = torch.cat((torch.zeros_like(drop[:, :1]), drop[:, :-1]), -1)
    return logits.masked_fill(drop.scatter(1, index, drop), float("-inf")).softmax(-1)


@of("f32[3,16]:scaled3", "s64[3,7]:below16")
def penalty_of_repetition(logits: Any, ids: Any) -> Any:
    score = torch.gather(logits, 1, ids)
    score = torch.where(score < 0, score * 1.2, score / 1.2)
    return (logits.scatter(1, ids, score) / 0.7).log_softmax(-1)


@of("s64[2,9]:below30", "f32[30,8]", "f32[16,8]", "f32[8]", "f32[8]")
def embeddings_of_bert(ids: Any, words: Any, places: Any, weight: Any, bias: Any) -> Any:
    x = F.embedding(ids, words, padding_idx=0) + places[: ids.shape[1]]
    return F.layer_norm(x, (8,), weight, bias, 1e-12)


@of("s64[14]:below20", "f32[20,6]", "s64[4]:below4")
def bags_of_words(ids: Any, table: Any, lengths: Any) -> Any:
    offsets = F.pad(lengths.cumsum(0), (1, 0))[:-1]
    return (
        F.embedding_bag(ids, table, offsets, mode="sum"),
        F.embedding_bag(ids, table, offsets, mode="mean"),
        F.embedding_bag(ids, table, offsets, mode="max"),
    )


@of("f32[6,8]", "f32[8,4]", "f32[4,8,8]", "f32[4,8,8]")
def mixture_of_experts(x: Any, gate: Any, up: Any, down: Any) -> Any:
    weights, chosen = torch.topk((x @ gate).softmax(-1), 2)
    weights = weights / weights.sum(-1, keepdim=True)
    out = torch.zeros_like(x)
    for e in range(4):
        y = F.silu(x @ up[e]) @ down[e]
        out = out + y * (weights * (chosen == e)).sum(-1, keepdim=True)
    return out


@of("f32[10,4]")
def losses_that_balance_experts(logits: Any) -> Any:
    p = logits.softmax(-1)
    share = F.one_hot(p.argmax(-1), 4).to(p.dtype).mean(0)
    return 4 * (share * p.mean(0)).sum(), (torch.logsumexp(logits, -1) ** 2).mean()


@of("f32[4,8]", "f32[16,8]", "f32[16,8]", "f32[8,16]")
def swiglu(x: Any, gate: Any, up: Any, down: Any) -> Any:
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


@of("f32[4,6]:scaled4", "f32[4,6]:scaled4", "f32[4,6]:scaled4", "f32[4,6]:scaled4")
def preferences_by_dpo(chosen: Any, rejected: Any, old_chosen: Any, old_rejected: Any) -> Any:
    chosen, rejected = chosen.log_softmax(-1).sum(-1), rejected.log_softmax(-1).sum(-1)
    old = old_chosen.log_softmax(-1).sum(-1) - old_rejected.log_softmax(-1).sum(-1)
    difference = 0.1 * (chosen - rejected - old)
    return -F.logsigmoid(difference).mean(), (difference > 0).float().mean()


@of("f32[3,8]:scaled3", "f32[3,8]:scaled3")
def distillation_at_a_temperature(student: Any, teacher: Any) -> Any:
    t = 4.0
    soft = F.kl_div(
        F.log_softmax(student / t, -1), F.softmax(teacher / t, -1), reduction="batchmean"
    )
    return soft * t * t


@of("f32[5,2,6]", "s64[2,3]:below5")
def alignment_by_ctc(x: Any, target: Any) -> Any:
    lengths = torch.full((2,), 5), torch.full((2,), 2)
    return F.ctc_loss(x.log_softmax(-1), target + 1, *lengths, reduction="none")


@of("f32[2,6,5]", "f32[5,5]", "s64[2,6]:below5")
def likelihood_of_tags(emissions: Any, transitions: Any, tags: Any) -> Any:
    alpha = emissions[:, 0]
    for t in range(1, 6):
        alpha = torch.logsumexp(alpha[:, :, None] + transitions, 1) + emissions[:, t]
    score = emissions.gather(2, tags[..., None]).squeeze(-1).sum(1)
    score = score + transitions[tags[:, :-1], tags[:, 1:]].sum(1)
    return score - torch.logsumexp(alpha, 1)


@of("f32[3,7,5]", "pred[3,7]")
def mean_of_tokens_that_count(hidden: Any, mask: Any) -> Any:
    m = mask.unsqueeze(-1).to(hidden.dtype)
    return F.normalize((hidden * m).sum(1) / m.sum(1).clamp(min=1e-9), dim=1)


@module_of("f32[2,6,16]")
def encoder_layer() -> Any:
    return nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True)


@module_of("s64[2,7]:below20")
def small_gpt() -> Any:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.LayerNorm(16), nn.LayerNorm(16)
            self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
            self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU("tanh"), nn.Linear(32, 16))

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(self.a(x)).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            return x + self.mlp(self.b(x))

    return nn.Sequential(nn.Embedding(20, 16), Block(), Block(), nn.LayerNorm(16))

"""Normalisations, with gradients and in training, and activations at ordinary and far places."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import grad

from programs.everyday_torch.function import module_of, of


def pulled(function: Any, up: Any, *given: Any) -> Any:
    given = tuple(x.detach().requires_grad_() for x in given)
    return grad(function(*given), given, up)


@of("f32[4,10]", "f32[10]", "f32[10]", "f32[4,10]")
def layer_norm_and_gradients(x: Any, w: Any, b: Any, up: Any) -> Any:
    return F.layer_norm(x, (10,), w, b), pulled(
        lambda *a: F.layer_norm(a[0], (10,), *a[1:]), up, x, w, b
    )


@of("f32[3,12]:scaled100", "f32[12]")
def rms_norm_of_llama(x: Any, w: Any) -> Any:
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
    return w * y.to(x.dtype)


@of("f32[3,8]", "f32[8]", "f32[3,8]")
def rms_norm_and_gradients(x: Any, w: Any, up: Any) -> Any:
    return F.rms_norm(x, (8,), w), pulled(lambda x, w: F.rms_norm(x, (8,), w, 1e-6), up, x, w)


@of("f32[2,6,3,3]", "f32[6]", "f32[6]", "f32[2,6,3,3]")
def group_norm_and_gradients(x: Any, w: Any, b: Any, up: Any) -> Any:
    return F.group_norm(x, 3, w, b), pulled(lambda *a: F.group_norm(a[0], 3, *a[1:]), up, x, w, b)


@of("f32[2,3,4,4]:hundredths", "f32[2,3,4,4]")
def instance_norm_of_small_numbers(x: Any, up: Any) -> Any:
    return F.instance_norm(x), pulled(F.instance_norm, up, x)


@of("f32[6,4]", "f32[4]", "f32[4]", "f32[4]", "f32[4]:positive", "f32[6,4]")
def batch_norm_in_training(x: Any, w: Any, b: Any, mean: Any, var: Any, up: Any) -> Any:
    y = F.batch_norm(x, mean, var, w, b, training=True, momentum=0.1)

    def again(x: Any, w: Any, b: Any) -> Any:
        return F.batch_norm(x, None, None, w, b, training=True)

    return y, mean, var, pulled(again, up, x, w, b)


@of("f32[3,2,4,4]", "f32[2]", "f32[2]", "f32[2]", "f32[2]:positive")
def batch_norm_in_evaluation(x: Any, w: Any, b: Any, mean: Any, var: Any) -> Any:
    return F.relu6(F.batch_norm(x, mean, var, w, b))


@of("f32[2,8,3,3]:positive")
def local_response_norm(x: Any) -> Any:
    return F.local_response_norm(x, 5), F.normalize(x, p=1, dim=1), F.normalize(x, dim=(2, 3))


@of("f32[4,6]", "f32[4,1]")
def weights_normalised(v: Any, g: Any) -> Any:
    w = g * v / v.norm(dim=1, keepdim=True)
    standard = (v - v.mean(1, keepdim=True)) / (v.std(1, keepdim=True) + 1e-5)
    u = F.normalize(v.sum(1), dim=0)
    sigma = u @ v @ F.normalize(v.T @ u, dim=0)
    return w, standard, v / sigma


@module_of("f32[5,4]")
def network_with_norms_in_training() -> Any:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.PReLU(), nn.LayerNorm(8), nn.Mish())


@of("f32[60]:scaled4")
def smooth_activations(x: Any) -> Any:
    return F.silu(x), F.gelu(x, approximate="tanh"), F.mish(x), F.softplus(x), F.elu(x), F.selu(x)


@of("f32[60]:scaled4")
def more_activations(x: Any) -> Any:
    return F.celu(x), F.logsigmoid(x), F.tanhshrink(x), F.softsign(x), x.sigmoid(), x.tanh()


@of("f32[60]:scaled4")
def cut_activations(x: Any) -> Any:
    return (
        F.relu6(x), F.hardswish(x), F.hardsigmoid(x), F.hardtanh(x), F.leaky_relu(x, 0.2),
        F.hardshrink(x), F.threshold(x, 0.1, 20.0), F.glu(x),
    )  # fmt: skip


@of("f32[40]:scaled3")
def gelu_exactly(x: Any) -> Any:
    return F.gelu(x)


@of("f32[40]:scaled3", "f32[40]")
def gradients_of_activations(x: Any, up: Any) -> Any:
    many = (F.silu, F.gelu, F.mish, F.softplus, F.elu, F.hardswish, F.logsigmoid, torch.tanh)
    return [pulled(f, up, x) for f in many]


@of("f32[40]:scaled100", "f32[40]")
def gradients_far_from_zero(x: Any, up: Any) -> Any:
    many = (F.silu, F.mish, F.softplus, F.logsigmoid, torch.sigmoid, F.celu)
    return [pulled(f, up, x) for f in many]


@of("f32[4,9]:scaled30", "f32[4,9]")
def softmaxes_of_large_numbers(x: Any, up: Any) -> Any:
    return (
        x.softmax(-1), x.log_softmax(0), F.softmin(x, -1),
        pulled(lambda x: x.softmax(-1), up, x), pulled(lambda x: x.log_softmax(-1), up, x),
    )  # fmt: skip


@of("f32[5,8]:scaled3")
def sparsemax(x: Any) -> Any:
    z = x.sort(-1, descending=True).values
    total = z.cumsum(-1) - 1
    k = torch.arange(1, 9, dtype=x.dtype)
    size = (z * k > total).sum(-1, keepdim=True)
    tau = total.gather(-1, size - 1) / size
    return (x - tau).clamp(min=0)


@of("f32[3,6]")
def activations_with_softmax_over_masked_rows(x: Any) -> Any:
    masked = x.masked_fill(torch.tensor([[True] * 6, [False] * 6, [True, False] * 3]), -torch.inf)
    return torch.softmax(masked, -1).nan_to_num(0.0), masked.logsumexp(-1)

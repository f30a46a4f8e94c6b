"""Write programs of the corpus and of ``bench/programs`` for PyTorch.

Each takes the arguments of the HLO program of its name, in order, and returns its results. They are
written for speed: with the library's own functions where it has one, and in closed form where JAX
had differentiated. ``prepared`` converts weights to the library's layouts, which is not timed.
``python -m bench.speed`` checks their results against the interpreter's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

Tensors = list[Tensor]


def _as_given(tensors: Tensors) -> Tensors:
    return tensors


class Program(NamedTuple):
    """A PyTorch program. ``compiled``: torch.compile takes it within minutes. It unrolls loops
    written in Python, so programs with long loops are not compiled."""

    function: Callable[..., Any]
    prepared: Callable[[Tensors], Tensors] = _as_given
    compiled: bool = True


def _attention(x: Tensor, qkv: Tensor, b: Tensor, out: Tensor, c: Tensor) -> Tensor:
    batch, length, width = x.shape
    q, k, v = (x @ qkv + b).view(batch, length, 3, 12, 64).permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(q, k, v)
    return y.transpose(1, 2).reshape(batch, length, width) @ out + c


def _causal_attention(x: Tensor, qkv: Tensor, out: Tensor) -> Tensor:
    batch, length, width = x.shape
    heads = (x @ qkv).view(batch, length, 12, -1).transpose(1, 2)
    q, k, v = heads.split(64, dim=-1)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).reshape(batch, length, width) @ out


def _batch_norm(x: Tensor, g: Tensor, b: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    y = F.batch_norm(x.permute(0, 3, 1, 2), mean, variance, g, b, eps=1e-5)
    return F.relu(y).permute(0, 2, 3, 1)


def _black_scholes(s: Tensor, k: Tensor, t: Tensor, r: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    d1 = (torch.log(s / k) + (r + 0.5 * v * v) * t) / (v * torch.sqrt(t))
    d2 = d1 - v * torch.sqrt(t)
    n1, n2 = (0.5 * (1 + torch.erf(d * math.sqrt(0.5))) for d in (d1, d2))
    discounted = k * torch.exp(-r * t)
    call = s * n1 - discounted * n2
    return call, call - s + discounted


def _cholesky(a: Tensor) -> Tensor:
    return torch.linalg.cholesky(a @ a.mT + a.shape[-1] * torch.eye(a.shape[-1]))


def _conv(x: Tensor, w: Tensor, groups: int = 1) -> Tensor:
    y = F.conv2d(x.permute(0, 3, 1, 2), w, padding=1, groups=groups)
    return y.permute(0, 2, 3, 1)


def _filters(w: Tensor) -> Tensor:
    return w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)


def _with_filters(tensors: Tensors) -> Tensors:
    return [t if n == 0 or t.ndim != 4 else _filters(t) for n, t in enumerate(tensors)]


def _residual(x: Tensor, w1: Tensor, w2: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    y = F.relu(_conv(x, w1) * scale[0] + shift[0])
    return F.relu(x + _conv(y, w2) * scale[1] + shift[1])


def _max_pool(x: Tensor) -> Tensor:
    padded = F.pad(x.permute(0, 3, 1, 2), (0, 1, 0, 1), value=-math.inf)
    return F.max_pool2d(padded, 3, 2).permute(0, 2, 3, 1)


def _scatter_add(index: Tensor, g: Tensor) -> Tensor:
    return torch.zeros(30522, 768).index_add_(0, index.flatten(), g.flatten(0, 1))


def _cross_entropy_gradient(x: Tensor, labels: Tensor) -> Tensor:
    p = torch.softmax(x, -1)
    one = torch.full((x.shape[0], 1), -1.0)
    return p.scatter_add(1, labels.long()[:, None], one) / x.shape[0]


def _cross_entropy(x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    return F.cross_entropy(x, labels.long()), _cross_entropy_gradient(x, labels)


def _n_body(p: Tensor, m: Tensor) -> Tensor:
    d = p[None] - p[:, None]
    inverse = ((d * d).sum(-1) + 0.01) ** -1.5
    return (d * (m[None] * inverse)[..., None]).sum(1)


def _squared_differences(x: Tensor) -> Tensor:
    g = torch.zeros_like(x)
    for axis in range(x.ndim):
        d = 2 * torch.diff(x, dim=axis)
        g.narrow(axis, 1, d.shape[axis]).add_(d)
        g.narrow(axis, 0, d.shape[axis]).sub_(d)
    return g


def _sines(x: Tensor) -> Tensor:
    for _ in range(100):
        x = torch.sin(x)
    return x


def _perceptron(x: Tensor, *weights: Tensor) -> Tensor:
    w1, b1, w2, b2, w3, b3 = weights
    return torch.tanh(torch.tanh(x @ w1 + b1) @ w2 + b2) @ w3 + b3


def _adam(p: Tensor, m: Tensor, v: Tensor, t: Tensor, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    step = 0.001 * (m / (1 - 0.9**t)) / (torch.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return p - step, m, v


def _mnist(*a: Tensor) -> tuple[Tensor, ...]:
    w1, b1, w2, b2, *_ = a
    t, x, labels = a[12:]
    y = F.relu(x @ w1 + b1)
    logits = y @ w2 + b2
    loss = F.cross_entropy(logits, labels.long())
    d2 = _cross_entropy_gradient(logits, labels)
    d1 = (d2 @ w2.mT) * (y > 0)
    gradients = (x.mT @ d1, d1.sum(0), y.mT @ d2, d2.sum(0))
    given = zip(a[:4], a[4:8], a[8:12], gradients)
    new = [_adam(p, m, v, t, g) for p, m, v, g in given]
    return (loss, t + 1, *(one[part] for part in range(3) for one in new))


def _lstm(x: Tensor, w: Tensor, u: Tensor, b: Tensor, zeros: Tensor) -> tuple[Tensor, ...]:
    state = torch.zeros(1, x.shape[1], u.shape[1])
    y, h, c = torch.lstm(x, (state, state), (w, u, b, zeros), True, 1, 0.0, False, False, False)
    return h[0], c[0], y


def _gru(x: Tensor, w: Tensor, u: Tensor, zeros: Tensor) -> tuple[Tensor, ...]:
    state = torch.zeros(1, x.shape[1], u.shape[1])
    y, h = torch.gru(x, state, (w, u, zeros, zeros), True, 1, 0.0, False, False, False)
    return h[0], y


def _recurrent(tensors: Tensors) -> Tensors:
    x, w, u, *b = tensors
    return [x, w.mT.contiguous(), u.mT.contiguous(), *b, torch.zeros(w.shape[1])]


def _scan_rows(x: Tensor, mean: Tensor) -> Tensor:
    rows = torch.empty_like(x)
    for n, row in enumerate(x):
        mean = 0.9 * mean + 0.1 * row
        rows[n] = mean
    return rows


def _lorenz(state: Tensor) -> Tensor:
    rows = []
    for _ in range(2000):
        x, y, z = state.unbind()
        slope = torch.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])
        state = state + 0.005 * slope
        rows.append(state)
    return torch.stack(rows)


def _windows(x: Tensor) -> Tensor:
    x = x.clone()
    for n in range(1000):
        window = x[n * 64 : n * 64 + 64]
        window += x[n * 64 + 64 : n * 64 + 128]
        window *= 0.5
    return x


def _stencil(x: Tensor) -> Tensor:
    x = x.clone()
    for _ in range(100):
        inner = x[1:-1, 1:-1]
        x[1:-1, 1:-1] += 0.1 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * inner)
    return x


def _fourier(real: Tensor, imaginary: Tensor) -> Tensor:
    y = torch.fft.fft(torch.complex(real, imaginary))
    return y.real**2 + y.imag**2


def _segment_sum(x: Tensor, index: Tensor) -> Tensor:
    return torch.zeros(1000, x.shape[1]).index_add_(0, index, x)


def _layer_norm(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), scale, shift, 1e-5)


_GELU = Program(lambda x: F.gelu(x, approximate="tanh"))
_LINEAR = Program(lambda x, w, b: F.relu(torch.addmm(b, x, w)))
_FUSED_SUM = Program(lambda x, y, z: (x + y * z).sum())

PROGRAMS: dict[str, Program] = {
    "argmax": Program(lambda x: x.argmax(1)),
    "argsort": Program(lambda x: x.argsort(dim=-1, stable=True)),
    "attention": Program(_attention),
    "attention_bf16": Program(_causal_attention),
    "batchnorm_inf": Program(_batch_norm),
    "bf16_matmul_512": Program(lambda x, y: x @ y),
    "blackscholes_1m": Program(_black_scholes),
    "cholesky_512": Program(_cholesky),
    "cholesky_64x8x8": Program(_cholesky),
    "conv3x3_14_256": Program(_conv, _with_filters),
    "conv3x3_56_64": Program(_conv, _with_filters),
    "cross_entropy": Program(_cross_entropy),
    "cumsum_1m": Program(lambda x: x.cumsum(0)),
    "cumsum_axis0": Program(lambda x: x.cumsum(0)),
    "depthwise_3x3": Program(lambda x, w: _conv(x, w, x.shape[-1]), _with_filters),
    "embed_gather": Program(lambda table, index: F.embedding(index, table)),
    "embed_scatter_add": Program(_scatter_add),
    "fft2d": Program(lambda x: torch.fft.fft2(x).abs()),
    "fft_1000": Program(_fourier),
    "fma_reduce_16m": _FUSED_SUM,
    "fma_reduce_1m": _FUSED_SUM,
    "gelu_10m": _GELU,
    "gelu_1k": _GELU,
    "gelu_1m": _GELU,
    "gru_256": Program(_gru, _recurrent, compiled=False),
    "int8_matmul_512": Program(lambda x, y: torch._int_mm(x, y)),
    "layer_norm_bf16": Program(_layer_norm),
    "layer_norm_f32": Program(_layer_norm),
    "linrelu_4096x768x3072": _LINEAR,
    "linrelu_512": _LINEAR,
    "linrelu_64x784x128": _LINEAR,
    "loop_of_slices": Program(_windows, compiled=False),
    "lstm_256": Program(_lstm, _recurrent, compiled=False),
    "matmul_8x8": Program(torch.bmm),
    "max_axis0": Program(lambda x: x.amax(0)),
    "maxpool": Program(_max_pool),
    "mean_bf16": Program(lambda x: x.mean(1)),
    "mnist_train": Program(_mnist),
    "nbody_2048": Program(_n_body),
    "reduce_col": Program(lambda x: x.sum(0)),
    "reduce_full_10m": Program(lambda x: x.sum()),
    "reduce_row": Program(lambda x: x.sum(1)),
    "reg_square_grad": Program(_squared_differences),
    "residual_block": Program(_residual, _with_filters),
    "scalar_tiny": Program(lambda x, y: torch.sin(x) * y + 1),
    "scan_lorenz_2000": Program(_lorenz, compiled=False),
    "scan_rows_4096": Program(_scan_rows, compiled=False),
    "segment_sum": Program(_segment_sum),
    "sin100_1m": Program(_sines),
    "small_mlp_infer": Program(_perceptron),
    "softmax": Program(lambda x: torch.softmax(x, -1)),
    "sort_1m": Program(lambda x: x.sort(stable=True).values),
    "stencil_100": Program(_stencil, compiled=False),
    "sum_axis0_128": Program(lambda x: x.sum(0)),
    "top_k": Program(lambda x: tuple(x.topk(32))),
    "transpose2d": Program(lambda x: x.mT.contiguous()),
    "transpose_nhwc_nchw": Program(lambda x: x.permute(0, 3, 1, 2).contiguous()),
}

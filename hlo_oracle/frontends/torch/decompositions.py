"""Choose the operations that AOTAutograd decomposes into simpler ones.

All decompositions of ATen into core ATen are used, and some of core ATen's own operations that are
formulas of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch._C import DispatchKey
from torch._decomp import core_aten_decompositions, get_decompositions

from hlo_oracle.frontends.torch import factorizations, lists, strided, windows

_MORE = (
    "native_layer_norm", "native_layer_norm_backward", "native_group_norm",
    "native_group_norm_backward", "native_batch_norm", "native_batch_norm_backward",
    "_native_batch_norm_legit", "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training", "_batch_norm_with_update_functional",
    "batch_norm_backward", "gelu_backward", "silu_backward", "elu_backward",
    "leaky_relu_backward", "hardtanh_backward", "threshold_backward", "sigmoid_backward",
    "tanh_backward", "softplus", "softplus_backward", "hardsigmoid", "hardsigmoid_backward",
    "hardswish", "hardswish_backward", "mish", "mish_backward", "logit", "logit_backward",
    "glu", "glu_backward", "log_sigmoid_forward", "log_sigmoid_backward", "prelu",
    "_prelu_kernel", "_prelu_kernel_backward", "nll_loss_forward", "nll_loss_backward",
    "nll_loss2d_forward", "nll_loss2d_backward", "mse_loss", "mse_loss_backward",
    "smooth_l1_loss", "smooth_l1_loss_backward", "huber_loss", "huber_loss_backward",
    "binary_cross_entropy", "binary_cross_entropy_backward", "upsample_nearest1d",
    "upsample_nearest2d", "upsample_bicubic2d",
    "upsample_nearest3d",
    "grid_sampler_2d", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
    "reflection_pad2d_backward", "replication_pad1d", "replication_pad2d", "replication_pad3d",
    "native_dropout_backward", "im2col", "col2im", "_cdist_forward", "_embedding_bag", "trace",
    "xlogy", "logaddexp", "logaddexp2", "special_entr", "sinc", "frac", "deg2rad", "rad2deg",
    "heaviside", "addcmul", "addcdiv", "lerp", "std", "std_mean", "var_mean", "masked_scatter",
)  # fmt: skip

_WITHOUT = (
    # It gives no logarithms of sums, which the gradient's kernel reads.
    "aten._scaled_dot_product_flash_attention_for_cpu.default",
    # They add (b - a) t to a, where the kernels add b t to a (1 - t).
    "aten.upsample_bilinear2d.default", "aten.upsample_bilinear2d.vec",
    "aten.upsample_linear1d.default", "aten.upsample_linear1d.vec",
    "aten.upsample_trilinear3d.default", "aten.upsample_trilinear3d.vec",
    # It is a choice by a comparison of indices.
    "aten.select_scatter.default",
    # They draw numbers of f32 for f64, too: others than eager's for one seed.
    "aten.bernoulli.default", "aten.bernoulli.p",
    # It counts class 0 for each place of a row that lists no class.
    "aten.multilabel_margin_loss_forward.default",
)  # fmt: skip

Decompositions = dict[Any, Callable[..., Any]]


@cache
def table() -> Decompositions:
    """Return decompositions by operation."""
    own: Decompositions = {
        torch.ops.aten.native_dropout.default: _native_dropout,
        torch.ops.prims.broadcast_in_dim.default: _broadcast_in_dim,
        torch.ops.aten.upsample_bicubic2d.default: _bicubic,
        **factorizations.TABLE,
        **lists.TABLE,
        **strided.TABLE,
        **windows.TABLE,
    }
    if hasattr(torch.ops.aten, "rrelu_with_noise_functional"):  # not in all versions
        own[torch.ops.aten.rrelu_with_noise_functional.default] = _rrelu
    wanted = [getattr(torch.ops.aten, name) for name in _MORE if hasattr(torch.ops.aten, name)]
    found = {**core_aten_decompositions(), **get_decompositions(wanted), **own}
    return {op: how for op, how in found.items() if str(op) not in _WITHOUT}


@contextmanager
def without_those_of_autograd() -> Iterator[None]:
    """Leave out operations of ``_WITHOUT`` where gradients are taken, too.

    PyTorch registers some decompositions as kernels of Autograd in Python, which AOTAutograd takes
    before it looks at any table.
    """
    taken = []
    for name in _WITHOUT:
        _, packet, overload = name.split(".")
        op = getattr(getattr(torch.ops.aten, packet), overload)
        kernel = op.py_kernels.pop(DispatchKey.Autograd, None)
        if kernel is not None:
            taken.append((op, kernel))
            op._dispatch_cache.clear()
    try:
        yield
    finally:
        for op, kernel in taken:
            op.py_kernels[DispatchKey.Autograd] = kernel
            op._dispatch_cache.clear()


def early() -> Decompositions:
    """Return those that are needed where gradients are taken: the formulas of gradients read what
    these make of the layout of tensors."""
    return dict(factorizations.TABLE)


def _bicubic(x: Any, *rest: Any) -> Any:
    """Decompose as PyTorch does, except of bytes, whose kernel has weights in fixed point."""
    if x.dtype == torch.uint8:
        return NotImplemented
    return torch._decomp.decompositions.upsample_bicubic2d_default(x, *rest)


def _native_dropout(x: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """Compute dropout as PyTorch's eager kernel on the CPU: with the same random numbers."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    kept = torch.bernoulli(torch.empty_like(x), 1 - p)
    return x * (kept / (1 - p)), kept.to(torch.bool)


def _broadcast_in_dim(x: Any, shape: Any, dimensions: Any) -> Any:
    """Broadcast by views of ATen: inside of torch.cond PyTorch takes no others of its
    decompositions (that of layer norm has this one)."""
    for d in range(len(shape)):
        if d not in dimensions:
            x = x.unsqueeze(d)
    return x.expand(shape)


def _rrelu(
    x: Any, noise: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False,
    generator: Any = None,
) -> Any:  # fmt: skip
    """Compute the randomized leaky ReLU as in evaluation, where its slope is not random."""
    if training:
        return NotImplemented
    return torch.nn.functional.leaky_relu(x, (lower + upper) / 2), noise

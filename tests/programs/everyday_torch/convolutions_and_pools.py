"""Convolutions of every kind, pooling, interpolation and padding, with gradients."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd import grad

from programs.everyday_torch.function import of


@of("f32[2,3,10]", "f32[4,3,3]", "f32[4]")
def in_one_dimension(x: Any, w: Any, b: Any) -> Any:
    return F.conv1d(x, w, b, padding=1), F.conv1d(x, w, b, stride=2, dilation=2)


@of("f32[2,4,6,6]", "f32[6,4,3,3]", "f32[6]")
def in_two_dimensions(x: Any, w: Any, b: Any) -> Any:
    return F.conv2d(x, w, b, padding="same"), F.conv2d(x, w, b, stride=2, padding=1)


@of("f32[1,2,4,5,4]", "f32[3,2,3,3,3]")
def in_three_dimensions(x: Any, w: Any) -> Any:
    return F.conv3d(x, w, padding=1), F.max_pool3d(x, 2), F.avg_pool3d(x, 2, ceil_mode=True)


@of("f32[1,4,7,7]", "f32[4,1,3,3]", "f32[8,4,1,1]")
def depthwise_and_pointwise(x: Any, d: Any, p: Any) -> Any:
    return F.conv2d(F.conv2d(x, d, padding=1, groups=4), p)


@of("f32[1,4,5,5]", "f32[4,3,3,3]", "f32[3]")
def transposed(x: Any, w: Any, b: Any) -> Any:
    return F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1)


@of("f32[2,4,6]", "f32[4,2,3]", "f32[2,4,5]", "f32[4,4]")
def transposed_in_groups(x: Any, w: Any, y: Any, k: Any) -> Any:
    return F.conv_transpose1d(x, w, groups=2, dilation=2), F.conv1d(y, k[:, None, :3], groups=4)


@of("f32[2,3,5,5]", "f32[4,3,3,3]", "f32[4]", "f32[2,4,5,5]")
def gradients_of_a_convolution(x: Any, w: Any, b: Any, up: Any) -> Any:
    x, w, b = (z.detach().requires_grad_() for z in (x, w, b))
    return grad(F.conv2d(x, w, b, padding=1), (x, w, b), up)


@of("f32[2,3,5,5]", "f32[2,3,3,3]", "f32[2,2,3,3]")
def gradients_of_strided_channels_last(x: Any, w: Any, up: Any) -> Any:
    x = x.to(memory_format=torch.channels_last).detach().requires_grad_()
    w = w.detach().requires_grad_()
    return grad(F.conv2d(x, w, stride=2, padding=1), (x, w), up)


@of("f32[2,3,7,7]")
def pools(x: Any) -> Any:
    return (
        F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 2, count_include_pad=False),
        F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_max_pool2d(x, 4), F.lp_pool2d(x.abs(), 2, 3),
    )  # fmt: skip


@of("f32[1,2,6,6]:digits", "f32[1,2,3,3]")
def gradient_of_pools_with_ties(x: Any, up: Any) -> Any:
    x = x.detach().requires_grad_()
    return grad(F.max_pool2d(x, 2), x, up), grad(F.avg_pool2d(x, 2), x, up)


@of("f32[1,2,6,6]")
def pooled_and_unpooled(x: Any) -> Any:
    y, index = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(y, index, 2), index


@of("f32[1,2,5,5]")
def resized(x: Any) -> Any:
    return (
        F.interpolate(x, scale_factor=2, mode="nearest"),
        F.interpolate(x, (8, 7), mode="bilinear", align_corners=False),
        F.interpolate(x, (3, 9), mode="bilinear", align_corners=True),
        F.interpolate(x, (7, 7), mode="bicubic", align_corners=False),
        F.interpolate(x, (3, 3), mode="area"),
    )


@of("f32[1,2,9,9]")
def resized_with_antialias(x: Any) -> Any:
    return (
        F.interpolate(x, (4, 5), mode="bilinear", antialias=True),
        F.interpolate(x, (5, 4), mode="bicubic", antialias=True),
        F.interpolate(x, (6, 6), mode="nearest-exact"),
    )


@of("f32[1,2,4,4]", "f32[1,2,7,7]")
def gradient_of_bilinear(x: Any, up: Any) -> Any:
    x = x.detach().requires_grad_()
    return grad(F.interpolate(x, (7, 7), mode="bilinear"), x, up)


@of("f32[1,2,5]", "f32[1,2,4,4,3]")
def resized_lines_and_volumes(x: Any, v: Any) -> Any:
    return (
        F.interpolate(x, 9, mode="linear"), F.interpolate(v, (3, 5, 6), mode="trilinear"),
        F.interpolate(v, scale_factor=(1, 2, 2)),
    )  # fmt: skip


@of("f32[1,2,5,5]", "f32[1,4,4,2]:unit", "f32[1,2,4,4]")
def grid_sample_and_gradients(x: Any, g: Any, up: Any) -> Any:
    x, g = x.detach().requires_grad_(), (1.3 * g).detach().requires_grad_()
    y = F.grid_sample(x, g, align_corners=False)
    near = F.grid_sample(x, g, mode="nearest", padding_mode="reflection", align_corners=True)
    return y, near, F.grid_sample(x, g, mode="bicubic", align_corners=False), grad(y, (x, g), up)


@of("f32[2,3,6]", "f32[1,1,4,5]")
def paddings(x: Any, y: Any) -> Any:
    return (
        F.pad(x, (2, 1), "reflect"), F.pad(x, (2, 3), "replicate"), F.pad(x, (1, 2), "circular"),
        F.pad(y, (1, 1, 2, 0), value=3.0), F.pad(y, (-1, 1, 0, -2)),
    )  # fmt: skip


@of("f32[2,12,9]", "f32[1,2,6,6]")
def folded_windows(x: Any, y: Any) -> Any:
    once = F.fold(x, (4, 4), 2, stride=1)
    ones = F.fold(F.unfold(torch.ones_like(y), 3), (6, 6), 3)
    return once, F.fold(F.unfold(y, 3), (6, 6), 3) / ones


@of("f32[2,5,8]", "f32[2,6,8]", "f32[3,8,6]")
def bilinear_forms(x: Any, y: Any, w: Any) -> Any:
    return (
        F.bilinear(x, y[:, :5, :6].contiguous(), w),
        torch.bmm(x, y.mT),
        torch.einsum("bid,bjd->bij", x, y),
    )

"""Images: augmentations, networks, boxes, masks, filters, colours."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from programs.everyday_torch.function import module_of, of


@of("u8[2,5,6,3]")
def bytes_to_normalised_images(x: Any) -> Any:
    x = x.permute(0, 3, 1, 2).float() / 255
    mean = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
    std = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
    return (x - mean) / std


@of("f32[5,4]:positive", "f32[6,4]:positive")
def intersection_over_union(a: Any, b: Any) -> Any:
    a = torch.cat((a[:, :2], a[:, :2] + a[:, 2:]), 1)
    b = torch.cat((b[:, :2], b[:, :2] + b[:, 2:]), 1)
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    low, high = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
    overlap = (high - low).clamp(min=0).prod(2)
    return overlap / (area_a[:, None] + area_b - overlap)


@of("f32[3,4]:positive", "f32[3,4]")
def boxes_decoded_from_anchors(anchors: Any, delta: Any) -> Any:
    size = anchors[:, 2:]
    centre = anchors[:, :2] + size / 2 + delta[:, :2] * size
    extent = torch.exp(delta[:, 2:].clamp(max=4.135)) * size
    return torch.cat((centre - extent / 2, centre + extent / 2), -1)


@of("f32[2,3,8,8]:fraction")
def blur_by_a_gaussian(x: Any) -> Any:
    t = torch.arange(5, dtype=x.dtype) - 2
    g = torch.exp(-(t**2) / (2 * 1.2**2))
    g = g / g.sum()
    kernel = (g[:, None] * g).expand(3, 1, 5, 5)
    return F.conv2d(F.pad(x, (2, 2, 2, 2), mode="reflect"), kernel, groups=3)


@of("f32[1,1,7,7]:fraction")
def edges_by_sobel(x: Any) -> Any:
    k = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=x.dtype)[None, None]
    gx, gy = F.conv2d(x, k, padding=1), F.conv2d(x, k.mT, padding=1)
    return torch.sqrt(gx**2 + gy**2 + 1e-8), torch.atan2(gy, gx)


@of("f32[2,3,4,4]:fraction")
def hue_and_saturation(x: Any) -> Any:
    r, g, b = x.unbind(1)
    top, low = x.amax(1), x.amin(1)
    c = top - low
    safe = torch.where(c == 0, 1.0, c)
    hue = torch.where(
        top == r, (g - b) / safe % 6, torch.where(top == g, 2 + (b - r) / safe, 4 + (r - g) / safe)
    )
    return hue / 6, c / top.clamp(min=1e-8), top


@of("f32[2,3,6,6]", "f32[2,2,3]")
def warp_by_an_affine_map(x: Any, theta: Any) -> Any:
    grid = F.affine_grid(theta / 3, (2, 3, 5, 5), align_corners=False)
    return F.grid_sample(x, grid, align_corners=False)


@of("f32[1,2,6,6]", "f32[1,2,6,6]")
def warp_by_a_flow(x: Any, flow: Any) -> Any:
    i = torch.linspace(-1, 1, 6, dtype=x.dtype)
    base = torch.stack(torch.meshgrid(i, i, indexing="xy"), -1)[None]
    grid = base + flow.permute(0, 2, 3, 1) / 6
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=True)


@of("f32[2,3,4,4]:scaled3", "s64[2,4,4]:below3")
def dice_and_cross_entropy_of_masks(logits: Any, target: Any) -> Any:
    p = logits.softmax(1)
    one = F.one_hot(target, 3).permute(0, 3, 1, 2).to(p.dtype)
    inter = (p * one).sum((2, 3))
    dice = 1 - (2 * inter + 1) / (p.sum((2, 3)) + one.sum((2, 3)) + 1)
    return dice.mean() + F.cross_entropy(logits, target)


@of("f32[1,3,8,8]:fraction", "f32[1,3,8,8]:fraction")
def structural_similarity(x: Any, y: Any) -> Any:
    def mean(z: Any) -> Any:
        return F.avg_pool2d(z, 3, 1)

    mx, my = mean(x), mean(y)
    vx, vy, vxy = mean(x * x) - mx**2, mean(y * y) - my**2, mean(x * y) - mx * my
    c1, c2 = 0.01**2, 0.03**2
    return ((2 * mx * my + c1) * (2 * vxy + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2))).mean()


@of("f32[2,3,8,8]", "f32[8,48]", "f32[8]", "f32[1,4,8]")
def patches_and_places(x: Any, w: Any, b: Any, places: Any) -> Any:
    patches = F.unfold(x, 4, stride=4).transpose(1, 2)
    return F.linear(patches, w, b) + places


@of("f32[1,8,3,3]")
def pixels_shuffled(x: Any) -> Any:
    return F.pixel_shuffle(x, 2), F.channel_shuffle(x, 4), F.pixel_unshuffle(x[..., :2, :2], 2)


@of("f32[4,3,6,6]:fraction", "f32[]:fraction", "s64[4]:below5")
def mixup(x: Any, lam: Any, y: Any) -> Any:
    target = F.one_hot(y, 5).to(x.dtype)
    return lam * x + (1 - lam) * x.flip(0), lam * target + (1 - lam) * target.flip(0)


@of("f32[2,5,6]:scaled3", "s64[2,6]:below5")
def focal_loss(logits: Any, target: Any) -> Any:
    ce = F.cross_entropy(logits, target, reduction="none")
    return (0.25 * (1 - torch.exp(-ce)) ** 2 * ce).mean()


@of("f32[1,4,8,8]", "f32[8,4]:fraction")
def mean_of_regions(x: Any, boxes: Any) -> Any:
    rows = torch.arange(8)[None]
    low, high = (boxes[:, :2] * 4).long(), (boxes[:, 2:] * 3).long() + 4
    inside = [(rows >= low[:, n : n + 1]) & (rows < high[:, n : n + 1]) for n in (0, 1)]
    mask = (inside[0][:, :, None] & inside[1][:, None]).to(x.dtype)
    return torch.einsum("chw,nhw->nc", x[0], mask) / mask.sum((1, 2))[:, None]


@module_of("f32[2,3,8,8]")
def residual_network() -> Any:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(),
                nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            return F.relu(x + self.body(x))

    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), Block(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4),
    ).eval()  # fmt: skip


@module_of("f32[1,4,8,8]")
def inverted_bottleneck() -> Any:
    class Excited(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)

        def forward(self, x: Any) -> Any:
            return x * F.hardsigmoid(self.b(F.relu(self.a(F.adaptive_avg_pool2d(x, 1)))))

    return nn.Sequential(
        nn.Conv2d(4, 8, 1), nn.Hardswish(), nn.Conv2d(8, 8, 3, 2, 1, groups=8), nn.Hardswish(),
        Excited(), nn.Conv2d(8, 4, 1),
    )  # fmt: skip

"""Write layers of neural networks as text of HLO, in f32 or quantised to int8.

The int8 scheme is symmetric, as in TensorFlow Lite's specification but for zero points, which are
all 0: weights and activations are s8, sums and biases s32, and each channel c is brought back to s8
by integers alone,

    y = clamp((x * multiplier[c] + 2**(shift - 1)) >> shift, low, 127),  low = 0 after a ReLU.

Weights are synthetic: drawn from a seed, and scaled so that activations keep their spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_SPREAD = 32.0  # of activations, where they reach 127
_MULTIPLIER_BITS = 30


@dataclass(frozen=True)
class Value:
    """Name an instruction and its dims: images, features, and height and width between them."""

    name: str
    dims: tuple[int, ...]


class Network:
    """Write one network layer by layer; ``is_quantised``: in int8, else in f32."""

    def __init__(self, name: str, seed: int, *, is_quantised: bool) -> None:
        self.name, self.is_quantised = name, is_quantised
        self._draw = np.random.default_rng(seed)
        self._lines: list[str] = []
        self._count = 0
        self.activation = "s8" if is_quantised else "f32"
        self.sums = "s32" if is_quantised else "f32"

    def input(self, *dims: int) -> Value:
        """Declare the argument."""
        return self._add(self.activation, dims, "parameter(0)", "input")

    def convolution(
        self,
        x: Value,
        features: int,
        size: tuple[int, int],
        stride: tuple[int, int] = (1, 1),
        *,
        is_depthwise: bool = False,
        has_relu: bool = True,
    ) -> Value:
        """Write a convolution with padding SAME, a bias, and a ReLU; weights are features first."""
        images, *spatial, channels = x.dims
        outputs = [-(-n // s) for n, s in zip(spatial, stride, strict=True)]
        pads = []
        for n, out, k, s in zip(spatial, outputs, size, stride, strict=True):
            total = max((out - 1) * s + k - n, 0)
            pads.append(f"{total // 2}_{total - total // 2}")
        deep = 1 if is_depthwise else channels
        weights = self._weights((features, *size, deep), math.prod(size) * deep)
        window = f"size={size[0]}x{size[1]} stride={stride[0]}x{stride[1]} pad={'x'.join(pads)}"
        text = f"convolution({x.name}, {weights.name}), window={{{window}}}"
        text += ", dim_labels=b01f_o01i->b01f" + f", feature_group_count={channels}" * is_depthwise
        dims = images, *outputs, features
        total = self._add(self.sums, dims, text, "depthwise" if is_depthwise else "convolution")
        return self._activated(total, math.prod(size) * deep, has_relu)

    def dense(self, x: Value, features: int, *, has_relu: bool = True) -> Value:
        """Write a fully connected layer."""
        weights = self._weights((features, x.dims[1]), x.dims[1])
        text = (
            f"dot({x.name}, {weights.name}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}"
        )
        total = self._add(self.sums, (x.dims[0], features), text, "dense")
        return self._activated(total, x.dims[1], has_relu)

    def add(self, x: Value, y: Value) -> Value:
        """Write the sum of two values of one scale, halved in int8, and a ReLU."""
        if not self.is_quantised:
            return self._relu(self._add("f32", x.dims, f"add({x.name}, {y.name})", "residual"))
        wide = [self._add("s32", x.dims, f"convert({v.name})", "wide").name for v in (x, y)]
        total = self._add("s32", x.dims, f"add({', '.join(wide)})", "residual")
        one = self._splat("s32", 1, x.dims)
        rounded = self._add("s32", x.dims, f"add({total.name}, {one.name})", "rounded")
        half = self._add(
            "s32", x.dims, f"shift-right-arithmetic({rounded.name}, {one.name})", "half"
        )
        return self._narrowed(half, 0)

    def average_pool(self, x: Value) -> Value:
        """Write the mean over all positions."""
        images, height, width, features = x.dims
        count, dims = height * width, (images, features)
        wide = x
        if self.is_quantised:
            wide = self._add("s32", x.dims, f"convert({x.name})", "wide")
        zero = self._add(self.sums, (), "constant(0)", "zero")
        total = self._add(
            self.sums, dims, f"reduce({wide.name}, {zero.name}), dimensions={{1,2}}, to_apply=sum",
            "pooled",
        )  # fmt: skip
        if not self.is_quantised:
            scale = self._splat("f32", 1 / count, dims)
            return self._add("f32", dims, f"multiply({total.name}, {scale.name})", "mean")
        # The mean has a smaller spread than what it is of: brought back to where that was.
        return self._requantised(total, np.full(features, 1 / math.sqrt(count)), 0)

    def softmax(self, x: Value) -> Value:
        """Write a softmax in f32; int8 leaves it to the application, which wants the order."""
        if self.is_quantised:
            return x
        lowest = self._add("f32", (), "constant(-inf)", "lowest")
        zero = self._add("f32", (), "constant(0)", "zero")

        def over(value: Value, init: Value, combiner: str) -> Value:
            text = f"reduce({value.name}, {init.name}), dimensions={{1}}, to_apply={combiner}"
            one = self._add("f32", x.dims[:1], text, combiner)
            return self._add("f32", x.dims, f"broadcast({one.name}), dimensions={{0}}", "each")

        shifted = self._add("f32", x.dims, f"subtract({x.name}, {over(x, lowest, 'most').name})")
        powers = self._add("f32", x.dims, f"exponential({shifted.name})")
        return self._add("f32", x.dims, f"divide({powers.name}, {over(powers, zero, 'sum').name})")

    def text(self, result: Value) -> str:
        """Return the module; ``result`` is the last value that was written."""
        assert f" {result.name} = " in self._lines[-1], "the last value is the root"
        body = "".join(f"  {line}\n" for line in self._lines[:-1])
        root = f"  ROOT {self._lines[-1].strip()}\n"
        combiners = "".join(
            f"{name} {{\n  a = {self.sums}[] parameter(0)\n  b = {self.sums}[] parameter(1)\n"
            f"  ROOT r = {self.sums}[] {opcode}(a, b)\n}}\n"
            for name, opcode in (("sum", "add"), ("most", "maximum"))
        )
        return f"HloModule {self.name}\n{combiners}ENTRY main {{\n{body}{root}}}\n"

    def _add(self, kind: str, dims: tuple[int, ...], text: str, name: str = "value") -> Value:
        """Append an instruction."""
        self._count += 1
        value = Value(f"{name}.{self._count}" if name != "input" else name, dims)
        self._lines.append(f" {value.name} = {kind}[{','.join(map(str, dims))}] {text}")
        return value

    def _splat(self, kind: str, number: float, dims: tuple[int, ...]) -> Value:
        """Write an array whose elements are all one number."""
        one = self._add(kind, (), f"constant({number!r})", "number")
        return self._add(kind, dims, f"broadcast({one.name}), dimensions={{}}", "each")

    def _per_feature(self, kind: str, values: np.ndarray, dims: tuple[int, ...]) -> Value:
        """Write an array whose elements depend on the last index alone."""
        listed = self._add(kind, values.shape, f"constant({_literal(values)})", "features")
        text = f"broadcast({listed.name}), dimensions={{{len(dims) - 1}}}"
        return self._add(kind, dims, text, "each")

    def _weights(self, dims: tuple[int, ...], addends: int) -> Value:
        """Draw weights of sums of so many products."""
        if self.is_quantised:
            values = self._draw.integers(-127, 128, dims)
        else:
            spread = math.sqrt(2 / addends)
            values = (self._draw.standard_normal(dims) * spread).astype(np.float32)
        return self._add(self.activation, dims, f"constant({_literal(values)})", "weights")

    def _activated(self, total: Value, addends: int, has_relu: bool) -> Value:
        """Write the bias of each feature, and a ReLU or the bounds of s8."""
        features = total.dims[-1]
        if not self.is_quantised:
            bias = (self._draw.standard_normal(features) / 16).astype(np.float32)
            each = self._per_feature("f32", bias, total.dims)
            biased = self._add("f32", total.dims, f"add({total.name}, {each.name})", "biased")
            return self._relu(biased) if has_relu else biased
        spread = 127 / math.sqrt(3) * _SPREAD * math.sqrt(addends)  # of the sums
        bias = np.rint(self._draw.standard_normal(features) * spread / 16).astype(np.int64)
        each = self._per_feature("s32", bias, total.dims)
        biased = self._add("s32", total.dims, f"add({total.name}, {each.name})", "biased")
        scales = self._draw.uniform(0.75, 1.5, features) * math.sqrt(2) * _SPREAD / spread
        return self._requantised(biased, scales, 0 if has_relu else -128)

    def _relu(self, x: Value) -> Value:
        zero = self._splat("f32", 0.0, x.dims)
        return self._add("f32", x.dims, f"maximum({x.name}, {zero.name})", "relu")

    def _requantised(self, x: Value, scales: np.ndarray, low: int) -> Value:
        """Write s32 sums times the scale of their feature, as s8."""
        shift = _MULTIPLIER_BITS - math.frexp(float(scales.max()))[1]
        multipliers = np.rint(scales * 2.0**shift).astype(np.int64)
        dims = x.dims
        wide = self._add("s64", dims, f"convert({x.name})", "wide")
        listed = self._add("s32", scales.shape, f"constant({_literal(multipliers)})", "multipliers")
        each = self._add("s32", dims, f"broadcast({listed.name}), dimensions={{{len(dims) - 1}}}")
        multiplier = self._add("s64", dims, f"convert({each.name})", "multiplier")
        product = self._add("s64", dims, f"multiply({wide.name}, {multiplier.name})", "product")
        half = self._splat("s64", 1 << (shift - 1), dims)
        rounded = self._add("s64", dims, f"add({product.name}, {half.name})", "rounded")
        by = self._splat("s64", shift, dims)
        text = f"shift-right-arithmetic({rounded.name}, {by.name})"
        shifted = self._add("s64", dims, text, "shifted")
        return self._narrowed(self._add("s32", dims, f"convert({shifted.name})", "scaled"), low)

    def _narrowed(self, x: Value, low: int) -> Value:
        """Write s32 values within [low, 127] as s8."""
        ends = [self._add("s32", (), f"constant({end})", "end").name for end in (low, 127)]
        text = f"clamp({ends[0]}, {x.name}, {ends[1]})"
        within = self._add("s32", x.dims, text, "within")
        return self._add("s8", x.dims, f"convert({within.name})", "activation")


def _literal(values: np.ndarray) -> str:
    """Write an array as HLO does."""
    if values.ndim == 0:
        return str(values)
    return f"{{{', '.join(map(_literal, values))}}}"

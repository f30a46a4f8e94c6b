"""List the programs that are measured on a GPU, and draw their arguments."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

import hlo
from bench.speed import catalogue
from hlo.module import Module
from hlo.types import ArrayShape
from hlo.values import Value

COPY = "copy"
_TEXT = "HloModule copy\nENTRY e {{ x = u8[{size}] parameter(0)\n ROOT y = u8[{size}] copy(x) }}"
_COPIED, _COPIED_EMULATED = 1 << 30, 1 << 16  # bytes
_ADD = "add {{ a = {0}[] parameter(0)\n b = {0}[] parameter(1)\n ROOT s = {0}[] add(a, b) }}\n"
_DOT = "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
# Large enough that neither a launch nor the cache counts: arguments, and what is computed of them.
_LARGE = {
    "add_64m": ("f32[8192,8192] f32[8192,8192]", "f32[8192,8192] add(x, y)"),
    "add_bf16_64m": ("bf16[8192,8192] bf16[8192,8192]", "bf16[8192,8192] add(x, y)"),
    "tanh_bf16_64m": ("bf16[8192,8192]", "bf16[8192,8192] tanh(x)"),
    "rows_64m": (
        "f32[8192,8192]",
        "f32[8192] reduce(x, f32[] constant(0)), dimensions={1}, to_apply=add",
    ),
    "columns_64m": (
        "f32[8192,8192]",
        "f32[8192] reduce(x, f32[] constant(0)), dimensions={0}, to_apply=add",
    ),
    "transpose_64m": ("f32[8192,8192]", "f32[8192,8192] transpose(x), dimensions={1,0}"),
    "dot_f32_4096": ("f32[4096,4096] f32[4096,4096]", f"f32[4096,4096] {_DOT}"),
    "dot_bf16_8192": ("bf16[8192,8192] bf16[8192,8192]", f"bf16[8192,8192] {_DOT}"),
    "dot_s8_8192": ("s8[8192,8192] s8[8192,8192]", f"s32[8192,8192] {_DOT}"),
}
_DRAWN = 1 << 20  # elements of an argument of these: they are repeated
_TOGETHER = 10  # programs of a unit, which is measured by one process
# Memory-bound ones, then dots and convolutions, then others; behind them all that there are.
_FIRST = (
    *("gelu_10m", "fma_reduce_16m", "softmax", "reduce_row", "reduce_col", "reduce_full_10m"),
    *("transpose2d", "transpose_nhwc_nchw", "batchnorm_inf", "layer_norm_f32", "layer_norm_bf16"),
    *("blackscholes_1m", "threefry_normal_1m", "bf16_matmul_512", "int8_matmul_512"),
    *("linrelu_4096x768x3072", "attention", "attention_bf16", "conv3x3_56_64", "bert2_fwd"),
    *("nbody_2048", "sort_1m", "top_k", "cumsum_axis0", "segment_sum", "while_scalar"),
)
_EMULATED = ("gelu_1k",)


@cache
def _catalogue() -> dict[str, catalogue.Program]:
    return {program.name: program for program in catalogue.found(())}


def names(emulated: bool) -> list[str]:
    """List the programs, the copy first; small ones if threads are emulated."""
    there = _catalogue()
    wanted = _EMULATED if emulated else [*_FIRST, *sorted(set(there) - set(_FIRST))]
    large = () if emulated else _LARGE
    return [COPY, *large, *(name for name in wanted if name in there)]


def unit(number: int, emulated: bool) -> list[str]:
    """List the programs of a unit; empty beyond the last one."""
    return names(emulated)[number * _TOGETHER : (number + 1) * _TOGETHER]


def text(name: str, emulated: bool) -> str:
    """Read or generate a program's text."""
    if name == COPY:
        return _TEXT.format(size=_COPIED_EMULATED if emulated else _COPIED)
    if name in _LARGE:
        shapes, result = _LARGE[name]
        lines = [f"{x} = {shape} parameter({n})" for n, (x, shape) in
                 enumerate(zip("xy", shapes.split()))]  # fmt: skip
        body = "\n  ".join([*lines, f"ROOT r = {result}"])
        return f"HloModule {name}\n{_ADD.format('f32')}ENTRY e {{\n  {body}\n}}\n"
    return Path(_catalogue()[name].path).read_text("utf-8")


def arguments(name: str, module: Module) -> tuple[Value, ...]:
    """Draw the arguments of a program."""
    if name in _LARGE:
        drawn = np.random.default_rng(0).standard_normal(_DRAWN, np.float32) * 4
        shapes = [p.shape for p in module.entry.parameters]
        return tuple(
            np.resize(drawn.astype(shape.element_type.numpy), shape.dims)
            for shape in shapes
            if isinstance(shape, ArrayShape)
        )
    known = _catalogue().get(name) or catalogue.Program(name, "")
    return catalogue.values(known, module)


def module(name: str, emulated: bool) -> Module:
    """Read and parse a program."""
    return hlo.parse(text(name, emulated))

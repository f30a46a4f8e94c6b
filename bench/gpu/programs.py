"""Name the programs that are measured on a GPU, and draw their arguments."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import hlo
from bench.speed import catalogue
from hlo.module import Module
from hlo.values import Value

COPY = "copy"
_TEXT = "HloModule copy\nENTRY e {{ x = u8[{size}] parameter(0)\n ROOT y = u8[{size}] copy(x) }}"
_COPIED, _COPIED_EMULATED = 1 << 30, 1 << 16  # bytes
_TOGETHER = 10  # programs of a unit, which is measured by one process
# Memory-bound ones, then dots and convolutions, then others; behind them all that there are.
_FIRST = (
    *("gelu_10m", "fma_reduce_16m", "softmax", "reduce_row", "reduce_col", "reduce_full_10m"),
    *("transpose2d", "transpose_nhwc_nchw", "batchnorm_inf", "layer_norm_f32", "layer_norm_bf16"),
    *("blackscholes_1m", "threefry_normal_1m", "bf16_matmul_512", "int8_matmul_512"),
    *("linrelu_4096x768x3072", "attention", "attention_bf16", "conv3x3_56_64", "bert2_fwd"),
    *("nbody_2048", "sort_1m", "top_k", "cumsum_axis0", "segment_sum", "while_scalar"),
)
_EMULATED = ("gelu_1k", "linrelu_64x784x128")


@cache
def _catalogue() -> dict[str, catalogue.Program]:
    return {program.name: program for program in catalogue.found(())}


def names(emulated: bool) -> list[str]:
    """Return the programs that are there, the copy first; for emulated threads small ones."""
    there = _catalogue()
    wanted = _EMULATED if emulated else [*_FIRST, *sorted(set(there) - set(_FIRST))]
    return [COPY, *(name for name in wanted if name in there)]


def unit(number: int, emulated: bool) -> list[str]:
    """Return the programs of a unit; none behind the last one."""
    return names(emulated)[number * _TOGETHER : (number + 1) * _TOGETHER]


def text(name: str, emulated: bool) -> str:
    """Read a program."""
    if name == COPY:
        return _TEXT.format(size=_COPIED_EMULATED if emulated else _COPIED)
    return Path(_catalogue()[name].path).read_text("utf-8")


def arguments(name: str, module: Module) -> tuple[Value, ...]:
    """Draw the arguments of a program."""
    known = _catalogue().get(name) or catalogue.Program(name, "")
    return catalogue.values(known, module)


def module(name: str, emulated: bool) -> Module:
    """Read and parse a program."""
    return hlo.parse(text(name, emulated))

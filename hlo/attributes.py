"""The values that attributes hold.

An attribute has one syntax, and so one type of value, whatever the op; ``hlo/text/codecs.py`` reads
and prints them by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from hlo.literal import Literal
    from hlo.types import Shape


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """One dimension of a window, with the names of XLA's ``WindowDimension``."""

    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    base_dilation: int = 1  # lhs_dilate
    window_dilation: int = 1  # rhs_dilate
    reversal: bool = False  # rhs_reversal


@dataclass(frozen=True, slots=True)
class Window:
    """``window={size=3x3 stride=2x2 pad=0_1x1_1 …}``."""

    dimensions: tuple[WindowDimension, ...] = ()


@dataclass(frozen=True, slots=True)
class ConvolutionDimensions:
    """``dim_labels=b01f_01io->b01f``: which dimension is what. Spatial ones in label order."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]


Attribute = Union[
    bool,
    int,
    float,
    str,  # enums, names of computations, raw text
    tuple[int, ...],
    tuple[str, ...],  # branch_computations, called_computations, operand_precision
    tuple[tuple[int, int, int], ...],  # slice (start, limit, stride), padding (low, high, interior)
    tuple[tuple[int, ...], ...],  # slice_sizes of collective-permute
    tuple["Shape", ...],
    Window,
    ConvolutionDimensions,
    "Literal",
]

# Attributes whose values name computations: one name, or a tuple of names.
COMPUTATION_ATTRIBUTES = frozenset(
    [
        "to_apply",
        "calls",
        "condition",
        "body",
        "true_computation",
        "false_computation",
        "branch_computations",
        "select",
        "scatter",
        "called_computations",
    ]
)

# What may follow any instruction without changing its result; kept as text.
ANNOTATIONS = frozenset(
    [
        "metadata",
        "sharding",
        "frontend_attributes",
        "backend_config",
        "statistics",
        "parameter_replication",
        "control-predecessors",
        "origin",
        "result_accuracy",
        "debug_attributes",
    ]
)

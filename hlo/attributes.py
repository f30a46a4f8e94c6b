"""Represent the values of attributes.

An attribute has one syntax, and so one type of value, whatever the op; ``hlo/text/codecs.py`` reads
and prints them by name. Aliasing and replica groups are in modules of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hlo.aliasing import Alias, Donor
from hlo.literal import Literal
from hlo.replica_groups import ReplicaGroups, SourceTargetPairs
from hlo.types import Shape, TupleShape


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
    """``dim_labels=b01f_01io->b01f``: the dimension of each role; spatial ones in label order."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OperandSparsity:
    """``{sparsity=1x4 dimension=1 stride=1 idx=2}``: 1 of 4 elements along a dimension is stored,
    and operand 2 has its index in the block. None is a field that is not given."""

    sparsity: tuple[int, int] | None = None
    dimension: int | None = None
    stride: int | None = None
    indices: int | None = None

    def __str__(self) -> str:
        ratio = None if self.sparsity is None else "{}x{}".format(*self.sparsity)
        parts = {"sparsity": ratio, "dimension": self.dimension, "stride": self.stride}
        parts["idx"] = self.indices
        return _named(f"{name}={part}" for name, part in parts.items() if part is not None)


@dataclass(frozen=True, slots=True)
class SparsityConfig:
    """``sparsity_config={lhs={…} rhs={…}}``: the sparse operands of a convolution."""

    lhs: OperandSparsity | None = None
    rhs: OperandSparsity | None = None

    def __str__(self) -> str:
        sides = {"lhs": self.lhs, "rhs": self.rhs}
        return _named(f"{name}={one}" for name, one in sides.items() if one is not None)


def _named(parts: Iterable[str]) -> str:
    return "{" + " ".join(parts) + "}"


@dataclass(frozen=True, slots=True)
class Domain:
    """``domain={kind="sharding", entry={…}, exit={…}}``: the shardings on both sides of an
    instruction, as text, like the annotation ``sharding``: no result depends on them."""

    kind: str
    entry: str
    exit: str


@dataclass(frozen=True, slots=True)
class EntryLayout:
    """``entry_computation_layout={(f32[2]{0}, …)->f32[]}`` of headers."""

    parameters: tuple[Shape, ...]
    result: Shape

    def __str__(self) -> str:
        return f"{{{TupleShape(self.parameters)}->{self.result}}}"


Attribute = (
    bool
    | int
    | float
    | str  # words of a list, names of computations, what stands in quotes
    | tuple[int, ...]
    | tuple[str, ...]  # branch_computations, called_computations, operand_precision
    # slice (start, limit, stride), padding (low, high, interior)
    | tuple[tuple[int, int, int], ...]
    | tuple[tuple[int, ...], ...]  # slice_sizes of collective-permute
    | Shape  # outfeed_shape
    | tuple[Shape, ...]  # operand_layout_constraints
    | tuple[Alias, ...]  # output_to_operand_aliasing
    | Window
    | ConvolutionDimensions
    | SparsityConfig
    | Domain
    | ReplicaGroups
    | SourceTargetPairs
    | Literal
)

# Of headers; flags, counts and frontend_attributes are kept as text.
HeaderAttribute = str | tuple[Alias, ...] | tuple[Donor, ...] | EntryLayout

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

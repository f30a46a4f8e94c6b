"""State as data what a compiler may do to a float instruction: one table per compiler and version.

A budget is no tolerance: it bounds the error of one instruction, in units in the last place (ulp)
of its own exact result. Everything that follows from it is computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cache, cached_property
from typing import Any

import ml_dtypes
import numpy as np

from hlo.errors import ArgumentError
from hlo.opcodes import ELEMENTARY, ROUNDS, having
from hlo.types import BF16, F16, F32, ElementType
from hlo.values import Array

_finfo: Any = ml_dtypes.finfo


class Folds(Enum):
    """Orders and types in which a compiler usually folds. USUAL: sums of types narrower than f32 in
    f32, or in the order written and rounded at each step, other folds in any order. SUMS_IN_F32:
    sums only in f32. IN_ORDER, IN_BLOCKS: all folds in the order written, or in blocks, rounded at
    each step."""

    USUAL = auto()
    SUMS_IN_F32 = auto()
    IN_ORDER = auto()
    IN_BLOCKS = auto()


@dataclass(frozen=True)
class Budget:
    """The permissions of one compiler. ``ulps[opcode]``: the largest error in ulps of f32 and f64,
    0 for correctly rounded. ``elementary``: that of functions missing in ``ulps``.
    ``half[opcode]``: that in ulps of f16, of functions that become several instructions of f16,
    each rounded. ``keeps_wide``: narrower types are computed in f32 and may stay there (excess
    precision). ``contracts``: a product may go into a sum unrounded (FMA). ``flushes``:
    subnormal operands and results may become zeros; with ``flushes_narrow`` also those of f16 and
    of other types whose subnormals are normal numbers of f32. ``rewrites``: chains of elementwise
    operations may be rewritten by identities of real numbers
    (:mod:`interp.envelope.elementwise_chains`).
    ``through_f32``: what is converted from f64, or an integer, to a narrower type than f32 may be
    rounded to f32 first. ``operand_bits[precision]``: the significant bits to which factors of
    products of matrices in f32 may be rounded, where the program asks for this
    ``operand_precision`` (24: none
    are lost).

    Each of these is a permission: a budget with one more admits all that it admitted without, the
    literal evaluation of the text above all, which rounds every instruction in the type and order
    written. ``usual_sums`` is none: it leaves out sums of narrow types that are rounded in those
    at each step, but for the orders of ``folds``, and orders of long sums in which most
    numbers go through more additions than :meth:`additions`. What is in such an enclosure is legal;
    what is outside may be. Nor is ``deviations``, if any: it leaves out sums that err by more than
    so many standard deviations of random rounding (:mod:`interp.envelope.random_rounding`), nor
    ``always_flushes``, which leaves out subnormals that stay where they may be flushed, nor
    ``rounds_narrow``, which leaves out errors of functions of types below 32 bits."""

    name: str
    ulps: Mapping[str, float] = field(default_factory=dict)
    elementary: float = 8.0
    half: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    keeps_wide: bool = False
    contracts: bool = False
    flushes: bool = False
    flushes_narrow: bool = field(default=False, kw_only=True)
    rewrites: bool = False
    through_f32: bool = False
    operand_bits: Mapping[str, int] = field(default_factory=dict)
    usual_sums: bool = False
    folds: Folds = Folds.USUAL
    deviations: float = 0.0
    always_flushes: bool = False
    rounds_narrow: bool = field(default=False, kw_only=True)
    unrounded: bool = False  # of the instruction at hand, which a rewritten chain never rounds
    merges: bool = False  # the sum at hand may become a part of what reads it
    is_measured: bool = True  # here, on results of this compiler; or no compiler's own

    # Variants of a budget for single instructions are made once: to make one takes 5 µs.

    @cached_property
    def of_unrounded(self) -> Budget:
        """The budget of an instruction whose result a rewritten chain never rounds."""
        return replace(self, unrounded=True)

    @cached_property
    def of_merged(self) -> Budget:
        """The budget of a sum that may become a part of what reads it."""
        return replace(self, merges=True)

    @cached_property
    def of_stored(self) -> Budget:
        """The budget of what is only rounded and stored: neither excess precision nor contraction
        are permissions of it."""
        return replace(self, keeps_wide=False, contracts=False)

    def may_flush(self, element_type: ElementType) -> bool:
        """Test whether subnormals of a type may become zeros."""
        if not self.flushes or not element_type.is_float:
            return False
        return self.flushes_narrow or not _has_normal_subnormals(element_type)

    def factors(
        self, algorithm: str, precisions: Sequence[str], types: Sequence[ElementType]
    ) -> Precision:
        """Return the precision of a dot or convolution of f32, given the ``algorithm`` and the
        ``operand_precision`` asked for, and the types of its factors."""
        if algorithm not in ("", "dot_unset"):
            return _ALGORITHMS.get(algorithm, Precision())
        if F32 not in types:
            return Precision()
        asked = precisions or ("default",)
        return Precision(min(self.operand_bits.get(precision, 64) for precision in asked))

    def significant_bits(self, element_type: ElementType) -> int:
        """Return the precision, in bits, of the type in which sums of ``element_type`` are
        accumulated."""
        accumulated = F32 if self.usual_sums and element_type.bits < 32 else element_type
        return int(_finfo(accumulated.numpy).nmant) + 1

    def additions(self, terms: int | Array, element_type: ElementType) -> Array:
        """Bound the height of the tree of additions over ``terms`` numbers. In any order that is
        ``terms``. With ``usual_sums`` it is 4 log₂ n + 32, which covers adding in lanes, in rows,
        by halves, and in blocks of 16 within blocks; sums of narrow types are accumulated in f32,
        in any order. With ``deviations`` it is the equivalent height of random rounding, deviations
        · sqrt(n)."""
        most = np.asarray(terms, np.float64)
        if self.deviations:
            return np.asarray(np.minimum(most, self.deviations * np.sqrt(most)))
        if not self.usual_sums or element_type.bits < 32:
            return most
        return np.asarray(np.minimum(most, 4 * np.log2(np.maximum(most, 1)) + 32))

    def of(self, opcode: str, element_type: ElementType) -> float:
        """Return the largest error of one operation in ulps of ``element_type``, beyond correct
        rounding."""
        error = self.ulps.get(opcode, self.elementary if opcode in _ELEMENTARY else 0.0)
        if opcode == "multiply" and self.contracts:
            error = max(error, UNROUNDED)
        if self.unrounded and opcode in ROUNDED:
            error = max(error, UNROUNDED)
        if element_type.bits < 32:
            if self.rounds_narrow:
                return 0.0
            # An error in f32 is a thousandth of one in f16 and less of one in other types.
            kept = UNROUNDED if self.keeps_wide and opcode in ROUNDED else 0.0
            composed = self.half.get(opcode, 0.0) if element_type is F16 else 0.0
            return max(error * 2.0**-10, kept, composed)
        return error


@dataclass(frozen=True)
class Precision:
    """The precision of a dot: its factors may be rounded to ``bits`` significant bits, in the
    exponent range of the type ``within``, and its products added in the type ``sums``, if that is
    narrower than the result."""

    bits: int = 64
    within: ElementType = F32
    sums: ElementType | None = None

    def keeps(self, element_type: ElementType) -> bool:
        """Test whether no number of a real type is rounded."""
        if self.bits >= 64 or not element_type.is_float:
            return self.bits >= min(64, element_type.bits)
        own, limits = _finfo(element_type.numpy), _finfo(self.within.numpy)
        return bool(
            own.nmant < self.bits
            and float(own.max) <= float(limits.max)
            and float(own.smallest_subnormal) >= float(limits.smallest_subnormal)
        )

    def added_in(self, element_type: ElementType) -> ElementType:
        """Return the type of the sums of a result."""
        narrower = self.sums is not None and self.sums.bits < element_type.bits
        return self.sums if narrower and self.sums is not None else element_type


# A number as a sum of two or three of bf16, or two of TF32, has 16, 24 or 22 bits; but products of
# the lower parts are left out (HLO's PrecisionConfig.Algorithm in XLA's xla_data.proto). How exact
# a fast accumulator of f8 is, it does not say.
_ALGORITHMS = {
    "dot_any_f8_any_f8_f32_fast_accum": Precision(sums=BF16),
    "dot_bf16_bf16_bf16": Precision(8, sums=BF16),
    "dot_bf16_bf16_f32": Precision(8),
    "dot_bf16_bf16_f32_x3": Precision(14),
    "dot_bf16_bf16_f32_x6": Precision(20),
    "dot_bf16_bf16_f32_x9": Precision(22),
    "dot_f16_f16_f16": Precision(11, F16, F16),
    "dot_f16_f16_f32": Precision(11, F16),
    "dot_f32_f32_f32": Precision(24, sums=F32),
    "dot_tf32_tf32_f32": Precision(11),
    "dot_tf32_tf32_f32_x3": Precision(20),
}


@cache
def _has_normal_subnormals(element_type: ElementType) -> bool:
    """Test whether all subnormals of a type are normal numbers of f32, as those of f16 are."""
    least = float(_finfo(element_type.numpy).smallest_subnormal)
    return least >= float(np.finfo(np.float32).smallest_normal)


_ELEMENTARY = having(ELEMENTARY)
ROUNDED = having(ROUNDS)

UNROUNDED = 2.0**-10  # not zero: the exact result, but for an error in a wider type

EXACT = Budget("exact", elementary=0.0)

# XLA writes these as several instructions before it widens f16, of every platform: logistic as
# 1 / (1 + exp(-x)). Measured on XLA:CPU, all f16 numbers: 2 units from the rounded exact result at
# most, in 238 and 186 of 63,488, so 1.5 from what is not rounded.
_WRITTEN_IN_F16 = {"exponential-minus-one": 1.5, "logistic": 1.5}

# An IEEE machine with a good library, contraction, and narrow types kept in f32.
UNKNOWN = Budget(
    "unknown",
    {"divide": 1.5, "sqrt": 1.0},
    16.0,
    True,
    True,
    True,
    True,
    True,
    half=_WRITTEN_IN_F16,
    flushes_narrow=True,
)

# Measured against mpmath, worst of all f32 inputs or of 10^7: exponential 4.07, tanh 4.63,
# erf 5.35. A division by a constant is a product with its reciprocal. cbrt is off by 3.4, but in
# loops over few elements it is a power: off by 14.6 in f32, by 15 in f64 where the logarithm is 88,
# which grows with the logarithm, to eight times as much. Of all f16 numbers none was flushed: where
# the processor has arithmetic of f16 it ignores "flush to zero" and "denormals are zero" (Intel,
# AVX512-FP16 Architecture Specification), elsewhere f32 computes it, in which they are normal.
XLA_CPU = Budget(
    "XLA:CPU 0.10",
    {
        "cbrt": 128.0,
        "divide": 1.5,
        "exponential": 4.5,
        "tanh": 5.0,
        "erf": 6.0,
        "rsqrt": 2.0,
    },
    elementary=8.0,
    half=_WRITTEN_IN_F16,
    keeps_wide=True,
    contracts=True,
    flushes=True,
    rewrites=True,
    through_f32=True,
)

# Products of matrices in TF32 unless the program asks for the highest precision (IsTf32Allowed in
# XLA's algorithm_util.cc; processors before Ampere have none, which cannot be told from the text),
# sums in scatter by atomics in any order, functions by libdevice (CUDA C Programming Guide,
# "Mathematical Functions": 2 to 4 ulp) and XLA's own approximations. Not measured here, where no
# GPU was at hand: these are twice and more of what is documented.
XLA_GPU = Budget(
    "XLA:GPU",
    {"divide": 2.5, "sqrt": 2.5, "rsqrt": 4.0, "cbrt": 128.0},
    elementary=16.0,
    half=_WRITTEN_IN_F16,
    keeps_wide=True,
    contracts=True,
    flushes=True,
    flushes_narrow=True,
    rewrites=True,
    through_f32=True,
    operand_bits={"default": 11, "high": 11},
    is_measured=False,
)

# Products of matrices of f32 in one pass of bf16, in three for ``high``, in six for ``highest``
# ("default precision" in JAX's documentation of jax.lax.Precision); functions are approximated by
# the vector unit. Not measured here; the errors of functions are not documented.
XLA_TPU = Budget(
    "XLA:TPU",
    {"divide": 8.0, "sqrt": 8.0},
    elementary=4096.0,
    half=_WRITTEN_IN_F16,
    keeps_wide=True,
    contracts=True,
    flushes=True,
    flushes_narrow=True,
    rewrites=True,
    through_f32=True,
    operand_bits={"default": 8, "high": 14, "highest": 20},
    is_measured=False,
)

# What becomes of an instruction when a pass writes it as others that mean the same: a quotient as a
# product with a reciprocal, a constant folded into the next, a function by its definition. Each of
# those is correctly rounded here, so this is generous: a few roundings of a few instructions.
REWRITTEN = Budget(
    "a rewriting",
    {"add": 2.0, "subtract": 2.0, "multiply": 4.0, "divide": 4.0, "sqrt": 4.0},
    elementary=32.0,
    half=_WRITTEN_IN_F16,
    keeps_wide=True,
    contracts=True,
    flushes=True,
    flushes_narrow=True,
    rewrites=True,
    through_f32=True,
)

# What docs/numerics.md promises of numerics="fast": elementary functions within one unit in the
# last place, sums and dots in any order (every budget has that) with contraction, f16 and bf16
# computed in f32 (excess precision). Nothing is flushed and no formula rewritten.
FAST = Budget("fast", elementary=1.0, keeps_wide=True, contracts=True)

# The rows of the table.
BUDGETS: Mapping[str, Budget] = {
    budget.name: budget for budget in (EXACT, FAST, UNKNOWN, XLA_CPU, XLA_GPU, XLA_TPU, REWRITTEN)
}


def named(name: str) -> Budget:
    """Find a budget by its name, regardless of case, punctuation and a version left out
    (``xla-gpu`` is ``XLA:GPU``, ``xla:cpu`` is ``XLA:CPU 0.10``). Raises ArgumentError if there is
    none."""
    wanted = _words(name)
    for known, budget in BUDGETS.items():
        words = _words(known)
        if wanted in (words, [word for word in words if not word[0].isdigit()]):
            return budget
    raise ArgumentError(f"no budget is named {name!r}; there are {', '.join(BUDGETS)}")


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9.]++", name.lower())


# By platform, as PJRT names them; what is not known may do what any of them may.
PLATFORMS: Mapping[str, Budget] = {
    "cpu": XLA_CPU,
    "gpu": XLA_GPU,
    "cuda": XLA_GPU,
    "rocm": XLA_GPU,
    "tpu": XLA_TPU,
}
ANY_PLATFORM = XLA_TPU

_CURRENT: ContextVar[Budget] = ContextVar("budget", default=EXACT)


def current() -> Budget:
    """Return the budget of the running evaluation."""
    return _CURRENT.get()


def using(budget: Budget) -> AbstractContextManager[None]:
    """Set the budget within a block."""
    return _Using(budget)


class _Using(AbstractContextManager[None]):
    """The block of :func:`using`, in half the time of a generator: an evaluation has two for each
    instruction."""

    __slots__ = ("_budget", "_token")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def __enter__(self) -> None:
        self._token = _CURRENT.set(self._budget)

    def __exit__(self, *of_exception: object) -> None:
        _CURRENT.reset(self._token)

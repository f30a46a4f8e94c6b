"""Define the element types that each op takes: one table, for the constraints and for docs/ops.md.

Sources: ``InferUnaryOpShape``, ``InferBinaryOpShape`` and others of XLA's ``shape_inference.cc``;
``HandleIota`` and ``HandleRng`` of ``hlo_verifier.cc``. Where XLA's verifier lets pass what none of
its backends gives a meaning (a shift of floats, an order of complex numbers), the op does not take
it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hlo.ops.constraints import require
from hlo.types import C64, C128, ELEMENT_TYPES, F32, F64, U32, U64, ArrayShape, ElementType


@dataclass(frozen=True, slots=True)
class Types:
    """Hold a set of element types, and the adjective for it in errors."""

    wanted: str
    types: frozenset[ElementType]


def _kinds(wanted: str, kinds: str, bits: int = 0) -> Types:
    chosen = (t for t in ELEMENT_TYPES.values() if t.kind in kinds.split() and t.bits >= bits)
    return Types(wanted, frozenset(chosen))


ANY = _kinds("an array", "pred signed unsigned float complex")
_NUMBER = _kinds("a number", "signed unsigned float complex")
_INTEGER = _kinds("an integer", "signed unsigned")
_FLOAT = _kinds("a float", "float")
_CONTINUOUS = _kinds("a float or complex", "float complex")
_LOGICAL = _kinds("an integer or pred", "pred signed unsigned")
_SIGNED = _kinds("a signed, float or complex", "signed float complex")
_REAL = _kinds("an integer or float", "signed unsigned float")
_ORDERED = _kinds("an ordered", "pred signed unsigned float")
_BITS = _kinds("an integer or float of 8 bits or more", "signed unsigned float", bits=8)
_HALVES = Types("f32 or f64", frozenset((F32, F64)))
_TRANSFORMED = Types("f32, f64, c64 or c128", frozenset((F32, F64, C64, C128)))
_U32 = Types("u32", frozenset((U32,)))
_U64 = Types("u64", frozenset((U64,)))
# Not only arrays: tokens, opaque values and tuples, too.
VALUE = Types("any", ANY.types | {ELEMENT_TYPES["token"], ELEMENT_TYPES["opaque"]})

# Opcodes by what they take: the (first) operand, or the result of an op without one.
_ROWS: tuple[tuple[Types, str], ...] = (
    (_SIGNED, "abs sign"),
    (_NUMBER, "negate subtract divide power iota"),
    (_LOGICAL, "not and or xor"),
    (_INTEGER, "popcnt count-leading-zeros mulhi shift-left shift-right-arithmetic"),
    (_INTEGER, "shift-right-logical"),
    (_FLOAT, "cbrt ceil erf floor round-nearest-afz round-nearest-even is-finite"),
    (_FLOAT, "reduce-precision stochastic-convert"),
    (_FLOAT, "batch-norm-training batch-norm-inference batch-norm-grad"),
    (_CONTINUOUS, "acos acosh asin asinh atanh cosine cosh exponential exponential-minus-one log"),
    (_CONTINUOUS, "log-plus-one logistic rsqrt sine sinh sqrt tan tanh atan2 real imag"),
    (_CONTINUOUS, "cholesky triangular-solve"),
    (_REAL, "remainder"),
    (_ORDERED, "maximum minimum clamp topk rng"),
    (_HALVES, "complex"),
    (_TRANSFORMED, "fft"),
    (_BITS, "rng-bit-generator"),
    (_U64, "rng-get-and-update-state"),
    (_U32, "replica-id partition-id"),
    (ANY, "add multiply compare convert select constant broadcast reshape dynamic-reshape"),
    (ANY, "transpose reverse slice pad concatenate copy-start bitcast bitcast-convert"),
    (ANY, "get-dimension-size set-dimension-size dot ragged-dot scaled-dot convolution reduce"),
    (ANY, "reduce-window select-and-scatter scan gather scatter dynamic-slice sort map"),
    (ANY, "dynamic-update-slice all-gather all-gather-start all-gather-done all-reduce"),
    (ANY, "all-reduce-start all-reduce-done all-to-all collective-broadcast collective-permute"),
    (ANY, "collective-permute-start collective-permute-done ragged-all-to-all reduce-scatter"),
    (ANY, "send send-done recv recv-done copy-done"),
    (VALUE, "parameter tuple get-tuple-element copy call fusion while conditional custom-call"),
    (VALUE, "async-start async-update async-done after-all add-dependency opt-barrier domain"),
    (VALUE, "infeed outfeed"),
)
TAKES: dict[str, Types] = {opcode: types for types, row in _ROWS for opcode in row.split()}


def require_element_type(label: str, opcode: str, shape: ArrayShape) -> None:
    """Require that the op takes the shape's element type."""
    types = TAKES[opcode]
    require(label, shape.element_type in types.types, f"{shape} is not of {types.wanted} type")


def listed(types: Collection[ElementType]) -> str:
    """Format a set of element types: whole kinds as a range (s1–s64), the others by name."""
    parts = []
    for kind in ("pred", "signed", "unsigned", "float", "complex"):
        known = [t for t in ELEMENT_TYPES.values() if t.kind == kind]
        taken = [t for t in known if t in types]
        whole = len(taken) > 2 and taken == known[-len(taken) :]
        names = [str(t) for t in taken]
        parts += [f"{names[0]}–{names[-1]}"] if whole else names
    return ", ".join(parts)


def is_order(element_type: ElementType) -> bool:
    """Return whether elements of a type can be ordered by < and >."""
    return element_type in _ORDERED.types

"""Define each opcode's family and traits (XLA's ``hlo_opcode.h``), in one table.

A *family* is the file of ``hlo/ops`` that has the op's signature. A *trait* is a fact about an
opcode that holds for all its operands and attributes. ``tests/test_opcode_traits.py`` and
``tests/test_opcode_effects.py`` check traits by evaluating programs. What depends on attributes,
element types or the purpose at hand is a decision of the module that makes it, and stands there.

``having(MOVES)`` and ``of_family(ELEMENTWISE)`` are sets of opcodes: a module asks for them once,
when it is imported, and looks opcodes up in them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

ELEMENTWISE = "elementwise"
DATA_MOVEMENT = "data_movement"
CONTRACTION = "contraction"
REDUCTION = "reduction"
INDEXING = "indexing"
LINEAR_ALGEBRA = "linear_algebra"
RANDOM = "random"
CONTROL = "control"
COLLECTIVE = "collective"


class Trait(enum.Flag):
    """Flags for facts about opcodes; ``A | B`` is both of them."""

    NONE = 0

    # Arithmetic; NaNs count as equal.
    COMMUTATIVE = enum.auto()  # op(a, b) = op(b, a)
    ASSOCIATIVE = enum.auto()  # op(op(a, b), c) = op(a, op(b, c)) on types that do not round
    EXTREME = enum.auto()  # selects one of two numbers by their order; NaN if one is NaN
    BITWISE = enum.auto()  # acts on each bit of an integer as it does on a pred
    SUM = enum.auto()  # lhs + rhs or lhs - rhs
    SHIFT = enum.auto()  # shifts the bits of an integer by its second operand
    PRODUCTS = enum.auto()  # each element is one sum of products of elements of its two operands
    ELEMENTARY = enum.auto()  # elementary function: a sequence of hlo/elementary, rounded once
    ROUNDS = enum.auto()  # rounds floats, remainder on the way: compilers differ within a budget
    APPROXIMATED = enum.auto()  # may carry result_accuracy (XLA: IsUnaryOpWithResultAccuracy)

    # Data movement: each element of the result is, bit for bit, an element of an operand of the
    # result's element type, or zero; attributes, indices, sizes and predicates say which one.
    MOVES = enum.auto()
    SAME_SCALAR = enum.auto()  # the identity on scalars, where it keeps the element type
    SIZED = enum.auto()  # its operands after the first one are sizes of the result
    READS_BITS = enum.auto()  # tells NaNs apart by their bits (a custom call may)
    KEEPS_LAYOUT = enum.auto()  # shape inference copies the operand's layout, as elementwise ops do
    DECLARED = enum.auto()  # its shape is not inferred: the text must have it (XLA: CanInferShape)

    # Values as a whole.
    STRUCTURAL = enum.auto()  # of every program: parameters, constants, tuples and their elements
    GIVEN = enum.auto()  # a leaf: the caller or the text gives the value
    OPAQUE = enum.auto()  # passes values on, also through a computation, and reads no array
    IDENTITY = enum.auto()  # the result is the first operand
    CALLS = enum.auto()  # the result is the called computation's: inlining may replace it

    # Side effects, and asynchronous operations.
    EFFECT = enum.auto()  # has a side effect: must not be removed, merged or repeated
    STATEFUL = enum.auto()  # depends on how often it has run: the same again gives another result
    ASYNC = enum.auto()  # starts, updates or ends the asynchronous run of a computation
    PENDING = enum.auto()  # a value under way: exactly one instruction must take it
    DONE = enum.auto()  # ends what is under way

    # Ranks.
    RANKS = enum.auto()  # depends on the rank it runs on, or on other ranks
    EXCHANGES = enum.auto()  # collective among replica groups or source-target pairs
    BY_PARTITION = enum.auto()  # channel_id: among partitions, not replicas (XLA: GetSubgroupSize)

    MONOID = COMMUTATIVE | ASSOCIATIVE  # a fold may take any order on types that do not round
    FUNCTION = ELEMENTARY | ROUNDS | APPROXIMATED  # of one operand


COMMUTATIVE, ASSOCIATIVE, MONOID = Trait.COMMUTATIVE, Trait.ASSOCIATIVE, Trait.MONOID
EXTREME, BITWISE, SUM = Trait.EXTREME, Trait.BITWISE, Trait.SUM
SHIFT, PRODUCTS = Trait.SHIFT, Trait.PRODUCTS
ELEMENTARY, ROUNDS, APPROXIMATED = Trait.ELEMENTARY, Trait.ROUNDS, Trait.APPROXIMATED
FUNCTION = Trait.FUNCTION
MOVES, SAME_SCALAR, SIZED = Trait.MOVES, Trait.SAME_SCALAR, Trait.SIZED
READS_BITS, KEEPS_LAYOUT, DECLARED = Trait.READS_BITS, Trait.KEEPS_LAYOUT, Trait.DECLARED
STRUCTURAL, GIVEN, OPAQUE = Trait.STRUCTURAL, Trait.GIVEN, Trait.OPAQUE
IDENTITY, CALLS = Trait.IDENTITY, Trait.CALLS
EFFECT, STATEFUL = Trait.EFFECT, Trait.STATEFUL
ASYNC, PENDING, DONE = Trait.ASYNC, Trait.PENDING, Trait.DONE
RANKS, EXCHANGES, BY_PARTITION = Trait.RANKS, Trait.EXCHANGES, Trait.BY_PARTITION


@dataclass(frozen=True, slots=True)
class Opcode:
    """Hold an opcode's name, family and traits."""

    name: str
    family: str
    traits: Trait = Trait.NONE


_ROWS = (
    # elementwise
    Opcode("abs", ELEMENTWISE),
    Opcode("acos", ELEMENTWISE, FUNCTION),
    Opcode("acosh", ELEMENTWISE, FUNCTION),
    Opcode("add", ELEMENTWISE, MONOID | SUM | ROUNDS),
    Opcode("and", ELEMENTWISE, MONOID | BITWISE),
    Opcode("asin", ELEMENTWISE, FUNCTION),
    Opcode("asinh", ELEMENTWISE, FUNCTION),
    Opcode("atan2", ELEMENTWISE, ELEMENTARY | ROUNDS),
    Opcode("atanh", ELEMENTWISE, FUNCTION),
    Opcode("cbrt", ELEMENTWISE, FUNCTION),
    Opcode("ceil", ELEMENTWISE),
    Opcode("clamp", ELEMENTWISE),
    Opcode("compare", ELEMENTWISE),
    Opcode("complex", ELEMENTWISE),
    Opcode("convert", ELEMENTWISE, ROUNDS | DECLARED),
    Opcode("cosh", ELEMENTWISE, FUNCTION),
    Opcode("cosine", ELEMENTWISE, FUNCTION),
    Opcode("count-leading-zeros", ELEMENTWISE),
    Opcode("divide", ELEMENTWISE, ROUNDS),
    Opcode("erf", ELEMENTWISE, FUNCTION),
    Opcode("exponential", ELEMENTWISE, FUNCTION),
    Opcode("exponential-minus-one", ELEMENTWISE, FUNCTION),
    Opcode("floor", ELEMENTWISE),
    Opcode("imag", ELEMENTWISE),
    Opcode("is-finite", ELEMENTWISE),
    Opcode("log", ELEMENTWISE, FUNCTION),
    Opcode("log-plus-one", ELEMENTWISE, FUNCTION),
    Opcode("logistic", ELEMENTWISE, FUNCTION),
    Opcode("maximum", ELEMENTWISE, MONOID | EXTREME),
    Opcode("minimum", ELEMENTWISE, MONOID | EXTREME),
    Opcode("mulhi", ELEMENTWISE, COMMUTATIVE),
    Opcode("multiply", ELEMENTWISE, MONOID | ROUNDS),
    Opcode("negate", ELEMENTWISE),
    Opcode("not", ELEMENTWISE, BITWISE),
    Opcode("or", ELEMENTWISE, MONOID | BITWISE),
    Opcode("popcnt", ELEMENTWISE),
    Opcode("power", ELEMENTWISE, ELEMENTARY | ROUNDS),
    Opcode("real", ELEMENTWISE),
    Opcode("reduce-precision", ELEMENTWISE, DECLARED),
    Opcode("remainder", ELEMENTWISE, ROUNDS),
    Opcode("round-nearest-afz", ELEMENTWISE),
    Opcode("round-nearest-even", ELEMENTWISE),
    Opcode("rsqrt", ELEMENTWISE, FUNCTION),
    Opcode("select", ELEMENTWISE, MOVES),
    Opcode("shift-left", ELEMENTWISE, SHIFT),
    Opcode("shift-right-arithmetic", ELEMENTWISE, SHIFT),
    Opcode("shift-right-logical", ELEMENTWISE, SHIFT),
    Opcode("sign", ELEMENTWISE),
    Opcode("sine", ELEMENTWISE, FUNCTION),
    Opcode("sinh", ELEMENTWISE, FUNCTION),
    Opcode("sqrt", ELEMENTWISE, ROUNDS | APPROXIMATED),
    Opcode("stochastic-convert", ELEMENTWISE, DECLARED),
    Opcode("subtract", ELEMENTWISE, SUM | ROUNDS),
    Opcode("tan", ELEMENTWISE, FUNCTION),
    Opcode("tanh", ELEMENTWISE, FUNCTION),
    Opcode("xor", ELEMENTWISE, MONOID | BITWISE),
    # data movement
    Opcode("bitcast", DATA_MOVEMENT, MOVES | SAME_SCALAR | READS_BITS | DECLARED),
    Opcode("bitcast-convert", DATA_MOVEMENT, READS_BITS | DECLARED),
    Opcode("broadcast", DATA_MOVEMENT, MOVES | SAME_SCALAR),
    Opcode("concatenate", DATA_MOVEMENT, MOVES),
    Opcode("constant", DATA_MOVEMENT, STRUCTURAL | GIVEN | DECLARED),
    Opcode("copy", DATA_MOVEMENT, MOVES | SAME_SCALAR | KEEPS_LAYOUT),
    Opcode("copy-done", DATA_MOVEMENT, OPAQUE | DONE | DECLARED),
    Opcode("copy-start", DATA_MOVEMENT, OPAQUE | PENDING | DECLARED),
    Opcode("dynamic-reshape", DATA_MOVEMENT, MOVES | SIZED | DECLARED),
    Opcode("get-dimension-size", DATA_MOVEMENT),
    Opcode("iota", DATA_MOVEMENT, DECLARED),
    Opcode("pad", DATA_MOVEMENT, MOVES),
    Opcode("reshape", DATA_MOVEMENT, MOVES | SAME_SCALAR | DECLARED),
    Opcode("reverse", DATA_MOVEMENT, MOVES | SAME_SCALAR | KEEPS_LAYOUT),
    Opcode("set-dimension-size", DATA_MOVEMENT, MOVES | SIZED),
    Opcode("slice", DATA_MOVEMENT, MOVES | SAME_SCALAR | DECLARED),
    Opcode("transpose", DATA_MOVEMENT, MOVES | SAME_SCALAR),
    # contraction
    Opcode("convolution", CONTRACTION, PRODUCTS),
    Opcode("dot", CONTRACTION, PRODUCTS),
    Opcode("ragged-dot", CONTRACTION),
    Opcode("scaled-dot", CONTRACTION),
    # reduction
    Opcode("batch-norm-grad", REDUCTION),
    Opcode("batch-norm-inference", REDUCTION),
    Opcode("batch-norm-training", REDUCTION),
    Opcode("reduce", REDUCTION),
    Opcode("reduce-window", REDUCTION),
    Opcode("scan", REDUCTION),
    Opcode("select-and-scatter", REDUCTION),
    # indexing
    Opcode("dynamic-slice", INDEXING, MOVES | DECLARED),
    Opcode("dynamic-update-slice", INDEXING, MOVES | DECLARED),
    Opcode("gather", INDEXING, MOVES),
    Opcode("scatter", INDEXING),
    Opcode("sort", INDEXING),
    Opcode("topk", INDEXING, READS_BITS),
    # linear algebra
    Opcode("cholesky", LINEAR_ALGEBRA),
    Opcode("fft", LINEAR_ALGEBRA),
    Opcode("triangular-solve", LINEAR_ALGEBRA),
    # random
    Opcode("rng", RANDOM, EFFECT | STATEFUL | DECLARED),
    Opcode("rng-bit-generator", RANDOM, DECLARED),
    Opcode("rng-get-and-update-state", RANDOM, EFFECT | STATEFUL | DECLARED),
    # control
    Opcode("add-dependency", CONTROL, SAME_SCALAR | IDENTITY | OPAQUE),
    Opcode("after-all", CONTROL, OPAQUE),
    Opcode("async-done", CONTROL, OPAQUE | ASYNC | DONE | DECLARED),
    Opcode("async-start", CONTROL, OPAQUE | ASYNC | PENDING | DECLARED),
    Opcode("async-update", CONTROL, OPAQUE | ASYNC | PENDING | DECLARED),
    Opcode("call", CONTROL, CALLS | OPAQUE),
    Opcode("conditional", CONTROL),
    Opcode("custom-call", CONTROL, READS_BITS | DECLARED),
    Opcode("domain", CONTROL, SAME_SCALAR | IDENTITY | OPAQUE),
    Opcode("fusion", CONTROL, CALLS | OPAQUE | DECLARED),
    Opcode("get-tuple-element", CONTROL, STRUCTURAL | OPAQUE),
    Opcode("map", CONTROL, OPAQUE),
    Opcode("opt-barrier", CONTROL, SAME_SCALAR | IDENTITY | OPAQUE),
    Opcode("parameter", CONTROL, STRUCTURAL | GIVEN | DECLARED),
    Opcode("tuple", CONTROL, STRUCTURAL | OPAQUE),
    Opcode("while", CONTROL),
    # collective
    Opcode("all-gather", COLLECTIVE, RANKS | EXCHANGES | DECLARED),
    Opcode("all-gather-done", COLLECTIVE, OPAQUE | DONE | DECLARED),
    Opcode("all-gather-start", COLLECTIVE, PENDING | RANKS | EXCHANGES | DECLARED),
    Opcode("all-reduce", COLLECTIVE, RANKS | EXCHANGES | DECLARED),
    Opcode("all-reduce-done", COLLECTIVE, OPAQUE | DONE | DECLARED),
    Opcode("all-reduce-start", COLLECTIVE, PENDING | RANKS | EXCHANGES | DECLARED),
    Opcode("all-to-all", COLLECTIVE, RANKS | EXCHANGES | BY_PARTITION | DECLARED),
    Opcode("collective-broadcast", COLLECTIVE, RANKS | EXCHANGES | BY_PARTITION | DECLARED),
    Opcode("collective-permute", COLLECTIVE, RANKS | EXCHANGES | BY_PARTITION | DECLARED),
    Opcode("collective-permute-done", COLLECTIVE, OPAQUE | DONE | DECLARED),
    Opcode(
        "collective-permute-start",
        COLLECTIVE,
        PENDING | RANKS | EXCHANGES | BY_PARTITION | DECLARED,
    ),
    Opcode("infeed", COLLECTIVE, EFFECT | STATEFUL | DECLARED),
    Opcode("outfeed", COLLECTIVE, EFFECT | DECLARED),
    Opcode("partition-id", COLLECTIVE, RANKS),
    Opcode("ragged-all-to-all", COLLECTIVE, RANKS | EXCHANGES | BY_PARTITION | DECLARED),
    Opcode("recv", COLLECTIVE, PENDING | EFFECT | STATEFUL | RANKS | DECLARED),
    Opcode("recv-done", COLLECTIVE, DONE | EFFECT | DECLARED),
    Opcode("reduce-scatter", COLLECTIVE, RANKS | EXCHANGES | DECLARED),
    Opcode("replica-id", COLLECTIVE, RANKS),
    Opcode("send", COLLECTIVE, PENDING | EFFECT | RANKS | DECLARED),
    Opcode("send-done", COLLECTIVE, DONE | EFFECT | DECLARED),
)

OPCODES: Mapping[str, Opcode] = {row.name: row for row in _ROWS}


def having(traits: Trait) -> frozenset[str]:
    """Return the opcodes that have all given traits."""
    return frozenset(row.name for row in _ROWS if traits in row.traits)


def of_family(family: str) -> frozenset[str]:
    """Return the opcodes of a family."""
    return frozenset(row.name for row in _ROWS if row.family == family)


# Opcodes with an asynchronous form of their own: ``copy`` has ``copy-start`` and ``copy-done``.
IN_TWO_STEPS = tuple(name for name in OPCODES if f"{name}-start" in OPCODES)

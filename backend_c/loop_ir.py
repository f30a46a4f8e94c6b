"""The loop IR: a small typed language of loops, lets and stores.

    expression := Constant | Variable | Load | Apply(operation, expressions)
    statement  := Let | Mutable | Assign | LocalArray | Store | Loop | If | Call
    kernel     := Kernel(parameters, body)

Everything a kernel computes is one of these; :mod:`backend_c.render` prints them. An operation is a
name of HLO's own (``add``, ``divide``, ``shift-left``) on operands of one type, ``convert`` and
``bitcast``, or the name of an elementary function. Expressions of type INDEX are built by
:mod:`backend_c.index`, which folds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hlo.types import ElementType

INDEX = ElementType("index", 64, "signed", np.dtype(np.int64))
# The superaccumulators of runtime/hlo_exact_sum.h: for f32 and narrower, and for f64.
ACCUMULATOR = ElementType("accumulator", 0, "opaque", None)
ACCUMULATOR_F64 = ElementType("accumulator_f64", 0, "opaque", None)
SEED = ElementType("seed", 0, "opaque", None)  # the random state of a run, runtime/hlo_random.h


@dataclass(frozen=True, slots=True)
class Array:
    """A block of elements that a kernel reads or writes, by its name in the kernel.

    ``mutable`` arrays are written by the kernel that reads them: their loads stay where they are.
    """

    name: str
    element_type: ElementType
    elements: int
    mutable: bool = False
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """A number of a type; floats of any width are exact Python floats."""

    type: ElementType
    value: bool | int | float | complex


@dataclass(frozen=True, slots=True)
class Variable:
    """A named value; an INDEX one knows its bounds, both included."""

    type: ElementType
    name: str
    low: int = -(2**63)
    high: int = 2**63 - 1
    mutable: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    array: Array
    offset: Expr

    @property
    def type(self) -> ElementType:
        return self.array.element_type


@dataclass(frozen=True, slots=True)
class Apply:
    operation: str
    operands: tuple[Expr, ...]
    type: ElementType


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a mutable variable, as an argument of a runtime function."""

    variable: Variable

    @property
    def type(self) -> ElementType:
        return self.variable.type


Expr = Constant | Variable | Load | Apply | Address


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of an element of an array, as an argument of a runtime function."""

    array: Array
    offset: Expr


@dataclass(frozen=True, slots=True)
class Let:
    variable: Variable
    value: Expr


@dataclass(frozen=True, slots=True)
class Mutable:
    """A variable that changes; without ``initial`` a runtime function sets it first."""

    variable: Variable
    initial: Expr | None


@dataclass(frozen=True, slots=True)
class Assign:
    variable: Variable
    value: Expr


@dataclass(frozen=True, slots=True)
class LocalArray:
    array: Array


@dataclass(frozen=True, slots=True)
class Store:
    array: Array
    offset: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Loop:
    """``for variable in 0 … extent-1``: ``parallel``, ``lanes`` (vectorised) or ``serial``.

    ``sums`` are mutable float variables to which every iteration adds, in any order.
    """

    variable: Variable
    extent: Expr
    kind: str
    body: tuple[Statement, ...]
    sums: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a runtime function for its effect."""

    function: str
    arguments: tuple[Expr | Pointer, ...]


Statement = Let | Mutable | Assign | LocalArray | Store | Loop | If | Call


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function of arrays: ``inputs`` are only read, ``outputs`` and ``scratch`` are written.
    ``tables`` are the values of the last inputs: constants that the program brings along."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    scratch: tuple[Array, ...]
    body: tuple[Statement, ...]
    uses_seed: bool = False
    tables: tuple[np.ndarray, ...] = ()


def operands(expression: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside one."""
    match expression:
        case Load(_, offset):
            return (offset,)
        case Apply(_, inner, _):
            return inner
        case _:
            return ()


def expressions(statement: Statement) -> Iterator[Expr]:
    """Those of a statement itself, not of the statements inside."""
    match statement:
        case Let(_, value) | Assign(_, value):
            yield value
        case Mutable(_, initial):
            if initial is not None:
                yield initial
        case Store(_, offset, value):
            yield from (offset, value)
        case Loop(_, extent, _, _, _):
            yield extent
        case If(condition, _, _):
            yield condition
        case Call(_, arguments):
            for argument in arguments:
                yield argument.offset if isinstance(argument, Pointer) else argument
        case _:
            return


def variables(expression: Expr) -> Iterator[str]:
    """The names of the variables in an expression, each as often as it is used."""
    if isinstance(expression, Variable):
        yield expression.name
    for inner in operands(expression):
        yield from variables(inner)

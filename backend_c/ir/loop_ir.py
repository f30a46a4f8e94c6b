"""The loop IR: a small typed language of loops, lets and stores.

    expression := Constant | Variable | Load | Apply(operation, expressions)
    statement  := Let | Mutable | Assign | LocalArray | Store | Loop | If | Call
    kernel     := Kernel(parameters, body)

Everything a kernel computes is one of these; :mod:`backend_c.render.statements` prints them. An
operation is a name of HLO's own (``add``, ``divide``, ``shift-left``) on operands of one type,
``convert`` and ``bitcast``, or the name of an elementary function. Expressions of type INDEX are
built by :mod:`backend_c.ir.index`, which folds them. All but kernels are NamedTuples: of a kernel,
thousands are made, hashed and compared, which dataclasses do in several times the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hlo.types import ElementType

INDEX = ElementType("index", 64, "signed", np.dtype(np.int64))
# The superaccumulators of runtime/hlo_exact_sum.h: for f32 and narrower, and for f64.
ACCUMULATOR = ElementType("accumulator", 0, "opaque", None)
ACCUMULATOR_F64 = ElementType("accumulator_f64", 0, "opaque", None)
SEED = ElementType("seed", 0, "opaque", None)  # the random state of a run, runtime/hlo_random.h


class Array(NamedTuple):
    """A block of elements that a kernel reads or writes, by its name in the kernel.

    ``mutable`` arrays are written by the kernel that reads them: their loads stay where they are.
    A *view* reads the bytes of an array of elements of the type ``memory`` as its own elements.
    """

    name: str
    element_type: ElementType
    elements: int
    mutable: bool = False
    is_local: bool = False
    memory: ElementType | None = None


class Constant(NamedTuple):
    """A number of a type; floats of any width are exact Python floats. -0 is not 0."""

    type: ElementType
    value: bool | int | float | complex

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Constant)
            and self.type is other.type
            and self.value == other.value
            and repr(self.value) == repr(other.value)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)


class Variable(NamedTuple):
    """A named value; an INDEX one knows its bounds, both included."""

    type: ElementType
    name: str
    low: int = -(2**63)
    high: int = 2**63 - 1
    mutable: bool = False


class Load(NamedTuple):
    array: Array
    offset: Expr

    @property
    def type(self) -> ElementType:
        return self.array.element_type


class Apply(NamedTuple):
    operation: str
    operands: tuple[Expr, ...]
    type: ElementType


class Address(NamedTuple):
    """The address of a mutable variable, as an argument of a runtime function."""

    variable: Variable

    @property
    def type(self) -> ElementType:
        return self.variable.type


Expr = Constant | Variable | Load | Apply | Address


class Pointer(NamedTuple):
    """The address of an element of an array, as an argument of a runtime function."""

    array: Array
    offset: Expr


class Let(NamedTuple):
    variable: Variable
    value: Expr


class Mutable(NamedTuple):
    """A variable that changes; without ``initial`` a runtime function sets it first."""

    variable: Variable
    initial: Expr | None


class Assign(NamedTuple):
    variable: Variable
    value: Expr


class LocalArray(NamedTuple):
    array: Array


class Store(NamedTuple):
    array: Array
    offset: Expr
    value: Expr


class Loop(NamedTuple):
    """``for variable in 0 … extent-1``: ``parallel``, ``lanes`` (vectorised) or ``serial``.

    ``sums`` are mutable float variables to which every iteration adds, in any order.
    """

    variable: Variable
    extent: Expr
    kind: str
    body: tuple[Statement, ...]
    sums: tuple[Variable, ...] = ()


class If(NamedTuple):
    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


class Call(NamedTuple):
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


def parts(expression: Expr) -> Iterator[Expr]:
    """An expression and all that are in it."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        yield part
        kind = type(part)
        if kind is Apply:
            waiting += part.operands  # type: ignore[union-attr]
        elif kind is Load:
            waiting.append(part.offset)  # type: ignore[union-attr]


def variables(expression: Expr) -> Iterator[str]:
    """The names of the variables in an expression, each as often as it is used."""
    return (part.name for part in parts(expression) if type(part) is Variable)


def is_mutable(part: Expr) -> bool:
    """Whether what a part of an expression gives, but for the parts in it, changes with time."""
    kind = type(part)
    if kind is Load:
        return part.array.mutable  # type: ignore[union-attr]
    return kind is Address or (kind is Variable and part.mutable)  # type: ignore[union-attr]

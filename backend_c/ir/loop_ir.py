"""Define the loop IR: a small typed language of loops, lets and stores.

    expression := Constant | Variable | Load | Apply(operation, expressions) | Address
    statement  := Let | Mutable | Assign | LocalArray | Store | Loop | If | Call | Barrier
    kernel     := Kernel(parameters, body)

Everything that a kernel computes is one of these; :mod:`backend_c.render.statements` prints them.
An operation is a name of HLO's own (``add``, ``divide``, ``shift-left``) on operands of one type,
``convert`` and ``bitcast``, the name of an elementary function, or one that
:mod:`backend_c.render.operations` lists. Expressions of type INDEX are built by
:mod:`backend_c.ir.index`, which folds them.

All but kernels are NamedTuples: thousands are made, hashed and compared per kernel (for common
subexpressions), which dataclasses do in several times the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from backend_c.ir.settings import Numerics
from hlo.types import ElementType

INDEX = ElementType("index", 64, "signed", np.dtype(np.int64))
# What rendering makes of it in kernels whose indices need no more bits.
NARROW_INDEX = ElementType("narrow_index", 32, "signed", np.dtype(np.int32))
INDICES = (INDEX, NARROW_INDEX)
# Opaque types are C structs that are only passed by address. The superaccumulators of
# runtime/hlo_exact_sum.h: for f32 and narrower addends, and for f64.
ACCUMULATOR = ElementType("accumulator", 0, "opaque", None)
ACCUMULATOR_F64 = ElementType("accumulator_f64", 0, "opaque", None)
# Arithmetic of pred is Boolean algebra.
BOOLEAN = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}
SEED = ElementType("seed", 0, "opaque", None)  # the random state of a run, runtime/hlo_random.h


class Array(NamedTuple):
    """Represent an array that a kernel reads or writes, by its name in the kernel.

    ``mutable`` arrays are written by the kernel that reads them: their loads are neither moved nor
    merged. ``is_local`` arrays are on the stack of each thread, or in memory that the threads of a
    CUDA block share (``is_shared``). An array with ``memory`` is a *view*: it reads the bytes of an
    array of that element type as elements of its own. A ``is_wide`` array has its elements as
    registers hold them: floats narrower than f32 as f32.
    """

    name: str
    element_type: ElementType
    elements: int
    mutable: bool = False
    is_local: bool = False
    memory: ElementType | None = None
    is_shared: bool = False
    is_wide: bool = False


class Constant(NamedTuple):
    """Represent a number of a type; floats of any width are exact Python floats.

    -0 and 0 are different constants, though Python calls them equal.
    """

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
        # Equal constants have equal hashes: those that only their texts tell apart collide, which
        # is allowed.
        return tuple.__hash__(self)


class Variable(NamedTuple):
    """Represent a named value; an INDEX variable has bounds, both inclusive."""

    type: ElementType
    name: str
    low: int = -(2**63)
    high: int = 2**63 - 1
    mutable: bool = False


class Load(NamedTuple):
    """Read an element of an array."""

    array: Array
    offset: Expr

    @property
    def type(self) -> ElementType:
        return self.array.element_type


class Apply(NamedTuple):
    """Apply an operation to operands; ``type`` is that of the result."""

    operation: str
    operands: tuple[Expr, ...]
    type: ElementType


class Address(NamedTuple):
    """Take the address of a mutable variable, as an argument of a runtime function."""

    variable: Variable

    @property
    def type(self) -> ElementType:
        return self.variable.type


Expr = Constant | Variable | Load | Apply | Address


class Pointer(NamedTuple):
    """Take the address of an element of an array, as an argument of a runtime function."""

    array: Array
    offset: Expr


class Let(NamedTuple):
    """Bind a value to a name, once."""

    variable: Variable
    value: Expr


class Mutable(NamedTuple):
    """Declare a mutable variable; without ``initial`` a runtime function initialises it."""

    variable: Variable
    initial: Expr | None


class Assign(NamedTuple):
    """Set a mutable variable."""

    variable: Variable
    value: Expr


class LocalArray(NamedTuple):
    """Declare an array on the stack."""

    array: Array


class Store(NamedTuple):
    """Write an element of an array."""

    array: Array
    offset: Expr
    value: Expr


class Loop(NamedTuple):
    """Run ``body`` for ``variable`` in 0 … extent-1.

    ``kind`` is "parallel" (over threads), "lanes" (vectorised), "parallel lanes", "independent"
    (one after the other on a processor, as "lanes" on a GPU) or "serial".
    Iterations of all but serial loops must be independent, except that each may combine the mutable
    variables ``sums`` with values of its own by ``operator`` (+ * max min & | ^), in any order.

    Kernels that are written for blocks of threads (``Settings.has_blocks``) say who does what:
    iterations of a loop of kind "blocks", the outermost, are those of blocks, all of whose threads
    run the body; inside, those of a loop of kind "threads" are shared by them. "warps" is the same
    of blocks whose warps are whole. A loop of kind "launches", outside of all others, makes its
    iterations one after the other, each of its loops by all blocks. Barriers stand where the kernel
    puts them. ``threads``: the block size that the body is made for; more find no work, fewer take
    several turns.
    """

    variable: Variable
    extent: Expr
    kind: str
    body: tuple[Statement, ...]
    sums: tuple[Variable, ...] = ()
    operator: str = "+"
    threads: int = 0


class If(NamedTuple):
    """Run one of two blocks, by a condition."""

    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


class Call(NamedTuple):
    """Call a runtime function for its effect."""

    function: str
    arguments: tuple[Expr | Pointer, ...]


class Barrier(NamedTuple):
    """Synchronise the threads of a block: behind it each sees what the others wrote before it."""

    threads: str = "block"


Statement = Let | Mutable | Assign | LocalArray | Store | Loop | If | Call | Barrier


class Computed(NamedTuple):
    """Identify an instruction that a kernel computes, for explanations.

    ``number`` is its place in the kernel's own computation, or in ``computation``, which that
    applies per element; ``launch`` is its launch's number among those that were merged into the
    kernel.
    """

    number: int
    computation: str = ""
    launch: int = 0


Origins = Mapping[str, tuple[Computed, ...]]  # what names in a kernel are for


@dataclass(frozen=True, slots=True)
class Kernel:
    """Represent a function of arrays.

    ``inputs`` are only read, ``outputs`` and ``scratch`` are written, no two of them overlap.
    ``numerics`` chooses the functions that elementary operations are rendered as.
    ``kind`` is its form, for explanations: ``map``, ``rows``, the opcode of a hero.
    ``tables`` are the values of the last inputs: constants that the program brings along.
    ``uses_seed``: the random state of the run is one more argument.
    ``origins`` maps names in the body to the instructions they compute, for explanations.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    scratch: tuple[Array, ...]
    body: tuple[Statement, ...]
    numerics: Numerics = Numerics.EXACT
    uses_seed: bool = False
    tables: tuple[np.ndarray, ...] = ()
    kind: str = ""
    origins: Origins = field(default_factory=dict, compare=False)

    @property
    def is_plain(self) -> bool:
        """Return whether it has inputs and outputs only: no scratch, tables or random state."""
        return not (self.scratch or self.tables or self.uses_seed)


def inside(statement: Statement) -> tuple[Statement, ...]:
    """Return the statements directly inside a loop or an ``if``."""
    match statement:
        case Loop():
            return statement.body
        case If(_, then, otherwise):
            return (*then, *otherwise)
        case _:
            return ()


def every(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Yield all statements, each before those inside it."""
    for statement in statements:
        yield statement
        yield from every(inside(statement))


def operands(expression: Expr) -> tuple[Expr, ...]:
    """Return the direct subexpressions of an expression."""
    match expression:
        case Load(_, offset):
            return (offset,)
        case Apply(_, inner, _):
            return inner
        case _:
            return ()


def expressions(statement: Statement) -> Iterator[Expr]:
    """Yield the expressions of a statement itself, not those of the statements inside it."""
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


def subexpressions(expression: Expr) -> Iterator[Expr]:
    """Yield an expression and all its subexpressions."""
    # A stack and comparisons of types, not recursion and match, for speed: this is the innermost
    # loop of code generation.
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        yield part
        kind = type(part)
        if kind is Apply:
            waiting += part.operands  # type: ignore[union-attr]
        elif kind is Load:
            waiting.append(part.offset)  # type: ignore[union-attr]


def parts(statements: Iterable[Statement]) -> Iterator[Expr]:
    """Yield all subexpressions of the given statements, not of statements inside them."""
    for statement in statements:
        for expression in expressions(statement):
            yield from subexpressions(expression)


def may_run_twice(body: Sequence[Statement]) -> bool:
    """Return whether statements are idempotent: lets and stores that load nothing they store."""
    if not all(isinstance(statement, Let | Store) for statement in body):
        return False
    stored = {statement.array.name for statement in body if isinstance(statement, Store)}
    return not any(isinstance(part, Load) and part.array.name in stored for part in parts(body))


def variables(expression: Expr) -> Iterator[str]:
    """Yield the names of variables in an expression, once for each use."""
    return (part.name for part in subexpressions(expression) if type(part) is Variable)


def is_mutable(part: Expr) -> bool:
    """Return whether a node's value, its subexpressions aside, can change within a kernel."""
    kind = type(part)
    if kind is Load:
        return part.array.mutable  # type: ignore[union-attr]
    return kind is Address or (kind is Variable and part.mutable)  # type: ignore[union-attr]

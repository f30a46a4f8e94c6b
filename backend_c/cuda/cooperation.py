"""Distribute the work on one row, or of one kernel, over the threads of a block.

Statements outside of loops in lanes are executed by all threads, to the same values; loops in lanes
are shared by the threads; what one thread adds up is combined with what the others did, to a value
that all of them get; thread 0 stores for all. Arrays on the stack that lanes write are in shared
memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backend_c.cuda.barriers import BLOCK, Barriers
from backend_c.cuda.lines import in_lines
from backend_c.cuda.walks import changed, declared, pointers, reads, renamed
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Assign,
    Call,
    Constant,
    If,
    Kernel,
    LocalArray,
    Loop,
    Mutable,
    Statement,
    Store,
    every,
    inside,
)
from backend_c.ir.loop_rewriting import with_blocks
from backend_c.ir.scope import apply
from hlo.types import PRED, ElementType

_WARP = 32  # loops of fewer iterations leave threads of every block idle
_MOST_SHARED = 40 << 10  # bytes: a block has 48 KiB, of which some are the runtime's
_NAMES = {
    "+": "add",
    "*": "multiply",
    "max": "maximum",
    "min": "minimum",
    "&": "and",
    "|": "or",
    "^": "xor",
}
_COMBINED = ("f32", "f64", "s32", "u32", "s64", "u64")  # the types of runtime/hlo_block.h


class CannotShareError(Exception):
    """Raised for statements that the threads of a block cannot share."""


def row_by_block(loop: Loop, kernel: Kernel) -> Loop | None:
    """Distribute a loop over independent rows, a block for each; None if that does not pay.

    It does if threads share all the work of a row but what is done rarely.
    """
    if not _pays(loop.body) or not all(map(_is_shared, loop.body)):
        return None
    try:
        sharing = _Sharing(loop.body, kernel)
        body = sharing.barriers.in_rows(sharing.statements(loop.body))
    except CannotShareError:
        return None
    return loop._replace(kind="parallel", body=body)


def by_one_block(kernel: Kernel) -> tuple[Statement, ...] | None:
    """Distribute a kernel over the threads of one block; return its body, None if it does not
    pay."""
    if not _pays(kernel.body):
        return None
    try:
        sharing = _Sharing(kernel.body, kernel)
        return sharing.barriers.in_block(sharing.statements(kernel.body))
    except CannotShareError:
        return None


def _is_lanes(statement: Statement) -> bool:
    """Return whether a statement is a loop over independent iterations that threads share."""
    if not isinstance(statement, Loop) or statement.kind == "serial":
        return False
    # Of a loop around loops in lanes, those are shared.
    return "lanes" in statement.kind or not any(map(_is_lanes, every(statement.body)))


def _lanes(statements: Sequence[Statement]) -> Iterator[Loop]:
    """Yield the outermost loops that threads of a block share."""
    for statement in statements:
        if isinstance(statement, Loop) and _is_lanes(statement):
            yield statement
        else:
            yield from _lanes(inside(statement))


def _pays(statements: Sequence[Statement]) -> bool:
    """Return whether statements have a shared loop with iterations enough for a warp."""
    return any(ix.bounds(loop.extent)[1] >= _WARP for loop in _lanes(statements))


def _is_shared(statement: Statement) -> bool:
    """Return whether all long loops in a statement are shared by the threads.

    Branches do not count, as they are taken rarely: sums whose rounding is in doubt.
    """
    if not isinstance(statement, Loop) or _is_lanes(statement):
        return True
    return any(_lanes(statement.body)) and all(map(_is_shared, statement.body))


class _Sharing:
    """Distribute the statements of a kernel, or of one of its loops, over the threads of a
    block."""

    def __init__(self, body: Sequence[Statement], kernel: Kernel) -> None:
        written = {array.name for array in (*kernel.outputs, *kernel.scratch)}
        local = [s.array for s in self._alike(body) if isinstance(s, LocalArray)]
        accessed = {name for loop in _lanes(body) for name in _arrays(loop.body)}
        self._shared = {array.name: array for array in local if array.name in accessed}
        size = sum(a.elements * a.element_type.numpy.itemsize for a in self._shared.values())
        if size > _MOST_SHARED:
            raise CannotShareError
        # All threads fill their own copies of these alike.
        self._own = {array.name for array in local} - set(self._shared)
        tracked = frozenset(written | set(self._shared))
        self.barriers = Barriers(tracked, frozenset(self._shared))

    def _alike(self, statements: Sequence[Statement]) -> Iterator[Statement]:
        """Yield the statements that all threads execute uniformly, outside of shared loops."""
        for statement in statements:
            yield statement
            if not _is_lanes(statement):
                yield from self._alike(inside(statement))

    def statements(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements for all threads of a block; raise CannotShareError where that is
        impossible."""
        return tuple(made for one in statements for made in self._statement(one))

    def _statement(self, statement: Statement) -> Iterator[Statement]:
        match statement:
            case LocalArray(array) if array.name in self._shared:
                yield LocalArray(array._replace(is_shared=True))
            case Store(array, _, _) if array.name not in self._own:
                yield If(_IS_FIRST, (statement,))
            case Call():
                yield self._call(statement)
            case Loop() if _is_lanes(statement):
                yield from _shared_loop(statement)
            case _:
                yield serial(with_blocks(statement, self.statements))

    def _call(self, call: Call) -> Call:
        """Return a call that each thread makes itself; raise CannotShareError if it touches
        shared state."""
        names = {pointer.array.name for pointer in pointers(call)}
        # Each thread that calls it would advance the random state of the run once more.
        if call.function.startswith("hlo_seed") or not names <= self._own:
            raise CannotShareError
        return call


_IS_FIRST = apply("compare-EQ", Apply("thread", (), INDEX), ix.constant(0), type=PRED)


def _arrays(statements: Sequence[Statement]) -> Iterator[str]:
    """Yield the arrays that statements access."""
    for statement in every(statements):
        yield from (array.name for array, _ in reads(statement))
        yield from (pointer.array.name for pointer in pointers(statement))
        if isinstance(statement, Store):
            yield statement.array.name


def _shared_loop(loop: Loop) -> Iterator[Statement]:
    """Yield a loop that the threads share, and the reductions of its sums over the block."""
    inner = {declared(one) for one in every(loop.body)}
    sums = {variable.name for variable in loop.sums}
    # Each thread has its own copy of a variable: what only some iterations set would differ.
    if not {name for one in loop.body for name in changed(one)} - inner <= sums:
        raise CannotShareError
    # By the loop's variable, too: another loop beside it may go on with the same sum.
    own = {v.name: v._replace(name=f"{v.name}_{loop.variable.name}") for v in loop.sums}
    for variable in loop.sums:
        if variable.type.name not in _COMBINED or loop.operator not in _NAMES:
            raise CannotShareError
        yield Mutable(own[variable.name], _identity(loop.operator, variable.type))
    body = tuple(renamed(one, own) for one in alone(loop.body))
    yield from in_lines(loop._replace(kind="lanes", body=body, sums=()))
    name = _NAMES[loop.operator]
    for variable in loop.sums:
        parts = Apply(f"{BLOCK}{name}", (own[variable.name],), variable.type)
        yield Assign(variable, apply(name, variable, parts))


def _identity(operator: str, element_type: ElementType) -> Constant:
    """Return the identity of an operator: -0 for sums of floats, as -0 + x is x for every x."""
    if element_type.is_float:
        return Constant(element_type, -0.0 if operator == "+" else 1.0)
    signed = element_type.kind == "signed"
    low = -(2 ** (element_type.bits - 1)) if signed else 0
    high = 2 ** (element_type.bits - signed) - 1
    values = {"*": 1, "max": low, "min": high, "&": -1 if signed else high}
    return Constant(element_type, values.get(operator, 0))


def alone(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Make the loops of statements serial: one thread executes them by itself."""
    return tuple(serial(with_blocks(statement, alone)) for statement in statements)


def serial(statement: Statement) -> Statement:
    """Return a loop with kind "serial", without sums; any other statement unchanged."""
    return statement._replace(kind="serial", sums=()) if isinstance(statement, Loop) else statement

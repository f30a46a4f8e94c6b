"""Where code is written: a stack of open blocks, with names for values.

Every value is bound in the outermost block in which its variables are known, so what does not
change in a loop is computed before it. Binding is by value: the same expression in the same place
has one name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    SEED,
    Apply,
    Array,
    Assign,
    Call,
    Constant,
    Expr,
    If,
    Let,
    Load,
    LocalArray,
    Loop,
    Mutable,
    Pointer,
    Statement,
    Store,
    Variable,
    is_mutable,
    parts,
)
from hlo.types import ElementType, element_type_of


@dataclass(slots=True)
class _Block:
    statements: list[Statement] = field(default_factory=list)
    known: dict[Hashable, Expr] = field(default_factory=dict)


class Scope:
    """The body of one kernel while it is written. What does at least ``grain`` element operations
    is done by several threads."""

    def __init__(self, grain: int) -> None:
        self.grain = grain
        self._blocks = [_Block()]
        self._depth: dict[str, int] = {}  # variables and local arrays by name
        self._names = 0
        self.scratch_arrays: list[Array] = []
        self.tables: list[tuple[Array, np.ndarray]] = []
        self.uses_seed = False

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The finished body; every block but the first must be closed."""
        (block,) = self._blocks
        return tuple(block.statements)

    # Names

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def _depth_of(self, expression: Expr) -> int:
        """The innermost block that an expression needs, or the present one for what changes."""
        depth = self._fixed_depth_of(expression)
        return len(self._blocks) - 1 if depth is None else depth

    def _fixed_depth_of(self, expression: Expr) -> int | None:
        """The innermost block that an expression needs; None if it changes with time."""
        depth, depths = 0, self._depth
        for part in parts(expression):
            if is_mutable(part):
                return None
            if type(part) is Variable:
                depth = max(depth, depths.get(part.name, 0))
        return depth

    def find(self, key: Hashable) -> Expr | None:
        """What :meth:`remember` knows of the key in an open block."""
        for block in reversed(self._blocks):
            if key in block.known:
                return block.known[key]
        return None

    def remember(self, key: Hashable, value: Expr) -> None:
        self._blocks[self._depth_of(value)].known[key] = value

    def bind(self, expression: Expr) -> Expr:
        """A name (or a number) for a value, computed as far out as it can be."""
        if isinstance(expression, Constant) or (
            isinstance(expression, Variable) and not expression.mutable
        ):
            return expression
        known = self.find(expression)
        if known is not None:
            return known
        fixed = self._fixed_depth_of(expression)
        depth = len(self._blocks) - 1 if fixed is None else fixed
        low, high = ix.bounds(expression) if expression.type is INDEX else (-(2**62), 2**62)
        prefix = "n" if expression.type is INDEX else "v"
        variable = Variable(expression.type, self._name(prefix), low, high)
        self._depth[variable.name] = depth
        self._blocks[depth].statements.append(Let(variable, expression))
        if fixed is not None:
            self._blocks[depth].known[expression] = variable
        return variable

    # Statements

    def _emit(self, statement: Statement) -> None:
        self._blocks[-1].statements.append(statement)

    def mutable(self, element_type: ElementType, initial: Expr | None = None) -> Variable:
        variable = Variable(element_type, self._name("m"), mutable=True)
        self._emit(Mutable(variable, initial))
        return variable

    def assign(self, variable: Variable, value: Expr) -> None:
        self._emit(Assign(variable, value))

    def local(self, element_type: ElementType, elements: int) -> Array:
        """An array on the stack, for at most a few kilobytes."""
        array = Array(self._name("t"), element_type, elements, mutable=True, is_local=True)
        self._emit(LocalArray(array))
        return array

    def scratch(self, element_type: ElementType, elements: int, *, frozen: bool = False) -> Array:
        """Workspace for the time of the kernel; ``frozen`` promises it is written before reads
        and that no loop does both."""
        name = f"s{len(self.scratch_arrays)}"
        array = Array(name, element_type, elements, mutable=not frozen)
        self.scratch_arrays.append(array)
        return array

    def table(self, values: np.ndarray) -> Array:
        """Constants that the program brings along, as one more array that the kernel reads."""
        element_type = element_type_of(values.dtype)
        assert element_type is not None, values.dtype
        array = Array(f"c{len(self.tables)}", element_type, values.size)
        self.tables.append((array, values))
        return array

    def seed(self) -> Variable:
        """The random state of the run, for runtime functions."""
        self.uses_seed = True
        return Variable(SEED, "seed")

    def partials(self, element_type: ElementType, elements: int) -> Array:
        """Room for the partial results of one turn: workspace if no loop is around, which the
        threads of the kernel share, else on the stack."""
        if len(self._blocks) == 1:
            return self.scratch(element_type, elements)
        return self.local(element_type, elements)

    def load(self, array: Array, offset: Expr) -> Load:
        return Load(array, offset)

    def store(self, array: Array, offset: Expr, value: Expr) -> None:
        self._emit(Store(array, offset, value))

    def call(self, function: str, *arguments: Expr | Pointer) -> None:
        self._emit(Call(function, arguments))

    @contextmanager
    def loop(
        self, extent: int | Expr, kind: str = "serial", sums: Sequence[Variable] = ()
    ) -> Iterator[Expr]:
        """A loop around what is written inside; an extent of 1 is no loop."""
        end = ix.constant(extent) if isinstance(extent, int) else extent
        if ix.value_of(end) == 1:
            yield ix.constant(0)
            return
        variable = Variable(INDEX, self._name("i"), 0, max(ix.bounds(end)[1] - 1, 0))
        self._depth[variable.name] = len(self._blocks)
        self._blocks.append(_Block())
        yield variable
        body = tuple(self._blocks.pop().statements)
        self._emit(Loop(variable, end, kind, body, tuple(sums)))

    @contextmanager
    def over(
        self, extents: Sequence[int | Expr], sums: Sequence[Variable] = (), first: str = "serial"
    ) -> Iterator[tuple[Expr, ...]]:
        """Nested loops over an index. With ``sums`` the last one runs in lanes; the outermost is
        of the kind ``first``."""
        if not extents:
            yield ()
            return
        kind = first
        if sums and len(extents) == 1:
            kind = "parallel lanes" if first == "parallel" else "lanes"
        with self.loop(extents[0], kind, sums) as outer, self.over(extents[1:], sums) as rest:
            yield (outer, *rest)

    @contextmanager
    def when(self, condition: Expr) -> Iterator[None]:
        self._blocks.append(_Block())
        yield
        body = tuple(self._blocks.pop().statements)
        self._emit(If(condition, body))


def apply(operation: str, *arguments: Expr, type: ElementType | None = None) -> Apply:
    """An operation; its type is that of its first operand unless given."""
    return Apply(operation, arguments, type or arguments[0].type)

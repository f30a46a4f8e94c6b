"""Build statements in nested open blocks, hoisting every value as far out as it is loop-invariant.

A value is bound in the outermost block in which all its variables are known (loop-invariant code
motion, while the code is generated), and an expression that was bound in an open block is not bound
again (common subexpression elimination, by value numbering: expressions are keys).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir.block import Block, Written
from backend_c.ir.bound_divisions import folded, with_definitions
from backend_c.ir.gpu import LARGEST_BLOCK
from backend_c.ir.loop_ir import (
    INDEX,
    SEED,
    Apply,
    Array,
    Assign,
    Barrier,
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
    subexpressions,
)
from backend_c.ir.names import Names
from backend_c.ir.settings import Settings
from hlo.errors import Unsupported
from hlo.types import ElementType, element_type_of

_MOST_LOCAL = 1 << 14  # bytes of an array on the stack: dozens of them fit the smallest of stacks


class Scope:
    """Build the body of one kernel by the settings of a compilation.

    ``is_flat``: loops over neighbouring dimensions are collapsed, which is best where no index then
    needs a division.
    """

    def __init__(self, settings: Settings, *, is_flat: bool = True) -> None:
        self.settings, self.is_flat = settings, is_flat
        self._blocks = [Block()]
        self._depth: dict[str, int] = {}  # variables and local arrays by name
        self._definitions: dict[str, Expr] = {}  # of quotients and remainders by name
        self.names = Names()
        self.scratch_arrays: list[Array] = []
        self.tables: list[tuple[Array, np.ndarray]] = []
        self.uses_seed = False
        self.is_inside_element = False
        self._nearer: Callable[[Load], Load] | None = None

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Return the finished body; every block but the outermost must be closed."""
        (block,) = self._blocks
        return tuple(block.statements)

    # Names

    def _depth_of(self, expression: Expr) -> int:
        """Return the depth of the block to bind a value in; the current one if it can change."""
        depth = self._fixed_depth_of(expression)
        return len(self._blocks) - 1 if depth is None else depth

    def _fixed_depth_of(self, expression: Expr) -> int | None:
        """Return the depth of the outermost block to bind a value in; None if it can change. A load
        that is not provably in bounds stays within the ``if`` around it."""
        depth, depths = 0, self._depth
        for part in subexpressions(expression):
            if is_mutable(part):
                return None
            if type(part) is Variable:
                depth = max(depth, depths.get(part.name, 0))
            elif type(part) is Load and depth < self._innermost_if and not ix.is_inside(part):
                depth = self._innermost_if
        return depth

    @property
    def _innermost_if(self) -> int:
        """Return the depth of the innermost open ``if``; 0 if there is none."""
        found = (depth for depth, block in enumerate(self._blocks) if block.is_conditional)
        return max(found, default=0)

    def find(self, key: Hashable) -> Expr | None:
        """Return the value remembered for a key in an open block, or None."""
        for block in reversed(self._blocks):
            if key in block.values:
                return block.values[key]
        return None

    def remember(self, key: Hashable, value: Expr) -> None:
        """Remember a value for a key while the blocks that it depends on are open."""
        self._blocks[self._depth_of(value)].values[key] = value

    def bind(self, expression: Expr) -> Expr:
        """Return a variable (or a constant) of the value, bound in the outermost block possible."""
        if isinstance(expression, Constant) or (
            isinstance(expression, Variable) and not expression.mutable
        ):
            return expression
        found = self.find(expression)
        if found is not None:
            return found
        fixed = self._fixed_depth_of(expression)
        depth = len(self._blocks) - 1 if fixed is None else fixed
        # A name hides the expression from index arithmetic: its bounds are kept with the name.
        low, high = ix.bounds(expression) if expression.type is INDEX else (-(2**62), 2**62)
        prefix = "n" if expression.type is INDEX else "v"
        is_copy = isinstance(expression, Load) and expression.array.is_local
        name = self.names.fresh(prefix, is_copy=is_copy)
        variable = Variable(expression.type, name, low, high)
        self._depth[variable.name] = depth
        self._definitions.pop(variable.name, None)  # a name that was forgotten is given again
        if expression.type is INDEX and ix.is_quotient(expression):
            self._definitions[variable.name] = with_definitions(expression, self._definitions)
        # An open loop or `if` is appended to the block around it when it closes: what is appended
        # there now comes before it.
        self._blocks[depth].statements.append(Let(variable, expression))
        # A value that can change is not remembered: every use reads it anew.
        if fixed is not None:
            self._blocks[depth].values[expression] = variable
        return variable

    def bounded(self, index: Expr, low: int, high: int) -> Expr:
        """Return a variable with the value of an index, asserted to be in [low, high] wherever it
        is used, though its form does not show that."""
        least, greatest = ix.bounds(index)
        if low <= least and greatest <= high:
            return index
        variable = self.bind(index)
        assert isinstance(variable, Variable), "bounds of a constant are known"
        return variable._replace(low=max(low, least), high=min(high, greatest))

    def folded(self, index: Expr) -> Expr:
        """Return an index with bound parts folded where that removes divisions."""
        return folded(index, self._definitions)

    @contextmanager
    def hoisted(self, *values: Expr) -> Iterator[None]:
        """Redirect what is written inside to the outermost block in which ``values`` are known."""
        depth = max((self._depth_of(value) for value in values), default=0)
        # These are appended as they close, so that what is written meanwhile comes before them.
        inside = self._blocks[depth + 1 :]
        del self._blocks[depth + 1 :]
        yield
        self._blocks += inside

    @contextmanager
    def draft(self, extents: Sequence[int]) -> Iterator[tuple[Expr, ...]]:
        """Open a block that is discarded, to inspect values at a symbolic index; yield that."""
        index = tuple(Variable(INDEX, self.names.fresh("i"), 0, max(n - 1, 0)) for n in extents)
        self._depth.update((variable.name, len(self._blocks)) for variable in index)
        self._blocks.append(Block())
        yield index
        self._blocks.pop()

    @contextmanager
    def inside_element(self) -> Iterator[None]:
        """Write the code of one element inside: loops are serial, and workspace is on the stack."""
        before, self.is_inside_element = self.is_inside_element, True
        yield
        self.is_inside_element = before

    def written(self) -> Written:
        """Return a checkpoint to roll back to by :meth:`forget_after`."""
        sizes = tuple(block.size for block in self._blocks)
        return Written(self.names.given, sizes, len(self.scratch_arrays), len(self.tables))

    def forget_after(self, written: Written) -> None:
        """Roll back to a checkpoint: statements, bound values, arrays and names."""
        self.names.forget_after(written.names)
        del self.scratch_arrays[written.scratch_arrays :], self.tables[written.tables :]
        for block, size in zip(self._blocks, written.blocks, strict=True):
            block.cut(size)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Roll back at the end everything that is written inside."""
        before = self.written()
        yield
        self.forget_after(before)

    def definition(self, value: Expr, kind: type[Apply | Load] = Apply) -> Expr:
        """Return the expression that a value was bound to, or the value itself."""
        for block in self._blocks:
            for expression, bound in block.values.items():
                if bound == value and isinstance(expression, kind):
                    return expression
        return value

    def is_invariant(self, expression: Expr) -> bool:
        """Return whether a value is known outside the innermost block."""
        return self._depth_of(expression) < len(self._blocks) - 1

    @contextmanager
    def loads_through(self, nearer: Callable[[Load], Load]) -> Iterator[None]:
        """Map the loads of array readers by ``nearer`` inside: to a copy of the same element."""
        outside, self._nearer = self._nearer, nearer
        yield
        self._nearer = outside

    def nearest(self, load: Load) -> Load:
        """Return the load from the nearest copy of an element (:meth:`loads_through`)."""
        return load if self._nearer is None else self._nearer(load)

    @property
    def last_statement(self) -> Statement | None:
        """Return the last statement of the innermost open block; None if it is empty."""
        statements = self._blocks[-1].statements
        return statements[-1] if statements else None

    @property
    def is_outermost(self) -> bool:
        """Return whether no block is open but the kernel's body."""
        return len(self._blocks) == 1 and not self.is_inside_element

    @property
    def innermost(self) -> Block:
        """Return the innermost open block."""
        return self._blocks[-1]

    # Statements

    def _emit(self, statement: Statement) -> None:
        """Append a statement to the innermost block."""
        self._blocks[-1].statements.append(statement)

    def mutable(self, element_type: ElementType, initial: Expr | None = None) -> Variable:
        """Declare a mutable variable here."""
        variable = Variable(element_type, self.names.fresh("m"), mutable=True)
        self._emit(Mutable(variable, initial))
        return variable

    def assign(self, variable: Variable, value: Expr) -> None:
        """Set a mutable variable."""
        self._emit(Assign(variable, value))

    def local(self, element_type: ElementType, elements: int, *, is_opaque: bool = True) -> Array:
        """Declare an array on the stack, for at most a few kilobytes.

        One that no function of the runtime sees (not ``is_opaque``) may have its elements as
        registers hold them, where there is room: they need not be converted to be kept. Raises
        Unsupported if one that the text asks for is larger.
        """
        if self.is_inside_element and elements * element_type.numpy.itemsize > _MOST_LOCAL:
            raise Unsupported(
                f"{elements} elements of {element_type} inside a computation that is called per"
                f" element: at most {_MOST_LOCAL} bytes are taken"
            )
        is_wide = self.settings.has_lanes and not is_opaque
        array = Array(self.names.fresh("t"), element_type, elements, True, True, is_wide=is_wide)
        self._emit(LocalArray(array))
        return array

    def shared(self, element_type: ElementType, elements: int) -> Array:
        """Declare an array in memory that the threads of a block share."""
        array = Array(self.names.fresh("t"), element_type, elements, True, True, is_shared=True)
        self._emit(LocalArray(array))
        return array

    def own_thread(self) -> tuple[Expr, Expr]:
        """Return the number of the running thread in its block, and the block's size in threads."""
        found = []
        for operation, low in (("thread", 0), ("threads", 1)):
            value = Apply(operation, (), INDEX)
            variable = Variable(INDEX, self.names.fresh("n"), low, low + LARGEST_BLOCK - 1)
            self._depth[variable.name] = 0
            self._blocks[0].statements.append(Let(variable, value))
            found.append(variable)
        return found[0], found[1]

    def barrier(self) -> None:
        """Emit a barrier for the threads of the block."""
        self._emit(Barrier())

    def scratch(self, element_type: ElementType, elements: int, *, frozen: bool = False) -> Array:
        """Allocate workspace for the time of the kernel.

        ``frozen`` promises that it is written before it is read, and that no loop does both: then
        its loads may be moved and merged as those of inputs.
        """
        if self.is_inside_element:
            return self.local(element_type, elements)
        name = self.names.claim(f"s{len(self.scratch_arrays)}")
        array = Array(name, element_type, elements, mutable=not frozen)
        self.scratch_arrays.append(array)
        return array

    def table(self, values: np.ndarray) -> Array:
        """Add constants to the program, as one more input array of the kernel."""
        element_type = element_type_of(values.dtype)
        assert element_type is not None, values.dtype
        array = Array(f"c{len(self.tables)}", element_type, values.size)
        self.tables.append((array, values))
        return array

    def seed(self) -> Variable:
        """Return the random state of the run, an argument of runtime functions."""
        self.uses_seed = True
        return Variable(SEED, "seed")

    def partials(self, element_type: ElementType, elements: int) -> Array:
        """Allocate partial results: shared workspace outside loops, else the thread's stack."""
        if len(self._blocks) == 1:
            return self.scratch(element_type, elements)
        return self.local(element_type, elements)

    def load(self, array: Array, offset: Expr) -> Load:
        """Build a load."""
        return Load(array, offset)

    def store(self, array: Array, offset: Expr, value: Expr) -> None:
        """Write an element."""
        self._emit(Store(array, offset, value))

    def call(self, function: str, *arguments: Expr | Pointer) -> None:
        """Call a runtime function for its effect."""
        self._emit(Call(function, arguments))

    @contextmanager
    def loop(
        self,
        extent: int | Expr,
        kind: str = "serial",
        sums: Sequence[Variable] = (),
        operator: str = "+",
    ) -> Iterator[Expr]:
        """Open a loop around what is written inside; an extent of 1 makes no loop, except that of
        the threads of a block one does what is inside."""
        end = ix.constant(extent) if isinstance(extent, int) else extent
        if ix.value_of(end) == 1 and kind != "threads":
            yield ix.constant(0)
            return
        if self.is_inside_element:
            kind, sums = "serial", ()
        # The variable's bounds are what index arithmetic folds by.
        variable = Variable(INDEX, self.names.fresh("i"), 0, max(ix.bounds(end)[1] - 1, 0))
        self._depth[variable.name] = len(self._blocks)
        self._blocks.append(Block())
        yield variable
        body = tuple(self._blocks.pop().statements)
        self._emit(Loop(variable, end, kind, body, tuple(sums), operator))

    @contextmanager
    def blocks(self, extent: int, threads: int, kind: str = "blocks") -> Iterator[Expr]:
        """Open a loop over blocks of ``threads`` threads, each of which runs the whole body."""
        variable = Variable(INDEX, self.names.fresh("i"), 0, max(extent - 1, 0))
        self._depth[variable.name] = len(self._blocks)
        self._blocks.append(Block())
        yield variable
        body = tuple(self._blocks.pop().statements)
        self._emit(Loop(variable, ix.constant(extent), kind, body, threads=threads))

    @contextmanager
    def over(
        self, extents: Sequence[int | Expr], sums: Sequence[Variable] = (), first: str = "serial"
    ) -> Iterator[tuple[Expr, ...]]:
        """Open nested loops over an index, the outermost of the kind ``first``.

        With ``sums``, to which the body adds, the innermost loop runs in lanes.
        """
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
        """Open an ``if`` around what is written inside."""
        self._blocks.append(Block(is_conditional=True))
        yield
        body = tuple(self._blocks.pop().statements)
        self._emit(If(condition, body))


def apply(operation: str, *arguments: Expr, type: ElementType | None = None) -> Apply:
    """Build an operation; its type is that of its first operand unless given."""
    return Apply(operation, arguments, type or arguments[0].type)

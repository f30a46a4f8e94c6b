"""Build one kernel: write the computation of a fusion, or of one instruction, as loops.

The walker that evaluates whole arrays evaluates readers (:class:`backend_c.ir.element.Element`)
here: applying an elemental instruction composes a reader, applying the hero (the root, if it is not
elemental) writes its loop nest around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.bounded_elements import as_declared, with_agreed_sizes
from backend_c.ir.element import (
    Element,
    Patch,
    Value,
    Writer,
    boxes_beside,
    claimed,
    memoised,
)
from backend_c.ir.loop_ir import (
    Array,
    Computed,
    Expr,
    Kernel,
    Let,
    Loop,
    Origins,
    Statement,
    Store,
    every,
    expressions,
)
from backend_c.ir.row_cache import kept_in_row, kept_in_rows
from backend_c.ir.scope import Scope
from backend_c.ir.settings import Settings
from backend_c.ir.strip import Strip
from backend_c.kernels.parts.transposed_map import TRANSPOSING, write_transposed
from backend_c.lower.columns import Columns
from backend_c.lower.concatenated_parts import write_parts
from backend_c.lower.epilogue import InnerHero
from backend_c.lower.kernel_arguments import (
    inputs_of,
    memoised_value,
    reader,
    with_sizes,
    writer_of,
)
from backend_c.lower.kernel_rewriting import rewritten
from backend_c.lower.loops_in_elements import Chains, element_statements, is_nested
from backend_c.lower.plan import Buffer
from backend_c.lower.plan import Value as BufferValue
from backend_c.lower.row_loops import write_rows
from backend_c.lower.strips import (
    arguments_of,
    kept_singles,
    memory_of,
    rows_by_name,
    strip_of,
    write_strips,
)
from backend_c.lower.views import span
from hlo.module import Computation, Instruction, Module
from hlo.passes.row_loops.rows import Kind, Rows
from hlo.types import ArrayShape, leaves
from hlo.walk import call, function_name, has_own_effect, keywords, live, op_of, walk

_SHARED_ROW = 1024  # elements of a row that keep the threads of a block busy


class KernelBuilder:
    """Write the kernel of ``computation`` applied to buffers."""

    def __init__(
        self,
        module: Module,
        kernel_columns: Columns,
        computation: Computation,
        settings: Settings,
        *,
        is_patch: bool = False,
    ) -> None:
        self._module, self._columns, self._computation = module, kernel_columns, computation
        self._settings, self._is_patch = settings, is_patch
        self._rows_by_name = rows_by_name(computation, settings)
        self._read_by_rows: list[Element] = []
        self._strip: Strip | None = None
        self._is_result_taken = False  # by rows that a strip keeps
        self._inner_hero: InnerHero | None = None
        self._kept: set[str] = set()  # these, and more by a strip
        self._shapes: tuple[ArrayShape, ...] = leaves(computation.root_instruction.shape)
        # One result for each of many short rows, as of distances: the rows are the lanes.
        every = list(self._rows_by_name.values())
        is_short = settings.is_fast and 0 < max((r.length for r in every), default=0) <= nest.FEW
        results = [shape.elements for shape in self._shapes]
        self._has_rows_in_lanes = is_short and results == [every[0].number]
        again = set() if self._has_rows_in_lanes else kept_in_rows(computation, set(every))
        self._read_again: set[str] = again  # elements that several loops over a row read

    def build(
        self, operands: Sequence[BufferValue], outputs: Sequence[Buffer]
    ) -> tuple[Kernel, tuple[Buffer, ...]]:
        """Return the kernel, and the buffers of its inputs in order (its tables follow them)."""
        written = set(outputs) if self._is_patch else set()
        # An operand that is updated in place is read through the array of the result: no two arrays
        # of a kernel overlap.
        inputs = tuple(buffer for buffer in inputs_of(operands) if buffer not in written)
        kernel = self._build_with(operands, inputs, outputs, is_flat=True)
        # One flat loop is best, unless an index in it then takes a division: that cannot be
        # vectorised. So the kernel is written flat, looked at, and written again with split loops
        # if it divides. Of other kernels than maps an outer loop may divide: it does so once for
        # what is inside. Threads of a GPU divide rather than share short rows.
        # A scalar has dims[-1:] == (), which is less than any.
        is_short = all(buffer.shape.dims[-1:] < (_SHARED_ROW,) for buffer in outputs)
        is_by_threads = self._settings.has_blocks and is_short and all(map(_is_map, kernel.body))
        has_rows = self._settings.has_lanes and kernel.kind != "map"
        looked_at = _innermost(kernel.body) if has_rows else kernel.body
        if _has_division(looked_at) and not is_by_threads:
            kernel = self._build_with(operands, inputs, outputs, is_flat=False)
        return kernel, inputs

    def _build_with(
        self,
        operands: Sequence[BufferValue],
        inputs: tuple[Buffer, ...],
        outputs: Sequence[Buffer],
        *,
        is_flat: bool,
    ) -> Kernel:
        """Write the kernel with merged or with split loops."""
        scope = Scope(self._settings, is_flat=is_flat)
        self._read_by_rows.clear()
        self._strip, self._is_result_taken = self._strip_of(scope), False
        self._kept = self._read_again
        if self._strip is not None:
            self._kept = self._kept | kept_singles(self._computation, self._rows)
        arrays = {
            buffer: Array(f"a{n}", buffer.shape.element_type, span(buffer))
            for n, buffer in enumerate(inputs)
        }
        targets = [
            Array(f"r{n}", b.shape.element_type, span(b), mutable=True)
            for n, b in enumerate(with_sizes(outputs))
        ]
        writer = writer_of(scope, outputs, targets)
        readable = {**dict(zip(outputs, targets)), **arrays} if self._is_patch else arrays
        readers = (reader(operand, readable, scope) for operand in operands)
        arguments = [memoised_value(one, scope) for one in readers]
        if self._strip is not None:
            arguments = arguments_of(self._strip, self._computation, arguments)
        result = self._expand(scope, self._computation, arguments, writer)
        kind = self._computation.root_instruction.opcode
        if self._inner_hero is not None:
            kind = self._inner_hero.opcode
            (element,) = _flattened(result)
            if self._is_patch and element.patch is not None:
                firsts = tuple(map(scope.bind, element.patch.firsts))
                writer = writer.window(element.patch.update.shape, firsts)
                element = element.patch.update
            self._inner_hero.write(element, writer, scope)
        elif function_name(kind) not in self._columns.kernels or self._read_by_rows:
            kind = self._map_kind()
            self._write_map(scope, result, writer)
        writer.fill()
        return Kernel(
            (*arrays.values(), *(array for array, _ in scope.tables)),
            tuple(targets),
            tuple(scope.scratch_arrays),
            rewritten(scope.statements, scope.settings),
            scope.settings.numerics,
            scope.uses_seed,
            tuple(values for _, values in scope.tables),
            kind,
            {**scope.names.origins(), **_results(self._computation, targets)},
        )

    @property
    def _rows(self) -> Rows:
        """Return the rows that the kernel runs along."""
        (rows,) = set(self._rows_by_name.values())
        return rows

    def _strip_of(self, scope: Scope) -> Strip | None:
        """Return the strips of a kernel that computes neighbouring rows side by side, or None."""
        if not self._rows_by_name or self._has_rows_in_lanes:
            return None
        return strip_of(scope, self._computation, self._rows, self._read_again)

    def _map_kind(self) -> str:
        """Return the kernel's kind for a fusion without a hero: update, rows or map."""
        if self._is_patch:
            return "update"
        return "rows" if self._rows_by_name else "map"

    def _write_map(self, scope: Scope, result: Value, writer: Writer) -> None:
        """Write the loops of a map; results of equal dims share one."""
        elements = _flattened(result)
        for number, element in enumerate(elements):
            writer.sizes(number, element.sizes)
        # A rough count of operations per element: enough to decide whether threads pay (the grain
        # size).
        cost = len(self._computation.instructions)
        loops = nest.flat if scope.is_flat else nest.split
        by_dims: dict[tuple[int, ...], list[int]] = {}
        for number, element in enumerate(elements):
            by_dims.setdefault(element.shape.dims, []).append(number)
        patch = elements[0].patch if len(elements) == 1 else None
        if self._is_patch:
            _write_patch(scope, patch, writer, cost)
            return
        # A choice at each element takes clamped indices: no lanes. So what is beside the window, or
        # the whole array, then the window.
        if patch is not None and patch.operand.array is not None:
            for firsts, dims in boxes_beside(patch):
                with loops(scope, dims, 1) as index:
                    there = tuple(map(ix.add, firsts, index))
                    writer(there, (patch.operand.at(*there),))
            _write_patch(scope, patch, writer, cost)
            return
        if self._rows_by_name:
            self._write_rows(scope, elements, writer, cost)
            return
        for dims, numbers in by_dims.items():
            if 0 not in dims:
                self._write_loops(scope, elements, numbers, writer)

    def _write_loops(
        self, scope: Scope, elements: Sequence[Element], numbers: list[int], writer: Writer
    ) -> None:
        """Write the loops over results of equal dims."""
        instructions = self._computation.instructions
        may_transpose = not writer.within and any(i.opcode in TRANSPOSING for i in instructions)
        if may_transpose and write_transposed(scope, elements, writer, numbers):
            return

        def write(index: tuple[Expr, ...]) -> None:
            values = tuple(elements[number].at(*index) for number in numbers)
            writer.some(numbers, index, values)

        cost = len(instructions)
        if len(elements) > 1 or not write_parts(scope, self._computation, cost, write):
            nest.write_map(scope, elements[numbers[0]].shape.dims, cost, write)

    def _write_rows(
        self, scope: Scope, elements: Sequence[Element], writer: Writer, cost: int
    ) -> None:
        """Write the loops of a kernel that runs along rows."""
        if self._strip is not None:
            write_strips(self._strip, elements, writer, cost)
        elif self._has_rows_in_lanes:
            loops = nest.flat if scope.is_flat else nest.split
            with loops(scope, elements[0].shape.dims, self._rows.length * cost) as index:
                writer(index, (elements[0].at(*index),))
        else:
            write_rows(scope, self._rows, self._read_by_rows, elements, writer, cost)

    def _expand(
        self,
        scope: Scope,
        computation: Computation,
        arguments: Sequence[Value],
        writer: Writer | None,
    ) -> Value:
        """Return the readers of a computation's root; () for a hero, whose loops are written."""
        # Effects of a computation per element are needed, so that they are refused, not lost.
        needed = live(computation, lambda one: writer is None and has_own_effect(one))
        order = [i for i in computation.instructions if i.name in needed]
        shapes = {i.name: i.shape for i in order}
        numbers = {i.name: number for number, i in enumerate(computation.instructions)}
        inner_name = "" if writer is not None else computation.name
        chains = Chains(scope)

        def enter(inner: Computation) -> Callable[..., Value]:
            return lambda *values: self._expand(scope, inner, values, None)

        def run(instruction: Instruction, operands: list[Value]) -> Value:
            computed = Computed(numbers[instruction.name], inner_name)
            with scope.names.computing(computed):
                value = applied(instruction, operands, computed)
                return value if writer is not None else chains.cut(instruction, value)

        def applied(instruction: Instruction, operands: list[Value], computed: Computed) -> Value:
            attributes = keywords(self._module, instruction, enter)
            name = function_name(instruction.opcode)
            operand_shapes = [shapes[operand] for operand in instruction.operands]
            operands = with_agreed_sizes(instruction, operand_shapes, operands, scope)
            if writer is None and is_nested(self._columns, instruction):
                return element_statements(
                    self._columns, instruction, operands, attributes, operand_shapes, scope
                )
            hero = self._columns.kernels.get(name)
            if hero is not None:

                def written(write: Writer | Strip | None) -> Value:
                    given = {**attributes, "write": write, "block": scope}
                    with scope.names.computing(computed):
                        return call(hero, instruction, operands, given, operand_shapes)

                return self._hero(instruction, written, writer, scope, computed)
            op = self._columns.elemental.get(name) or op_of(
                self._columns.plumbing, instruction, "the C backend"
            )
            result = call(op, instruction, operands, attributes, operand_shapes)
            if not isinstance(result, Element):
                return result
            assert isinstance(instruction.shape, ArrayShape)
            # Memoised per instruction: a value that several readers use at one index is computed
            # once.
            result = as_declared(result, instruction.shape)
            if writer is not None and instruction.name in self._kept:
                result = self._kept_in_rows(result, scope, writer)
            return memoised(result, scope, computed)

        return walk(computation, arguments, run, order)

    def _kept_in_rows(self, result: Element, scope: Scope, writer: Writer) -> Element:
        """Return a reader that keeps elements which several loops read."""
        strip = self._strip
        if strip is None:
            return kept_in_row(result, self._rows.length, scope)
        if self._rows.kind(result.shape) is Kind.SINGLE:
            return strip.kept_single(result)
        memory = memory_of(strip, result, writer, is_taken=self._is_result_taken)
        self._is_result_taken |= memory in writer.arrays
        return strip.kept_whole(result, memory)

    def _hero(
        self,
        instruction: Instruction,
        written: Callable[[Writer | Strip | None], Value],
        writer: Writer | None,
        scope: Scope,
        computed: Computed,
    ) -> Value:
        """Write a hero's loop nest if it is the root; else return a reader of its elements.

        A reduction along rows is written where its row is read, a contraction before its epilogue,
        when the root is known (:class:`InnerHero`).
        """
        if instruction.name in self._rows_by_name:
            reader = written(self._strip)
            assert isinstance(reader, Element)
            self._read_by_rows.append(claimed(reader, scope, computed))
            return self._read_by_rows[-1]
        if instruction.name != self._computation.root:
            assert isinstance(instruction.shape, ArrayShape)
            self._inner_hero = InnerHero(instruction.opcode, instruction.shape, written)
            return self._inner_hero.reader()
        written(writer)
        return ()


def _write_patch(scope: Scope, patch: Patch | None, writer: Writer, cost: int) -> None:
    """Write the window of a patch over an array that has the other elements already."""
    if patch is None or not patch.update.shape.elements:
        return  # an empty window
    loops = nest.flat if scope.is_flat else nest.split
    with loops(scope, patch.update.shape.dims, cost) as index:
        there = tuple(scope.bind(ix.add(*pair)) for pair in zip(patch.firsts, index, strict=True))
        writer(there, (patch.update.at(*index),))


def _results(computation: Computation, targets: Sequence[Array]) -> Origins:
    """Return for each result array the instruction it holds: the root, or an operand of a tuple."""
    numbers = {i.name: number for number, i in enumerate(computation.instructions)}
    root = computation.root_instruction
    names = root.operands if root.opcode == "tuple" else (root.name,) * len(targets)
    own = names if len(names) == len(targets) else (root.name,) * len(targets)
    return {t.name: (Computed(numbers[n]),) for t, n in zip(targets, own, strict=True)}


def _flattened(value: Value) -> list[Element]:
    """Return the readers in a value in order."""
    if isinstance(value, Element):
        return [value]
    return [element for part in value for element in _flattened(part)]


def _is_map(statement: Statement) -> bool:
    """Return whether a statement is a let, or a loop of only lets and stores, as a map has them."""
    if not isinstance(statement, Loop):
        return isinstance(statement, Let)
    return all(isinstance(one, Let | Store) for one in statement.body)


def _innermost(body: Sequence[Statement]) -> list[Statement]:
    """Return the statements of loops in lanes and of loops without a loop inside."""
    found: list[Statement] = []
    for loop in (one for one in every(body) if isinstance(one, Loop)):
        if "lanes" in loop.kind or not any(isinstance(one, Loop) for one in every(loop.body)):
            found += loop.body
    return found


def _has_division(body: Sequence[Statement]) -> bool:
    """Return whether an index expression in statements divides (``/`` or ``%``)."""
    return any(ix.has_division(one) for statement in every(body) for one in expressions(statement))

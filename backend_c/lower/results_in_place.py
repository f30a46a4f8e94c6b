"""Let results overwrite operands that are dead after the kernel, to save memory.

A kernel that reads each element of an operand only right before it writes its result there, as
maps do, and contractions of the addend in their epilogue (a residual), needs no memory of its own
for its result. It then has one array in place of two, as C assumes of two pointers that what is
written through one is not read through the other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    Array,
    Call,
    Expr,
    If,
    Kernel,
    Let,
    Load,
    Loop,
    Mutable,
    Pointer,
    Statement,
    Store,
    every,
    inside,
    parts,
    variables,
)
from backend_c.ir.renaming import Renaming
from backend_c.lower.buffers import exchanged, lifetimes, workspace_lifetimes
from backend_c.lower.plan import (
    Branch,
    Buffer,
    Copy,
    Exchange,
    Launch,
    Multiply,
    Plan,
    Repeat,
    Step,
    buffers_of,
    in_order,
    map_steps,
    with_launched_kernels,
    with_steps,
)
from backend_c.lower.views import with_views
from hlo.passes.epilogues import WRITTEN_ONCE


def with_coalesced_copies(plan: Plan) -> Plan:
    """Coalesce copies: compute values directly in the buffers they are copied to, where legal."""
    return _changed(plan, has_results_in_place=False)


def with_results_in_place(plan: Plan) -> Plan:
    """Let results overwrite dead operands, and coalesce copies."""
    return _changed(plan, has_results_in_place=True)


def _changed(plan: Plan, *, has_results_in_place: bool) -> Plan:
    """Coalesce copies, and on request results with operands; rewrite kernels and steps."""
    search = _Search(plan)
    for launch in search.launches if has_results_in_place else ():
        search.visit(launch)
    search.coalesce(plan.steps)
    kernels = [search.kernels.get(n, kernel) for n, kernel in enumerate(plan.kernels)]
    steps = map_steps(plan.steps, search.changed)
    return with_launched_kernels(replace(plan, kernels=kernels, steps=steps))


class _Search:
    """Find pairs of buffers that may be one, launch by launch in the order of the text."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._results = plan, set(plan.results)
        # Views alias parts of other buffers, and exchanges change addresses at run time: neither
        # has the one address that coalescing needs.
        fixed = with_views(plan).union(*exchanged(plan.steps))
        self._ours = workspace_lifetimes(plan).keys() - fixed
        self._lives = lifetimes(plan.steps)
        self._lives |= {b: (self._lives[b][0], math.inf) for b in plan.results if b in self._lives}
        self._results -= fixed
        self._fixed = fixed
        self._places: dict[Buffer, Buffer] = {}  # where buffers are now that are elsewhere
        launches = [step for _, step in in_order(plan.steps) if isinstance(step, Launch)]
        number = Counter(launch.kernel for launch in launches)
        # A kernel that is launched twice cannot be rewritten for one of its launches.
        self.launches = [one for one in launches if number[one.kernel] == len(one.outputs) == 1]
        self._named = Counter(b for _, step in in_order(plan.steps) for b in {*buffers_of(step)})
        self.kernels: dict[int, Kernel] = {}  # those that are changed, by number

    def visit(self, launch: Launch) -> None:
        """Let the result of a launch overwrite the first operand that allows it, if one does."""
        kernel, (result,) = self._plan.kernels[launch.kernel], launch.outputs
        if result not in self._ours | self._results or result in launch.inputs:
            return
        for operand, array in zip(launch.inputs, kernel.inputs, strict=True):
            if self._dies(operand, result):
                changed = written_over(kernel, array)
                if changed is not None:
                    self.kernels[launch.kernel] = changed
                    self._join(operand, result)
                    return

    def _dies(self, operand: Buffer, result: Buffer) -> bool:
        """Return whether an operand's live range ends at the step where the result's begins."""
        if operand not in self._ours:
            return False
        return self._lives[self._at(operand)][1] == self._lives[result][0]

    def _join(self, operand: Buffer, result: Buffer) -> None:
        """Coalesce an operand and a result; in the result's buffer if the program returns it."""
        before = self._at(operand)
        place = result if result in self._results else before
        life = self._lives[before][0], self._lives[result][1]
        self._places |= {before: place, result: place}
        del self._places[place]
        self._lives[place] = life

    def coalesce(self, steps: Sequence[Step]) -> None:
        """Coalesce copies in a list of steps and those inside it."""
        for step in steps:
            with_steps(step, self._coalesced)
        named = [_deeply_named(step) for step in steps]
        for end, step in enumerate(steps):
            if isinstance(step, Copy) and self._is_moved(step, steps[: end + 1], named[: end + 1]):
                self._places[step.source] = step.target

    def _coalesced(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        self.coalesce(steps)
        return steps

    def _is_moved(
        self, copy: Copy, steps: Sequence[Step], named: Sequence[Counter[Buffer]]
    ) -> bool:
        """Return whether a copy, the last of ``steps``, can be coalesced with the launch before.

        Nothing but these steps may name the source, and nothing between launch and copy the target.
        If the launch reads the target, its kernel must allow writing over it.
        """
        source, target = copy.source, copy.target
        begin = next((n for n, names in enumerate(named) if source in names), len(steps) - 1)
        first = steps[begin]
        if not isinstance(first, Launch) or first not in self.launches:
            return False
        is_ours = source in self._ours and target not in self._fixed | {*self._plan.arguments}
        is_free = is_ours and not {source, target} & {*self._places, *self._places.values()}
        is_alone = sum((names[source] for names in named), 0) == self._named[source]
        between = any(target in names for names in named[begin + 1 : -1])
        if not is_free or not is_alone or between or first.outputs != (source,):
            return False
        if target not in first.inputs:
            return True
        kernel = self._plan.kernels[first.kernel]
        arrays = dict(zip(first.inputs, kernel.inputs, strict=True))
        changed = None
        if first.kernel not in self.kernels:
            changed = written_over(kernel, arrays[target])
        if changed is None:
            return False
        self.kernels[first.kernel] = changed
        return True

    def _at(self, buffer: Buffer) -> Buffer:
        """Return the buffer that a buffer was coalesced into, or itself."""
        while buffer in self._places:
            buffer = self._places[buffer]
        return buffer

    def changed(self, step: Step) -> tuple[Step, ...]:
        """Rename a step's buffers to those they were coalesced into; () if nothing is left."""
        at = self._at
        match step:
            case Launch(kernel, inputs, outputs, scratch):
                if kernel in self.kernels and not self.kernels[kernel].body:
                    return ()
                outputs = tuple(map(at, outputs))
                read = [at(buffer) for buffer in inputs]
                if kernel in self.kernels:
                    read = [buffer for buffer in read if buffer not in outputs]
                made = replace(step, inputs=tuple(read), outputs=outputs)
                return (replace(made, scratch=tuple(map(at, scratch))),)
            case Copy(source, target) | Exchange(source, target):
                moved = replace(step, source=at(source), target=at(target))
                return () if moved.source is moved.target else (moved,)
            case Repeat(_, predicate, _):
                return (replace(step, predicate=at(predicate)),)
            case Branch(selector, _):
                return (replace(step, selector=at(selector)),)
            case Multiply():
                raise AssertionError("made of launches for CUDA: backend_c.cuda.phases")


def _deeply_named(step: Step) -> Counter[Buffer]:
    """Count, of a step and those inside it, the steps that name each buffer."""
    return Counter(b for _, inner in in_order((step,)) for b in {*buffers_of(inner)})


def written_over(kernel: Kernel, operand: Array) -> Kernel | None:
    """Return a kernel whose only result overwrites an operand; None if that changes its meaning."""
    (result,) = kernel.outputs
    if (operand.element_type, operand.elements) != (result.element_type, result.elements):
        return None
    if not (_writes_once(kernel, result) and _is_read_where_written(kernel.body, operand, result)):
        return None

    def load(array: Array, offset: Expr) -> Expr:
        return Load(result if array == operand else array, offset)

    body = Renaming(lambda array: array, load).block(kernel.body)
    inputs = tuple(array for array in kernel.inputs if array != operand)
    return replace(kernel, inputs=inputs, body=() if _changes_nothing(body) else body)


def _changes_nothing(body: Sequence[Statement]) -> bool:
    """Return whether statements only store elements where they loaded them (a reshape in place)."""
    return all(
        isinstance(s, Loop) or (isinstance(s, Store) and s.value == Load(s.array, s.offset))
        for s in every(body)
    )


def _writes_once(kernel: Kernel, result: Array) -> bool:
    """Return whether a kernel writes each element of its result once, and reads none."""
    statements = list(every(kernel.body))
    arguments = [a for s in statements if isinstance(s, Call) for a in s.arguments]
    addressed = [a.array.name for a in arguments if isinstance(a, Pointer)]
    read = [load.array.name for s in statements for load in _loads(s)]
    if result.name in (*addressed, *read):
        return False
    if kernel.kind in WRITTEN_ONCE:
        return True
    stores = list(_stores(kernel.body, result, ()))
    if len(stores) != 1:
        return False
    # Each loop around the store tells its elements apart.
    ((store, loops),) = stores
    depends = {s.variable.name: set(variables(s.value)) for s in statements if isinstance(s, Let)}
    found, waiting = set[str](), list(variables(store.offset))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += depends.get(name, ())
    return {loop.variable.name for loop in loops} <= found


def _stores(
    statements: Sequence[Statement], array: Array, loops: tuple[Loop, ...]
) -> Iterator[tuple[Store, tuple[Loop, ...]]]:
    """Yield the stores to an array with the loops around each."""
    for statement in statements:
        if isinstance(statement, Store) and statement.array.name == array.name:
            yield statement, loops
        around = (*loops, statement) if isinstance(statement, Loop) else loops
        yield from _stores(inside(statement), array, around)


def _is_read_where_written(body: Sequence[Statement], operand: Array, result: Array) -> bool:
    """Return whether each load of the operand precedes the store to the same element."""
    for statement in every(body):
        arguments = statement.arguments if isinstance(statement, Call) else ()
        if any(isinstance(a, Pointer) and a.array.name == operand.name for a in arguments):
            return False
        if any(a.array.name == operand.name and a.array != operand for a in _loads(statement)):
            return False
    return _is_read_first(body, operand, result)


def _is_read_first(block: Sequence[Statement], operand: Array, result: Array) -> bool:
    """Return whether a block never loads an element of the operand after storing the result there.

    Loads before the first statement that stores are safe, as are those where the same straight-line
    code stores later.
    """
    is_written = False
    for statement in block:
        loads = (load for inner in every((statement,)) for load in _loads(inner))
        reads = any(load.array.name == operand.name for load in loads)
        writes = next(_stores((statement,), result, ()), None) is not None
        if reads and is_written and not _reads_at_stores(statement, operand, result):
            return False
        if reads and writes and not is_written and not _is_in_place(statement, operand, result):
            return False
        is_written |= writes
    return True


def _is_in_place(statement: Statement, operand: Array, result: Array) -> bool:
    """Return whether a statement that loads the operand and stores the result loads first.

    For a loop that holds if no iteration loads what another one stores, and each loads first.
    """
    if isinstance(statement, If):
        branches = statement.then, statement.otherwise
        return all(_is_read_first(block, operand, result) for block in branches)
    if not isinstance(statement, Loop):
        return True
    if _is_divided(statement, operand, result):
        return _is_read_first(statement.body, operand, result)
    return _reads_at_stores(statement, operand, result)


def _is_divided(loop: Loop, operand: Array, result: Array) -> bool:
    """Return whether the iterations of a loop access disjoint, contiguous parts of the arrays.

    With ``pitch`` the loop variable's stride, all offsets are ``pitch · i`` plus terms that the
    body does not change, plus a remainder within an interval narrower than ``pitch``.
    """
    # Rows of 8, say: r[8 i + j] of a[8 i + k]. Row i meets no other row's elements, whatever is
    # read of it before it is written.
    inner = list(every(loop.body))
    offsets = [load.offset for s in inner for load in _loads(s) if load.array.name == operand.name]
    offsets += [store.offset for store, _ in _stores(loop.body, result, ())]
    named = {s.variable.name for s in inner if isinstance(s, Let | Mutable | Loop)}
    pitch = ix.coefficients(offsets[0]).get(loop.variable, 0)
    places: list[dict[Expr, int]] = []
    ends: list[int] = []
    for offset in offsets:
        terms = {**ix.coefficients(offset)}
        if terms.pop(loop.variable, 0) != pitch:
            return False
        places.append({at: n for at, n in terms.items() if named.isdisjoint(variables(at))})
        moved = [ix.multiply(at, n) for at, n in ((loop.variable, pitch), *places[-1].items())]
        ends += ix.bounds(ix.subtract(offset, ix.add(*moved)))
    return all(place == places[0] for place in places) and max(ends) - min(ends) < pitch


def _reads_at_stores(statement: Statement, operand: Array, result: Array) -> bool:
    """Return whether each load of the operand is followed by a store to the same offset in the same
    straight-line code, at the statement's level or in the body of a loop inside it.
    """
    loops = (s.body for s in every((statement,)) if isinstance(s, Loop))
    return all(_reads_first(block, operand, result) for block in ((statement,), *loops))


def _reads_first(block: Sequence[Statement], operand: Array, result: Array) -> bool:
    """Return whether each load of the operand in straight-line code precedes a store there."""
    written: set[Expr] = set()
    for statement in reversed(list(_straight(block))):
        if isinstance(statement, Store) and statement.array.name == result.name:
            written.add(statement.offset)
        for load in _loads(statement):
            if load.array.name == operand.name and load.offset not in written:
                return False
    return True


def _straight(block: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements of straight-line code: those in branches, too, but not those in loops."""
    for statement in block:
        yield statement
        if isinstance(statement, If):
            yield from _straight(inside(statement))


def _loads(statement: Statement) -> Iterator[Load]:
    """Yield the loads in a statement's own expressions."""
    return (part for part in parts([statement]) if isinstance(part, Load))

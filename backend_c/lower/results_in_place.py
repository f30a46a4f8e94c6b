"""Write results where operands were that nothing needs later.

A kernel that reads each element of an operand only right before it writes its result there, as
maps do, and contractions of what they add to their sums (a residual), needs no memory of its own
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
    """Return a plan in which values are computed where they are copied to, if that is right."""
    return _changed(plan, has_results_in_place=False)


def with_results_in_place(plan: Plan) -> Plan:
    """Return a plan in which results are where operands were, too."""
    return _changed(plan, has_results_in_place=True)


def _changed(plan: Plan, *, has_results_in_place: bool) -> Plan:
    """Return a plan with buffers in one place that were in two."""
    search = _Search(plan)
    for launch in search.launches if has_results_in_place else ():
        search.visit(launch)
    search.coalesce(plan.steps)
    kernels = [search.kernels.get(n, kernel) for n, kernel in enumerate(plan.kernels)]
    steps = map_steps(plan.steps, search.changed)
    return with_launched_kernels(replace(plan, kernels=kernels, steps=steps))


class _Search:
    """Find operands that results may overwrite, launch by launch in the order of the text."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._results = plan, set(plan.results)
        fixed = with_views(plan).union(*exchanged(plan.steps))
        self._ours = workspace_lifetimes(plan).keys() - fixed
        self._lives = lifetimes(plan.steps)
        self._lives |= {b: (self._lives[b][0], math.inf) for b in plan.results if b in self._lives}
        self._results -= fixed
        self._fixed = fixed
        self._places: dict[Buffer, Buffer] = {}  # where buffers are now that are elsewhere
        launches = [step for _, step in in_order(plan.steps) if isinstance(step, Launch)]
        number = Counter(launch.kernel for launch in launches)
        self.launches = [one for one in launches if number[one.kernel] == len(one.outputs) == 1]
        self._named = Counter(b for _, step in in_order(plan.steps) for b in {*buffers_of(step)})
        self.kernels: dict[int, Kernel] = {}  # those that are changed, by number

    def visit(self, launch: Launch) -> None:
        """Let the result of a launch overwrite one of the operands, if it can."""
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
        """Return whether an operand of a launch is needed last where the result is first."""
        if operand not in self._ours:
            return False
        return self._lives[self._at(operand)][1] == self._lives[result][0]

    def _join(self, operand: Buffer, result: Buffer) -> None:
        """Put a result where an operand is; both where a result of the program is, if it is one."""
        before = self._at(operand)
        place = result if result in self._results else before
        life = self._lives[before][0], self._lives[result][1]
        self._places |= {before: place, result: place}
        del self._places[place]
        self._lives[place] = life

    def coalesce(self, steps: Sequence[Step]) -> None:
        """Compute values where they are copied to, in a list of steps and those inside it."""
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
        """Return whether the source of the last of some steps may be in the target from the step on
        that computes it: nothing else names it, and between them nothing names the target."""
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
        """Return where a buffer is now."""
        while buffer in self._places:
            buffer = self._places[buffer]
        return buffer

    def changed(self, step: Step) -> tuple[Step, ...]:
        """Return a step with its buffers where they are now."""
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


def _deeply_named(step: Step) -> Counter[Buffer]:
    """Count the steps, a step and those inside it, that name each buffer."""
    return Counter(b for _, inner in in_order((step,)) for b in {*buffers_of(inner)})


def written_over(kernel: Kernel, operand: Array) -> Kernel | None:
    """Return a kernel whose only result overwrites an operand; None if that is another program."""
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
    """Return whether loops only store what they load there: the copy of a reshape."""
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
    """Return whether each element of an operand is read before the result is written there."""
    for statement in every(body):
        arguments = statement.arguments if isinstance(statement, Call) else ()
        if any(isinstance(a, Pointer) and a.array.name == operand.name for a in arguments):
            return False
        if any(a.array.name == operand.name and a.array != operand for a in _loads(statement)):
            return False
    return _is_read_first(body, operand, result)


def _is_read_first(block: Sequence[Statement], operand: Array, result: Array) -> bool:
    """Return whether statements read all that they do of an operand before they write there: those
    before the first that writes, and those that read but where they write."""
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
    """Return whether a statement that reads an operand and writes the result reads it first.

    Of a loop that is so if no iteration reads what another one writes, and each reads first.
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
    """Return whether the iterations of a loop have parts of the arrays of their own, side by side:
    all offsets are within ``pitch`` of a multiple of that, from a place that none of them moves."""
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
    """Return whether a statement reads an operand only where it writes later in the same straight
    code, be that the body of a loop inside it."""
    loops = (s.body for s in every((statement,)) if isinstance(s, Loop))
    return all(_reads_first(block, operand, result) for block in ((statement,), *loops))


def _reads_first(block: Sequence[Statement], operand: Array, result: Array) -> bool:
    """Return whether the straight code of a block stores later to where it reads an operand."""
    written: set[Expr] = set()
    for statement in reversed(list(_straight(block))):
        if isinstance(statement, Store) and statement.array.name == result.name:
            written.add(statement.offset)
        for load in _loads(statement):
            if load.array.name == operand.name and load.offset not in written:
                return False
    return True


def _straight(block: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements, those in branches, too, but not those in loops."""
    for statement in block:
        yield statement
        if isinstance(statement, If):
            yield from _straight(inside(statement))


def _loads(statement: Statement) -> Iterator[Load]:
    """Yield the loads of a statement itself."""
    return (part for part in parts([statement]) if isinstance(part, Load))

"""Describe the steps of a plan: data moved, operations, why they are separate, their lower
bounds."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from backend_c.ir.loop_ir import Call, Constant, If, Kernel, Loop, Statement
from backend_c.lower.plan import (
    Branch,
    Buffer,
    Copy,
    Exchange,
    Launch,
    Multiply,
    Origin,
    Plan,
    Repeat,
    Step,
    in_order,
)
from backend_c.profiles.rows import Bound, Edge, Machine, Row
from hlo.module import Computation, Instruction, Module
from hlo.passes.fusion_reasons import Group, Groups
from hlo.types import ArrayShape
from hlo.work import Counts, Operations, bytes_read, bytes_written, trips

# Seconds of a kernel that does nothing: the call, and its result through memory to the next one.
_CALL = 5e-9

_EXCHANGED = "the old state changes places with the new one, which is no copy"


class Describer:
    """Describe the steps of one plan.

    ``before`` is the module that the fusion pass was given, ``module`` the one that was lowered,
    ``groups`` the fusions chosen.
    """

    def __init__(
        self, plan: Plan, module: Module, before: Module, groups: Groups, machine: Machine
    ) -> None:
        self._plan, self._groups, self._machine = plan, groups, machine
        self._before = {c.name: c for c in before.computations}
        self._after = {c.name: c for c in module.computations}
        self._operations = Operations(module)

    def rows(self) -> tuple[Row, ...]:
        """Return a row for each step, in order."""
        rows: list[Row] = []
        runs: list[int] = []  # of the loops around the step, outermost first
        for number, (depth, step) in enumerate(in_order(self._plan.steps)):
            del runs[depth:]
            around = runs[-1] if runs else 1
            rows.append(replace(self._row(number, depth, step), runs=around))
            runs.append(around * (self._trips(step.origin) if isinstance(step, Repeat) else 1))
            if isinstance(step, Repeat):
                rows[-1] = replace(rows[-1], runs=runs[-1])
        return tuple(rows)

    def edges(self) -> tuple[Edge, ...]:
        """Return the data flow between steps: an edge from the last writer of a value to each
        reader."""
        writer: dict[Buffer, tuple[int, Origin]] = {}
        found: dict[tuple[int, int], Edge] = {}
        for number, (_, step) in enumerate(in_order(self._plan.steps)):
            for buffer in _read(step):
                if buffer in writer:
                    producer, origin = writer[buffer]
                    why = self._why(origin)
                    edge = Edge(producer, number, origin.instruction, why)
                    found.setdefault((producer, number), edge)
            for buffer, origin in zip(written_buffers(step), written_origins(step), strict=False):
                writer[buffer] = number, origin
        return tuple(found.values())

    def free(self, rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
        """Return, by computation, the instructions that no step computes: they cost nothing."""
        done: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            done[row.computation].update((row.instruction, *row.instructions))
        free = {
            name: tuple(i.name for i in self._before[name].instructions if i.name not in done[name])
            for name in self._groups
            if name in self._after
        }
        return {name: names for name, names in free.items() if names}

    def _why(self, origin: Origin) -> str:
        """Return the reason why a step's result is stored to memory; empty if there is none."""
        group = self._group(origin)
        return origin.why or (group.reason.text if group else "")

    def _group(self, origin: Origin) -> Group | None:
        """Return the fusion that a step's instruction is in; None if it is in none."""
        return self._groups.get(origin.computation, {}).get(origin.instruction)

    def _row(self, number: int, depth: int, step: Step) -> Row:
        """Describe a step, without the steps inside it."""
        origin = step.origin
        row = Row(number, depth, "", origin.computation, origin.instruction, why=self._why(origin))
        match step:
            case Launch():
                return self._launch(row, step)
            case Copy(source, target):
                shapes = (str(target.shape),)
                bound = self._bound(source.bytes, source.bytes, {}, 0)
                return replace(
                    row, kind="copy", shapes=shapes, read=source.bytes, written=source.bytes,
                    bound=bound,
                )  # fmt: skip
            case Exchange(_, target):
                return replace(row, kind="exchange", shapes=(str(target.shape),), why=_EXCHANGED)
            case Repeat():
                instruction = self._instruction(origin)
                return replace(row, kind=instruction.opcode if instruction else "while")
            case Branch():
                return replace(row, kind="conditional")
            case Multiply(product):
                return replace(row, kind="product", shapes=(str(product.result.shape),))

    def _launch(self, row: Row, launch: Launch) -> Row:
        """Describe the launch of a kernel."""
        origins, kernel = joined(launch.origin), self._plan.kernels[launch.kernel]
        given = sum(buffer.bytes for buffer in launch.inputs)
        read, written = given, min(given, sum(buffer.bytes for buffer in launch.outputs))
        operations: Counter[str] = Counter()
        repeated: dict[str, float] = {}
        known = [(o, o.computes) for o in origins if o.computes is not None]
        if known:
            each = [bytes_read(inner, in_place=origin.in_place) for origin, inner in known]
            read = min(given, sum(each))
            each = [bytes_written(inner, in_place=origin.in_place) for origin, inner in known]
            stored = sum(buffer.bytes for buffer in launch.outputs)
            written = min(stored, sum(each))
        for origin, inner in known:
            some, repeats = self._work(inner, self._group(origin))
            trips_inside = math.prod(map(self._trips, origin.loops))
            operations.update({kind: trips_inside * count for kind, count in some.items()})
            repeated |= repeats
        regions = _regions(kernel.body)
        return replace(
            row,
            kind=kernel.kind,
            shapes=tuple(_short(buffer.shape) for buffer in launch.outputs),
            instructions=tuple(
                dict.fromkeys(n for o in origins for n in members(o, self._groups, self._before))
            ),
            repeated=repeated,
            read=read,
            written=written,
            operations=dict(operations),
            calls=tuple(dict.fromkeys(_calls(kernel))),
            regions=regions,
            bound=self._bound(read, written, operations, regions),
        )

    def _work(
        self, computation: Computation, group: Group | None
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the operations of a kernel by type, and how often repeated elements are
        computed."""
        shapes = {i.name: i.shape for i in computation.instructions}
        inside = [i for i in computation.instructions if i.opcode != "parameter"]
        # Equal computations are merged: the names in them may be those of another group's members,
        # which are in the same order.
        members = group.members if group and len(group.members) == len(inside) else ()
        operations: dict[str, float] = defaultdict(float)
        repeated: dict[str, float] = {}
        for position, instruction in enumerate(inside):
            times = 1.0
            if members and group and instruction.opcode != "reduce":
                times = _times(instruction, group.computed.get(members[position]))
                if times > 1:
                    repeated[members[position]] = times
            counts: Counts = self._operations.of_instruction(instruction, computation, shapes)
            for (kind, _), count in counts.items():
                operations[kind] += min(1.0, times) * count
        return dict(operations), repeated

    def _bound(
        self, read: int, written: int, operations: Mapping[str, float], regions: int
    ) -> Bound:
        """Return the lower bounds of a run's time, on all threads if waking them would pay, else
        on one."""
        one, every = self._machine.one, self._machine.every
        memory = every.memory(read, written) if read + written else 0.0
        compute = every.arithmetic(operations)
        if not regions and max(memory, compute) < every.region:
            memory = one.memory(read, written) if read + written else 0.0
            compute = one.arithmetic(operations)
        return Bound(memory, compute, max(_CALL, regions * every.region))

    def _trips(self, loop: Origin) -> int:
        """Return the trip count of a loop, as far as its text shows it; else 1."""
        instruction = self._instruction(loop)
        if instruction is None:
            return 1
        computation = self._before[loop.computation]
        if instruction.opcode == "while":
            return trips(instruction, computation, self._before)
        first = next(i for i in computation.instructions if i.name == instruction.operands[0])
        dimensions = instruction.attributes.get("dimensions")
        assert isinstance(first.shape, ArrayShape) and isinstance(dimensions, tuple)
        return int(first.shape.dims[int(str(dimensions[0]))])

    def _instruction(self, origin: Origin) -> Instruction | None:
        """Return a step's instruction as it was before fusion; None if it is not there."""
        computation = self._before.get(origin.computation)
        instructions = computation.instructions if computation else ()
        return next((i for i in instructions if i.name == origin.instruction), None)


def _times(instruction: Instruction, computed: float | None) -> float:
    """Return how often each element of an instruction is computed, on average."""
    shape = instruction.shape
    if computed is None or not isinstance(shape, ArrayShape) or not shape.elements:
        return 1.0
    return computed / shape.elements


def _short(shape: ArrayShape) -> str:
    """Return a shape without its layout."""
    return str(replace(shape, layout=None))


def _read(step: Step) -> tuple[Buffer, ...]:
    """Return the buffers that a step itself reads; an update in place reads its outputs, too."""
    match step:
        case Launch(_, inputs, outputs, _):
            return (*inputs, *outputs) if step.origin.in_place else inputs
        case Copy(source, _) | Exchange(source, _):
            return (source,)
        case Branch(selector, _):
            return (selector,)
        case _:
            return ()


def members(origin: Origin, groups: Groups, before: Mapping[str, Computation]) -> tuple[str, ...]:
    """Return the names of the instructions that a kernel computes, without constants."""
    group = groups.get(origin.computation, {}).get(origin.instruction)
    if group is None:
        return (origin.instruction,)
    opcodes = {i.name: i.opcode for i in before[origin.computation].instructions}
    return tuple(name for name in group.members if opcodes[name] != "constant")


def joined(origin: Origin) -> tuple[Origin, ...]:
    """Return an origin, and the origins of the launches merged into its own."""
    return (replace(origin, joined=()), *origin.joined)


def written_origins(step: Step) -> tuple[Origin, ...]:
    """Return the origin of each buffer that a step writes, as far as it is known."""
    written = written_buffers(step)
    origins = joined(step.origin)
    # Of merged launches, those whose results nothing else reads have none.
    return origins[-len(written) :] if len(origins) > 1 else origins * len(written)


def written_buffers(step: Step) -> tuple[Buffer, ...]:
    """Return the buffers that a step itself writes."""
    match step:
        case Launch(_, _, outputs, _):
            return outputs
        case Copy(_, target) | Exchange(_, target):
            return (target,)
        case _:
            return ()


def _statements(statements: Sequence[Statement], times: int = 1) -> Iterator[tuple[Statement, int]]:
    """Yield (statement, how often serial loops of constant extent run it)."""
    for statement in statements:
        yield statement, times
        match statement:
            case Loop(_, extent, kind, body):
                known = isinstance(extent, Constant) and kind in ("serial", "independent")
                repeats = int(str(extent.value)) if known and isinstance(extent, Constant) else 1
                yield from _statements(body, times * repeats)
            case If(_, then, otherwise):
                yield from _statements((*then, *otherwise), times)
            case _:
                pass


def _regions(body: Sequence[Statement]) -> int:
    """Return how many parallel regions one run of a kernel enters."""
    return sum(
        times
        for statement, times in _statements(body)
        if isinstance(statement, Loop) and "parallel" in statement.kind
    )


def _calls(kernel: Kernel) -> Iterator[str]:
    """Yield the runtime functions that a kernel calls."""
    for statement, _ in _statements(kernel.body):
        if isinstance(statement, Call):
            yield statement.function

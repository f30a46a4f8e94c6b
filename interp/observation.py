"""Observe an evaluation: the value of each instruction as it is computed.

Observed are the instructions of the entry and of computations called as a whole: calls, fusions,
loops, branches, async computations. A computation that is applied to elements (of a reduction, a
map, a sort, …) counts as a part of the instruction that applies it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple, Protocol

from hlo.errors import ArgumentError
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import ASYNC, CALLS, having
from hlo.walk import called, live
from interp.call_graph import checked_calls, is_effect
from interp.prepared import Compute
from interp.values import Value, copied

_CALLS_WHOLE = having(CALLS) | having(ASYNC) | {"conditional", "while"}


class Seen(NamedTuple):
    """A value just computed by an instruction, on a rank. Its arrays may share memory with other
    values: copy what you keep or change."""

    computation: str
    instruction: Instruction
    value: Value
    rank: int = 0


Watch = Callable[[Seen], object]


class Observer(Protocol):
    """Callbacks of an evaluation, which must not change values."""

    def begins(self, computation: Computation, arguments: Sequence[Value]) -> None:
        """Observe the arguments of one evaluation of a computation."""

    def observed(
        self, computation: Computation, instruction: Instruction, compute: Compute
    ) -> Compute:
        """Wrap the function that computes an instruction."""


class Watching:
    """An observer that calls a function with each value of a rank, as a :class:`Seen`."""

    def __init__(self, watch: Watch, rank: int) -> None:
        self._watch, self._rank = watch, rank

    def begins(self, computation: Computation, arguments: Sequence[Value]) -> None:
        """Report the parameters' values."""
        for parameter, value in zip(computation.parameters, arguments, strict=True):
            self._watch(Seen(computation.name, parameter, value, self._rank))

    def observed(
        self, computation: Computation, instruction: Instruction, compute: Compute
    ) -> Compute:
        """Wrap an instruction's function so that each value it returns is reported."""

        def watched(*operands: Value) -> Value:
            value = compute(*operands)
            self._watch(Seen(computation.name, instruction, value, self._rank))
            return value

        return watched


def observed_computations(module: Module) -> frozenset[str]:
    """List the computations whose instructions are observed one by one."""
    computations = {c.name: c for c in module.computations}
    found: set[str] = set()
    waiting = [module.entry_name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            for instruction in computations[name].instructions:
                if instruction.opcode in _CALLS_WHOLE:
                    waiting.extend(called(instruction))
    return frozenset(found)


Values = dict[str, list[Value]]


class Collected:
    """Collect copies of named instructions' values: ``values[rank][name]`` has one for each
    evaluation.

    A name is an instruction's, which may be in several computations, or ``computation/name``;
    without names, all instructions of the entry computation are collected. ArgumentError for the
    name of no instruction, or of one that is not observed or evaluated.
    """

    def __init__(self, module: Module, names: Iterable[str], ranks: int) -> None:
        wanted = [name.replace("%", "") for name in names]
        self._keys = _keys(module, wanted)
        if not wanted:
            wanted = list(_evaluated(module))
            self._keys = {(module.entry_name, name): [name] for name in wanted}
        self.values: list[Values] = [{name: [] for name in wanted} for _ in range(ranks)]

    def __call__(self, seen: Seen) -> None:
        """Append a copy of the value if its instruction is wanted."""
        for name in self._keys.get((seen.computation, seen.instruction.name), ()):
            self.values[seen.rank][name].append(copied(seen.value))


def _evaluated(module: Module) -> Iterator[str]:
    """Yield the names of the entry's live instructions and parameters."""
    effects = checked_calls(module)
    needed = live(module.entry, lambda i: is_effect(i, effects))
    for instruction in module.entry.instructions:
        if instruction.name in needed or instruction.opcode == "parameter":
            yield instruction.name


def _keys(module: Module, wanted: Collection[str]) -> Mapping[tuple[str, str], list[str]]:
    """Map (computation, instruction) to the given names that mean it. Raises ArgumentError for a
    name without an instruction."""
    effects = checked_calls(module)
    observed = observed_computations(module)
    keys: dict[tuple[str, str], list[str]] = {}
    reasons: dict[str, str] = {}
    known: set[str] = set()
    for computation in module.computations:
        needed = live(computation, lambda i: is_effect(i, effects))
        needed |= {parameter.name for parameter in computation.parameters}
        for name in (i.name for i in computation.instructions):
            known.add(name)
            for asked in (name, f"{computation.name}/{name}"):
                if asked not in wanted:
                    continue
                if computation.name not in observed:
                    reasons[asked] = f"is part of {computation.name}, which is applied to elements"
                elif name not in needed:
                    reasons[asked] = "is not evaluated: the result does not need it"
                else:
                    keys.setdefault((computation.name, name), []).append(asked)
    met = {asked for names in keys.values() for asked in names}
    for asked in wanted:
        if asked not in met:
            raise ArgumentError(f"%{asked} {reasons.get(asked) or _unknown(asked, known)}")
    return keys


def _unknown(name: str, known: Collection[str]) -> str:
    """Format the message that no instruction has a name, with the closest one that exists."""
    near = get_close_matches(name.rpartition("/")[2], sorted(known), n=1)
    return "names no instruction" + (f"; did you mean %{near[0]}?" if near else "")

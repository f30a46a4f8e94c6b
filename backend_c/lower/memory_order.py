"""Reorder the steps of a plan so that the peak of live bytes is lower (scheduling for memory).

Texts often have the branches of a network side by side, layer by layer, so that an array of each
is alive. Two orders are tried beside that of the text: always the step after which least is alive
(list scheduling), and depth first from the results, of several operands first the one whose own
steps take most (Sethi and Ullman, "The generation of optimal code for arithmetic expressions",
1970). Steps inside loops and branches stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from backend_c.lower.buffers import peak, workspace_lifetimes
from backend_c.lower.plan import Buffer, Plan, read_and_changed
from backend_c.lower.views import overlapping

_MOST_STEPS = 1024  # of these every step is looked at beside every other


def with_least_memory(plan: Plan, *changes: Callable[[Plan], Plan]) -> Plan:
    """Choose the order of steps with the least peak of live bytes, after one of ``changes``.

    Every order is combined with every change; the first of equal ones wins, the text's order first.
    """
    plans = [plan]
    if len(plan.steps) <= _MOST_STEPS:
        graph = _graph(plan)
        orders = (_least_alive(graph), _depth_first(graph))
        plans += [_ordered(plan, order) for order in orders]
    changed = [change(one) for change in changes for one in plans] or plans
    return min(changed, key=lambda one: peak(one).bytes)


@dataclass(frozen=True, slots=True)
class _Graph:
    """Hold the dependency graph of steps by number: predecessors, and workspace buffers named."""

    before: Sequence[set[int]]
    buffers: Sequence[set[Buffer]]


def _ordered(plan: Plan, order: Sequence[int]) -> Plan:
    """Return a plan with its steps in another order."""
    return replace(plan, steps=tuple(plan.steps[number] for number in order))


def _graph(plan: Plan) -> _Graph:
    """Build the dependency graph of a plan: read after write, write after read or write."""
    ours, common = workspace_lifetimes(plan).keys(), overlapping(plan)
    last: dict[Buffer, int] = {}  # the step that changed a buffer last
    readers: dict[Buffer, set[int]] = {}  # since then
    before: list[set[int]] = []
    buffers: list[set[Buffer]] = []
    for number, step in enumerate(plan.steps):
        read, changed = read_and_changed(step)
        named = read | changed
        needed = {last[other] for buffer in named for other in common[buffer] if other in last}
        for buffer in changed:
            # Write after read: a change waits for every reader of the old value.
            needed.update(*(readers.get(other, ()) for other in common[buffer]))
            readers.pop(buffer, None)
            last[buffer] = number
        for buffer in read:
            readers.setdefault(buffer, set()).add(number)
        before.append(needed - {number})
        buffers.append({buffer.base for buffer in named} & ours)
    return _Graph(before, buffers)


class _Alive:
    """Track the live buffers of a partial schedule."""

    def __init__(self, graph: _Graph) -> None:
        self._buffers = graph.buffers
        self._waiting: dict[Buffer, int] = {}  # steps to come that name a buffer
        for named in graph.buffers:
            for buffer in named:
                self._waiting[buffer] = self._waiting.get(buffer, 0) + 1
        self._begun: set[Buffer] = set()

    def growth(self, step: int) -> int:
        """Return the change of live bytes that scheduling a step next would cause."""
        named = self._buffers[step]
        begun = sum(buffer.bytes for buffer in named if buffer not in self._begun)
        return begun - sum(buffer.bytes for buffer in named if self._waiting[buffer] == 1)

    def run(self, step: int) -> None:
        """Schedule a step: its buffers are live until their last remaining step."""
        for buffer in self._buffers[step]:
            self._begun.add(buffer)
            self._waiting[buffer] -= 1


def _least_alive(graph: _Graph) -> list[int]:
    """Schedule greedily: of the ready steps always the one after which least is live."""
    alive = _Alive(graph)
    order: list[int] = []
    done: set[int] = set()
    left = list(range(len(graph.before)))
    while left:
        ready = [step for step in left if graph.before[step] <= done]
        chosen = min(ready, key=alive.growth)  # of equal ones the first in the text
        alive.run(chosen)
        order.append(chosen)
        done.add(chosen)
        left.remove(chosen)
    return order


def _depth_first(graph: _Graph) -> list[int]:
    """Schedule depth first: each step's predecessors right before it, the costliest first."""
    takes = _needs(graph)
    order: list[int] = []
    done: set[int] = set()
    followed = {step for before in graph.before for step in before}
    for last in range(len(graph.before)):
        todo = [] if last in followed else [last]
        while todo:
            step = todo[-1]
            # On a stack what is pushed last, the costliest, is computed first.
            needed = sorted(graph.before[step] - done, key=lambda one: (takes[one], one))
            todo += needed
            if not needed:
                todo.pop()
                order += [step] if step not in done else []
                done.add(step)
    return order


def _needs(graph: _Graph) -> Mapping[int, int]:
    """Estimate by step the peak bytes of computing it and all its predecessors.

    The estimate is that of Sethi and Ullman for trees, as if no two steps shared an operand.
    """
    needs: dict[int, int] = {}
    for step, before in enumerate(graph.before):
        named = graph.buffers[step]
        kept, most = 0, sum(buffer.bytes for buffer in named)
        for one in sorted(before, key=lambda one: (-needs[one], one)):
            most = max(most, kept + needs[one])
            kept += sum(buffer.bytes for buffer in named & graph.buffers[one])
        needs[step] = most
    return needs

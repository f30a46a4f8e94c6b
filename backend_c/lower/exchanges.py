"""Swap the buffers of a loop's state instead of copying them (double buffering).

At the end of a trip the new state is copied into the buffers of the state. Where the new one lies
in a buffer that only the body uses, the two trade addresses instead (:class:`Exchange`): the next
trip writes its new state over the old one. Small buffers are copied, as are those with actual
sizes, and views.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from backend_c.lower.plan import (
    Buffer,
    Copy,
    Exchange,
    Plan,
    Repeat,
    Step,
    buffers_of,
    in_order,
    map_steps,
)


def with_exchanges(plan: Plan, least: int) -> Plan:
    """Replace copies at the ends of loop bodies by exchanges of pointers.

    That is done for buffers of ``least`` bytes or more whose source only the body names.
    """
    mentions = Counter(b for _, step in in_order(plan.steps) for b in buffers_of(step))
    fixed = {*plan.arguments, *plan.results, *(buffer for buffer, _ in plan.constants)}

    def change(step: Step) -> tuple[Step, ...]:
        if not isinstance(step, Repeat):
            return (step,)
        return (replace(step, body=_exchanged(step.body, mentions, fixed, least)),)

    return replace(plan, steps=map_steps(plan.steps, change))


def _exchanged(
    body: tuple[Step, ...], mentions: Counter[Buffer], fixed: set[Buffer], least: int
) -> tuple[Step, ...]:
    """Replace the trailing copies of a loop body by exchanges where that is legal.

    An exchange leaves the old state in the source. That is legal if only the body names the source,
    as each trip then computes it before reading it.
    """
    first = len(body)
    while first and isinstance(body[first - 1], Copy):
        first -= 1
    # With a buffer in two of these copies an exchange would depend on their order.
    ends = Counter(buffer for step in body[first:] for buffer in buffers_of(step))
    inside = Counter(b for _, step in in_order(body) for b in buffers_of(step))
    last: list[Step] = []
    for step in body[first:]:
        assert isinstance(step, Copy)
        source, target = step.source, step.target
        is_exchanged = (
            source.bytes >= least
            and source.bytes == target.bytes
            and source.sizes is None
            and target.sizes is None
            and source.view is target.view is None
            and source not in fixed
            and ends[source] == ends[target] == 1
            and inside[source] == mentions[source]
        )
        last.append(Exchange(source, target, step.origin) if is_exchanged else step)
    return (*body[:first], *last)

"""Exchange the buffers of a loop's state instead of copying them.

At the end of a trip the new state is copied into the buffers of the state. Where the new one lies
in a buffer that only the body uses, the two change places instead (:class:`Exchange`): what was the
old state is where the next trip writes the newer one (double buffering). Small buffers are copied,
as are those with actual sizes, and parts of others.
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
    """Replace the last copies of loops' bodies by exchanges, where nothing else sees the source, of
    buffers of so many bytes at least."""
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
    """Replace copies at the end of a body.

    A value that only the body names is computed in every trip before it is read, so what is left in
    its buffer is nothing.
    """
    first = len(body)
    while first and isinstance(body[first - 1], Copy):
        first -= 1
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

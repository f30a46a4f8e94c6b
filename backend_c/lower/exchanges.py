"""Swap the buffers of a loop's state instead of copying them (double buffering).

At the end of a trip the new state is copied into the buffers of the state. Where the new one lies
in a buffer that only the body uses, the two trade addresses instead (:class:`Exchange`): the next
trip writes its new state over the old one. Small buffers are copied, as are those with actual
sizes, and views.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
from backend_c.lower.views import overlap


def with_exchanges(plan: Plan, least: int) -> Plan:
    """Replace copies at the ends of loop bodies by exchanges of pointers.

    That is done for buffers of ``least`` bytes or more.
    """
    mentions = Counter(b for _, step in in_order(plan.steps) for b in buffers_of(step))
    fixed = {*plan.arguments, *(buffer for buffer, _ in plan.constants)}
    # The caller reads results, so that the body is not alone in naming one.
    mentions.update(plan.results)

    def change(step: Step) -> tuple[Step, ...]:
        if not isinstance(step, Repeat):
            return (step,)
        return (replace(step, body=_exchanged(step.body, mentions, fixed, least)),)

    return replace(plan, steps=map_steps(plan.steps, change))


def _exchanged(
    body: tuple[Step, ...], mentions: Counter[Buffer], fixed: set[Buffer], least: int
) -> tuple[Step, ...]:
    """Replace the trailing copies of a loop body by exchanges where that is legal.

    An exchange is a copy that leaves the old state in the source. That is legal if the source is
    overwritten before it is read: by a later one of these copies, as where one part of the state
    becomes another, or, if only the body names it, by what the next trip computes.
    """
    first = len(body)
    while first and isinstance(body[first - 1], Copy):
        first -= 1
    ends = [step for step in body[first:] if isinstance(step, Copy)]
    targets = Counter(step.target for step in ends)
    inside = Counter(b for _, step in in_order(body) for b in buffers_of(step))
    last: list[Step] = []
    for number, step in enumerate(ends):
        source, target = step.source, step.target
        is_exchanged = (
            source.bytes >= least
            and source.bytes == target.bytes
            and source.sizes is None
            and target.sizes is None
            and source.view is target.view is None
            and source not in fixed
            and targets[target] == 1
            and _is_dead(source, ends[number + 1 :], inside[source] == mentions[source])
        )
        last.append(Exchange(source, target, step.origin) if is_exchanged else step)
    return (*body[:first], *last)


def _is_dead(source: Buffer, later: Sequence[Copy], is_of_body: bool) -> bool:
    """Return whether a buffer is overwritten before it is read, once the last step before the
    copies ``later`` is done. ``is_of_body``: only the body names it."""
    for step in later:
        if overlap(step.source, source):
            return False
        if overlap(step.target, source):
            return step.target is source
    return is_of_body

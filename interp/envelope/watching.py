"""Let a watcher follow an evaluation over enclosures through the entry, its loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any, Protocol

import numpy as np

from hlo.module import Computation, Instruction, Module
from hlo.walk import Callee
from interp.envelope.enclosure import Enclosure, Value, all_certain, point
from interp.envelope.ops.control import chosen_branches
from interp.envelope.value_names import Place

Condition = Callable[[Value], Enclosure]


class Watcher(Protocol):
    """Callbacks of an evaluation over enclosures. Each may return a value or decision that replaces
    the evaluation's own; None leaves it."""

    def seen(
        self, place: Place, instruction: Instruction, value: Value, operands: Sequence[Value]
    ) -> Value:
        """Observe an instruction's enclosure and those of its operands."""

    def after_trip(self, place: Place, loop: Instruction, trip: int, state: Value) -> Value:
        """Observe the state that a loop carries out of trip ``trip`` (from 0)."""

    def goes_on(
        self, place: Place, loop: Instruction, trip: int, state: Value, condition: Condition
    ) -> bool | None:
        """Decide an open loop condition after ``trip`` trips."""

    def has_seen_enough(self, place: Place, loop: Instruction, trip: int) -> bool:
        """Test whether to leave a loop after ``trip`` trips, whatever its condition says."""

    def looks_into(self, place: Place, loop: Instruction) -> bool:
        """Test whether to enclose a loop over integers step by step, which could be run exactly at
        once."""

    def branch(self, place: Place, conditional: Instruction) -> int | None:
        """Choose the branch of a conditional whose selector is open."""


class Watched:
    """Wraps loops and branches so that the watcher is told the place of each value
    (:class:`Place`)."""

    def __init__(self, module: Module, watcher: Watcher | None) -> None:
        self._watcher, self._place = watcher, Place(module.entry)

    def is_here(self, computation: Computation) -> bool:
        """Test whether a computation is the one whose values are shown: the entry or the innermost
        body or branch, not a loop's condition nor a computation applied to elements."""
        return self._watcher is not None and computation is self._place.computation

    def seen(self, instruction: Instruction, value: Value, operands: Sequence[Value]) -> Value:
        """Show an instruction's value to the watcher; return its replacement, or None."""
        assert self._watcher is not None
        return self._watcher.seen(self._place, instruction, value, operands)

    def looks_into(self, computation: Computation, loop: Instruction) -> bool:
        """Test whether the watcher wants the values inside a loop that could be run exactly."""
        if self._watcher is None or not self.is_here(computation):
            return False
        return self._watcher.looks_into(self._place, loop)

    def loop(self, loop: Instruction, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a loop's keyword arguments with condition and body wrapped for the watcher."""
        return {
            **given,
            "condition": self._condition(loop, given["condition"]),
            "body": self._body(loop, given["body"]),
        }

    def _condition(self, loop: Instruction, condition: Callee[Value]) -> Callee[Value]:
        # The evaluation wraps a loop anew whenever it gets to it: in each trip of an outer loop an
        # inner one counts from 0.
        trips, place, watcher = count(), self._place, self._watcher
        assert watcher is not None

        def call(state: Value) -> Value:
            again, trip = condition(state), next(trips)
            # Asked of a certain condition, too: on midpoints it may hold for certain, for ever.
            if again.high and watcher.has_seen_enough(place, loop, trip):
                return point(np.asarray(False))
            if all_certain(again):
                return again
            decision = watcher.goes_on(place, loop, trip, state, condition)
            return again if decision is None else point(np.asarray(decision))

        return replace(condition, call=call)

    def _body(self, loop: Instruction, body: Callee[Value]) -> Callee[Value]:
        trips, place, watcher = count(), self._place, self._watcher
        assert watcher is not None

        def call(state: Value) -> Value:
            trip = next(trips)
            with self._at(place.in_loop(loop, body.computation, trip)):
                after = body(state)
            known = watcher.after_trip(place, loop, trip, after)
            return after if known is None else known

        return replace(body, call=call)

    def conditional(self, conditional: Instruction, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a conditional's keyword arguments with all branches wrapped for the watcher."""
        found = dict(given)
        for number, name in enumerate(("true_computation", "false_computation")):
            if name in given:
                found[name] = self._branch(conditional, given[name], number)
        if "branch_computations" in given:
            found["branch_computations"] = tuple(
                self._branch(conditional, branch, number)
                for number, branch in enumerate(given["branch_computations"])
            )
        return found

    def _branch(
        self, conditional: Instruction, branch: Callee[Value], number: int
    ) -> Callee[Value]:
        place = self._place.in_branch(conditional, branch.computation, number)

        def call(*operands: Value) -> Value:
            with self._at(place):
                return branch(*operands)

        return replace(branch, call=call)

    def selector(self, conditional: Instruction, selector: Enclosure) -> Enclosure:
        """Replace an open selector by the watcher's branch, if that is legal."""
        assert self._watcher is not None
        if all_certain(selector):
            return selector
        chosen = self._watcher.branch(self._place, conditional)
        if chosen is None:
            return selector
        # Branch 0 of a pred selector is that of true.
        number = chosen == 0 if selector.low.dtype == np.bool_ else chosen
        found = np.asarray(number, selector.low.dtype)
        # A branch that no rounding chooses is an error, and must show in the result: it is not
        # followed.
        is_legal = chosen in chosen_branches(selector, len(conditional.operands) - 1)
        return point(found) if is_legal else selector

    @contextmanager
    def _at(self, place: Place) -> Iterator[None]:
        before, self._place = self._place, place
        try:
            yield
        finally:
            self._place = before

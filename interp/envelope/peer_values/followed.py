"""Judge a program step by step: enclose each instruction on the peer's own values at the anchors.

Once the peer's value at an anchor is found legal, the evaluation goes on with that value in place
of the enclosure, so intervals stay as narrow as the roundings since the last anchor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np

from hlo.module import Instruction, Module
from hlo.values import Array
from interp.envelope.anchors import LAYS_OUT
from interp.envelope.boolean_masks import is_ever, never
from interp.envelope.budget import Budget
from interp.envelope.defining_equations import factorisations
from interp.envelope.elementwise_chains import unstored
from interp.envelope.enclosure import (
    Enclosure,
    Value,
    all_certain,
    between,
    contains,
    finfo,
    greatest_of,
    is_nan,
    largest,
    least,
    least_of,
    outward,
    point,
    where,
)
from interp.envelope.evaluation import Enclosed, enclose
from interp.envelope.memoisation.memo import Memo
from interp.envelope.midpoints import beside_middle, is_wide_anywhere, middle, middle_of_wide
from interp.envelope.peer_values.computation_facts import Facts
from interp.envelope.peer_values.scales import (
    MEASURED,
    Scale,
    carried,
    is_narrow,
    is_narrow_beside,
    laid_out,
    scale_of,
)
from interp.envelope.peer_values.shown import ShownValues
from interp.envelope.recorded_values import MOST_TRIPS
from interp.envelope.value_names import Place, trips_name
from interp.envelope.verdict import (
    KINDS,
    OUTSIDE,
    UNDETERMINED,
    WITHIN,
    Verdict,
    is_wide,
    summary,
)
from interp.envelope.watching import Condition
from interp.exact.conversion import type_of


@dataclass(frozen=True, slots=True)
class Step:
    """An anchor where the peer's value is illegal, given its values at the anchors before: outside
    of the enclosure, unless ``why`` says otherwise."""

    instruction: Instruction
    verdict: Verdict
    actual: Array
    legal: Enclosure
    why: str = ""


class Compared(NamedTuple):
    """The peer's value at an anchor, its enclosure, and the verdict on each element."""

    place: Place
    instruction: Instruction
    actual: Array
    legal: Enclosure
    kinds: Array


class Trust(Enum):
    """Which of the peer's values replace their enclosures: PROVEN, those whose interval is narrow;
    STATES, of these only loop states and what no compiler computes twice (:func:`made_once`);
    STEPS, also those that one sum or decision made of narrow operands; ONCE, those of STATES
    however wide."""

    PROVEN = auto()
    STATES = auto()
    STEPS = auto()
    ONCE = auto()


# What is outside is proven: no value that a compiler may have computed again, or never, is taken.
_OF_ONE_VALUE = (Trust.STATES, Trust.ONCE)


def followed(
    module: Module,
    values: Mapping[str, Array],
    *arrays: Any,
    peer: Budget,
    seed: int = 0,
    trust: Trust = Trust.PROVEN,
    note: Callable[[Compared], object] | None = None,
    memo: Memo | None = None,
) -> tuple[Enclosed, tuple[Step, ...]]:
    """Enclose the module on the peer's values at the anchors; return the enclosure of its result,
    and the anchors whose value is illegal. Where a loop or branch may go several ways, it goes the
    peer's way. ``note`` is called for each anchor of an instruction, in each trip.

    PROVEN proves what is inside; what is outside may rest on a value that the compiler computed
    twice. STATES proves both, however many values are asked for: each value of a trip is judged
    from what the loop carried before the trip.
    With STEPS a difference of nearly equal numbers, or a decision between them, is as the peer made
    it: what is inside is legal if no step is outside; but a compiler may compute such a value
    twice, each time with other roundings, so what is outside proves nothing. With ONCE a value of
    which little is known (random numbers, tied keys) is the peer's: what is outside is wrong, what
    is inside may rest on an illegal value.
    """
    way = Followed(module, ShownValues(values), peer, trust, note)
    found = enclose(module, *arrays, peer=peer, seed=seed, watcher=way, memo=memo)
    return found, tuple(way.outside)


@dataclass(slots=True)
class Followed:
    """A watcher that puts the peer's values in place of enclosures; ``outside``: the illegal
    ones."""

    module: Module
    shown: ShownValues
    peer: Budget
    trust: Trust = Trust.PROVEN
    note: Callable[[Compared], object] | None = None
    outside: list[Step] = field(default_factory=list)
    facts: dict[str, Facts] = field(default_factory=dict)
    scales: dict[str, Scale] = field(default_factory=dict)  # of what steps are made of

    def seen(
        self, place: Place, instruction: Instruction, value: Value, operands: Sequence[Value]
    ) -> Value:
        """Compare the peer's value at an anchor with its enclosure; return what to go on with, None
        to keep the enclosure."""
        if self.trust is Trust.STEPS:
            self._measure(place, instruction, operands, value)
        factors = self._factored(place, instruction, value, operands)
        if factors is not None or not isinstance(value, Enclosure):
            return factors
        if not self.shown.has(place, instruction.name):
            return None
        actual = self.shown.at(place, instruction.name)
        if actual is None or actual.shape != value.shape:  # the room of a bounded array
            return None
        found = self._compared(place, instruction, actual, value)
        if self.note is not None:
            self.note(found)
        return self._taken(found)

    def after_trip(self, place: Place, loop: Instruction, trip: int, state: Value) -> Value:
        """Replace a loop's state by the peer's stored one, element by element. It is widened by one
        unit, since a compiler that unrolls the loop may carry it on unrounded."""
        taken = self.shown.trips(place, loop.name)
        if not isinstance(state, tuple) or taken is None or trip >= taken:
            return None
        after = list(state)
        for number, value in enumerate(state):
            stored = self.shown.state(place, loop.name, number, trip)
            if stored is not None:
                known = self._taken(self._compared(place, loop, stored, value))
                after[number] = value if known is None else unstored(known)
        return tuple(after)

    def goes_on(
        self, place: Place, loop: Instruction, trip: int, state: Value, condition: Condition
    ) -> bool | None:
        """Leave a loop after as many trips as the peer, where both decisions are legal."""
        # Asked about are loops of at most MOST_TRIPS trips. A wrong one may count up to 2^31,
        # and each trip that is followed takes milliseconds.
        taken = self.shown.trips(place, loop.name)
        return None if taken is None or taken > 2 * MOST_TRIPS else trip < taken

    def has_seen_enough(self, place: Place, loop: Instruction, trip: int) -> bool:
        """Return False: a loop is followed until its condition is false."""
        return False

    def looks_into(self, place: Place, loop: Instruction) -> bool:
        """Test whether the peer was asked for a loop's trip count, and so for values inside it."""
        return trips_name(place.named(loop.name)) in self.shown.by_name

    def branch(self, place: Place, conditional: Instruction) -> int | None:
        """Return the branch that the peer took, None if it was not asked."""
        return self.shown.branch(place, conditional.name)

    def _of(self, place: Place) -> Facts:
        name = place.computation.name
        if name not in self.facts:
            self.facts[name] = Facts(self.module, place.computation)
        return self.facts[name]

    def _compared(
        self, place: Place, instruction: Instruction, actual: Array, legal: Enclosure
    ) -> Compared:
        """Compare what is shown with what is legal. A zero for a subnormal number is no step of the
        program that is judged, which returns neither: one that returns more may flush elsewhere."""
        found = beside_middle(actual, legal)
        if self.peer.may_flush(legal.element_type):
            tiny = float(finfo(legal.low.dtype).smallest_normal)
            flushed = (actual == 0) & (legal.low < tiny) & (legal.high > -tiny)
            found = np.where(flushed & (found == KINDS.index(OUTSIDE)), KINDS.index(WITHIN), found)
        return Compared(place, instruction, actual, legal, found)

    def _taken(self, compared: Compared) -> Value:
        place, instruction, actual, value, found = compared
        verdict = summary(found)
        if verdict.counts[OUTSIDE]:
            self.outside.append(Step(instruction, verdict, actual, value))
        # Where one result is legal, what follows is judged on that, whatever the peer has.
        if value.is_point:
            return None
        facts = self._of(place)
        if self.trust in _OF_ONE_VALUE and not self._is_made_once(place, instruction):
            return None
        known = self._or_flushed(self._known(facts, instruction, actual), value)
        if self.trust is Trust.ONCE or not verdict.counts[UNDETERMINED]:
            return known
        return where(self._unsure(compared), value, known)

    def _is_made_once(self, place: Place, instruction: Instruction) -> bool:
        """Test for a value that no compiler computes twice. A loop of one trip may be inlined."""
        maker = self._of(place).made_once.get(instruction.name)
        if maker is None or maker.opcode != "while":
            return maker is not None
        trips = self.shown.trips(place, maker.name)
        return trips is not None and trips > 1

    def _unsure(self, compared: Compared) -> Array:
        """Test for elements whose enclosure is too wide to go on with the peer's value. What is
        wrong here is not blamed on what follows."""
        place, instruction, _, value, found = compared
        centre = middle_of_wide(value)
        if centre is None:
            return never(value.shape)
        unsure = is_wide(value, centre) & (found != KINDS.index(OUTSIDE))
        scale = self.scales.get(place.named(instruction.name))
        if scale is not None and instruction.opcode != "while":
            unsure &= ~is_narrow_beside(value, scale)
            if instruction.opcode == "bitcast-convert":  # of floats of either sign
                unsure |= _is_anything(value)
        return np.asarray(unsure)

    def _measure(
        self, place: Place, instruction: Instruction, operands: Sequence[Value], value: Value
    ) -> None:
        """Note the scale (:func:`scale_of`) of a value whose operands are all narrow, for anchors
        and what may carry it to one; a copy, reshape or transpose takes that of its operand."""
        is_shown = self.shown.has(place, instruction.name) or instruction.opcode in MEASURED
        if not is_shown and not self._is_read_as_is(place, instruction):
            return
        name = place.named(instruction.name)
        # The name is the same in each trip of a loop, and in this trip operands may be wide.
        self.scales.pop(name, None)
        before = [self.scales.get(place.named(operand)) for operand in instruction.operands]
        found = None
        if before and before[0] is not None and self._reads_as_is(place, instruction):
            found = laid_out(before[0], instruction)
        elif operands and isinstance(value, Enclosure):
            found = carried(instruction, operands, before)
            if found is None and all(map(is_narrow, operands)):
                found = scale_of(self.module, instruction, operands, value)
        if found is not None:
            self.scales[name] = found

    def _is_read_as_is(self, place: Place, instruction: Instruction) -> bool:
        """Test for the operand of an instruction that :meth:`_reads_as_is`."""
        return instruction.name in self._of(place).laid_out

    def _reads_as_is(self, place: Place, instruction: Instruction) -> bool:
        """Test for an instruction that only lays out its operand anew."""
        return instruction.opcode in LAYS_OUT

    def _factored(
        self, place: Place, instruction: Instruction, value: Value, operands: Sequence[Value]
    ) -> Value:
        """Return a peer's matrix factors as points, if they fulfil their defining equation for one
        legal value of the operand (the peer's, where it is legal); None if they do not, or this is
        no factorisation. Factors of a certain matrix that are proven wrong are noted in
        ``outside``."""
        names = self._of(place).factorisations.get(instruction.name, ())
        if not names:
            return None
        shown = (self.shown.at(place, name) for name in names)
        pairs = zip(instruction.operands, operands, strict=True)
        chosen = (self._operand(place, name, x) for name, x in pairs)
        actual = [x for x in shown if x is not None]
        matrices = [x for x in chosen if x is not None]
        parts_ = (value,) if isinstance(value, Enclosure) else value
        if len(actual) != len(parts_) or len(matrices) != len(operands):
            return None
        target = str(instruction.attributes["custom_call_target"])
        config = instruction.annotations.get("backend_config", "")
        is_legal = factorisations.checked(target, matrices, actual, config)
        if is_legal is False and all(map(all_certain, operands)):
            kinds_ = np.full(actual[0].shape, KINDS.index(OUTSIDE), np.int8)
            why = "no matrix near the operand has these factors"
            self.outside.append(Step(instruction, summary(kinds_), actual[0], parts_[0], why))
        if not is_legal:
            return None
        if isinstance(value, Enclosure):
            return point(actual[0])
        pairs_ = zip(value, actual, strict=True)  # vectors that are not computed are None
        return tuple(None if part is None else point(one) for part, one in pairs_)

    def _operand(self, place: Place, name: str, value: Enclosure) -> Array | None:
        """Choose one legal value of an operand: the only one, the peer's, or the midpoints of
        narrow intervals; None where intervals are wide."""
        if all_certain(value):
            return value.low
        shown = self.shown.at(place, name)
        if shown is not None and shown.shape == value.shape and contains(value, shown).all():
            return shown
        return None if is_wide_anywhere(value) else middle(value)

    def _known(self, facts: Facts, instruction: Instruction, actual: Array) -> Enclosure:
        """Enclose the value that the peer goes on with after it showed ``actual``: one ulp wider
        where a narrow type may stay in f32, or a product go unrounded into a sum."""
        element_type = type_of(actual)
        narrow = self.peer.keeps_wide and element_type.bits < 32
        product = self.peer.contracts and instruction.name in facts.products
        if not element_type.is_float or not (narrow or product):
            return point(actual)
        return between(*outward(actual, actual, 1), is_nan(actual))

    def _or_flushed(self, known: Enclosure, value: Enclosure) -> Enclosure:
        """Admit a subnormal for a zero and a zero for a subnormal: the program with more results
        may flush elsewhere."""
        if not self.peer.may_flush(known.element_type):
            return known
        tiny = float(finfo(known.low.dtype).smallest_normal)
        small = (known.low < tiny) & (known.high > -tiny)
        if not is_ever(small):
            return known
        ends = [x.astype(np.float64) for x in (known.low, known.high, value.low, value.high)]
        low = least_of(ends[0], np.clip(ends[2], -tiny, 0))
        high = greatest_of(ends[1], np.clip(ends[3], 0, tiny))
        dtype = known.low.dtype
        return where(small, between(low.astype(dtype), high.astype(dtype), known.nan), known)


def _is_anything(value: Enclosure) -> Array:
    """Test which intervals of integers are the whole type."""
    ends = least(value.element_type), largest(value.element_type)
    return np.asarray((value.low == ends[0]) & (value.high == ends[1]))

"""Judge another compiler's results by the error envelope, step by step where it is too wide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

from hlo.module import Module
from hlo.passes.inline import inline
from hlo.types import leaves
from hlo.values import Array, arrays_of
from interp.envelope import anchors, budget
from interp.envelope.budget import Budget
from interp.envelope.enclosure import Enclosure
from interp.envelope.evaluation import Enclosed, enclose
from interp.envelope.midpoints import beside_middle
from interp.envelope.observable_values import seldom_disturbing, undisturbed
from interp.envelope.peer_values import Step, Trust, followed
from interp.envelope.random_rounding import (
    Unlikely,
    has_unlikely_sums,
    likely_budget,
    unlikely,
)
from interp.envelope.recorded_values import exposed
from interp.envelope.sums_in_order import has_narrow_floats, usual_budgets
from interp.envelope.value_names import decisions, with_plain_names
from interp.envelope.verdict import (
    KINDS,
    OUTSIDE,
    UNDETERMINED,
    Verdict,
    kinds,
    resolved,
    same_where_open,
    summary,
)
from interp.evaluator import evaluate

# Elements of an instruction that are followed as quickly as XLA compiles it: of a gradient of BERT
# with 4,000 instructions of 4,000 elements each, 2.2 s and 6 s.
_QUICK = 1 << 13

Named = tuple[str, Array]  # an array of a result, and its place in the result
Run = Callable[[Module], Sequence[Array] | None]  # a compiler; None: it gives no results


@dataclass(frozen=True, slots=True)
class Output:
    """One array of a result: what was found, what is right, what is legal; and which elements are
    unlikely of those of which nothing is proven."""

    place: str
    verdict: Verdict
    actual: Array
    exact: Array
    legal: Enclosure
    unlikely: Unlikely | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """``mismatch``: the results are not even of the right types and shapes. ``wrong``: the steps
    between values in between that nothing legal takes."""

    outputs: tuple[Output, ...]
    wrong: tuple[Step, ...] = ()
    mismatch: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """The number of elements of each verdict."""
        if self.mismatch is not None:
            return {OUTSIDE: 1}
        return {kind: sum(x.verdict.counts[kind] for x in self.outputs) for kind in KINDS}


class Judge:
    """The judge of one program on its arguments: what is legal is computed once for all
    compilers."""

    def __init__(
        self,
        module: Module,
        values: Sequence[Any],
        exact: Sequence[Named],
        *,
        peer: Budget,
        seed: int = 0,
        trials: int = 0,
    ) -> None:
        """``trials``: how many more programs a compiler is asked for at most, where the values in
        between disturb its results."""
        self._module, self._values, self._exact = module, tuple(values), exact
        self._trials = trials
        self._given: dict[str, Any] = {"peer": peer, "seed": seed}
        self._usual_results: list[tuple[Enclosure, ...]] = []

    @cached_property
    def enclosed(self) -> Enclosed:
        return enclose(self._module, *self._values, **self._given)

    @cached_property
    def _inlined(self) -> Module:
        return anchors.with_all_results(with_plain_names(inline(self._module)))

    @cached_property
    def _plan(self) -> anchors.Plan:
        given = self._usual[0] if has_narrow_floats(self._module) else self._given
        return anchors.planned(self._inlined, *self._values, **given)

    @cached_property
    def _usual(self) -> Sequence[dict[str, Any]]:
        """The budgets for what compilers usually do."""
        budgets = usual_budgets(self._module, self._given["peer"])
        return [{**self._given, "peer": budget} for budget in budgets]

    def _usually(self, number: int) -> tuple[Enclosure, ...]:
        """Return the enclosures of results by one of these budgets, computed once."""
        while len(self._usual_results) <= number:
            given = self._usual[len(self._usual_results)]
            found = enclose(self._module, *self._values, **given)
            self._usual_results.append(tuple(arrays_of(found.result)))
        return self._usual_results[number]

    @cached_property
    def _likely(self) -> tuple[Enclosure, ...]:
        given = {**self._given, "peer": likely_budget(self._given["peer"])}
        return tuple(arrays_of(enclose(self._module, *self._values, **given).result))

    @cached_property
    def _is_quick(self) -> bool:
        """Whether values in between are followed sooner than a compiler is done with the
        program."""
        instructions = self._inlined.entry.instructions
        elements = sum(leaf.elements for i in instructions for leaf in leaves(i.shape))
        return elements < _QUICK * len(instructions)

    def _showing(self, names: Sequence[str]) -> Module:
        """Return the program that also returns these values of the plan."""
        return exposed(self._inlined, names, self._plan.trips)

    def judged(self, actual: Sequence[Array], run: Run) -> Found:
        """Return the worth of ``actual``, a compiler's results; ``run`` asks it for those of other
        programs with the same arguments."""
        legal = tuple(arrays_of(self.enclosed.result))
        actual = self._within_sizes(actual)
        mismatch = self._mismatch(actual, len(legal))
        if mismatch is not None:
            return Found((), mismatch=mismatch)
        found, wrong = self._by_steps(actual, self._kinds(actual, legal), run)
        parts = zip(found, self._exact, actual, legal, self._beyond(found, actual), strict=True)
        return Found(
            tuple(
                Output(place, summary(one), other, exact, bounds, beyond)
                for one, (place, exact), other, bounds, beyond in parts
            ),
            wrong,
        )

    def _beyond(self, found: Sequence[Array], actual: Sequence[Array]) -> Sequence[Unlikely | None]:
        """Find what is undetermined and unlikely in each array."""
        if not _is_open(found) or not has_unlikely_sums(self._module):
            return [None] * len(found)
        return [*map(unlikely, found, actual, self._likely)]

    def _by_steps(
        self, actual: Sequence[Array], found: list[Array], run: Run
    ) -> tuple[list[Array], tuple[Step, ...]]:
        """Return the kinds, as far as usual orders and values in between tell, and the steps to
        those that are wrong. Where an instruction may give anything at all, orders of sums tell
        little: values in between, which tell most, are asked for first."""
        if not self.enclosed.openings:
            found = self._by_usual_orders(actual, found)
        wrong: tuple[Step, ...] = ()
        steps = None
        if _is_open(found) and self._plan.names:
            steps = run(self._showing(tuple(self._plan.names)))
        if steps is not None:
            found, wrong = self._step_by_step(actual, found, tuple(self._plan.names), steps)
        if self.enclosed.openings:
            found = self._by_usual_orders(actual, found)
        if steps is None or wrong or not self._trials:
            return found, wrong
        if same_where_open(found, actual, self._own(steps, actual)):
            return found, wrong
        return self._by_trials(actual, found, run)

    def _by_usual_orders(self, actual: Sequence[Array], found: list[Array]) -> list[Array]:
        """Return the kinds, as far as what compilers usually do tells."""
        for number in range(len(self._usual)):
            if _is_open(found):
                found = [*map(resolved, found, self._kinds(actual, self._usually(number)))]
        return found

    def _step_by_step(
        self,
        actual: Sequence[Array],
        found: Sequence[Array],
        names: Sequence[str],
        steps: Sequence[Array],
    ) -> tuple[list[Array], tuple[Step, ...]]:
        """Return the kinds, as far as the peer's own values in between tell, and the steps that are
        wrong."""
        own = self._own(steps, actual)
        known = dict(zip(names, steps[len(actual) :], strict=True))
        narrower, wrong = self._followed(known, own, self._given)
        kinds_of = [*map(resolved, found, map(beside_middle, actual, narrower))]
        for given in self._usual if not wrong else ():
            if _is_open(kinds_of):
                usual, unusual = self._followed(known, own, given)
                if not unusual:  # else what follows may rest on an illegal value
                    kinds_of = [*map(resolved, kinds_of, map(beside_middle, actual, usual))]
        if not wrong and _is_open(kinds_of):
            wrong = self._followed(known, own, self._given, Trust.ONCE)[1]
        if not wrong and _is_open(kinds_of):
            given = self._usual[0] if self._usual else self._given
            one_way, illegal = self._followed(known, own, given, Trust.STEPS)
            if not illegal:
                kinds_of = [*map(resolved, kinds_of, map(beside_middle, actual, one_way))]
        return kinds_of, wrong

    def _by_trials(
        self, actual: Sequence[Array], found: list[Array], run: Run
    ) -> tuple[list[Array], tuple[Step, ...]]:
        """Return the kinds, as far as anchors tell with which the undetermined elements are what
        they are without: those that seldom disturb, and if these are not enough, more, found by
        trial."""
        answers: dict[tuple[str, ...], Sequence[Array]] = {}
        trials = self._trials
        wrong: tuple[Step, ...] = ()

        def agrees(chosen: tuple[str, ...]) -> bool:
            nonlocal trials, found, wrong
            trials -= 1
            names = _with_decisions(chosen)
            steps = run(self._showing(names)) if trials >= 0 else None
            if steps is None or not same_where_open(found, actual, self._own(steps, actual)):
                return False
            answers[chosen] = steps
            if chosen == few or self._is_quick:
                found, wrong = self._step_by_step(actual, found, names, steps)
                trials = 0 if wrong or not _is_open(found) else trials
            return True

        groups = anchors.by_opcode(self._plan.names)
        few = seldom_disturbing(groups)
        kept = undisturbed(groups, agrees, few if few and agrees(few) else ())
        if kept in ((), few) or self._is_quick or wrong or not _is_open(found):
            return found, wrong
        return self._step_by_step(actual, found, _with_decisions(kept), answers[kept])

    def _followed(
        self,
        known: Mapping[str, Array],
        own: Sequence[Array],
        given: Mapping[str, Any],
        trust: Trust = Trust.PROVEN,
    ) -> tuple[tuple[Enclosure, ...], tuple[Step, ...]]:
        """Enclose intermediate values, and the steps to them, and from them to the results
        that came with them, that are wrong."""
        enclosed, wrong = followed(self._inlined, known, *self._values, **given, trust=trust)
        legal = tuple(arrays_of(enclosed.result))
        root = self._inlined.entry.root_instruction
        verdicts = map(summary, map(beside_middle, own, legal))
        steps = map(Step, repeat(root), verdicts, own, legal)
        return legal, (*wrong, *(step for step in steps if step.verdict.counts[OUTSIDE]))

    def _own(self, steps: Sequence[Array], actual: Sequence[Array]) -> Sequence[Array]:
        """Return the results that came with values in between."""
        return self._within_sizes(steps[: len(actual)])

    def _within_sizes(self, actual: Sequence[Array]) -> Sequence[Array]:
        """Cut results to their sizes: a compiler may return the room of bounded arrays, and the
        elements at its beginning, as XLA does: one after the other, not in the strides of the
        bounds."""
        shape = self._module.entry.root_instruction.shape
        declared = [x for x in leaves(shape) if x.element_type.is_array]
        if not len(actual) == len(self._exact) == len(declared):
            return actual
        found = []
        for array, (_, exact), one in zip(actual, self._exact, declared, strict=True):
            room = one.is_dynamic and array.shape == one.dims
            found.append(array.ravel()[: exact.size].reshape(exact.shape) if room else array)
        return found

    def _kinds(self, actual: Sequence[Array], legal: Sequence[Enclosure]) -> list[Array]:
        triples = zip(actual, self._exact, legal, strict=True)
        return [kinds(other, one, bounds) for other, (_, one), bounds in triples]

    def _mismatch(self, actual: Sequence[Array], count: int) -> str | None:
        if not len(actual) == len(self._exact) == count:
            return f"{len(actual)} arrays, not {len(self._exact)}"
        for (place, one), other in zip(self._exact, actual, strict=True):
            if (one.dtype, one.shape) != (other.dtype, other.shape):
                found = [f"{x.dtype}{list(x.shape)}" for x in (other, one)]
                return f"{place or 'result'}: {found[0]}, not {found[1]}"
        return None


def judged_by(
    name: str, module: Module, values: Sequence[Any], actual: Sequence[Array], seed: int = 0
) -> Found:
    """Judge the results of a compiler whose budget is a row of BUDGETS: ``fast`` for our own.

    ``actual`` are the arrays of the result of ``module`` on ``values``, in order. Raises
    ArgumentError for an unknown name.
    """
    peer = budget.named(name)
    exact = arrays_of(evaluate(module, *values, seed=seed))
    named = [(f"result {place}", array) for place, array in enumerate(exact)]
    judge = Judge(module, values, named, peer=peer, seed=seed)
    return judge.judged(actual, lambda other: None)


def _with_decisions(chosen: Sequence[str]) -> tuple[str, ...]:
    """Name values, after what says whether a program was where they are."""
    around = (decision for name in chosen for decision in decisions(name))
    return tuple(dict.fromkeys((*around, *chosen)))


def _is_open(found: Sequence[Array]) -> bool:
    return any(summary(one).counts[UNDETERMINED] for one in found)

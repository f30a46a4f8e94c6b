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
from interp.envelope.open_results import can_be_restricted, restricted
from interp.envelope.peer_values import Step, Trust, followed
from interp.envelope.random_rounding import (
    Unlikely,
    has_unlikely_sums,
    likely_budget,
    unlikely,
)
from interp.envelope.recorded_values import exposed
from interp.envelope.sums_in_order import has_narrow_floats, usual_budgets
from interp.envelope.trying import Shown, Trying
from interp.envelope.value_names import with_decisions, with_plain_names
from interp.envelope.verdict import (
    KINDS,
    OUTSIDE,
    Verdict,
    is_open,
    kinds,
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
        self._usual_results: dict[int, dict[int, Enclosure]] = {}

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

    @property
    def _most_usual(self) -> dict[str, Any]:
        """Return the first of these budgets, or the whole one."""
        return self._usual[0] if self._usual else self._given

    def _usually(self, number: int, wanted: Sequence[int]) -> Mapping[int, Enclosure]:
        """Return the enclosures of wanted results by one of these budgets, computed once."""
        known = self._usual_results.setdefault(number, {})
        missing = [place for place in wanted if place not in known]
        if missing:
            module = restricted(self._module, missing)
            found = enclose(module, *self._values, **self._usual[number])
            known.update(zip(missing, arrays_of(found.result), strict=True))
        return known

    def _open(self, found: Sequence[Array]) -> Sequence[int]:
        """List the results of which something is open; then all, if they cannot be parted."""
        places = [place for place, one in enumerate(found) if is_open(one)]
        if places and not all(map(can_be_restricted, (self._module, self._inlined))):
            return range(len(found))
        return places

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
        if not any(map(is_open, found)) or not has_unlikely_sums(self._module):
            return [None] * len(found)
        return [*map(unlikely, found, actual, self._likely)]

    def _by_steps(
        self, actual: Sequence[Array], found: list[Array], run: Run
    ) -> tuple[list[Array], tuple[Step, ...]]:
        """Return the kinds, as far as usual orders and values in between tell, and the steps to
        those that are wrong. Where an instruction may give anything at all, orders of sums tell
        little: values in between, which tell most, are asked for first."""
        trying = Trying(actual, found)
        if not self.enclosed.openings:
            self._by_usual_orders(trying)
        shown = self._all_shown(run) if trying.is_open else None
        if shown is not None:
            self._follow(trying, shown, range(len(found)))
            if self._trials and trying.is_undecided and trying.differs(shown):
                self._try_few(trying, run)
            self._go_on(trying, shown)
        if self.enclosed.openings:
            self._by_usual_orders(trying)
        if shown is not None and self._trials and trying.is_undecided and trying.differs(shown):
            del shown  # of large programs several such do not fit into memory
            self._try_more(trying, run)
        return trying.found, trying.wrong

    def _all_shown(self, run: Run) -> Shown | None:
        """Ask a compiler for all values of the plan; None if there are none, or it does not take
        the program."""
        names = tuple(self._plan.names)
        steps = run(self._showing(names)) if names else None
        return None if steps is None else self._shown(names, steps)

    def _by_usual_orders(self, trying: Trying) -> None:
        """Find out what the orders of sums tell that compilers usually take."""
        for number in range(len(self._usual)):
            if wanted := self._open(trying.found):
                legal = self._usually(number, wanted)
                for place in wanted:
                    exact = self._exact[place][1]
                    usual = kinds(trying.actual[place], exact, legal[place])
                    trying.resolve(place, usual)

    def _follow(self, trying: Trying, shown: Shown, places: Sequence[int]) -> None:
        """Find out what the peer's own values in between tell of the results at ``places``, and the
        steps to them that are wrong."""
        narrower, wrong = self._followed(shown, self._given, places)
        trying.blame(wrong)
        trying.narrow(narrower)

    def _go_on(self, trying: Trying, shown: Shown, is_usual: bool | None = None) -> None:
        """Find out what they tell where the peer is trusted, or with less than the whole budget:
        first where it is trusted most, which decides the most at once, unless that is known."""
        usual = self._most_usual
        if is_usual is None:
            is_usual = self._trust(trying, shown, usual)
        for given in self._usual:
            if trying.is_undecided:
                narrower, unusual = self._followed(shown, given, self._open(trying.found))
                if not unusual:  # else what follows may rest on an illegal value
                    trying.narrow(narrower)
        if not is_usual and usual is not self._given:
            self._trust(trying, shown, self._given)
        if trying.is_undecided:
            places = self._open(trying.found)
            trying.blame(self._followed(shown, self._given, places, Trust.ONCE)[1])

    def _trust(self, trying: Trying, shown: Shown, given: Mapping[str, Any]) -> bool:
        """Take over each single step of the peer; test whether all of them are legal, as they must
        be to tell anything."""
        if not trying.is_undecided:
            return True
        one_way, illegal = self._followed(shown, given, self._open(trying.found), Trust.STEPS)
        if not illegal:
            trying.narrow(one_way)
        return not illegal

    @cached_property
    def _few(self) -> tuple[str, ...]:
        """Name the values of the plan that seldom change what a compiler gives."""
        return seldom_disturbing(anchors.by_opcode(self._plan.names))

    def _agreeing(self, trying: Trying, run: Run, chosen: tuple[str, ...]) -> Shown | None:
        """Ask a compiler for chosen values; None if it does not take the program, or undetermined
        elements are others then."""
        names = with_decisions(chosen)
        steps = run(self._showing(names))
        shown = None if steps is None else self._shown(names, steps)
        return None if shown is None or trying.differs(shown) else shown

    def _try_few(self, trying: Trying, run: Run) -> None:
        """Follow values that seldom disturb, if they do not. It is sooner done than to go on with
        values that do."""
        shown = self._agreeing(trying, run, self._few) if self._few else None
        if shown is None:
            return
        trying.keep(self._few)
        is_usual = self._trust(trying, shown, self._most_usual)
        if trying.is_undecided:
            self._follow(trying, shown, self._open(trying.found))
            self._go_on(trying, shown, is_usual)

    def _try_more(self, trying: Trying, run: Run) -> None:
        """Follow as many values as can be asked for such that the undetermined elements are what
        they are without, found by trial."""
        last: Shown | None = None
        left = self._trials - 1

        def agrees(chosen: tuple[str, ...]) -> bool:
            nonlocal left, last
            left -= 1
            shown = self._agreeing(trying, run, chosen) if left >= 0 else None
            if shown is None:
                return False
            last = shown
            if self._is_quick:
                self._follow(trying, shown, self._open(trying.found))
                self._go_on(trying, shown)
                left = left if trying.is_undecided else 0
            return True

        undisturbed(anchors.by_opcode(self._plan.names), agrees, trying.kept)
        if last is not None and trying.is_undecided and not self._is_quick:
            self._follow(trying, last, self._open(trying.found))
            self._go_on(trying, last)

    def _followed(
        self,
        shown: Shown,
        given: Mapping[str, Any],
        places: Sequence[int],
        trust: Trust = Trust.PROVEN,
    ) -> tuple[Mapping[int, Enclosure], tuple[Step, ...]]:
        """Enclose intermediate values that lead to the results at some places, and find the steps
        to them, and from them to the results that came with them, that are wrong."""
        module = restricted(self._inlined, places)
        enclosed, wrong = followed(module, shown.known, *self._values, **given, trust=trust)
        legal = tuple(arrays_of(enclosed.result))
        own = [shown.own[place] for place in places]
        root = self._inlined.entry.root_instruction
        verdicts = map(summary, map(beside_middle, own, legal))
        steps = map(Step, repeat(root), verdicts, own, legal)
        illegal = (step for step in steps if step.verdict.counts[OUTSIDE])
        return dict(zip(places, legal, strict=True)), (*wrong, *illegal)

    def _shown(self, names: Sequence[str], steps: Sequence[Array]) -> Shown:
        """Divide what a compiler gave into results and values in between."""
        count = len(self._exact)
        known = dict(zip(names, steps[count:], strict=True))
        return Shown(self._within_sizes(steps[:count]), known)

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

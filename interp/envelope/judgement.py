"""Judge another compiler's results by the error envelope, step by step where it is too wide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import repeat
from typing import Any

from hlo.module import Module
from hlo.passes.inline import inline, inline_if_small
from hlo.types import leaves
from hlo.values import Array, arrays_of
from interp.envelope import anchors
from interp.envelope.budget import Budget
from interp.envelope.defining_equations.all_results import with_all_results
from interp.envelope.enclosure import Enclosure
from interp.envelope.evaluation import Enclosed, enclose
from interp.envelope.memoisation.memo import Memo
from interp.envelope.midpoints import beside_middle
from interp.envelope.observable_values import seldom_disturbing, undisturbed
from interp.envelope.open_results import OpenResults, can_be_restricted, restricted
from interp.envelope.peer_values.followed import Step, Trust, followed
from interp.envelope.peer_values.nearby import followed_nearby
from interp.envelope.peer_values.readings import followed_in_readings
from interp.envelope.random_rounding import (
    Unlikely,
    has_unlikely_sums,
    likely_budget,
    unlikely,
)
from interp.envelope.recorded_values import exposed
from interp.envelope.sums_in_order import has_narrow_floats, usual_budgets
from interp.envelope.trying import (
    Found,
    Named,
    Output,
    Shown,
    Trying,
    are_declared,
    mismatch,
    within_sizes,
)
from interp.envelope.value_names import with_decisions, with_plain_names
from interp.envelope.verdict import OUTSIDE, is_open, kinds, summary

# Elements of an instruction that are followed as quickly as XLA compiles it: of a gradient of BERT
# with 4,000 instructions of 4,000 elements each, 2.2 s and 6 s.
_QUICK = 1 << 13
_FEW = 2.0**-12  # of all elements

Run = Callable[[Module], Sequence[Array] | None]  # a compiler; None: it gives no results


class Judge:
    """Judges results of one program on fixed arguments; its enclosure is computed once for all
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
        shown: Shown | None = None,
    ) -> None:
        """``trials``: the most further programs a compiler is asked to run in search of anchors
        that leave its results unchanged. ``shown``: values in between that are known already, by
        the names of instructions in :func:`inlined`; the compiler is not asked for others."""
        module = inline_if_small(module)  # what is done in a call is judged as elsewhere
        self._module, self._values, self._exact = module, tuple(values), exact
        self._trials, self._known = trials, shown
        self._given: dict[str, Any] = {"peer": peer, "seed": seed, "memo": Memo()}
        self._results = OpenResults(module, self._values)

    @cached_property
    def enclosed(self) -> Enclosed:
        return enclose(self._module, *self._values, **self._given)

    @cached_property
    def _inlined(self) -> Module:
        return inlined(self._module)

    @cached_property
    def _plan(self) -> anchors.Plan:
        given = self._usual[0] if has_narrow_floats(self._module) else self._given
        return anchors.planned(self._inlined, *self._values, **given)

    @cached_property
    def _usual(self) -> Sequence[dict[str, Any]]:
        """Keyword arguments of :func:`enclose` for each usual order of sums; empty if no sums need
        it."""
        budgets = usual_budgets(self._module, self._given["peer"])
        return [{**self._given, "peer": budget} for budget in budgets]

    @property
    def _most_usual(self) -> dict[str, Any]:
        """The first of the usual budgets, or the peer's own if there are none."""
        return self._usual[0] if self._usual else self._given

    def _open(self, found: Sequence[Array]) -> Sequence[int]:
        """List the results that have undetermined elements; all, if the module cannot be restricted
        to them."""
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
        """Whether enclosing the anchored program takes less time than a compiler takes to compile
        it."""
        instructions = self._inlined.entry.instructions
        elements = sum(leaf.elements for i in instructions for leaf in leaves(i.shape))
        return elements < _QUICK * len(instructions)

    def _showing(self, names: Sequence[str]) -> Module:
        """Make the program that also returns these anchors."""
        return exposed(self._inlined, names, self._plan.trips)

    def judged(self, actual: Sequence[Array], run: Run) -> Found:
        """Judge ``actual``, a compiler's results. ``run`` makes it evaluate another program on the
        same arguments, and returns None if it cannot."""
        legal = tuple(arrays_of(self.enclosed.result))
        actual = within_sizes(self._module, self._exact, actual)
        other = mismatch(self._exact, actual, len(legal))
        if other is not None:
            return Found((), mismatch=other)
        found, wrong = self._by_steps(actual, self._kinds(actual, legal), run)
        parts = zip(found, self._exact, actual, legal, self._beyond(found, actual), strict=True)
        return Found(
            tuple(
                Output(place, summary(one), given, exact, bounds, beyond)
                for one, (place, exact), given, bounds, beyond in parts
            ),
            wrong,
        )

    def _beyond(self, found: Sequence[Array], actual: Sequence[Array]) -> Sequence[Unlikely | None]:
        """Find, for each array, the undetermined elements that random rounding makes unlikely."""
        if not any(map(is_open, found)) or not has_unlikely_sums(self._module):
            return [None] * len(found)
        return [*map(unlikely, found, actual, self._likely)]

    def _by_steps(
        self, actual: Sequence[Array], found: list[Array], run: Run
    ) -> tuple[list[Array], tuple[Step, ...]]:
        """Narrow undetermined verdicts by usual orders of sums and by anchors; return the verdicts,
        and the illegal steps. Where an instruction may give anything at all, orders of sums decide
        little, so anchors are tried first."""
        trying = Trying(actual, found)
        if not trying.is_open:
            return found, ()
        if self._is_quick:
            self._by_flushing(trying)
        if not self.enclosed.openings:
            self._by_usual_orders(trying)
        shown = self._all_shown(run) if trying.is_open else None
        if shown is not None:
            self._on_all_shown(trying, shown, run)
        if shown is not None and not self._is_worth_more(trying, shown):
            return trying.found, trying.wrong
        if not self._is_quick:
            self._by_flushing(trying)
        if shown is not None:
            self._go_on(trying, shown)
        if self.enclosed.openings:
            self._by_usual_orders(trying)
        if shown is not None and self._trials and trying.is_undecided and trying.differs(shown):
            del shown  # of large programs several such do not fit into memory
            self._try_more(trying, run)
        return trying.found, trying.wrong

    def _on_all_shown(self, trying: Trying, shown: Shown, run: Run) -> None:
        """Judge on all anchors; where asking for them changed results, on few anchors that do not,
        or else on legal values near those shown."""
        self._follow(trying, shown, range(len(trying.found)))
        if self._trials and trying.is_undecided and trying.differs(shown):
            self._try_few(trying, run)
        if trying.is_undecided and trying.differs(shown):
            self._look_nearby(trying, shown)

    def _is_worth_more(self, trying: Trying, shown: Shown) -> bool:
        """Test whether further evaluations and runs are worth their time: not if they take longer
        than all before, the compiler is another one with every anchor, and few elements are open.
        Of a training step of BERT these are 1,630 of 115 million, mostly of gradients that are zero
        but for roundings."""
        is_few = trying.open_share < _FEW and trying.differs(shown)
        return self._is_quick or not is_few

    def _all_shown(self, run: Run) -> Shown | None:
        """Run the program with all anchors; None if there are none, or the compiler does not take
        it. What is known already is not asked for."""
        if self._known is not None:
            return self._known
        names = tuple(self._plan.names)
        return self._shown(names, run) if names else None

    def _by_flushing(self, trying: Trying) -> None:
        """Resolve undetermined elements that are legal if all subnormals are flushed: zero or the
        number is then not an interval between them. Tried where zeros and subnormals show."""
        if not self._given["peer"].flushes or not trying.has_small(self._exact):
            return
        peer = replace(self._given["peer"], always_flushes=True)
        legal = self._results.enclosed(self._open(trying.found), {**self._given, "peer": peer})
        self._resolve(trying, legal)

    def _by_usual_orders(self, trying: Trying) -> None:
        """Resolve undetermined elements that are legal under one of the usual orders of sums; of
        long loops and folds only the first of these are tried."""
        for number, given in enumerate(self._usual):
            if wanted := self._open(trying.found):
                self._resolve(trying, self._results.once(number, wanted, given))

    def _resolve(self, trying: Trying, legal: Mapping[int, Enclosure]) -> None:
        """Resolve undetermined elements that are legal in narrower enclosures of some results."""
        for place, one in legal.items():
            trying.resolve(place, kinds(trying.actual[place], self._exact[place][1], one))

    def _follow(self, trying: Trying, shown: Shown, places: Sequence[int]) -> None:
        """Judge the results at ``places`` on the peer's own anchors, under the whole budget."""
        narrower, wrong = self._followed(shown, self._given, places)
        trying.blame(self._confirmed(wrong, shown, places))
        trying.narrow(narrower)

    def _confirmed(
        self, wrong: tuple[Step, ...], shown: Shown, places: Sequence[int]
    ) -> tuple[Step, ...]:
        """Keep the illegal steps that are illegal whichever values a compiler computes again.

        What is done element by element may be done again in each loop that needs it, there with a
        product and a sum contracted and here not: the value that is shown need not be the one that
        its users read (sy - floor(sy), which shows the last bits of sy).
        """
        if not wrong:
            return wrong
        _, proven = self._followed(shown, self._given, places, Trust.STATES)
        names = {step.instruction.name for step in proven}
        return tuple(step for step in wrong if step.instruction.name in names) or proven

    def _go_on(self, trying: Trying, shown: Shown, is_usual: bool | None = None) -> None:
        """Resolve what is still undetermined by weaker premises: the peer's single steps taken as
        they are (:attr:`Trust.STEPS`; first, as it decides the most), usual budgets, and values
        that are computed once. ``is_usual`` is the outcome of the first, where that was tried
        already."""
        usual = self._most_usual
        if is_usual is None:
            is_usual = self._trust(trying, shown, usual)
        if self._usual and trying.is_undecided:
            self._read(trying, shown)
        for given in self._usual:
            if trying.is_undecided and not self._results.are_costly:
                narrower, unusual = self._followed(shown, given, self._open(trying.found))
                if not unusual:  # else what follows may rest on an illegal value
                    trying.narrow(narrower)
        if not is_usual and usual is not self._given:
            self._trust(trying, shown, self._given)
        if trying.is_undecided:
            places = self._open(trying.found)
            trying.blame(self._followed(shown, self._given, places, Trust.ONCE)[1])

    def _look_nearby(self, trying: Trying, shown: Shown) -> None:
        """Resolve undetermined elements on legal values near those shown, where asking for these
        made the compiler give other results."""
        follow = partial(followed_nearby, **self._given)
        narrower, unproven = self._enclosed_on(shown, self._open(trying.found), follow)
        if not unproven:
            trying.narrow(narrower)

    def _trust(self, trying: Trying, shown: Shown, given: Mapping[str, Any]) -> bool:
        """Resolve undetermined elements on the peer's single steps; return whether all steps were
        legal, else nothing follows from them."""
        if not trying.is_undecided:
            return True
        one_way, illegal = self._followed(shown, given, self._open(trying.found), Trust.STEPS)
        if not illegal:
            trying.narrow(one_way)
        return not illegal

    def _read(self, trying: Trying, shown: Shown) -> None:
        """Resolve undetermined elements that follow from what a compiler shows of narrow values,
        read in one way or another."""
        places = self._open(trying.found)
        given = restricted(self._inlined, places), shown.known, *self._values
        for enclosed, is_illegal in followed_in_readings(*given, **self._most_usual):
            if not is_illegal:
                trying.narrow(dict(zip(places, arrays_of(enclosed.result), strict=True)))
            if not trying.is_undecided:
                return

    @cached_property
    def _few(self) -> tuple[str, ...]:
        """The anchors whose opcodes seldom make a compiler change its results when they are
        returned, too."""
        return seldom_disturbing(anchors.by_opcode(self._plan.names))

    def _agreeing(self, trying: Trying, run: Run, chosen: tuple[str, ...]) -> Shown | None:
        """Run the program with chosen anchors; None if the compiler does not take it, or if its
        undetermined elements then differ from those without anchors."""
        shown = self._shown(with_decisions(chosen), run)
        return None if shown is None or trying.differs(shown) else shown

    def _try_few(self, trying: Trying, run: Run) -> None:
        """Judge by the anchors of :attr:`_few`, if they leave the results unchanged: one run, where
        a search by bisection takes many."""
        shown = self._agreeing(trying, run, self._few) if self._few else None
        if shown is None:
            return
        trying.keep(self._few)
        is_usual = self._trust(trying, shown, self._most_usual)
        if trying.is_undecided:
            self._follow(trying, shown, self._open(trying.found))
            self._go_on(trying, shown, is_usual)

    def _try_more(self, trying: Trying, run: Run) -> None:
        """Search by bisection for a large set of anchors that leaves the undetermined elements
        unchanged, and judge by these. Where enclosing is quick each set is judged as it is
        found."""
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
        """Enclose the results at ``places`` on the peer's anchors under a budget and a trust."""
        return self._enclosed_on(shown, places, partial(followed, **given, trust=trust))

    def _enclosed_on(
        self,
        shown: Shown,
        places: Sequence[int],
        follow: Callable[..., tuple[Enclosed, tuple[Step, ...]]],
    ) -> tuple[Mapping[int, Enclosure], tuple[Step, ...]]:
        """Enclose the results at ``places`` on the peer's anchors; return the enclosures by place,
        and the illegal steps, those from the last anchors to the results included."""
        module = restricted(self._inlined, places)
        enclosed, wrong = follow(module, shown.known, *self._values)
        legal = tuple(arrays_of(enclosed.result))
        own = [shown.own[place] for place in places]
        root = self._inlined.entry.root_instruction
        verdicts = map(summary, map(beside_middle, own, legal))
        steps = map(Step, repeat(root), verdicts, own, legal)
        illegal = (step for step in steps if step.verdict.counts[OUTSIDE])
        return dict(zip(places, legal, strict=True)), (*wrong, *illegal)

    def _shown(self, names: Sequence[str], run: Run) -> Shown | None:
        """Run the program with these anchors, and split its arrays into its own results and the
        anchors' values; None if the compiler does not take it, or gives other arrays than it
        declares."""
        program, count = self._showing(names), len(self._exact)
        steps = run(program)
        if steps is None or not are_declared(program, steps):
            return None
        own = within_sizes(self._module, self._exact, steps[:count])
        known = dict(zip(names, steps[count:], strict=True))
        return None if mismatch(self._exact, own, count) is not None else Shown(own, known)

    def _kinds(self, actual: Sequence[Array], legal: Sequence[Enclosure]) -> list[Array]:
        triples = zip(actual, self._exact, legal, strict=True)
        return [kinds(other, one, bounds) for other, (_, one), bounds in triples]


def inlined(module: Module) -> Module:
    """Write a program out for its values in between to be named: without calls, with names that do
    not look like those of values in loops, and with all results of each factorisation."""
    return with_all_results(with_plain_names(inline(module)))

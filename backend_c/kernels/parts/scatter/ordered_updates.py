"""Fold updates into a copy of the inits one after the other, at indices known at run time only.

Right for any computation, as each element meets its updates in their order. Threads share the
elements, not the updates: each walks all of these, and folds those that meet its share, so that the
result does not depend on their number. Exact sums of floats are not folds: they are those of
:mod:`backend_c.kernels.parts.scatter.grouped_updates`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import INDEX, Apply, Expr
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.reduction.combiner import Combiner, apply_combiner
from backend_c.kernels.parts.reduction.monoids import Monoid, monoid_of
from hlo.types import PRED

_Index = tuple[Expr, ...]


def is_fold(scope: Scope, inits: Sequence[Element], to_apply: Combiner) -> bool:
    """Return whether updates are folded one by one: always, but for exact sums of floats."""
    element_type = inits[0].shape.element_type
    of_floats = element_type.is_inexact
    is_sum = of_floats and len(inits) == 1 and to_apply.monoid == "add"
    return scope.settings.is_fast or not is_sum


class OrderedUpdates:
    """Fold ``updates`` into the results that ``write`` stores, by ``to_apply``.

    Sums and products of narrow floats are kept in f32 until :meth:`finish`, in ``fast`` numerics.
    """

    def __init__(
        self,
        scope: Scope,
        inits: Sequence[Element],
        updates: Sequence[Element],
        to_apply: Combiner,
        write: Writer,
    ) -> None:
        self._scope, self._write = scope, write
        self._inits, self._updates, self._to_apply = inits, updates, to_apply
        self._dims = inits[0].shape.dims
        self._wide = wide_monoid(scope, inits, to_apply)
        self._states = list(write.arrays)
        if self._wide is not None:
            self._states = [scope.scratch(self._wide.state, inits[0].shape.elements)]

    def start(self) -> None:
        """Write the initial states: a copy of the inits."""
        with nest.flat(self._scope, self._dims, len(self._inits)) as index:
            values = tuple(init.at(*index) for init in self._inits)
            if self._wide is None:
                self._write(index, values)
            else:
                place = ix.linearize(index, self._dims)
                self._scope.store(self._states[0], place, self._wide.lifted(values[0]))

    def meet(self, target: _Index, source: _Index) -> None:
        """Fold the updates at index ``source`` into the elements at index ``target``."""
        scope, place = self._scope, ix.linearize(target, self._dims)
        held = [scope.bind(scope.load(state, place)) for state in self._states]
        values = [scope.bind(update.at(*source)) for update in self._updates]
        if self._wide is not None:
            after = [self._wide.combined(held[0], self._wide.lifted(values[0]))]
        else:
            after = apply_combiner(scope, self._to_apply, (*held, *values))
        for state, value in zip(self._states, after, strict=True):
            scope.store(state, place, value)

    def finish(self) -> None:
        """Write the results from wider states, if there are any."""
        if self._wide is None:
            return
        with nest.flat(self._scope, self._dims, 1) as index:
            state = self._scope.load(self._states[0], ix.linearize(index, self._dims))
            self._write(index, (self._wide.value(state),))


def wide_monoid(scope: Scope, inits: Sequence[Element], to_apply: Combiner) -> Monoid | None:
    """Return the sum or product whose states are wider floats than elements; None otherwise."""
    element_type = inits[0].shape.element_type
    if len(inits) > 1 or not element_type.is_float or to_apply.monoid not in ("add", "multiply"):
        return None
    monoid = monoid_of(to_apply.monoid, element_type, is_fast=scope.settings.is_fast)
    return monoid if monoid is not None and monoid.state is not element_type else None


@contextmanager
def shares(scope: Scope, extent: int, work: int) -> Iterator[tuple[Expr, Expr] | None]:
    """Open a parallel loop over the threads' shares [first, end) of ``extent`` places.

    Yields None, without a loop, where the ``work`` does not pay for threads.
    """
    if nest.loop_kind(scope, work) == "serial":
        yield None
        return
    workers = scope.bind(Apply("workers", (), INDEX))
    with scope.loop(workers, "parallel") as number:
        first, end = map(scope.bind, ix.share(number, workers, extent))
        yield first, end


def is_in(place: Expr, share: tuple[Expr, Expr]) -> list[Expr]:
    """Return the conditions first <= place and place < end."""
    first, end = share
    is_after = Apply("compare-LE", (first, place), PRED)
    return [is_after, Apply("compare-LT", (place, end), PRED)]

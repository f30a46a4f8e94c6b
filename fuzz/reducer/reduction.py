"""Schedule the reduction steps: first shrink a large program, then simplify what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import interp
from fuzz.peers.synchronous_form import as_loops, synchronous
from fuzz.reducer.cutting import Evaluate, all_zeros, cut
from fuzz.reducer.inlining import each_call, each_callee, inline_or_unroll
from fuzz.reducer.numbers import simpler_numbers
from fuzz.reducer.resizing import (
    fewer_dimensions,
    filled_dimensions,
    simpler_types,
    smaller_dimensions,
)
from fuzz.reducer.rewiring import (
    arguments_opened,
    elements_of_results,
    fewer_results,
    forwarded,
    forwarded_together,
    shared_arguments,
    simple_arrays,
    without_effects,
)
from fuzz.reducer.search import Case, IsInteresting, Limits, OutOfTime, Progress, Search
from fuzz.reducer.stripping import bare, plain_names, simpler_attributes
from hlo.errors import ArgumentError, Error
from hlo.module import Module
from hlo.passes.dead_code import dead_code
from interp.values import Value

_FUEL = 1 << 24  # instructions of an evaluation that records values

_STEPS: tuple[tuple[Callable[[Case], Iterator[Case]], str], ...] = (
    (fewer_results, "fewer results"),
    (elements_of_results, "fewer results"),
    (without_effects, "dead code"),
    (forwarded_together, "forward operands"),
    (forwarded, "forward operands"),
    (arguments_opened, "open arguments"),
    (each_call, "inline a call"),
    (each_callee, "a computation alone"),
    (shared_arguments, "share arguments"),
    (smaller_dimensions, "smaller dimensions"),
    (filled_dimensions, "no empty dimensions"),
    (fewer_dimensions, "fewer dimensions"),
    (simpler_types, "simpler types"),
    (simple_arrays, "simpler constants"),
    (simpler_attributes, "simpler attributes"),
    (simpler_numbers, "simpler numbers"),
)


def exact(module: Module, arrays: tuple[Value, ...]) -> Value | None:
    """Evaluate a program with the interpreter; None if it has no result."""
    try:
        return interp.evaluate(module, *arrays, fuel=_FUEL)
    except Error:
        return None


def reduce(
    module: Module,
    arrays: Sequence[Value],
    is_interesting: IsInteresting,
    *,
    seconds: float = 300.0,
    values: Sequence[Evaluate] = (exact, all_zeros),
    progress: Progress | None = None,
    at_once: Sequence[IsInteresting] = (),
    taken: Callable[[Any], object] | None = None,
    is_plain: bool = True,
) -> tuple[Module, tuple[Value, ...]]:
    """Reduce a module and its arguments to small ones that are still interesting.

    ``is_interesting(module, arrays)`` sees valid modules only; an ``hlo.Error`` in it means no.
    Raises ArgumentError if the given module is not interesting. ``values`` are evaluators: their
    results are tried as arguments in place of removed instructions. ``at_once`` are predicates like
    ``is_interesting``, each run in a thread of its own, so that several programs are tried at once;
    the result is the same. After ``seconds`` the best program so far is returned; without that
    limit, equal input gives an equal result. ``progress`` is called for each smaller module with
    the step, the module, and how many were tried so far; ``taken`` with what ``is_interesting``
    returned for it, and for the given module. Unless the result ``is_plain``, instructions are only
    removed, and sizes, types and numbers stay.
    """
    first = is_interesting(module, tuple(arrays))
    if not first:
        raise ArgumentError("there is nothing to reduce: the program as it is does not fail so")
    if taken is not None:
        taken(first)
    limits = Limits(seconds, progress, taken)
    with Search(Case(module, tuple(arrays)), at_once or (is_interesting,), limits) as search:
        with suppress(OutOfTime):
            _make_small(search, values)
            if is_plain:
                _make_plain(search)
                _make_small(search, values)
                _make_plain(search)
        return search.best.module, search.best.arrays


def _make_small(search: Search, values: Sequence[Evaluate]) -> None:
    """Remove instructions; their values become arguments."""
    search.exhaust(bare, "plain text")
    search.attempt(Case(dead_code(search.best.module), search.best.arrays), "dead code")
    for other in (synchronous, as_loops):
        search.attempt(Case(other(search.best.module), search.best.arrays), "other words")
    search.exhaust(without_effects, "dead code")
    for evaluate in values:
        cut(search, evaluate)
        while inline_or_unroll(search, evaluate):
            cut(search, evaluate)


def _make_plain(search: Search) -> None:
    """Apply small simplifications until none succeeds."""
    changed = True
    while changed:
        taken = [search.exhaust(step, what) for step, what in _STEPS]
        changed = any(taken)
    search.exhaust(plain_names, "names")

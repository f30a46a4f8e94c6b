"""Group updates by the row of the result that they go to, with all threads of a GPU.

Positions of updates are sorted by key, stably, so that each row meets its updates in their order,
one thread (or the threads of a block, one for each column) walking those of its row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import INDEX, Array, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.combiner import Combiner, apply_combiner
from backend_c.kernels.parts.scatter.ordered_updates import wide_monoid
from backend_c.kernels.parts.sorting.block_radix_sort import BlockRadixSort
from hlo.types import PRED, U64

_Index = tuple[Expr, ...]


@dataclass(frozen=True)
class Rows:
    """Map ``positions`` rows of updates to the ``targets`` rows of the result.

    A row has the dims ``columns``. ``key(position)`` is in 0 … targets; ``targets`` means that the
    row is dropped. ``source(position, column)`` and ``target(key, column)`` are indices of updates
    and result.
    """

    positions: int
    targets: int
    columns: tuple[int, ...]
    key: Callable[[Expr], Expr]
    source: Callable[[Expr, _Index], _Index]
    target: Callable[[Expr, _Index], _Index]


def has_groups(rows: Rows, scope: Scope) -> bool:
    """Return whether the target groups updates by blocks of threads: rows to be counted in 31
    bits."""
    is_short = max(rows.positions, rows.targets) < 2**31
    return nest.has_blocks(scope) and is_short and rows.positions > 0


def grouped(rows: Rows, scope: Scope) -> tuple[Array, Array]:
    """Sort positions by key; return them, and for each key the offset of its first one.

    The offsets have one element more, for the positions that are dropped.
    """
    words, others = (scope.scratch(U64, rows.positions) for _ in range(2))
    with nest.outer(scope, (rows.positions,), 8) as (position,):
        key = apply("convert", scope.bind(rows.key(position)), type=U64)
        high = apply("shift-left", key, Constant(U64, 32))
        scope.store(words, position, apply("or", high, apply("convert", position, type=U64)))
    # Keys are 0 … targets, with the one of dropped rows: they take no more digits than that.
    bits = rows.targets.bit_length()
    by = ix.constant(0), Constant(U64, 0)
    sort = BlockRadixSort(scope, "u64", 1, 32, 32 + bits, by)
    (words,) = sort.sort([words], [others], rows.positions)
    order = scope.scratch(INDEX, rows.positions, frozen=True)
    with nest.flat(scope, (rows.positions,)) as (place,):
        number = apply("and", scope.load(words, place), Constant(U64, 2**32 - 1))
        scope.store(order, place, apply("convert", number, type=INDEX))
    starts = scope.scratch(INDEX, rows.targets + 1, frozen=True)
    with nest.flat(scope, (rows.targets + 1,), 32) as (target,):
        scope.store(starts, target, _first(words, rows.positions, target, scope))
    return order, starts


def _first(words: Array, count: int, key: Expr, scope: Scope) -> Expr:
    """Write a binary search; return the place of the first word whose key is at least ``key``."""
    low = scope.mutable(INDEX, ix.constant(0))
    high = scope.mutable(INDEX, ix.constant(count))
    with scope.loop(count.bit_length()), scope.when(apply("compare-LT", low, high, type=PRED)):
        tried = scope.bind(ix.divide(ix.add(low, high), 2))
        word = apply("shift-right-logical", scope.load(words, tried), Constant(U64, 32))
        found = apply("convert", word, type=INDEX)
        is_less = scope.bind(apply("compare-LT", found, key, type=PRED))
        scope.assign(high, apply("select", is_less, high, tried, type=INDEX))
        scope.assign(low, apply("select", is_less, ix.add(tried, 1), low, type=INDEX))
    return low


def fold(
    scope: Scope,
    rows: Rows,
    operands: tuple[Sequence[Element], Sequence[Element]],
    to_apply: Combiner,
    write: Writer,
) -> None:
    """Write the results: each init folded with its row's updates, in order.

    ``operands`` are (inits, updates).
    """
    inits, updates = operands
    order, starts = grouped(rows, scope)
    wide = wide_monoid(scope, inits, to_apply)
    with nest.split(scope, (rows.targets, *rows.columns), 8) as (key, *column):
        target = rows.target(key, tuple(column))
        first = scope.bind(scope.load(starts, key))
        count = ix.subtract(scope.load(starts, ix.add(key, 1)), first)
        values = [scope.bind(init.at(*target)) for init in inits]
        if wide is not None:
            values = [wide.lifted(values[0])]
        states = [scope.mutable(value.type, value) for value in values]
        with scope.loop(scope.bind(count)) as member:
            position = scope.bind(scope.load(order, ix.add(first, member)))
            source = rows.source(position, tuple(column))
            found = [scope.bind(update.at(*source)) for update in updates]
            if wide is not None:
                after = [wide.combined(states[0], wide.lifted(found[0]))]
            else:
                after = apply_combiner(scope, to_apply, (*states, *found))
            for state, value in zip(states, after, strict=True):
                scope.assign(state, value)
        write(target, tuple(states) if wide is None else (wide.value(states[0]),))

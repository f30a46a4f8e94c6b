"""Write contractions for blocks of threads: a tile of the result each, factors in shared memory.

A block computes a tile of the result, its threads some rows and columns of that, in registers
(runtime/hlo_block_tile.h). Factors of a few steps at a time are in shared memory, in several
stages: while threads multiply one stage, they load later ones (software pipelining). Sums then go
through shared memory, too, so that neighbouring threads finish and store neighbouring results: one
copy of the epilogue for all sums of a thread, and coalesced stores.

Blocks of fewer threads than a tile is made for take several turns at it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir.gpu import LARGEST_BLOCK
from backend_c.ir.loop_ir import INDEX, Apply, Array, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction_in_blocks.block_products import THREADS, Tile
from backend_c.kernels.parts.contraction_in_blocks.block_staging import Shape, Staging
from hlo.types import PRED

Place = tuple[Expr, Expr, Expr]
Own = tuple[Expr, Expr]  # a row and a column of a tile
# Writes what is done with the parts of a sum, given the result's place, and its place in the tile
# if it is at hand.
Finish = Callable[[Sequence[Expr], Place, Own | None], None]
# Writes what is done once for each tile, given its first place.
Begin = Callable[[Place], None]


def nothing(place: Place) -> None:
    """Write no prologue of a tile."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """Hold one turn of a unit (a thread or a warp): its row and column of units, its sums."""

    first: Expr  # the number of the first unit that has this turn
    is_there: Expr  # whether there is such a unit
    row: Expr
    column: Expr
    sums: Array


class BlockTiles:
    """Write the sums of a contraction, a block of threads for each tile."""

    def __init__(self, factors: Factors, tile: Tile, scope: Scope) -> None:
        self.factors, self.tile, self.scope = factors, tile, scope
        batch, k, tensor = factors.batch, factors.k, tile.product.is_tensor
        types = tile.product.factors
        left, right = (Shape(t, tile.rows.size, tile.steps, tensor) for t in types)
        self._sides = (
            Staging(factors.lhs, (batch, factors.m, k), left, scope, factors.patches),
            Staging(factors.rhs, (batch, factors.n, k), right, scope),
        )
        thread, threads = scope.own_thread()
        # Launches of tensor cores have whole warps.
        self._unit = scope.bind(ix.divide(thread, tile.unit_threads))
        self._units = scope.bind(ix.clamp(1, ix.divide(threads, tile.unit_threads), LARGEST_BLOCK))

    def emit(self, finish: Finish, begin: Begin = nothing) -> None:
        """Write all tiles: ``begin`` is their prologue, ``finish`` the epilogue of each sum."""
        factors, tile, scope = self.factors, self.tile, self.scope
        size = tile.rows.size
        dims = factors.batch, -(-factors.m // size), -(-factors.n // size)
        kind = "warps" if tile.product.is_tensor else "blocks"
        with scope.blocks(dims[0] * dims[1] * dims[2], THREADS, kind) as number:
            b, row, column = map(scope.bind, ix.delinearize(number, dims))
            first = [scope.bind(ix.multiply(one, size)) for one in (row, column)]
            place = b, first[0], first[1]
            staged = [
                scope.shared(element_type, tile.stages * side.elements)
                for element_type, side in zip(tile.product.factors, self._sides, strict=True)
            ]
            area = tile.rows.strip * tile.columns.strip
            strips = [scope.shared(tile.product.sums, area) for _ in range(tile.product.parts)]
            begin(place)
            for side, one in zip(self._sides, first, strict=True):
                side.begin((b, one))
            # Operations of `ix` divide and multiply by constants; how many units run is known at
            # run time.
            most = ix.add(self._units, tile.units - 1)
            turns = scope.bind(Apply("divide", (most, self._units), INDEX))
            with scope.loop(turns) as number:
                turn = self._turn(number)
                self._add_up(place, turn, staged)
                with scope.loop(tile.rows.groups * tile.columns.groups) as group:
                    self._finish(place, turn, group, strips, finish)

    def _turn(self, number: Expr) -> _Turn:
        """Write the assignment of a unit of the tile to the running one, and clear its sums."""
        scope, tile = self.scope, self.tile
        before = Apply("multiply", (number, self._units), INDEX)
        own = scope.bind(ix.add(before, self._unit))
        is_there = scope.bind(apply("compare-LT", own, ix.constant(tile.units), type=PRED))
        known = scope.bind(ix.clamp(0, own, tile.units - 1))
        row, column = ix.delinearize(known, (tile.rows.units, tile.columns.units))
        sums = scope.local(tile.product.sums, tile.held)
        scope.call(f"{tile.function}_clear", Pointer(sums, ix.constant(0)))
        return _Turn(scope.bind(before), is_there, scope.bind(row), scope.bind(column), sums)

    def _add_up(self, place: Place, turn: _Turn, staged: Sequence[Array]) -> None:
        """Write the pipelined loop over steps: later stages are loaded while one is multiplied."""
        scope, steps = self.scope, -(-self.factors.k // self.tile.steps)
        ahead = self.tile.stages - 1
        for number in range(ahead):
            if number < steps:
                self._bring(place, ix.constant(number), staged)
            self._end_group()
        with scope.loop(steps) as step:
            self._meet()
            if steps > ahead:
                self._bring_next(place, step, steps - ahead, staged)
            self._end_group()
            self._multiply(turn, step, staged)

    def _bring_next(self, place: Place, step: Expr, end: int, staged: Sequence[Array]) -> None:
        """Write the copies of the stage that is ``stages - 1`` ahead, if there is one."""
        after = ix.add(step, self.tile.stages - 1)
        if ix.bounds(step)[1] < end:
            self._bring(place, after, staged)
            return
        with self.scope.when(apply("compare-LT", step, ix.constant(end), type=PRED)):
            last = end + self.tile.stages - 2
            self._bring(place, ix.clamp(0, after, last), staged)

    def _bring(self, place: Place, step: Expr, staged: Sequence[Array]) -> None:
        """Write the copies of one stage of both factors."""
        b, *firsts = place
        start = ix.multiply(step, self.tile.steps)
        for side, first, array in zip(self._sides, firsts, staged, strict=True):
            offset = ix.multiply(ix.modulo(step, self.tile.stages), side.elements)
            side.emit((b, first), start, array, offset)

    def _meet(self) -> None:
        """Write the wait for the next stage, and a barrier.

        Behind it the stage is visible to all threads, and the last one may be overwritten.
        """
        later = self.tile.stages - 2  # sets of steps that may still be on their way
        if any(side.waits for side in self._sides):
            self.scope.call(f"hlo_block_copies_but_{later}" if later else "hlo_block_copies_done")
        self.scope.barrier()

    def _end_group(self) -> None:
        """Close the group of asynchronous copies of one stage."""
        if self.tile.stages > 2 and any(side.waits for side in self._sides):
            self.scope.call("hlo_block_copies_group")

    def _multiply(self, turn: _Turn, step: Expr, staged: Sequence[Array]) -> None:
        """Write the products of one stage, added to the unit's sums."""
        scope, tile = self.scope, self.tile
        units = (tile.rows, turn.row), (tile.columns, turn.column)
        sums = Pointer(turn.sums, ix.constant(0))
        with scope.when(turn.is_there), scope.loop(tile.calls) as call:
            pointers, orders = [], []
            for side, (lines, unit), array in zip(self._sides, units, staged, strict=True):
                start = ix.multiply(ix.modulo(step, tile.stages), side.elements)
                start = ix.add(start, ix.multiply(call, side.elements // tile.calls))
                first = side.place(ix.multiply(unit, lines.unit_pitch))
                pointers.append(Pointer(array, ix.add(start, first)))
                orders += [ix.constant(int(side.is_across))] * tile.product.is_tensor
            scope.call(f"{tile.function}_add", *pointers, *orders, sums)

    def _finish(
        self, place: Place, turn: _Turn, group: Expr, strips: Sequence[Array], finish: Finish
    ) -> None:
        """Write the epilogue of one row group and column group, by way of shared memory."""
        scope, tile = self.scope, self.tile
        both = tile.rows, tile.columns
        strip = tile.rows.strip, tile.columns.strip
        groups = ix.delinearize(group, (tile.rows.groups, tile.columns.groups))
        corner = ix.linearize(
            [ix.multiply(u, d.neighbours) for u, d in zip((turn.row, turn.column), both)], strip
        )
        with scope.when(turn.is_there):
            for part, array in enumerate(strips):
                sums = Pointer(turn.sums, ix.constant(part * (tile.held // tile.product.parts)))
                scope.call(f"{tile.function}_store", sums, *groups, Pointer(array, corner))
        scope.barrier()
        with scope.loop(strip[0] * strip[1], "threads") as number:
            inside = ix.delinearize(number, strip)
            owner, own = [], []
            for lines, index, one in zip(both, inside, groups):
                unit = ix.divide(index, lines.neighbours)
                owner.append(unit)
                own.append(
                    ix.add(
                        ix.multiply(unit, lines.unit_pitch),
                        ix.multiply(one, lines.group_pitch),
                        ix.modulo(index, lines.neighbours),
                    )
                )
            unit = ix.linearize(owner, (tile.rows.units, tile.columns.units))
            stored = self._has(turn, unit), number, strips
            self._finish_one(place, (own[0], own[1]), stored, finish)
        scope.barrier()

    def _has(self, turn: _Turn, owner: Expr) -> list[Expr]:
        """Return the conditions under which unit ``owner`` of the tile has this turn."""
        end = ix.add(turn.first, self._units)
        return [
            apply("compare-LE", turn.first, owner, type=PRED),
            apply("compare-LT", owner, end, type=PRED),
        ]

    def _finish_one(
        self,
        place: Place,
        own: tuple[Expr, Expr],
        stored: tuple[list[Expr], Expr, Sequence[Array]],
        finish: Finish,
    ) -> None:
        """Write the epilogue of one sum, unless it lies beyond the result.

        ``stored`` is (conditions under which the sum is there, its offset, the shared arrays of
        parts).
        """
        scope, (conditions, number, strips) = self.scope, stored
        at = [place[0]]
        for first, line, count in zip(place[1:], own, (self.factors.m, self.factors.n)):
            there = ix.add(first, line)
            # What is computed for a result may be moved out of the branch: it reads what there is.
            inside = ix.clamp(0, there, count - 1)
            if inside != there:
                conditions.append(apply("compare-LT", there, ix.constant(count), type=PRED))
            at.append(inside)
        holds = conditions[0]
        for condition in conditions[1:]:
            holds = apply("and", holds, condition)
        with scope.when(scope.bind(holds)):
            parts = [scope.bind(scope.load(strip, number)) for strip in strips]
            finish(parts, (at[0], at[1], at[2]), own)

"""Write convolutions for a target without lanes, as loops over the input where it lies.

The window is cut to what lies within the input before its loops begin, not tested at each tap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Expr, Load, Variable
from backend_c.kernels.parts.contraction.scalar_contraction import Place, ScalarContraction
from backend_c.kernels.parts.convolution.convolution_input import Convolved
from backend_c.kernels.parts.convolution.window_taps import TapRange, has_tap_ranges, tap_range

_Taps = tuple[tuple[Expr, Expr], ...]  # of each dimension a tap, and the index that it reads


def scalar_convolution(convolved: Convolved, sums: ScalarContraction) -> None:
    """Write one convolution, whose factors are those of ``sums``."""
    rows = _rows(convolved)
    if has_tap_ranges(convolved) and all(ix.value_of(n) is not None for n in sums.factors.sizes):
        ScalarConvolution(convolved, sums).emit(rows)
    else:
        sums.rows(rows)


def _rows(convolved: Convolved) -> tuple[int, ...]:
    """Return the extents whose product is the rows of the contraction."""
    labels = convolved.labels
    return tuple(convolved.dims[d] for d in (labels.output_batch, *labels.output_spatial))


class ScalarConvolution:
    """Write a loop nest over pixels, features, taps within the input, and input features.

    Where the taps of a row of the window lie side by side in both operands, with their features
    inside, both loops are one over a *run* of elements.
    """

    def __init__(self, convolved: Convolved, sums: ScalarContraction) -> None:
        self.convolved, self.sums = convolved, sums
        self.factors, self.scope = sums.factors, sums.scope
        self.features = self.factors.k_dims[-1]
        self.has_runs = self._has_runs()

    def emit(self, rows: tuple[int, ...]) -> None:
        """Write all loops; neighbouring sums are those of columns, or of groups if depthwise."""
        factors, sums = self.factors, self.sums
        with self.scope.over(rows) as row:
            m = ix.linearize(row, rows)
            if factors.n == 1:
                for groups in sums.side_by_side(factors.batch):
                    self._window([Place(b, m, ix.constant(0)) for b in groups], row)
                return
            with self.scope.loop(factors.batch) as b:
                for columns in sums.side_by_side(factors.n):
                    self._window([Place(b, m, n) for n in columns], row)

    def _window(self, places: Sequence[Place], row: Sequence[Expr]) -> None:
        """Write some neighbouring sums of one window position, over its taps within the input."""
        convolved, scope = self.convolved, self.scope
        labels, windows = convolved.labels, convolved.window.dimensions
        extents = [convolved.lhs.shape.dims[d] for d in labels.input_spatial]
        image, *outputs = row
        ranges = [tap_range(*place, scope) for place in zip(outputs, windows, extents, strict=True)]
        totals = self.sums.totals(places)
        if self.has_runs:
            last = ranges.pop()
            start = (last.at(ix.constant(0), scope),)
            length = ix.multiply(last.taps, self.features)
            self._loops(
                ranges, (), lambda taps: self._run(places, totals, image, (*taps, *start), length)
            )
        else:
            self._loops(ranges, (), lambda taps: self._features(places, totals, image, taps))
        self.sums.store(places, totals)

    def _loops(
        self, ranges: Sequence[TapRange], taps: _Taps, body: Callable[[_Taps], None]
    ) -> None:
        """Write the loop nest over ranges of taps; ``body`` is given the taps."""
        if len(taps) == len(ranges):
            body(taps)
            return
        one = ranges[len(taps)]
        with self.scope.loop(one.taps) as number:
            self._loops(ranges, (*taps, one.at(number, self.scope)), body)

    def _features(
        self, places: Sequence[Place], totals: Sequence[Variable], image: Expr, taps: _Taps
    ) -> None:
        """Write the loop over the input features of a tap."""

        def pairs(place: Place, feature: Expr) -> tuple[Expr, Expr]:
            return self._pair(place, image, taps, feature)

        self.sums.run(places, totals, self.features, pairs)

    def _run(
        self,
        places: Sequence[Place],
        totals: Sequence[Variable],
        image: Expr,
        taps: _Taps,
        length: Expr,
    ) -> None:
        """Write the loop over a run of ``length`` elements that begins at a tap."""

        def pairs(place: Place, step: Expr) -> tuple[Expr, Expr]:
            left, right = (
                self.scope.load(factor.array, ix.add(factor.offset, step))
                for factor in self._pair(place, image, taps, ix.constant(0))
                if isinstance(factor, Load)  # both are: has_runs
            )
            return left, right

        self.sums.run(places, totals, length, pairs)

    def _pair(self, place: Place, image: Expr, taps: _Taps, feature: Expr) -> tuple[Expr, Expr]:
        """Return both factors of a sum at a tap and an input feature of its group."""
        labels, lhs = self.convolved.labels, self.convolved.lhs
        index = {labels.input_batch: image}
        index[labels.input_feature] = ix.add(ix.multiply(place.b, self.features), feature)
        index |= dict(zip(labels.input_spatial, (at for _, at in taps), strict=True))
        left = lhs.at(*(index[d] for d in range(lhs.shape.rank)))
        k = ix.linearize((*(tap for tap, _ in taps), feature), self.factors.k_dims)
        return left, self.factors.rhs(place.b, place.n, k)[0]

    def _has_runs(self) -> bool:
        """Return whether both factors are contiguous along a window row's taps and their
        features."""
        dims = self.factors.k_dims
        if len(dims) < 2 or self.convolved.window.dimensions[-1].window_dilation > 1:
            return False
        zero = ix.constant(0)
        with self.scope.undone(), self.scope.draft(dims[-2:]) as (tap, feature):
            taps = (*[(zero, zero)] * (len(dims) - 2), (tap, tap))
            pair = self._pair(Place(zero, zero, zero), zero, taps, feature)
        # The weights of a reversed window have a negative pitch: no run.
        return all(_is_along(factor, ((tap, self.features), (feature, 1))) for factor in pair)


def _is_along(factor: Expr, pitches: Sequence[tuple[Expr, int]]) -> bool:
    """Return whether a factor is a load whose strides along indices are ``pitches``."""
    if not isinstance(factor, Load) or factor.array.memory is not None:
        return False
    found = ix.coefficients(factor.offset)
    return all(found.get(index, 0) == pitch for index, pitch in pitches)

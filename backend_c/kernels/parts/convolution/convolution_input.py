"""Bring the input of a fast convolution into a layout in which every tap has a constant offset.

That layout is: padded, holes of base dilation filled with zeros, features last. An input that has
it already is read in place; of any other each block of the result copies the part that it reads,
or, where these parts would overlap too often, all of it is copied once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.digits import write_lanes
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Array, Expr, Pointer
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.contraction.contraction_loops import as_type, masked
from backend_c.kernels.parts.convolution.window_positions import position
from hlo.attributes import ConvolutionDimensions, Window, WindowDimension
from hlo.types import ElementType

SHORT = 8  # pixels: shorter rows waste most of a tile
_LANES = 8  # features: fewer are stored apart rather than loaded apart
# Copies of an element, by blocks whose windows overlap. Three rows of taps are not too many, and
# what a block copies is in its thread's cache; tall and dilated windows overlap hundreds of times.
_MOST_COPIES = 4
_PAGE = 1024  # elements of 4 bytes
_BESIDE = 16  # elements added to rows a page apart


@dataclass(frozen=True)
class Convolved:
    """Describe a convolution: its input, the result's dims, feature groups and batch groups.

    It may compute a strided part of a result of dims ``whole``: ``steps`` are (first index, stride)
    along each dimension. With features in its window the last dimension is an added one
    (:mod:`backend_c.kernels.parts.convolution.wide_windows`).
    """

    lhs: Element
    dims: tuple[int, ...]
    labels: ConvolutionDimensions
    window: Window
    feature_groups: int
    batch_groups: int
    whole: tuple[int, ...]
    steps: tuple[tuple[int, int], ...]
    has_features_in_window: bool = False

    @property
    def outputs(self) -> tuple[int, ...]:
        """Return the extents of the result's spatial dimensions."""
        return tuple(self.dims[d] for d in self.labels.output_spatial)

    @property
    def images(self) -> int:
        """Return the number of images of a batch group; 1 if the batch serves as a spatial
        dimension."""
        labels = self.labels
        is_spatial = labels.output_batch in labels.output_spatial
        return 1 if is_spatial else self.dims[labels.output_batch]

    def row(self, image: Expr, spatial: Sequence[Expr]) -> Expr:
        """Return the row of the left factors of an output position: (image, *spatial),
        row-major."""
        if self.labels.output_batch in self.labels.output_spatial:
            *spatial, image = spatial
        pixels = [d for d in self.labels.output_spatial if d != self.labels.output_batch]
        dims = [self.dims[d] for d in (self.labels.output_batch, *pixels)]
        return ix.linearize((image, *spatial), dims)

    @property
    def features(self) -> int:
        """Return the number of input features of all groups."""
        return self.lhs.shape.dims[self.labels.input_feature]

    def reach(self, positions: Sequence[int]) -> tuple[int, ...]:
        """Return the extents of padded input that ``positions`` neighbouring windows cover
        together."""
        return tuple(
            (count - 1) * d.stride + (d.size - 1) * d.window_dilation + 1
            for count, d in zip(positions, self.window.dimensions, strict=True)
        )


def has_short_rows(convolved: Convolved) -> bool:
    """Return whether rows of images are longer than the rows of pixels, which waste most of a
    tile."""
    images = convolved.dims[convolved.labels.output_batch]
    last = convolved.dims[convolved.labels.output_spatial[-1]]
    return last < min(SHORT, images) and convolved.batch_groups == 1


def with_long_rows(convolved: Convolved) -> Convolved:
    """Make the batch the last spatial dimension of a convolution whose rows are short.

    Tiles have rows of pixels; a convolution to 3 x 3 pixels of many images (the gradient of
    weights) has long rows of images instead.
    """
    labels = convolved.labels
    if not has_short_rows(convolved):
        return convolved
    swapped = replace(
        labels,
        input_spatial=(*labels.input_spatial, labels.input_batch),
        output_spatial=(*labels.output_spatial, labels.output_batch),
    )
    window = Window((*convolved.window.dimensions, WindowDimension(1)))
    return replace(convolved, labels=swapped, window=window)


class OrderedInput:
    """Lay out the input that ``blocks`` of ``positions`` windows each read, and write its copies.

    ``pitches`` are those of spatial dimensions; ``offsets`` those of segments of ``length`` steps,
    which are ``step_pitch`` elements apart.
    """

    def __init__(
        self,
        convolved: Convolved,
        sums: ElementType,
        positions: Sequence[int],
        blocks: int,
        scope: Scope,
    ) -> None:
        self.convolved, self.sums, self.scope = convolved, sums, scope
        self.blocks, self.images = blocks, convolved.batch_groups * convolved.images
        self.extents = convolved.reach(positions)
        self._elements = 0  # of a copy
        features = convolved.features
        self.is_copied = not self._has_order()
        whole = convolved.reach(convolved.outputs)
        most = _MOST_COPIES * self.images * math.prod(whole)
        is_read_often = blocks * math.prod(self.extents) > most or convolved.has_features_in_window
        self.is_copied_once = self.is_copied and is_read_often
        if self.is_copied_once:
            self.extents = whole
        self._copies: Array | None = None
        self.pitches = self._pitches()
        windows = convolved.window.dimensions
        taps = [range(d.size) for d in windows]
        self.length, self.step_pitch = features // convolved.feature_groups, 1
        # The taps of a row of pixels lie side by side, unless there is something between them.
        last = windows[-1]
        steps = [d.window_dilation * p for d, p in zip(windows, self.pitches, strict=True)]
        is_row = convolved.feature_groups == 1 and self.pitches[-1] == features
        if convolved.has_features_in_window:
            along = max(range(len(windows)), key=lambda d: (windows[d].size > 1, d))
            taps[along] = range(1)
            self.length, self.step_pitch = windows[along].size, steps[along]
        elif is_row and (last.window_dilation == 1 or last.size == 1):
            taps[-1] = range(1)
            self.length *= last.size
        self.offsets = tuple(
            sum(tap * step for tap, step in zip(place, steps)) for place in itertools.product(*taps)
        )
        self.position_pitches = tuple(
            d.stride * p for d, p in zip(windows, self.pitches, strict=True)
        )

    def _pitches(self) -> tuple[int, ...]:
        """Return the pitches of spatial dimensions: those of the copies, or of the input."""
        spatial, dims = self.convolved.labels.input_spatial, self.convolved.lhs.shape.dims
        if not self.is_copied:
            return tuple(math.prod(dims[d + 1 :]) for d in spatial)
        order = list(range(len(spatial)))
        if self.convolved.has_features_in_window:
            order.sort(key=spatial.__getitem__)  # the input's own
        pitches, area = {}, self.convolved.features
        for d in reversed(order):
            # Rows at a multiple of a page have their elements in the same few sets of the cache.
            is_apart = self.convolved.has_features_in_window and d == len(spatial) - 1
            area += _BESIDE if is_apart and area % _PAGE == 0 else 0
            pitches[d] = area
            area *= self.extents[d]
        self._elements = area
        return tuple(pitches[d] for d in range(len(spatial)))

    def _has_order(self) -> bool:
        """Return whether the input in memory has the layout already, and needs no padding."""
        lhs, labels = self.convolved.lhs, self.convolved.labels
        array, dims = lhs.array, lhs.shape.dims
        if array is None or array.element_type is not self.sums or array.memory is not None:
            return False
        if self.convolved.has_features_in_window:
            pitch = math.prod(dims[labels.input_spatial[-1] + 1 :])
            if pitch % _PAGE == 0:
                return False
        # A single feature is last, whatever its dimension.
        is_last = 1 in (dims[labels.input_feature], math.prod(dims[labels.input_feature + 1 :]))
        reach = self.convolved.reach(self.convolved.outputs)
        return is_last and all(
            window.padding_low == 0 and window.base_dilation == 1 and end <= dims[d]
            for window, end, d in zip(
                self.convolved.window.dimensions, reach, labels.input_spatial, strict=True
            )
        )

    @property
    def is_copied_by_blocks(self) -> bool:
        """Return whether each block writes a copy of what it reads."""
        return self.is_copied and not self.is_copied_once

    @property
    def image_pitch(self) -> int:
        """Return the pitch of images, unless each block has a copy of its own."""
        if self.is_copied:
            return self._elements
        lhs, labels = self.convolved.lhs, self.convolved.labels
        return math.prod(lhs.shape.dims[labels.input_batch + 1 :])

    def prepare(self) -> None:
        """Allocate copies; write that of the whole input. Must be called outside loops."""
        if not self.is_copied:
            return
        scope, elements = self.scope, self._elements
        count = self.images if self.is_copied_once else self.blocks
        self._copies = scope.scratch(self.sums, count * elements, frozen=True)
        if not self.is_copied_once:
            return
        far = self._order()[0]
        dims = self.images, self._sizes()[far]
        with nest.outer(scope, dims, elements // dims[1]) as (image, row):
            start = scope.bind(ix.multiply(image, elements))
            self._copy(start, image, [ix.constant(0)] * len(self.extents), {far: row})

    def start(self, block: Expr, image: Expr, positions: Sequence[Expr]) -> Pointer:
        """Write the copy for a block, if any; return the address of its first window's first tap.

        ``block`` is its number, ``image`` the input's, ``positions`` the first window.
        """
        scope, windows = self.scope, self.convolved.window.dimensions
        if self.is_copied_by_blocks:
            start = scope.bind(ix.multiply(block, self._elements))
            firsts = [ix.multiply(p, d.stride) for p, d in zip(positions, windows, strict=True)]
            self._copy(start, image, firsts, {})
            assert self._copies is not None
            return Pointer(self._copies, start)
        array = self._copies if self.is_copied else self.convolved.lhs.array
        assert array is not None
        offset = ix.multiply(image, self.image_pitch)
        for place, step in zip(positions, self.position_pitches, strict=True):
            offset = ix.add(offset, ix.multiply(place, step))
        return Pointer(array, offset)

    def _copy(
        self, start: Expr, image: Expr, firsts: Sequence[Expr], known: dict[int, Expr]
    ) -> None:
        """Write the copy of the padded input from ``firsts`` on to ``start``.

        ``known`` are the indices of loops that are open.
        """
        scope, sizes, pitches = self.scope, self._sizes(), (*self.pitches, 1)
        assert self._copies is not None
        copies = self._copies
        *order, near = (d for d in self._order() if d not in known)
        with scope.over([sizes[d] for d in order]) as outer:

            def copy(lane: Expr) -> None:
                index = known | dict(zip((*order, near), (*outer, lane), strict=True))
                *spatial, feature = (index[d] for d in range(len(sizes)))
                offset = start
                for i, pitch in zip((*spatial, feature), pitches, strict=True):
                    offset = ix.add(offset, ix.multiply(i, pitch))
                at = [ix.add(first, i) for first, i in zip(firsts, spatial, strict=True)]
                scope.store(copies, offset, self._element(image, at, feature))

            write_lanes(scope, sizes[near], "lanes", copy)

    def _sizes(self) -> tuple[int, ...]:
        """Return the extents of a copy."""
        return (*self.extents, self.convolved.features)

    def _order(self) -> tuple[int, ...]:
        """Return the dimensions of a copy, those that the input is contiguous along last."""
        # Loads side by side make vectors; stores that are apart cost less than loads that are.
        near = self._loop_side_by_side()
        return *(d for d in range(len(self.extents) + 1) if d != near), near

    def _element(self, image: Expr, padded: Sequence[Expr], feature: Expr) -> Expr:
        """Return the input's element at padded positions; zero in the padding and in holes."""
        lhs, labels = self.convolved.lhs, self.convolved.labels
        index = {labels.input_batch: image, labels.input_feature: feature}
        conditions: list[Expr] = []
        for d, i, dimension in zip(
            labels.input_spatial, padded, self.convolved.window.dimensions, strict=True
        ):
            plain = replace(dimension, size=1, stride=1, window_dilation=1)
            index[d] = position(i, ix.constant(0), plain, lhs.shape.dims[d], conditions)
        value = lhs.at(*(index[d] for d in range(lhs.shape.rank)))
        bound = tuple(self.scope.bind(condition) for condition in conditions)
        return as_type(masked(value, bound), self.sums)

    def _loop_side_by_side(self) -> int:
        """Return the spatial dimension along which the input is contiguous; after all of them comes
        that of features."""
        # By the layout: the memory of the operand has its dimensions in order, and what is
        # computed from it mostly has them, too. Features that fill lanes are stored side by side.
        spatial = self.convolved.labels.input_spatial
        dims = self.convolved.lhs.shape.dims
        longest = [d for d, extent in enumerate(dims) if extent > 1]
        is_few = self.convolved.features < _LANES
        near = spatial if is_few else spatial[-1:]
        return spatial.index(longest[-1]) if longest and longest[-1] in near else len(spatial)

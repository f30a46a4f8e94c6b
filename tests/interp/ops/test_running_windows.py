"""Windows up to each element, whose folds go on from the one before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from fraction_sums import same_bits
from hypothesis import given
from hypothesis import strategies as st

from hlo.attributes import Window, WindowDimension
from hlo.values import Array
from interp.ops.reduction import reduce_window


class Computation:
    """A callee of two states, neither associative nor commutative."""

    monoid = None

    def __init__(self, is_elementwise: bool) -> None:
        self.is_elementwise = is_elementwise

    def __call__(self, a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array]:
        return a - c * b, np.float32(0.5) * d  # the second is the same whatever came before

    def bundled(self, results: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(results)


@given(st.data())
def test_running_folds_go_on_from_the_one_before(data: st.DataObject) -> None:
    """Windows from the start to each element: the same bits as those that are folded one by one, as
    computations are that may have effects."""
    rank = data.draw(st.integers(1, 3))
    axis, dims = (
        data.draw(st.integers(0, rank - 1)),
        data.draw(st.tuples(*[st.integers(0, 5)] * rank)),
    )
    ones = [WindowDimension(1)] * rank
    length = max(dims[axis], 1)
    ones[axis] = WindowDimension(length, padding_low=length - 1)
    window = Window(tuple(ones))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, y = (rng.standard_normal(dims).astype(np.float32) for _ in range(2))
    start = np.float32(1.5), np.float32(-2)

    fold, one_by_one = Computation(True), Computation(False)
    found = reduce_window(x, y, *map(np.asarray, start), to_apply=fold, window=window)
    expected = reduce_window(x, y, *map(np.asarray, start), to_apply=one_by_one, window=window)
    for one, other in zip(found, expected, strict=True):
        assert one.flags.c_contiguous and one.dtype == other.dtype and same_bits(one, other)

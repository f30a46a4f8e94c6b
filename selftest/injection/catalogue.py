"""The catalogue of all bugs: one row each."""

from __future__ import annotations

from selftest.injection import (
    contractions,
    control,
    data_movement,
    elementwise,
    indexing,
    integers,
    linear_algebra,
    reductions,
)
from selftest.injection.bug import Bug

BUGS: tuple[Bug, ...] = (
    *elementwise.BUGS,
    *integers.BUGS,
    *data_movement.BUGS,
    *reductions.BUGS,
    *contractions.BUGS,
    *indexing.BUGS,
    *control.BUGS,
    *linear_algebra.BUGS,
)

"""Judge a program on legal values that lie near those which a peer shows.

A peer that is asked for values in between compiles another program, with other fusions: its results
and all values before them are off from the peer's own by some units in the last place, and what
follows from exactly the values shown does not have the peer's results. But each shown value stands
for all legal ones around it. These, not more, go on here: the enclosure of a step, cut off a few
dozen units beside what is shown, so that intervals do not grow from step to step.

Every value that remains is one that the budget permits, however near the cut is: where it is made
only says how far from the shown ones legal values are looked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hlo.module import Module
from hlo.values import Array
from interp.envelope.blocks import in_blocks_of
from interp.envelope.budget import Budget
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosure import Enclosure, Value, finfo
from interp.envelope.evaluation import Enclosed, enclose
from interp.envelope.memoisation.memo import Memo
from interp.envelope.peer_values.followed import Compared, Followed, Step, Trust
from interp.envelope.peer_values.scales import Scale
from interp.envelope.peer_values.shown import ShownValues
from interp.envelope.verdict import typical

# Units in the last place of the larger of a number and the root mean square around it, or of the
# terms that it is the sum of. A fusion more or less moves a layer of a network by one or two.
_UNITS = 64


def followed_nearby(
    module: Module,
    values: Mapping[str, Array],
    *arrays: Any,
    peer: Budget,
    seed: int = 0,
    memo: Memo | None = None,
) -> tuple[Enclosed, tuple[Step, ...]]:
    """Enclose the module on legal values near the peer's at the anchors; return the enclosure of
    its result, and the anchors whose shown value is illegal.

    If there are none, what is inside is legal. What is outside proves nothing.
    """
    way = _Nearby(module, ShownValues(values), peer, Trust.STEPS)
    found = enclose(module, *arrays, peer=peer, seed=seed, watcher=way, memo=memo)
    return found, tuple(way.outside)


@dataclass(slots=True)
class _Nearby(Followed):
    """Go on with the part of an enclosure that is near to the value shown."""

    def _taken(self, compared: Compared) -> Value:
        known = Followed._taken(self, compared)  # slots=True makes another class than super() knows
        if not isinstance(known, Enclosure):
            return known
        scale = self.scales.get(compared.place.named(compared.instruction.name))
        return near(compared.actual, known, compared.legal, scale)


def near(shown: Array, known: Enclosure, legal: Enclosure, scale: Scale | None = None) -> Enclosure:
    """Widen what is known of shown floats by ``_UNITS``, also beside the terms of a sum that
    cancels (``scale``), within what is legal. Numbers of 16 bits and less, of which a few units are
    no longer near, stay as they are, and so does what is illegal or not finite."""
    if known.element_type.is_complex:
        components = zip((shown.real, shown.imag), parts(known), parts(legal), strict=True)
        return joined(*(near(*one, scale) for one in components))
    if not known.element_type.is_float or known.element_type.bits < 32 or not shown.size:
        return known
    unit = float(finfo(shown.dtype).eps) * _UNITS
    arrays = (shown, known.low, known.high, legal.low, legal.high, _around(shown, scale))
    widened = partial(_widened, unit=shown.dtype.type(unit))
    low, high = in_blocks_of(widened, [np.broadcast_to(x, shown.shape) for x in arrays])
    return Enclosure(low, high, known.nan)


def _around(shown: Array, scale: Scale | None) -> Array:
    """Find the magnitude beside which an error of each element is to be seen."""
    with np.errstate(over="ignore"):
        found = shown.dtype.type(typical(shown))
        if scale is None or not 0 < scale.typical < np.inf:
            return np.asarray(found)
        found = np.maximum(found, shown.dtype.type(scale.typical))
        return np.asarray(found if scale.each is None else np.maximum(found, scale.each))


def _widened(
    actual: Array,
    low: Array,
    high: Array,
    least: Array,
    greatest: Array,
    around: Array,
    *,
    unit: np.floating[Any],
) -> tuple[Array, Array]:
    """Move the ends of what is known apart by ``unit`` times the larger of a number and those
    around it, up to the ends of what is legal."""
    with np.errstate(all="ignore"):
        apart = np.maximum(np.abs(actual), around).astype(actual.dtype) * unit
        below = np.maximum(least, np.minimum(low, actual - apart))
        above = np.minimum(greatest, np.maximum(high, actual + apart))
        is_legal = (least <= actual) & (actual <= greatest) & np.isfinite(actual)
    return np.where(is_legal, below, low), np.where(is_legal, above, high)

"""Find results that are legal but unlikely: beyond 40 standard deviations of random rounding.

The worst legal order of a long sum rounds in one direction at every step, which no compiler does.
If rounding errors are independent random numbers of mean zero, each at most u of what is rounded,
then a sum of n numbers errs in any order by at most

    (exp(d sqrt(n) u + n u^2 / (1 - u)) - 1) sum |x|  =  d sqrt(n) u sum |x| + O(u^2)

but for a probability of 2 n exp(-d^2 (1 - u)^2 / 2) (N. J. Higham, T. Mary, "A New Approach to
Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41, 2019, theorems 2.4 and 3.1). u is
at least the standard deviation of one error, so d counts standard deviations; with d = 40 that
probability is below n 10^-346. But rounding errors are not random: those of a long sum of equal
numbers in their type and order have one direction. So this claim says where to look, and is no
proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hlo.module import Module
from hlo.types import leaves
from hlo.values import Array
from interp.envelope.boolean_masks import is_ever
from interp.envelope.budget import Budget
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.sums_in_order import has_sums
from interp.envelope.verdict import KINDS, UNDETERMINED

DEVIATIONS = 40.0


@dataclass(frozen=True, slots=True)
class Unlikely:
    """The undetermined elements of an array outside of what random rounding makes likely: their
    number, the index of the first, and the likely bounds."""

    count: int
    first: tuple[int, ...]
    likely: Enclosure


def likely_budget(peer: Budget) -> Budget:
    """Limit a budget's sums to ``DEVIATIONS`` standard deviations of random rounding."""
    return replace(peer, deviations=DEVIATIONS)


def has_unlikely_sums(module: Module) -> bool:
    """Test for sums of so many terms that the worst-case bound exceeds that of random rounding."""
    instructions = (i for c in module.computations for i in c.instructions)
    sizes = (leaf.elements for i in instructions for leaf in leaves(i.shape))
    # The worst case is n additions: d sqrt(n) < n only for n > d^2.
    return has_sums(module) and any(size > DEVIATIONS**2 for size in sizes)


def unlikely(found: Array, actual: Array, likely: Enclosure) -> Unlikely | None:
    """Find the undetermined elements that lie outside of the likely bounds; None if there are
    none."""
    with np.errstate(all="ignore"):
        beyond = (found == KINDS.index(UNDETERMINED)) & ~contains(likely, actual)
    if not is_ever(beyond):
        return None
    first = np.unravel_index(int(beyond.reshape(-1).argmax()), beyond.shape)
    return Unlikely(int(beyond.sum()), tuple(map(int, first)), likely)

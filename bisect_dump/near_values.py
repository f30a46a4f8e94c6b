"""Guess matches between the values of two programs by numerical distance.

Where neither bits nor names match two instructions (a fusion computes a value several times under
one name, a pass rewrites its surroundings), their numbers do: two roundings of one value are far
nearer to each other than two values. A replay tries a guess; it proves nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from bisect_dump.matching import Side
from bisect_dump.shared_values import Reference, Values
from bisect_dump.similarity import NEAR
from hlo.values import Array

Key = tuple[tuple[int, ...], np.dtype[Any]]


def near_values(before: Side, after: Side, values: Values, known: Set[str]) -> dict[str, Reference]:
    """Map instructions of the earlier program, except ``known`` ones, to the nearest value of the
    later program, if one is near: floats of the same shape, whose sampled elements differ by less
    than ``NEAR`` times the largest."""
    candidates = _candidates(before, after, values)
    closed = before.closed
    found: dict[str, Reference] = {}
    for name in before.arrays:
        reference = before.values[name]
        if name in known or name in closed or not values.is_telling(reference):
            continue
        sample = values.sample(reference)
        references, samples = candidates.get(_key(values, reference), ([], sample[None]))
        if references:
            distances = _distances(sample, samples)
            nearest = int(np.argmin(distances))
            if distances[nearest] <= NEAR:
                found[name] = references[nearest]
    return found


def _candidates(
    before: Side, after: Side, values: Values
) -> Mapping[Key, tuple[list[Reference], Array]]:
    """Return the samples of float arrays that only the later program has, by shape and type."""
    there = set(before.values.values())
    closed = after.closed
    references: dict[Key, dict[Reference, None]] = defaultdict(dict)
    for name in after.arrays:
        reference = after.values[name]
        is_new = reference not in there and name not in closed
        if is_new and values.is_telling(reference) and values.sample(reference).dtype.kind in "fc":
            references[_key(values, reference)][reference] = None
    return {
        key: (list(some), np.stack([values.sample(reference) for reference in some]))
        for key, some in references.items()
    }


def _key(values: Values, reference: Reference) -> Key:
    return values.shape(reference), values.sample(reference).dtype


def _distances(sample: Array, others: Array) -> Array:
    """Return the distance to each sample: the largest difference relative to the largest magnitude,
    infinity where one is not finite and the other differs."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(sample)
        size = np.abs(sample[finite]).max(initial=0.0)
        apart = np.abs(others - sample)
        same = (others == sample) | (np.isnan(others) & np.isnan(sample))
        apart = np.where(same, 0.0, np.where(np.isfinite(apart), apart / size, np.inf))
    return np.asarray(apart.max(axis=1))

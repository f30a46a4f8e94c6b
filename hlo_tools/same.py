"""Compare the outputs of files that are one program (before and after optimisation).

Optimisation changes roundings, so the bound is not zero: for each output, the sum of the
differences may be so much of the sum of magnitudes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hlo_tools.measured import Job
from hlo_tools.source import program_name

# Of f32 results: what the reassociations of a compiler do to a training step of BERT.
TOLERANCE = 2.0**-12


@dataclass(frozen=True, slots=True)
class Comparison:
    """``difference``: the largest of any output, as a part of its sum of magnitudes."""

    one: str
    other: str
    equal: int
    outputs: int
    difference: float
    status: int

    def __str__(self) -> str:
        names = f"{Path(self.one).name} and {Path(self.other).name}"
        how = f"{self.equal} of {self.outputs} outputs equal"
        bound = "" if self.status == 0 else f", more than {TOLERANCE:.1e}"
        return f"{names}: {how}, largest difference {self.difference:.1e}{bound}"


def compared(jobs: list[Job]) -> Iterator[Comparison]:
    """Each further file of a program with the first one; those that did not run are left out."""
    files: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.save is not None and Path(job.save).exists():
            files[program_name(Path(job.file))].append(job)
    for first, *others in files.values():
        for other in others:
            yield _comparison(first, other)


def _comparison(first: Job, other: Job) -> Comparison:
    assert first.save is not None and other.save is not None
    with np.load(first.save) as one, np.load(other.save) as two:
        pairs = [(one[a], two[b]) for a, b in zip(one.files, two.files)]
        same_count = len(one.files) == len(two.files)
    parts = [_difference(a, b) for a, b in pairs]
    largest = max(parts, default=0.0) if same_count else np.inf
    status = 0 if largest <= TOLERANCE else 1
    equal = sum(part == 0 for part in parts)
    return Comparison(first.file, other.file, equal, len(pairs), float(largest), status)


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape or one.dtype != other.dtype:
        return float(np.inf)
    if one.tobytes() == other.tobytes():
        return 0.0
    wide, far = one.astype(np.float64), other.astype(np.float64)
    both = np.isfinite(wide) & np.isfinite(far)
    if not np.array_equal(wide[~both], far[~both], equal_nan=True):
        return float(np.inf)
    total = float(np.abs(wide[both] - far[both]).sum())
    return total / max(float(np.abs(wide[both]).sum()), np.finfo(np.float64).tiny) if total else 0.0

"""Compare the outputs of files that are one program (before and after optimisation).

Optimisation changes roundings, so the bound is not zero. For each output, the sum of the
differences may be so much of the sum of magnitudes, or so many times what the output moves by when
each argument moves by at most one rounding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hlo import archive
from hlo_oracle.measurement import Job, Row, nudged_outputs
from hlo_oracle.program_paths import program_name

# Of f32 results: what the reassociations of a compiler do to a training step of BERT.
TOLERANCE = 2.0**-12
MOVES = 16


@dataclass(frozen=True, slots=True)
class Comparison:
    """``difference``: the largest of any output, as a part of its sum of magnitudes; those that
    rounding the arguments moves by more than the tolerance are counted in ``noise`` instead."""

    one: str
    other: str
    equal: int
    noise: int
    outputs: int
    difference: float
    status: int

    def __str__(self) -> str:
        names = f"{Path(self.one).name} and {Path(self.other).name}"
        how = f"{self.equal} of {self.outputs} outputs equal"
        noise = f", {self.noise} only rounding noise" if self.noise else ""
        bound = "" if self.status == 0 else f", more than {TOLERANCE:.1e}"
        return f"{names}: {how}{noise}, largest difference {self.difference:.1e}{bound}"


def compared(jobs: list[Job], rows: list[Row]) -> Iterator[Comparison]:
    """Each further file of a program with the first one; those that did not run are left out."""
    files: dict[str, list[_Outputs]] = defaultdict(list)
    for job, row in zip(jobs, rows, strict=True):
        if job.save is not None and Path(job.save).exists():
            files[program_name(Path(job.file))].append(_Outputs(row, Path(job.save)))
    for first, *others in files.values():
        for other in others:
            yield _comparison(first, other)


@dataclass(frozen=True, slots=True)
class _Outputs:
    row: Row
    saved: Path

    def arrays(self, nudged: bool = False) -> list[np.ndarray]:
        types = [np.dtype(text.partition("[")[0]) for text in self.row.outputs]
        saved = archive.read(nudged_outputs(self.saved) if nudged else self.saved)
        return [a.view(t) for a, t in zip(saved.values(), types, strict=True)]


def _comparison(first: _Outputs, other: _Outputs) -> Comparison:
    files, types = (first.row.file, other.row.file), first.row.outputs
    if types != other.row.outputs:
        return Comparison(*files, 0, 0, len(types), float(np.inf), 1)
    before = first.arrays()
    parts = list(map(_difference, before, other.arrays()))
    moves = list(map(_difference, before, first.arrays(nudged=True)))
    as_noise = [TOLERANCE < part <= MOVES * move for part, move in zip(parts, moves, strict=True)]
    largest = max((p for p, noise in zip(parts, as_noise, strict=True) if not noise), default=0.0)
    equal, status = sum(part == 0 for part in parts), 0 if largest <= TOLERANCE else 1
    return Comparison(*files, equal, sum(as_noise), len(parts), largest, status)


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    """The sum of differences over the sum of magnitudes; infinite where infinities differ."""
    if one.tobytes() == other.tobytes():
        return 0.0
    wide = [_widened(array) for array in (one, other)]
    finite = np.isfinite(wide[0]) & np.isfinite(wide[1])
    if not np.array_equal(wide[0][~finite], wide[1][~finite], equal_nan=True):
        return float(np.inf)
    total = float(np.abs(wide[0][finite] - wide[1][finite]).sum())
    return total / max(float(np.abs(wide[0][finite]).sum()), float(np.finfo(np.float64).tiny))


def _widened(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)

"""Judge results of compilers against the interpreter's, in a process of its own.

``python -m bench.speed.result_judge`` answers, a JSON object a line: ``interpret`` evaluates a
program, ``compare`` tells how far results are from that, ``judge`` whether the error envelope has
them, and ``beside`` how far results are from those of another compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import backend_c
import interp
from bench.speed import answering, catalogue
from hlo import archive
from hlo.module import Module
from hlo.program_file import read
from hlo.types import array_leaves
from hlo.values import Array, arrays_of, placed_arrays
from hlo_oracle.peer_verdicts import TRIALS
from interp.envelope.budget import UNKNOWN, XLA_CPU
from interp.envelope.judgement import Judge

Run = Callable[[Module], Sequence[Array] | None]
# What is not in it is judged as a compiler of which nothing is known.
_BUDGETS = {"xla": XLA_CPU}


class ResultJudge:
    """One program, its arguments and its exact results; methods answer questions."""

    def interpret(self, **program: Any) -> dict[str, Any]:
        """Evaluate a program, given by the fields of :class:`catalogue.Program`."""
        chosen = catalogue.Program(**program)
        self._module = read(Path(chosen.path))
        self._values = catalogue.values(chosen, self._module)
        exact = interp.evaluate(self._module, *self._values)
        self._exact = [*placed_arrays(exact)]
        self._judges: dict[str, Judge] = {}
        return {}

    def compare(self, results: str) -> dict[str, Any]:
        """Compute the largest error of results relative to the largest magnitude; 0 for equal
        bits."""
        right = [array for _, array in self._exact]
        pairs = [*zip(right, self._read(results), strict=True)]
        if all(one.tobytes() == other.tobytes() for one, other in pairs):
            return {"distance": 0.0}
        return {"distance": max(distance(one, other) for one, other in pairs)}

    def beside(self, program: str, results: str, others: str) -> dict[str, Any]:
        """Compare the results of two compilers, as :meth:`compare` does."""
        self._module = read(Path(program))
        pairs = zip(self._read(others), self._read(results), strict=True)
        return {"distance": max((distance(one, other) for one, other in pairs), default=0.0)}

    def judge(self, peer: str, results: str) -> dict[str, Any]:
        """Count elements by verdict, judged as ``hlo check`` does."""
        budget = _BUDGETS.get(peer, UNKNOWN)
        if budget.name not in self._judges:
            made = Judge(self._module, self._values, self._exact, peer=budget, trials=TRIALS)
            self._judges[budget.name] = made
        with _asked(peer, self._values) as run:
            return {"counts": self._judges[budget.name].judged(self._read(results), run).counts}

    def _read(self, results: str) -> list[Array]:
        shapes = array_leaves(self._module.entry.root_instruction.shape)
        found = archive.read(Path(results)).values()
        return [archive.typed(array, shape) for array, shape in zip(found, shapes, strict=True)]


def distance(right: Array, other: Array) -> float:
    """Compute the largest error relative to the largest finite magnitude of ``right``; infinite for
    results of another type or shape, or with other NaNs or infinities."""
    if (right.dtype, right.shape) != (other.dtype, other.shape):
        return float("inf")
    wide = np.complex128 if right.dtype.kind == "c" else np.float64
    one, two = right.astype(wide), other.astype(wide)
    finite = np.isfinite(one)
    same = np.array_equal(one[~finite], two[~finite], equal_nan=True)
    if not same or not np.isfinite(two[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    largest = float(np.abs(one[finite]).max())
    difference = float(np.abs(one[finite] - two[finite]).max())
    return difference / largest if largest else difference


@contextmanager
def _asked(peer: str, values: Sequence[Any]) -> Iterator[Run]:
    """Open a compiler for intermediate values; one that gives none, for compilers that cannot."""
    if peer == "fast":
        yield lambda module: [*arrays_of(backend_c.compile(module, numerics="fast")(*values))]
    elif peer == "xla":
        import hlo
        from fuzz.peers.xla import XLA

        with XLA(timeout=600.0) as xla:
            yield lambda module: xla(hlo.format(module), [*arrays_of(tuple(values))]).outputs
    else:
        yield lambda module: None


def main() -> None:
    judge = ResultJudge()
    answering.serve(
        {
            "interpret": judge.interpret,
            "compare": judge.compare,
            "beside": judge.beside,
            "judge": judge.judge,
        }
    )


if __name__ == "__main__":
    main()

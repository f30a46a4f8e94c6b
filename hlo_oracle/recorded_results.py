"""Judge recorded results in place of running the compiler that gave them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

import numpy as np

from hlo import archive
from hlo.caller_values import as_array
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.types import Shape, leaves
from hlo.values import Array
from hlo_oracle.loading.programs import Program
from interp.envelope.budget import UNKNOWN, Budget, named
from interp.values import conforms, described

if TYPE_CHECKING:
    from fuzz.peers.xla import Answer

    Compiler = Callable[[str, Sequence[Array]], Answer]


class RecordedResults:
    """A peer that answers with recorded results; for programs with anchors it starts a compiler, if
    one is given."""

    def __init__(
        self,
        text: str,
        results: Sequence[Array],
        start: Callable[[], AbstractContextManager[Compiler]] | None = None,
    ) -> None:
        self._text, self._results, self._start = text, tuple(results), start
        self._stack = ExitStack()
        self._compiler: Compiler | None = None

    def __enter__(self) -> RecordedResults:
        return self

    def __exit__(self, *of_exception: object) -> None:
        self._stack.close()

    def __call__(self, text: str, arrays: Sequence[Array]) -> Answer:
        from fuzz.peers.xla import Answer

        if text == self._text:
            return Answer(outputs=self._results)
        if self._start is None:
            return Answer(error="only the results of the program itself were recorded")
        if self._compiler is None:
            self._compiler = self._stack.enter_context(self._start())
        return self._compiler(text, arrays)


def recorded(program: Program, results: Sequence[object]) -> RecordedResults:
    """Make the peer of a program's recorded results.

    Raises ArgumentError if constants of the program were filled in: the compiler had others, so all
    of its results would seem wrong.
    """
    if program.notes:
        raise ArgumentError(f"its results are of other constants: {program.notes[0]}")
    return RecordedResults(program.text, typed(results, program.module))


def notes(budget: Budget) -> tuple[str, ...]:
    """Return a note if a budget is not based on measurements."""
    what = "what this compiler may do is taken from documents, and was not measured"
    return () if budget.is_measured else (f"{what}: {budget.name}",)


def typed(results: Sequence[object], module: Module) -> tuple[Array, ...]:
    """Convert recorded results to arrays of the module's types: types unknown to NumPy are recorded
    as bytes, others perhaps in the byte order of another machine.

    Raises ArgumentError if their number, types or shapes differ from those of the module's results:
    no compiler gave them for it.
    """
    shapes = [x for x in leaves(module.entry.root_instruction.shape) if x.element_type.is_array]
    single = as_array(results) if len(shapes) == 1 else None
    if single is not None and single.shape == shapes[0].dims:
        results = [results]  # an array, of a program that gives one
    if not isinstance(results, list | tuple | np.ndarray):
        raise ArgumentError(f"results are a sequence of arrays, not {type(results).__name__}")
    arrays = [np.asarray(result) for result in results]
    if len(arrays) != len(shapes):
        raise ArgumentError(
            f"{len(arrays)} recorded results, where {module.name} has {len(shapes)}"
        )
    found = tuple(map(_typed, arrays, shapes))
    for number, (array, shape) in enumerate(zip(found, shapes, strict=True)):
        if not conforms(array, shape):
            raise ArgumentError(
                f"recorded result {number} is {described(array)}, where {module.name} has {shape}"
            )
    return found


def _typed(array: Array, shape: Shape) -> Array:
    native = array.dtype.newbyteorder("=")
    return archive.typed(array.astype(native, copy=False), shape)


def budget_named(wanted: str | Budget | None, default: Budget = UNKNOWN) -> Budget:
    """Find a budget by its name, ``default`` without one; ArgumentError if there is none."""
    if wanted is None or isinstance(wanted, Budget):
        return wanted or default
    if not isinstance(wanted, str):
        raise ArgumentError(f"a budget is one, or its name, not {type(wanted).__name__}")
    return named(wanted)

"""Run programs as C of this project's ``fast`` numerics, in a process that may crash."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from backend_c.ir.settings import Numerics, threaded
from backend_c.native.toolchain import find_compiler
from fuzz.compilers.combined_programs import compiled
from fuzz.compilers.quick_compilers import thorough
from fuzz.reducer.search import Case
from fuzz.worker_pool import Result, WorkerPool
from hlo.errors import Error
from hlo.values import Array, arrays_of

_SECONDS = 120.0
_OPTIMISED = 8
Results = Sequence[Array] | None  # None: there are none
Run = Callable[[Sequence[Case], int], Sequence[Results]]  # of a numbered list of programs


@contextmanager
def program_runner() -> Iterator[Run]:
    """Yield a function that compiles programs together and runs them. It optimises one list of
    programs in eight, as that takes 0.4 s for each program."""
    shipped, soonest = find_compiler(os.environ), thorough(os.environ)
    settings = threaded(Numerics.FAST)

    def run(cases: Sequence[Case], number: int) -> Sequence[Results]:
        results: list[Results] = []
        compiler = soonest if number % _OPTIMISED else shipped
        executables = compiled([case.module for case in cases], compiler, settings)
        for case, executable in zip(cases, executables, strict=True):
            if isinstance(executable, Error):
                results.append(None)
                continue
            try:
                results.append(tuple(arrays_of(executable(*case.arrays))))
            except Error:
                results.append(None)
        return results

    yield run


@contextmanager
def fast() -> Iterator[Run]:
    """Yield a function that runs programs in another process; if that dies, it runs each alone."""
    with WorkerPool(program_runner, preload=(__name__,), seconds=_SECONDS) as pool:

        def run(cases: Sequence[Case], number: int) -> Sequence[Results]:
            answer = pool(tuple(cases), number)
            if isinstance(answer, Result):
                return answer.value
            if len(cases) > 1:
                return [one for case in cases for one in run([case], number)]
            return [None]

        yield run

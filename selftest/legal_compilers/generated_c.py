"""Run programs as C of this project's ``fast`` numerics, in a process that may crash."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from backend_c.ir.settings import Numerics, threaded
from backend_c.native.toolchain import find_compiler
from fuzz.compilers.combined_programs import compiled
from fuzz.compilers.quick_compilers import thorough
from fuzz.peers.xla import Answer
from fuzz.reducer.search import Case
from fuzz.worker_pool import Result, WorkerPool
from hlo.errors import Error, ToolchainError
from hlo.values import Value, arrays_of

_SECONDS = 120.0
_OPTIMISED = 8
Run = Callable[[Sequence[Case], int], Sequence[Answer]]  # of a numbered list of programs


@contextmanager
def program_runner() -> Iterator[Run]:
    """Yield a function that compiles programs together and runs them; alone, if the C compiler
    refuses one, which counts as a crash. It optimises one list of programs in eight, as that takes
    0.4 s for each program."""
    shipped, soonest = find_compiler(os.environ), thorough(os.environ)
    settings = threaded(Numerics.FAST)

    def run(cases: Sequence[Case], number: int) -> Sequence[Answer]:
        compiler = soonest if number % _OPTIMISED else shipped
        try:
            executables = compiled([case.module for case in cases], compiler, settings)
        except ToolchainError as error:
            if len(cases) > 1:
                return [one for case in cases for one in run([case], number)]
            return [Answer(crash=str(error))]
        return [_run(one, case) for one, case in zip(executables, cases, strict=True)]

    yield run


def _run(executable: Callable[..., Value] | Error, case: Case) -> Answer:
    if isinstance(executable, Error):
        return Answer(error=str(executable))
    try:
        return Answer(tuple(arrays_of(executable(*case.arrays))))
    except Error as error:
        return Answer(error=str(error))


@contextmanager
def fast() -> Iterator[Run]:
    """Yield a function that runs programs in another process; if that dies, it runs each alone."""
    with WorkerPool(program_runner, preload=(__name__,), seconds=_SECONDS) as pool:

        def run(cases: Sequence[Case], number: int) -> Sequence[Answer]:
            answer = pool(tuple(cases), number)
            if isinstance(answer, Result):
                return answer.value
            if len(cases) > 1:
                return [one for case in cases for one in run([case], number)]
            return [Answer(crash=str(answer))]

        yield run

"""Run generated CUDA on a GPU twice, and compare both results with the interpreter's bits.

Programs of one call are compiled as one unit. After a driver error nothing can be run in the same
process: later programs report it, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from backend_c.ir.settings import Numerics, launched
from backend_c.native.cuda_compilers import CudaCompiler, find_cuda_compiler
from backend_c.native.cuda_driver import Device, Driver
from backend_c.native.cuda_executable import CudaExecutable
from backend_c.pipeline import lowered, on_device
from fuzz.oracles.exact import runs
from fuzz.oracles.oracle import (
    Difference,
    LeftOut,
    Outcome,
    Property,
    compared,
    each,
    right,
    where_defined,
)
from fuzz.reducer.search import Case
from hlo.bit_equality import differences
from hlo.errors import Error, ToolchainError, Unsupported


class OnDevice:
    """Test programs on a device: each run has the interpreter's bits."""

    def __init__(self, device: Device, compiler: CudaCompiler, cache: Path | None = None) -> None:
        self.device, self._compiler, self._cache = device, compiler, cache

    def __call__(self, cases: Sequence[Case]) -> list[Outcome]:
        """Return an outcome for each case."""
        return self.some(cases, range(len(cases)))

    def some(self, cases: Sequence[Case], wanted: Sequence[int]) -> list[Outcome]:
        """Return the outcomes of the cases with these numbers; all cases are compiled as one
        unit."""
        outcomes = each(runs)(cases)
        usable = [number for number, outcome in enumerate(outcomes) if outcome is None]
        try:
            made = self._made([cases[number] for number in usable])
        except ToolchainError as error:
            if len(usable) > 1:  # which of them it is
                return [self([cases[number]])[0] for number in wanted]
            outcomes[usable[0]] = Difference(type(error).__name__, str(error))
            return [outcomes[number] for number in wanted]
        for number, program in zip(usable, made, strict=True):
            if number in wanted:
                outcomes[number] = _outcome(cases[number], program)
        return [outcomes[number] for number in wanted]

    def _made(self, cases: Sequence[Case]) -> list[CudaExecutable]:
        """Compile programs as one unit."""
        settings = launched(Numerics.EXACT)
        planned = [(case.module, lowered(case.module, settings)) for case in cases]
        return on_device(planned, self.device, self._compiler, self._cache) if planned else []


def _outcome(case: Case, program: CudaExecutable) -> Outcome:
    """Run a program twice; return the first difference."""
    expected = right(case)
    try:
        value, again = program(*case.arrays), program(*case.arrays)
    except Unsupported as error:  # too little memory
        return LeftOut(str(error))
    except Error as error:
        return Difference(type(error).__name__, str(error))
    finally:
        program.close()
    found = where_defined(compared(expected, value), case)
    if found is None and (other := differences(value, again)):
        return Difference("not deterministic", str(other[0]))
    return found


@contextmanager
def on_first_gpu() -> Iterator[Property]:
    """Open the first GPU; raise DeviceError if there is none, ToolchainError without a compiler."""
    yield OnDevice(Device(Driver()), find_cuda_compiler(os.environ))

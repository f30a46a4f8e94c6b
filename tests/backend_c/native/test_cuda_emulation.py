"""The emulation of CUDA reports what a kernel does wrong, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import cffi
import cuda_faults
import numpy as np
import pytest
from conftest import has_c_compiler

from backend_c.native.cache import default_directory, open_cache
from backend_c.native.cuda_emulation import (
    EmulatedLibrary,
    KernelLaunch,
    Schedule,
    build_emulated,
)
from backend_c.native.emulation_findings import EmulationError
from backend_c.native.toolchain import known_compiler

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
FFI = cffi.FFI()


@pytest.fixture(scope="module")
def library() -> Iterator[EmulatedLibrary]:
    cache = open_cache(default_directory(os.environ))
    sources = {"planted.cu": cuda_faults.unit()}
    path = build_emulated(sources, known_compiler(os.environ, cache), cache)
    count = len(cuda_faults.FAULTS) + len(cuda_faults.SOUND)
    launches = [[KernelLaunch(f"kernel_{n}", "%planted", ("a0", "r0"))] for n in range(count)]
    yield EmulatedLibrary(path, launches)


def call(library: EmulatedLibrary, number: int, seed: int) -> np.ndarray[Any, Any]:
    """The result of a kernel, on memory with a gap on both sides."""
    given, result = np.arange(64 + 32, dtype=np.float32), np.zeros(128 + 64, np.float32)
    tables = [
        FFI.new("void *[]", [FFI.from_buffer(array[start:])])
        for array, start in ((given, 16), (result, 32))
    ]
    library.choose(Schedule(threads=64, blocks=2, seed=seed))
    nothing = FFI.new("unsigned char[1]")
    library.hlo_entries[number](*tables, nothing, nothing, 0)
    return result[32:-32]


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize(("number", "name"), list(enumerate(cuda_faults.FAULTS)))
def test_reports_a_planted_fault(
    library: EmulatedLibrary, number: int, name: str, seed: int
) -> None:
    kind, _ = cuda_faults.FAULTS[name]
    with pytest.raises(EmulationError) as raised:
        call(library, number, seed)
    assert any(kind in finding.kind for finding in raised.value.findings), str(raised.value)
    assert f"kernel_{number} (%planted), block " in str(raised.value)


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize(("number", "name"), list(enumerate(cuda_faults.SOUND)))
def test_says_nothing_of_a_sound_kernel(
    library: EmulatedLibrary, number: int, name: str, seed: int
) -> None:
    call(library, len(cuda_faults.FAULTS) + number, seed)


def test_tells_where_and_what(library: EmulatedLibrary) -> None:
    number = list(cuda_faults.FAULTS).index("beyond a shared array")
    with pytest.raises(EmulationError, match=r"byte 256 of shared s, which has 256 \[planted.cu:"):
        call(library, number, 0)
    number = list(cuda_faults.FAULTS).index("a neighbour's element without a barrier")
    with pytest.raises(EmulationError, match=r"reads r0\[\d+\], which thread \d+ wrote, without a"):
        call(library, number, 0)


def test_goes_on_after_a_fault(library: EmulatedLibrary) -> None:
    with pytest.raises(EmulationError):
        call(library, 0, 0)
    assert call(library, len(cuda_faults.FAULTS), 0)[:64].tolist() == list(range(16, 80))

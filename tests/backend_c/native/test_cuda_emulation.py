"""The emulation of CUDA reports what a kernel does wrong, and nothing else."""

from __future__ import annotations

import os
from typing import Any

import cuda_faults
import numpy as np
import pytest
from conftest import has_c_compiler

from backend_c.cuda.geometry import Geometry
from backend_c.cuda.host_plan import CopyBytes, FillBytes, HostPlan, LaunchKernel, Operand
from backend_c.lower.plan import Origin
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.cuda_emulation import (
    Emulated,
    EmulatedLibrary,
    Schedule,
    build_driver,
    build_emulated,
)
from backend_c.native.emulation_findings import EmulationError
from backend_c.native.toolchain import known_compiler
from backend_c.render.translation_units import Place
from hlo.types import F32, ArrayShape

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


@pytest.fixture(scope="module")
def library() -> EmulatedLibrary:
    cache = open_cache(default_directory(os.environ))
    compiler = known_compiler(os.environ, cache)
    path = build_emulated({"planted.cu": cuda_faults.unit()}, compiler, cache)
    return EmulatedLibrary(path, build_driver(compiler, cache))


def call(library: EmulatedLibrary, number: int, seed: int) -> np.ndarray[Any, Any]:
    """The result of a kernel, on memory with a gap on both sides."""
    given = Operand("a0", Place("arguments", 0), "float", 64, is_written=False)
    result = Operand("r0", Place("workspace", 128), "float", 128, is_written=True)
    name, origin = f"kernel_{number}", Origin(instruction="%planted")
    launch = LaunchKernel(0, name, (given, result), "grid", Geometry(2, 64), origin)
    first = Place("workspace", 128)
    steps = (FillBytes(first, 0, 512), launch, CopyBytes(first, Place("results", 0), 512))
    shapes = ArrayShape(F32, (64,)), ArrayShape(F32, (128,))
    host = HostPlan(steps, shapes[:1], shapes[1:], b"", 768, uses_seed=False)
    program = Emulated(library, host, [("x", shapes[0])], shapes[1], {})
    schedule = Schedule(threads=64, blocks=2, seed=seed)
    return program(np.arange(16, 80, dtype=np.float32), schedule=schedule)  # type: ignore[no-any-return]


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

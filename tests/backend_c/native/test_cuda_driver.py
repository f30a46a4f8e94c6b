"""The driver's calls have NVIDIA's signatures, and the emulated driver refuses what a GPU does."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.cuda_driver import Device, DeviceMemory, Driver, DriverError, LoadedModule
from backend_c.native.cuda_emulation import EMULATION, build_driver
from backend_c.native.toolchain import RUNTIME, known_compiler

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
HEADERS = {  # of NVIDIA, and ours
    "cuda.h": RUNTIME / "cuda" / "cuda_driver.h",
    "nvrtc.h": RUNTIME / "cuda" / "nvrtc_calls.h",
    "cublasLt.h": RUNTIME / "cuda" / "cublas_lt_calls.h",
    "cuda_runtime_api.h": EMULATION / "runtime_api" / "cuda_runtime_api.h",
}


def nvidia_headers(name: str) -> list[Path]:
    """Where a header of NVIDIA is on this machine: beside nvcc, in Python's packages."""
    spec = importlib.util.find_spec("nvidia")
    places = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    found = [file for place in places for file in place.glob(f"*/include/{name}")]
    roots = [Path(nvcc).resolve().parents[1]] if (nvcc := shutil.which("nvcc")) else []
    roots += sorted(Path("/usr/local").glob("cuda*"))
    return [*found, *(root / "include" / name for root in roots if
                      (root / "include" / name).exists())]  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_signatures_are_those_of_nvidia(name: str, tmp_path: Path) -> None:
    headers = nvidia_headers(name)
    if not headers:
        pytest.skip(f"no {name} on this machine")
    unit = tmp_path / "both.c"
    unit.write_text(f'#include "{headers[0]}"\n#include "{HEADERS[name]}"\n')
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    # Of packages each has headers of its own.
    places = [f"-I{one.parent}" for one in (headers[0], *nvidia_headers("library_types.h"))]
    words = [compiler, "-std=c11", "-fsyntax-only", *places, str(unit)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # That it would be seen.
    ours = HEADERS[name].read_text().replace("size_t", "short")
    (tmp_path / "other.h").write_text(ours)
    unit.write_text(f'#include "{headers[0]}"\n#include "other.h"\n')
    assert subprocess.run(words, capture_output=True, check=False).returncode != 0


def test_numbers_are_those_of_nvidia(tmp_path: Path) -> None:
    """Errors and attributes of the emulated driver and the runtime have the values of NVIDIA's
    cuda.h."""
    headers = nvidia_headers("cuda.h")
    if not headers:
        pytest.skip("no cuda.h on this machine")
    text = (EMULATION / "driver.cpp").read_text()
    numbers = re.findall(r"^    ([A-Z_]+) = (\d+),$", text, re.MULTILINE)
    assert len(numbers) > 8
    pairs = {f"CUDA_{'' if name == 'SUCCESS' else 'ERROR_'}{name}": n for name, n in numbers}
    pairs |= {"CUDA_ERROR_NO_DEVICE": "100", "CUDA_ERROR_STUB_LIBRARY": "34"}
    pairs |= {"CUDA_ERROR_OUT_OF_MEMORY": "2", "CU_STREAM_NON_BLOCKING": "1"}
    pairs |= {"CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL": "9"}
    attributes = {"MULTIPROCESSOR_COUNT": 16, "COMPUTE_CAPABILITY_MAJOR": 75,
                  "COMPUTE_CAPABILITY_MINOR": 76}  # fmt: skip
    pairs |= {f"CU_DEVICE_ATTRIBUTE_{name}": str(n) for name, n in attributes.items()}
    lines = [f'_Static_assert({name} == {n}, "{name}");' for name, n in pairs.items()]
    lines.append('_Static_assert((long)CU_STREAM_LEGACY == 1, "the default stream");')
    unit = tmp_path / "numbers.c"
    unit.write_text("\n".join([f'#include "{headers[0]}"', *lines, ""]))
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    subprocess.run([compiler, "-std=c11", "-fsyntax-only", str(unit)], check=True)


@pytest.fixture(scope="module")
def device() -> Device:
    cache = open_cache(default_directory(os.environ))
    return Device(Driver(build_driver(known_compiler(os.environ, cache), cache)))


@pytest.fixture
def memory(device: Device) -> Iterator[DeviceMemory]:
    made = DeviceMemory(device, 64)
    yield made
    made.close()


@pytest.fixture
def stream(device: Device) -> Iterator[Any]:
    with device.current():
        made = device.driver.made("cuStreamCreate", "CUstream", 1)
    yield made
    with device.current():
        device.driver.call("cuStreamDestroy_v2", made)


def refused(device: Device, function: str, *words: Any) -> str:
    """The name of the error that a call gives."""
    with device.current(), pytest.raises(DriverError) as raised:
        device.driver.call(function, *words, doing="trying")
    assert str(raised.value).startswith("trying: CUDA_ERROR_")
    return raised.value.name


def test_copies_stay_within_allocations(device: Device, memory: DeviceMemory, stream: Any) -> None:
    host = device.driver.ffi.new("char[]", 128)
    at = memory.address
    for words in ((at, host, 65), (at + 1, host, 64), (at + 64, host, 1), (at - 1, host, 1)):
        error = refused(device, "cuMemcpyHtoDAsync_v2", *words, stream)
        assert error == "CUDA_ERROR_INVALID_VALUE"
    assert refused(device, "cuMemcpyDtoHAsync_v2", host, at, 65, stream)
    assert refused(device, "cuMemsetD8Async", at + 8, 0, 57, stream)
    assert refused(device, "cuMemcpyDtoDAsync_v2", at + 8, at, 16, stream)  # overlaps
    memory.close()
    assert refused(device, "cuMemcpyHtoDAsync_v2", at, host, 1, stream)
    assert refused(device, "cuMemFree_v2", at)


def test_addresses_of_the_device_are_none_of_the_host(
    device: Device, memory: DeviceMemory, stream: Any
) -> None:
    ffi = device.driver.ffi
    assert memory.address >> 48  # no process has it
    as_host = ffi.cast("void *", memory.address)
    assert refused(device, "cuMemcpyHtoDAsync_v2", memory.address, as_host, 4, stream)
    host = ffi.new("char[]", 4)
    assert refused(device, "cuMemsetD8Async", int(ffi.cast("uintptr_t", host)), 0, 4, stream)


def test_nothing_is_done_before_somebody_waits(
    device: Device, memory: DeviceMemory, stream: Any
) -> None:
    driver, array = device.driver, np.arange(16, dtype=np.float32)
    found = np.zeros(16, np.float32)
    with device.current():
        driver.call(
            "cuMemcpyHtoDAsync_v2", memory.address, driver.ffi.from_buffer(array), 64, stream
        )
        array[0] = 7  # too early: the copy was not waited for
        words = driver.ffi.from_buffer(found), memory.address, 64, stream
        driver.call("cuMemcpyDtoHAsync_v2", *words)
        assert not found.any()
        driver.call("cuStreamSynchronize", stream)
    assert found.tolist() == [7, *range(1, 16)]


@pytest.mark.parametrize("is_apart", [True, False])
def test_the_default_stream_waits_for_those_that_are_not_apart(
    device: Device, memory: DeviceMemory, is_apart: bool
) -> None:
    driver, found = device.driver, np.zeros(64, np.uint8)
    with device.current():
        stream = driver.made("cuStreamCreate", "CUstream", int(is_apart))
        driver.call("cuMemsetD8Async", memory.address, 7, 64, stream)
        words = driver.ffi.from_buffer(found), memory.address, 64, driver.ffi.NULL
        driver.call("cuMemcpyDtoHAsync_v2", *words)
        driver.call("cuStreamSynchronize", driver.ffi.NULL)
        driver.call("cuStreamDestroy_v2", stream)
    assert (found == 7).all() != is_apart


def test_handles_must_be_alive(device: Device, memory: DeviceMemory, stream: Any) -> None:
    ffi = device.driver.ffi
    gone = ffi.cast("CUstream", 12345)
    assert refused(device, "cuStreamSynchronize", gone) == "CUDA_ERROR_INVALID_HANDLE"
    assert refused(device, "cuMemsetD8Async", memory.address, 0, 1, gone)
    assert refused(device, "cuModuleUnload", ffi.cast("CUmodule", 12345))
    assert refused(device, "cuEventRecord", ffi.cast("CUevent", 12345), stream)
    words = ffi.cast("CUfunction", 12345), 1, 1, 1, 1, 1, 1, 0, stream, ffi.NULL, ffi.NULL
    assert refused(device, "cuLaunchKernel", *words) == "CUDA_ERROR_INVALID_HANDLE"


def test_what_is_no_image_is_not_loaded(device: Device) -> None:
    with pytest.raises(DriverError, match="loading kernels: CUDA_ERROR_INVALID_IMAGE"):
        LoadedModule(device, b"\x7fELF" + b"\0" * 100)
    with pytest.raises(DriverError, match="CUDA_ERROR_INVALID_IMAGE"):
        LoadedModule(device, b"no image at all" * 10)


def test_calls_need_a_context(device: Device) -> None:
    with pytest.raises(DriverError, match="CUDA_ERROR_INVALID_CONTEXT"):
        device.driver.made("cuMemAlloc_v2", "CUdeviceptr", 4)


def test_a_missing_driver_is_one_line() -> None:
    with pytest.raises(hlo.DeviceError, match=r"^there is no driver of an NVIDIA GPU .*emulate$"):
        Driver("libno_such_driver.so.1")
    with pytest.raises(hlo.DeviceError, match=r"^there is no GPU 3: the driver has 1$"):
        cache = open_cache(default_directory(os.environ))
        Device(Driver(build_driver(known_compiler(os.environ, cache), cache)), 3)


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_without_a_gpu_compile_says_what_is_missing() -> None:
    module = hlo.parse("HloModule m\nENTRY e { ROOT x = f32[3] parameter(0) }")
    with pytest.raises(hlo.DeviceError, match="no driver of an NVIDIA GPU|finds no GPU"):
        backend_c.compile(module, target="cuda")
    with pytest.raises(hlo.ArgumentError, match="threads are those of OpenMP"):
        backend_c.compile(module, "fast", "cuda", 2)

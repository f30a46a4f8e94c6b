"""The runtime of GPUs gives the interpreter's bits on the emulated driver, and names what fails."""

from __future__ import annotations

import gc
import os
from typing import Any

import cuda_faults
import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler
from cuda_programs import CONTROL

import hlo
import interp
from backend_c import pipeline
from backend_c.cuda.geometry import Geometry
from backend_c.cuda.host_plan import HostPlan, LaunchKernel, Operand
from backend_c.lower.plan import Origin
from backend_c.native import dlpack
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.cuda_driver import Device, Driver, LoadedModule
from backend_c.native.cuda_emulation import EmulatedCompiler, build_driver, build_emulated
from backend_c.native.cuda_executable import CudaExecutable
from backend_c.native.device_arrays import DeviceArray
from backend_c.native.toolchain import known_compiler
from backend_c.pipeline import lowered, on_device, settings_for
from backend_c.render.dialect import CUDA
from backend_c.render.translation_units import Place
from hlo.bit_equality import differences
from hlo.types import F32, ArrayShape
from hlo_oracle.arguments import from_seed

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
X = np.linspace(-3, 3, 300, dtype=np.float32)
CHOICES = X, np.asarray(np.int32(1)), np.asarray(True)
PAIR = """HloModule m
ENTRY e { x = f32[40] parameter(0)
          y = bf16[40] parameter(1)
          sum = f32[40] add(x, x)
          ROOT both = (f32[40], bf16[40]) tuple(sum, bf16[40] negate(y)) }"""


def device() -> Device:
    cache = open_cache(default_directory(os.environ))
    return Device(Driver(build_driver(known_compiler(os.environ, cache), cache)))


def compiled(text: str, on: Device) -> CudaExecutable:
    module = hlo.parse(text)
    cache = open_cache(default_directory(os.environ))
    compiler = EmulatedCompiler(known_compiler(os.environ, cache), cache)
    planned = module, lowered(module, settings_for("exact", CUDA))
    (made,) = on_device([planned], on, compiler)
    return made


class Foreign:
    """An array of another library on the GPU."""

    def __init__(self, array: DeviceArray, **changes: Any) -> None:
        self._array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}


class ByDlpack:
    """An array of a library that speaks DLPack alone."""

    def __init__(self, array: DeviceArray) -> None:
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def test_calls_and_what_they_leave() -> None:
    on = device()
    gc.collect()  # what other tests left
    alive = on.driver.library.hlo_emulated_alive()
    executable = compiled(CONTROL, on)
    module = hlo.parse(CONTROL)
    for seed in (0, 9, 2**64 + 5):
        expected = interp.evaluate(module, *CHOICES, seed=seed % 2**64)
        assert not differences(expected, executable(*CHOICES, seed=seed)), seed
    assert executable.time(*CHOICES, repeat=2) > 0
    for repeat in (0, -1):
        with pytest.raises(hlo.ArgumentError, match=f"repeat={repeat}: at least 1"):
            executable.time(*CHOICES, repeat=repeat)
    assert "kernel_0" in executable.source["module.cu"]
    with pytest.raises(hlo.ArgumentError, match=r"parameter 0 \(x\): expected f32\[300\]"):
        executable(X[:5], *CHOICES[1:])
    del executable
    gc.collect()
    assert on.driver.library.hlo_emulated_alive() == alive


def test_arrays_on_the_gpu_are_taken_where_they_are() -> None:
    executable, module = compiled(PAIR, device()), hlo.parse(PAIR)
    x, y = X[:40], X[40:80].astype(ml_dtypes.bfloat16)
    expected = interp.evaluate(module, x, y)
    first = executable.on_device(x, y)
    assert isinstance(first[0], DeviceArray) and first[0].nbytes == 160
    assert not differences(expected, tuple(one.numpy() for one in first))
    again = interp.evaluate(module, *expected)
    for given in (first, tuple(map(Foreign, first)), tuple(map(ByDlpack, first))):
        found = executable.on_device(*given)
        assert not differences(again, tuple(one.numpy() for one in found)), given
    streamed = Foreign(first[0], stream=1), Foreign(first[1], strides=(2,))
    found = executable.on_device(*streamed)
    assert not differences(again, tuple(one.numpy() for one in found))


class OfHost:
    """An array of another library in memory of the host."""

    def __init__(self, array: np.ndarray, kind: int) -> None:
        self._array, self._kind = array, kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._kind, 0

    def __array__(self, *types: Any, **options: Any) -> np.ndarray:
        return self._array


@pytest.mark.parametrize("kind", [1, 3], ids=["usual", "pinned"])
def test_arrays_on_the_host_of_any_library_are_copied(kind: int) -> None:
    executable, module = compiled(PAIR, device()), hlo.parse(PAIR)
    given = X[:40], X[40:80].astype(ml_dtypes.bfloat16)
    found = executable.on_device(*(OfHost(array, kind) for array in given))
    expected = interp.evaluate(module, *given)
    assert not differences(expected, tuple(one.numpy() for one in found))


_FLAT = """HloModule flat
ENTRY e { x = f32[1,5,1] parameter(0)
          none = f32[3,0,2] parameter(1)
          y = f32[1,5,1] negate(x)
          ROOT both = (f32[1,5,1], f32[3,0,2]) tuple(y, none) }"""


def test_strides_that_are_never_taken_do_not_matter() -> None:
    executable, module = compiled(_FLAT, device()), hlo.parse(_FLAT)
    arrays = X[:5].reshape(1, 5, 1), np.zeros((3, 0, 2), np.float32)
    expected = interp.evaluate(module, *arrays)
    first = executable.on_device(*arrays)
    again = interp.evaluate(module, *expected)
    for strides in ((4, 4, 4), (20, 4, 4), (-8, 4, 0)):
        given = Foreign(first[0], strides=strides), Foreign(first[1], strides=(9, 7, 1))
        found = executable.on_device(*given)
        assert not differences(again, tuple(one.numpy() for one in found))
    with pytest.raises(hlo.ArgumentError, match="not row-major"):
        executable.on_device(Foreign(first[0], strides=(4, 8, 4)), first[1])


def test_arrays_that_do_not_fit_are_refused() -> None:
    executable = compiled(PAIR, device())
    first, second = executable.on_device(X[:40], X[:40].astype(ml_dtypes.bfloat16))
    for wrong, why in (
        (Foreign(first, strides=(8,)), "not row-major"),
        (Foreign(first, shape=(20,)), r"expected f32\[40\], got <f4\[20\] on the GPU"),
        (second, r"expected f32\[40\]"),
        (ByDlpack(second), r"expected f32\[40\], got another array"),
        (X[:41], "expected f32"),
        (None, "expected f32"),
    ):
        with pytest.raises(hlo.ArgumentError, match=why):
            executable.on_device(wrong, second)
    with pytest.raises(hlo.ArgumentError, match="2 arguments are expected, 1 was given"):
        executable.on_device(first)


def test_arrays_of_another_gpu_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    on = device()
    executable = compiled(PAIR, on)
    first, second = executable.on_device(X[:40], X[:40].astype(ml_dtypes.bfloat16))
    theirs = Foreign(first), ByDlpack(first)
    # What the driver does not know may be memory that GPUs have access to, as that of the host is.
    assert on.may_have(first.address) and on.may_have(X.ctypes.data)
    shown = dlpack.CUDA, 0
    monkeypatch.setattr(theirs[1], "__dlpack_device__", lambda: shown)
    monkeypatch.setattr(on, "ordinal", 1)
    for wrong in theirs:
        with pytest.raises(hlo.ArgumentError, match="the array is not on GPU 1"):
            executable.on_device(wrong, second)


def test_a_capsule_keeps_its_memory_until_it_is_released() -> None:
    on = device()
    gc.collect()  # what other tests left
    alive = on.driver.library.hlo_emulated_alive
    executable, before = compiled(PAIR, on), alive()
    first, second = executable.on_device(X[:40], X[:40].astype(ml_dtypes.bfloat16))
    view, unused = dlpack.imported(ByDlpack(first)), second.__dlpack__()
    assert view.dims == (40,) and view.kind == dlpack.kind_of(np.dtype(np.float32))
    assert dlpack.kind_of(np.dtype(ml_dtypes.float8_e4m3fn)) is None
    held = alive()
    del first, second
    gc.collect()
    assert alive() == held
    del view, unused
    gc.collect()
    assert alive() == before


def test_a_capsule_of_another_device_is_refused() -> None:
    """A consumer on the host is not given an address of the GPU."""
    (first, _) = compiled(PAIR, device()).on_device(X[:40], X[:40].astype(ml_dtypes.bfloat16))
    assert first.__dlpack__(dl_device=first.__dlpack_device__(), max_version=(1, 0))
    for options in ({"dl_device": (dlpack.CPU, 0)}, {"dl_device": (dlpack.CUDA, 1)},
                    {"copy": True}):  # fmt: skip
        with pytest.raises(BufferError, match=r"a copy is what numpy\(\) makes"):
            first.__dlpack__(**options)
    with pytest.raises(BufferError):
        np.from_dlpack(first, device="cpu")


def test_a_gpu_without_tensor_cores_has_other_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before sm_80 products have the tiles of usual threads, and the same bits."""
    text = """HloModule m
    ENTRY e { x = s8[64,64] parameter(0)
              y = s8[64,64] parameter(1)
              ROOT d = s32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    module, cache = hlo.parse(text), open_cache(default_directory(os.environ))
    compiler = known_compiler(os.environ, cache)
    driver = Driver(build_driver(compiler, cache))
    monkeypatch.setattr(pipeline, "Driver", lambda: driver)
    emulated = EmulatedCompiler(compiler, cache)
    monkeypatch.setattr(pipeline, "find_cuda_compiler", lambda _: emulated)
    usual, arrays = Device._attribute, from_seed(module, 0)
    for major in (8, 7):
        monkeypatch.setattr(
            Device, "_attribute", lambda self, n, m=major: m if n == 75 else usual(self, n)
        )
        made = pipeline.compile(module, "exact", target="cuda")
        assert ("hlo_block_mma" in made.source["module.cu"]) == (major == 8)
        assert not differences(interp.evaluate(module, *arrays), made(*arrays))


def planted(number: int, threads: int = 64) -> tuple[CudaExecutable, Device]:
    """A kernel with a fault on the emulated driver, which is told no sizes of arrays."""
    cache = open_cache(default_directory(os.environ))
    compiler = known_compiler(os.environ, cache)
    path = build_emulated({"planted.cu": cuda_faults.unit()}, compiler, cache)
    on = device()
    operands = (
        Operand("a0", Place("arguments", 0), "float", 64, is_written=False),
        Operand("r0", Place("results", 0), "float", 128, is_written=True),
    )
    shapes = ArrayShape(F32, (64,)), ArrayShape(F32, (128,))
    steps = tuple(
        LaunchKernel(
            n, f"kernel_{kernel}", operands, "grid", Geometry(2, threads), Origin("e", name)
        )
        for n, (kernel, name) in enumerate([(len(cuda_faults.FAULTS), "sound"), (number, "wrong")])
    )
    host = HostPlan(steps, shapes[:1], shapes[1:], b"", 0, uses_seed=False)
    module = LoadedModule(on, path.read_bytes())
    return CudaExecutable(module, host, [("x", shapes[0])], shapes[1], {}), on


def test_an_error_names_the_kernels_and_their_instructions() -> None:
    executable, on = planted(0)
    with pytest.raises(hlo.DeviceError) as raised:
        executable(X[:64])
    sound = len(cuda_faults.FAULTS)
    assert str(raised.value) == (
        f"one of kernel_{sound} (%sound), kernel_0 (%wrong) (CUDA_LAUNCH_BLOCKING=1 tells which):"
        " waiting for the GPU: CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)"
    )
    with pytest.raises(hlo.DeviceError, match="CUDA_ERROR_LAUNCH_FAILED"):
        executable(X[:64])  # a context with such an error is lost
    on.driver.library.hlo_emulated_forgive()


def test_a_launch_that_the_driver_refuses_is_named() -> None:
    executable, _ = planted(0, threads=2048)
    with pytest.raises(hlo.DeviceError, match=r"^kernel_\d+ \(%sound\): CUDA_ERROR_INVALID_VALUE"):
        executable(X[:64])

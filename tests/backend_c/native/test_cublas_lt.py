"""Products of matrices go to cuBLASLt where it takes them, here a stand-in, and else to kernels."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import pytest
from conftest import has_c_compiler
from cublas_lt_stand_in import build_stand_in
from test_cuda_driver import nvidia_headers
from test_cuda_executable import Foreign

import hlo
import interp
from backend_c.cuda import cublas_lt
from backend_c.cuda.host_plan import MultiplyMatrices
from backend_c.lower.matrix_product import MatrixProduct
from backend_c.lower.plan import Launch, Origin
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.cublas_lt import (
    NO_ALGORITHM,
    CublasError,
    CublasLt,
    PreparedProduct,
    declared,
    find_cublas_lt,
)
from backend_c.native.cuda_driver import Device, DeviceMemory, Driver
from backend_c.native.cuda_emulation import EmulatedCompiler, build_driver
from backend_c.native.cuda_executable import CudaExecutable
from backend_c.native.device_arrays import DeviceArray
from backend_c.native.toolchain import known_compiler
from backend_c.pipeline import on_device
from backend_c.render.translation_units import Place
from hlo.module import Module
from hlo.types import BF16
from hlo_oracle.arguments import from_seed
from selftest.gpu import library_products
from selftest.gpu.library_products import Product, all_products, planned
from selftest.gpu.unit import NO_GPU

# Ten trips, whose number is known before the first, and others, whose is not.
LOOP = """HloModule loop
less { state = (s32[], f32[16,16], f32[16,16]) parameter(0)
       i = s32[] get-tuple-element(state), index=0
       ten = s32[] constant(10)
       ROOT is = pred[] compare(i, ten), direction=LT }
small { state = (s32[], f32[16,16], f32[16,16]) parameter(0)
        x = f32[16,16] get-tuple-element(state), index=1
        corner = f32[1,1] slice(x), slice={[0:1], [0:1]}
        scalar = f32[] reshape(corner)
        most = f32[] constant(1e6)
        ROOT is = pred[] compare(scalar, most), direction=LT }
next { state = (s32[], f32[16,16], f32[16,16]) parameter(0)
       i = s32[] get-tuple-element(state), index=0
       one = s32[] constant(1)
       more = s32[] add(i, one)
       x = f32[16,16] get-tuple-element(state), index=1
       y = f32[16,16] get-tuple-element(state), index=2
       product = f32[16,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
       ROOT all = (s32[], f32[16,16], f32[16,16]) tuple(more, product, y) }
ENTRY e { x = f32[16,16] parameter(0)
          y = f32[16,16] parameter(1)
          zero = s32[] constant(0)
          first = (s32[], f32[16,16], f32[16,16]) tuple(zero, x, y)
          counted = (s32[], f32[16,16], f32[16,16]) while(first), condition=less, body=next
          then = f32[16,16] get-tuple-element(counted), index=1
          second = (s32[], f32[16,16], f32[16,16]) tuple(zero, x, y)
          open = (s32[], f32[16,16], f32[16,16]) while(second), condition=small, body=next
          last = f32[16,16] get-tuple-element(open), index=1
          ROOT both = (f32[16,16], f32[16,16]) tuple(then, last) }"""


@dataclass(frozen=True)
class StandIn:
    """The library on its device, what its next calls answer, how many products it was given."""

    device: Device
    driver: Path
    path: Path
    control: Any

    def library(self) -> CublasLt:
        return CublasLt(str(self.path), self.device)

    def compiled(self, *texts: str, is_used: bool = True, side: int = 8) -> list[CudaExecutable]:
        cache = open_cache(default_directory(os.environ))
        compiler = EmulatedCompiler(known_compiler(os.environ, cache), cache)
        library = self.library() if is_used else None
        return on_device([planned(t, side) for t in texts], self.device, compiler, None, library)

    def products(self) -> int:
        return int(self.control.hlo_stand_in_products())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    if not has_c_compiler():
        pytest.skip("no C compiler")
    cache = open_cache(default_directory(os.environ))
    compiler = known_compiler(os.environ, cache)
    driver = build_driver(compiler, cache)
    path = build_stand_in(tmp_path_factory.mktemp("lt") / "libcublasLt.so.13", compiler, driver)
    ffi = cffi.FFI()
    ffi.cdef("void hlo_stand_in_answer(int, int); int64_t hlo_stand_in_products(void);"
             "int64_t hlo_stand_in_alive(void);")  # fmt: skip
    return StandIn(Device(Driver(driver)), driver, path, ffi.dlopen(str(path)))


@pytest.fixture
def stand_in(built: StandIn) -> Iterator[StandIn]:
    yield built
    built.control.hlo_stand_in_answer(0, 0)


def arguments(module: Module) -> list[np.ndarray]:
    """Drawn matrices."""
    return [np.asarray(one) for one in from_seed(module, 0)]


def test_products_of_every_type_and_order(stand_in: StandIn) -> None:
    products = all_products()
    executables = stand_in.compiled(*(product.text() for product in products))
    for product, executable in zip(products, executables, strict=True):
        module, before = hlo.parse(product.text()), stand_in.products()
        given = arguments(module)
        expected, found = interp.evaluate(module, *given), executable(*given)
        assert stand_in.products() == before + 1, product
        assert isinstance(expected, np.ndarray) and isinstance(found, np.ndarray)
        assert found.dtype == expected.dtype
        assert product.is_right(found, *given) and product.is_right(expected, *given), product
        changed = expected.copy()
        changed.reshape(-1)[-1] += 1
        assert not product.is_right(changed, *given), product


def test_loops_and_graphs_multiply_by_the_library(stand_in: StandIn) -> None:
    (executable,) = stand_in.compiled(LOOP)
    module, before = hlo.parse(LOOP), stand_in.products()
    x = np.eye(16, dtype=np.float32)
    y = np.full((16, 16), 1, np.float32)  # powers of 16: exact in any order
    expected = interp.evaluate(module, x, y)
    trips = 10 + 6
    assert isinstance(expected, tuple)
    bound = executable.bind(x, y)
    for run in range(1, 5):
        bound.enqueue()
        bound.wait()
        assert isinstance(bound.results, tuple)
        for wanted, one in zip(expected, bound.results, strict=True):
            assert isinstance(one, DeviceArray) and np.array_equal(wanted, one.numpy())
        if run == 1:  # the third trip of the open loop is captured, those after it are graphs
            assert stand_in.products() == before + 10 + 3
    after = stand_in.products()
    bound.enqueue()
    bound.wait()
    assert stand_in.products() == after
    kernels = {one.kernel: one for one in bound.profile()}
    assert kernels["cuBLASLt"].launches == trips


@pytest.mark.parametrize("why", ["missing", "none", "not supported", "invalid", "too small"])
def test_kernels_multiply_what_the_library_does_not(stand_in: StandIn, why: str) -> None:
    answers = {"none": -1, "not supported": 15, "invalid": 7}
    stand_in.control.hlo_stand_in_answer(answers.get(why, 0), 0)
    product, before = Product("f32", "f32"), stand_in.products()
    (executable,) = stand_in.compiled(
        product.text(), is_used=why != "missing", side=128 if why == "too small" else 8
    )
    module = hlo.parse(product.text())
    given = arguments(module)
    found = executable(*given)
    assert isinstance(found, np.ndarray) and product.is_right(found, *given)
    assert stand_in.products() == before
    (kernel,) = {one.kernel for one in executable.bind(*given).profile()}
    assert kernel == "kernel_0"


def test_matrices_that_are_not_aligned_go_to_kernels(stand_in: StandIn) -> None:
    product = Product("f32", "f32")
    (executable,) = stand_in.compiled(product.text())
    module = hlo.parse(product.text())
    x, y = arguments(module)
    (padded,) = stand_in.compiled(
        "HloModule m\nENTRY e { x = f32[9,40] parameter(0)\n ROOT y = f32[9,40] abs(x) }"
    )
    moved = np.zeros((9, 40), np.float32)
    moved.reshape(-1)[1:321] = np.abs(x).reshape(-1)
    on = padded.on_device(moved)
    assert isinstance(on, DeviceArray)
    address, _ = on.__cuda_array_interface__["data"]
    before = stand_in.products()
    found = executable.on_device(Foreign(on, data=(address + 4, False), shape=(8, 40)), y)
    assert stand_in.products() == before
    assert isinstance(found, DeviceArray) and product.is_right(found.numpy(), np.abs(x), y)


def test_errors_name_the_instruction(stand_in: StandIn) -> None:
    text = Product("f32", "f32").text()
    stand_in.control.hlo_stand_in_answer(14, 0)
    with pytest.raises(CublasError) as raised:
        stand_in.compiled(text)
    assert str(raised.value) == (
        "asking cuBLASLt for an algorithm (%d): CUBLAS_STATUS_INTERNAL_ERROR"
    )
    stand_in.control.hlo_stand_in_answer(0, 13)
    (executable,) = stand_in.compiled(text)
    with pytest.raises(CublasError) as raised:
        executable(*arguments(hlo.parse(text)))
    assert str(raised.value) == "cuBLASLt (%d): CUBLAS_STATUS_EXECUTION_FAILED"
    assert (raised.value.status, raised.value.name) == (13, "CUBLAS_STATUS_EXECUTION_FAILED")


def test_what_is_made_is_freed(stand_in: StandIn) -> None:
    gc.collect()  # what other tests left
    alive = stand_in.control.hlo_stand_in_alive
    before = alive()
    made = stand_in.compiled(Product("f32", "f32").text())
    assert alive() == before + 5  # a handle, an operation, three matrices
    del made
    gc.collect()
    assert alive() == before


def test_the_library_is_that_of_the_environment(stand_in: StandIn, tmp_path: Path) -> None:
    found = find_cublas_lt(stand_in.device, {"HLO_CUBLASLT": str(stand_in.path)})
    assert isinstance(found, CublasLt)
    with pytest.raises(hlo.DeviceError, match="cannot load cuBLASLt"):
        find_cublas_lt(stand_in.device, {"HLO_CUBLASLT": str(tmp_path / "none.so")})
    with pytest.raises(hlo.DeviceError, match="is no cuBLASLt"):
        find_cublas_lt(stand_in.device, {"HLO_CUBLASLT": str(stand_in.driver)})


def test_the_stand_in_refuses_what_does_not_fit(stand_in: StandIn) -> None:
    library, place = stand_in.library(), Place("workspace", 0)
    (launch,) = planned(Product("f32", "f32").text(), 8)[1].steps
    assert isinstance(launch, Launch) and launch.product is not None
    product = launch.product.product

    def prepared(product: MatrixProduct) -> PreparedProduct | None:
        step = MultiplyMatrices(0, product, *[place] * 4, (), Origin("e", "d"))
        return library.prepared(step)

    lhs, rhs = product.lhs, product.rhs
    for wrong in (
        replace(product, lhs=replace(lhs, pitch=39)),
        replace(product, rhs=replace(rhs, element_type=BF16)),
        replace(product, result_type=BF16),
        replace(product, batch=0),
    ):
        assert prepared(wrong) is None, wrong
    ready, on = prepared(product), stand_in.device
    assert ready is not None
    memory = [DeviceMemory(on, size) for size in (8 * 40 * 4, 40 * 16 * 4, 8 * 16 * 4, 1024)]
    *matrices, workspace = (one.address for one in memory)
    with on.current():
        ready.enqueue(matrices, workspace, 0)
        on.driver.call("cuStreamSynchronize", on.driver.ffi.NULL)
        for n in range(3):
            moved = [address + 16 * (n == m) for m, address in enumerate(matrices)]
            with pytest.raises(CublasError, match="INVALID_VALUE"):
                ready.enqueue(moved, workspace, 0)
            odd = [address + 4 * (n == m) for m, address in enumerate(matrices)]
            assert ready.takes(moved) and not ready.takes(odd)
        with pytest.raises(CublasError, match="INVALID_VALUE"):
            ready.enqueue(matrices, workspace + 16, 0)
        with pytest.raises(CublasError, match="EXECUTION_FAILED"):
            ready.enqueue(matrices, workspace, 77)  # no stream


def test_the_check_on_a_gpu_is_one_of_both(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HLO_CUBLASLT", raising=False)
    words = ["--emulated", "--only", "s8"]
    assert library_products.main(words) == NO_GPU
    monkeypatch.setenv("HLO_CUBLASLT", str(stand_in.path))
    assert library_products.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 2 and not any("WRONG" in line for line in lines)
    stand_in.control.hlo_stand_in_answer(-1, 0)
    assert library_products.main(words) == 1
    assert capsys.readouterr().out.count("not taken") == 2


def test_numbers_are_those_of_nvidia(tmp_path: Path) -> None:
    """Types, attributes and structs of the runtime and of emitted projects have the values of
    NVIDIA's cublasLt.h."""
    headers = nvidia_headers("cublasLt.h")
    if not headers:
        pytest.skip("no cublasLt.h on this machine")
    names = {"F32": "CUDA_R_32F", "F64": "CUDA_R_64F", "F16": "CUDA_R_16F", "S8": "CUDA_R_8I",
             "S32": "CUDA_R_32I", "BF16": "CUDA_R_16BF"}  # fmt: skip
    pairs = {names[str(t).upper()]: number for t, number in cublas_lt.DATA_TYPES.items()}
    assert len(pairs) == len(names)
    computed = {"F32": "32F", "F64": "64F", "S32": "32I"}
    pairs |= {f"CUBLAS_COMPUTE_{computed[str(t).upper()]}": number
              for t, number in cublas_lt.COMPUTE_TYPES.items()}  # fmt: skip
    for prefix, attributes in (("MATMUL_DESC", cublas_lt.MATMUL_DESC),
                               ("MATRIX_LAYOUT", cublas_lt.MATRIX_LAYOUT),
                               ("MATMUL_PREF", cublas_lt.MATMUL_PREF)):  # fmt: skip
        pairs |= {f"CUBLASLT_{prefix}_{name}": number for name, number in attributes.items()}
    pairs |= {"CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE": cublas_lt.REDUCTION_SCHEME,
              "CUBLAS_OP_N": 0, "CUBLAS_OP_T": 1}  # fmt: skip
    pairs |= {f"CUBLAS_STATUS_{name}": number for number, name in NO_ALGORITHM.items()}
    ffi = declared()
    pairs |= {f"sizeof({name})": ffi.sizeof(name)
              for name in ("cublasLtMatmulAlgo_t", "cublasLtMatmulHeuristicResult_t")}  # fmt: skip
    pairs |= {f"offsetof(cublasLtMatmulHeuristicResult_t, {name})":
              ffi.offsetof("cublasLtMatmulHeuristicResult_t", name)
              for name in ("workspaceSize", "state")}  # fmt: skip
    lines = [f'_Static_assert({name} == {n}, "{name}");' for name, n in pairs.items()]
    unit = tmp_path / "numbers.c"
    unit.write_text("\n".join([f'#include "{headers[0]}"', *lines, ""]))
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    places = [f"-I{one.parent}" for one in (headers[0], *nvidia_headers("library_types.h"))]
    subprocess.run([compiler, "-std=c11", "-fsyntax-only", *places, str(unit)], check=True)

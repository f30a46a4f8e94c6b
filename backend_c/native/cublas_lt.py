"""Multiply matrices by NVIDIA's cuBLASLt, a library that is loaded where it is found.

The declarations are those of runtime/cuda/cublas_lt_calls.h. Products that the library has no
algorithm for are left to our kernels (:mod:`backend_c.native.cuda_host_run`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache as once
from typing import Any

import cffi

from backend_c.cuda.cublas_lt import (
    ALIGNMENT,
    COMPUTE_TYPES,
    MATMUL_DESC,
    MATMUL_PREF,
    MATRIX_LAYOUT,
    WISHES,
    Layout,
    Matmul,
    matmul,
)
from backend_c.cuda.host_plan import LIBRARY_BYTES, MultiplyMatrices
from backend_c.native.cuda_driver import Device, declarations
from backend_c.native.nvidia_libraries import nvidia_libraries
from backend_c.native.toolchain import RUNTIME
from hlo.errors import DeviceError
from hlo.types import F32, F64, S32

_CALLS = RUNTIME / "cuda" / "cublas_lt_calls.h"
_ENDINGS = (".13", ".12", ".11")
# Of enum cublasStatus_t: what the library answers for products that it does not take.
NO_ALGORITHM = {7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 15: "NOT_SUPPORTED"}
# Kinds of descriptors, the prefixes of their functions.
_OPERATION, _MATRIX = "cublasLtMatmulDesc", "cublasLtMatrixLayout"
_PREFERENCE = "cublasLtMatmulPreference"
# Of the factor 1: as the type of sums.
_SCALES = {COMPUTE_TYPES[F32]: "float", COMPUTE_TYPES[F64]: "double", COMPUTE_TYPES[S32]: "int32_t"}


class CublasError(DeviceError):
    """Raised for an error of cuBLASLt; ``status`` and ``name`` are those in cublasStatus_t."""

    def __init__(self, status: int, name: str, doing: str) -> None:
        self.status, self.name = status, name
        super().__init__(f"{doing}: {name}")


def find_cublas_lt(device: Device, environ: Mapping[str, str]) -> CublasLt | None:
    """Return the library on a device: that of HLO_CUBLASLT, else one of Python's packages or of the
    loader; None if there is none that works with the driver.

    Raises DeviceError if the one of HLO_CUBLASLT cannot be used.
    """
    chosen = environ.get("HLO_CUBLASLT", "")
    for path in nvidia_libraries("cublasLt", _ENDINGS, chosen):
        try:
            return CublasLt(path, device)
        except DeviceError:  # it is for another driver
            if chosen:
                raise
    return None


class CublasLt:
    """Call the library on one device; its handle is held as long as this object is."""

    def __init__(self, path: str, device: Device) -> None:
        self.ffi, self._device = declared(), device
        try:
            self.functions: Any = self.ffi.dlopen(path)
        except OSError as error:
            raise DeviceError(f"cannot load cuBLASLt: {error}") from None
        if not hasattr(self.functions, "cublasLtGetStatusName"):  # the newest of its calls
            raise DeviceError(f"{path} is no cuBLASLt, or older than CUDA 11.4")
        with device.current():
            self.handle = self.made("cublasLtCreate", "cublasLtHandle_t", doing=f"starting {path}")

    def call(self, function: str, *words: Any, doing: str = "") -> None:
        """Call a function; raise CublasError, which says what was done, if it reports one."""
        status = getattr(self.functions, function)(*words)
        if status:
            name = self.ffi.string(self.functions.cublasLtGetStatusName(status)).decode()
            raise CublasError(status, name, doing or function)

    def made(self, function: str, c_type: str, *words: Any, doing: str = "") -> Any:
        """Call a function with an output pointer first; return what it wrote."""
        place = self.ffi.new(f"{c_type} *")
        self.call(function, place, *words, doing=doing)
        return place[0]

    def prepared(self, step: MultiplyMatrices) -> PreparedProduct | None:
        """Return a product that is ready to be computed; None if the library has no algorithm for
        it.

        Raises CublasError with the instruction.
        """
        with self._device.current():
            product = PreparedProduct(self, step)
            return product if product.choose() else None

    def close(self) -> None:
        """Free the handle; products that were prepared cannot be computed any more."""
        if handle := getattr(self, "handle", None):
            self.handle = None
            with suppress(DeviceError), self._device.current():
                self.call("cublasLtDestroy", handle)

    __del__ = close


class PreparedProduct:
    """Hold a product with its descriptors, and the algorithm that the library chose for it."""

    def __init__(self, library: CublasLt, step: MultiplyMatrices) -> None:
        self._library, self._step = library, step
        self._doing = f"asking cuBLASLt for an algorithm (%{step.origin.instruction})"
        numbers = matmul(step.product)
        self._operation = self._described(numbers)
        layouts = numbers.first, numbers.second, numbers.result
        self._layouts = [self._layout(layout, numbers.batch) for layout in layouts]
        self._chosen = library.ffi.new("cublasLtMatmulHeuristicResult_t *")
        scale = _SCALES[numbers.compute_type]
        self._one, self._zero = (library.ffi.new(f"{scale} *", number) for number in (1, 0))

    def choose(self) -> bool:
        """Ask for the algorithm that is expected to be the fastest; return whether there is one."""
        library = self._library
        wishes = self._owned(_PREFERENCE)
        self._set(
            _PREFERENCE, wishes, MATMUL_PREF["MAX_WORKSPACE_BYTES"], "uint64_t", LIBRARY_BYTES
        )
        for attribute, value in WISHES:
            self._set(_PREFERENCE, wishes, attribute, "uint32_t", value)
        first, second, result = self._layouts
        found = library.ffi.new("int *")
        words = first, second, result, result, wishes, 1, self._chosen, found
        try:
            library.call("cublasLtMatmulAlgoGetHeuristic", library.handle, self._operation, *words,
                         doing=self._doing)  # fmt: skip
        except CublasError as error:
            if error.status not in NO_ALGORITHM:
                raise
            return False
        return bool(found[0] > 0 and not self._chosen.state)

    def takes(self, addresses: Sequence[int]) -> bool:
        """Return whether matrices at these addresses are aligned as the algorithm wants them."""
        return not any(address % ALIGNMENT for address in addresses)

    def enqueue(self, addresses: Sequence[int], workspace: int, stream: int) -> None:
        """Queue the product of the matrices at the addresses of lhs, rhs and result on a stream.

        Raises CublasError with the instruction.
        """
        library, pointer = self._library, self._library.ffi.cast
        lhs, rhs, target = (pointer("void *", address) for address in addresses)
        first, second, result = self._layouts
        library.call(
            "cublasLtMatmul", library.handle, self._operation, self._one, rhs, first, lhs, second,
            self._zero, target, result, target, result,
            library.ffi.addressof(self._chosen, "algo"),
            pointer("void *", workspace), self._chosen.workspaceSize,
            pointer("cudaStream_t", stream),
            doing=f"cuBLASLt (%{self._step.origin.instruction})",
        )  # fmt: skip

    def _described(self, numbers: Matmul) -> Any:
        """Create the descriptor of the operation."""
        made = self._owned(_OPERATION, numbers.compute_type, numbers.scale_type)
        for name, transposed in zip(("TRANSA", "TRANSB"), numbers.transposed, strict=True):
            self._set(_OPERATION, made, MATMUL_DESC[name], "int32_t", transposed)
        return made

    def _layout(self, layout: Layout, batch: int) -> Any:
        """Create the descriptor of a matrix."""
        words = layout.data_type, layout.rows, layout.columns, layout.pitch
        made, stride = self._owned(_MATRIX, *words), layout.batch_stride
        self._set(_MATRIX, made, MATRIX_LAYOUT["BATCH_COUNT"], "int32_t", batch)
        self._set(_MATRIX, made, MATRIX_LAYOUT["STRIDED_BATCH_OFFSET"], "int64_t", stride)
        return made

    def _set(self, kind: str, of: Any, attribute: int, c_type: str, value: int) -> None:
        """Set an attribute of a descriptor."""
        place, size = self._library.ffi.new(f"{c_type} *", value), self._library.ffi.sizeof(c_type)
        self._library.call(f"{kind}SetAttribute", of, attribute, place, size, doing=self._doing)

    def _owned(self, kind: str, *words: Any) -> Any:
        """Create a descriptor that is destroyed with its last reference."""
        made = self._library.made(f"{kind}Create", f"{kind}_t", *words, doing=self._doing)
        functions = self._library.functions  # loaded as long as there is something to destroy
        return self._library.ffi.gc(made, lambda one: getattr(functions, f"{kind}Destroy")(one))


@once
def declared() -> Any:
    """Read the declarations, when cuBLASLt is first looked for."""
    ffi = cffi.FFI()
    ffi.cdef(declarations(_CALLS))
    return ffi

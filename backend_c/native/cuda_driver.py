"""Call CUDA's driver: its library alone, without a toolkit.

The declarations are those of runtime/cuda/cuda_driver.h. Any library with these symbols is a
driver: that of emulated threads is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache as once
from pathlib import Path
from typing import Any

import cffi

from backend_c.native.toolchain import RUNTIME
from hlo.errors import DeviceError, Unsupported

DRIVER = "libcuda.so.1"
DECLARATIONS = RUNTIME / "cuda" / "cuda_driver.h"
# Of the emulated driver, and of the libraries that it loads (runtime/cuda_emulation).
_EMULATION = """
    typedef struct {
        int32_t kind, launch, array, is_write, bytes, line, other_line, is_other_block;
        int64_t block, thread, other_thread, index, shared;
        uint64_t place;
    } hlo_finding;
    void hlo_emulated_tell(int number, const int64_t *elements, int64_t count);
    void *hlo_emulated_symbol(CUmodule module, const char *name);
    void hlo_emulated_forgive(void);
    int64_t hlo_emulated_alive(void);
"""
_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76  # of enum CUdevice_attribute
_ORDINAL = 9  # of enum CUpointer_attribute
_NO_DEVICE, _OUT_OF_MEMORY, _NO_LIBRARY = 100, 2, 34  # of enum CUresult; 34: a stub of the toolkit
_NAME_BYTES = 256
_CONDITIONAL = re.compile(r"#ifdef __cplusplus.*?#endif|^#[^\n]*$", re.DOTALL | re.MULTILINE)
_OTHERWISE = "run with target openmp, or on emulated threads by backend_c.emulate"


@once
def _declared() -> Any:
    """Read the declarations, when a driver is first called."""
    ffi = cffi.FFI()
    ffi.cdef(declarations(DECLARATIONS) + _EMULATION)
    return ffi


def declarations(header: Path) -> str:
    """Return the declarations of a header, without comments and what a preprocessor does."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text("utf-8"), flags=re.DOTALL)
    return _CONDITIONAL.sub("", text)


class DriverError(DeviceError):
    """Raised for an error of the driver; ``code`` and ``name`` are those in enum CUresult."""

    def __init__(self, code: int, name: str, text: str, doing: str) -> None:
        self.code, self.name = code, name
        super().__init__(f"{doing}: {name} ({text})")


class Driver:
    """Call the functions of a driver, as declared in the header; ``version`` is that of CUDA.

    ``library`` has the functions, for callers that check results themselves, ``ffi`` the types.
    """

    def __init__(self, path: str | Path = DRIVER) -> None:
        self.ffi = _declared()
        try:
            self.library: Any = self.ffi.dlopen(str(path), self.ffi.RTLD_NOW)
        except OSError as error:
            raise DeviceError(
                f"there is no driver of an NVIDIA GPU on this machine ({path}: {error});"
                f" {_OTHERWISE}"
            ) from None
        code = self.library.cuInit(0)
        if code in (_NO_DEVICE, _NO_LIBRARY):
            name, _ = self._described(code)
            raise DeviceError(f"the driver {path} finds no GPU ({name}); {_OTHERWISE}")
        self.require(code, f"starting the driver {path}")
        number = self.made("cuDriverGetVersion", "int")
        self.version = f"{number // 1000}.{number % 1000 // 10}"  # the newest CUDA that it runs

    def call(self, function: str, *words: Any, doing: str = "") -> None:
        """Call a function; raise DriverError, which says what was done, if it reports one.

        Raises Unsupported if it reports that memory does not suffice.
        """
        try:
            called = getattr(self.library, function)
        except AttributeError:
            raise DeviceError(f"the driver has no {function}: it is older than CUDA 11") from None
        self.require(called(*words), doing or function)

    def made(
        self,
        function: str,
        c_type: str,
        *words: Any,
        before: Sequence[Any] = (),
        doing: str = "",
    ) -> Any:
        """Call a function with an output pointer, after the arguments ``before``; return what it
        wrote."""
        place = self.ffi.new(f"{c_type} *")
        self.call(function, *before, place, *words, doing=doing)
        return place[0]

    def require(self, code: int, doing: str) -> None:
        """Raise the error of a function's result code, unless it is success."""
        if code == _OUT_OF_MEMORY:
            raise Unsupported(f"{doing}: the memory of the GPU does not suffice")
        if code:
            raise DriverError(code, *self._described(code), doing)

    def _described(self, code: int) -> tuple[str, str]:
        """Return the name and the description of an error code."""
        texts = []
        for function in (self.library.cuGetErrorName, self.library.cuGetErrorString):
            place = self.ffi.new("const char **")
            function(code, place)
            known = place[0] != self.ffi.NULL
            texts.append(self.ffi.string(place[0]).decode() if known else f"error {code}")
        return texts[0], texts[1]


class Device:
    """Use one GPU of a driver: its primary context is held as long as this object is."""

    def __init__(self, driver: Driver, ordinal: int = 0) -> None:
        self.driver = driver
        count = driver.made("cuDeviceGetCount", "int", doing="counting GPUs")
        if not 0 <= ordinal < count:
            raise DeviceError(f"there is no GPU {ordinal}: the driver has {count}")
        self._number = driver.made("cuDeviceGet", "CUdevice", ordinal)
        name = driver.ffi.new("char[]", _NAME_BYTES)
        driver.call("cuDeviceGetName", name, _NAME_BYTES, self._number)
        self.name = driver.ffi.string(name).decode(errors="replace")
        self.ordinal = ordinal
        self.multiprocessors = self._attribute(_MULTIPROCESSORS)
        major = self._attribute(_MAJOR)
        self.architecture = f"sm_{major}{self._attribute(_MINOR)}"
        self.has_tensor_cores = major >= 8  # as runtime/hlo_block_mma.h takes them
        doing = f"starting {self.name}"
        self._context = driver.made("cuDevicePrimaryCtxRetain", "CUcontext", self._number,
                                    doing=doing)  # fmt: skip

    def __del__(self) -> None:
        if hasattr(self, "_context"):
            self.driver.library.cuDevicePrimaryCtxRelease_v2(self._number)

    def may_have(self, address: int) -> bool:
        """Return whether memory is not known to be another GPU's."""
        ordinal = self.driver.ffi.new("int *")
        with self.current():
            # Unchecked: the driver need not know memory that it gives access to.
            code = self.driver.library.cuPointerGetAttribute(ordinal, _ORDINAL, address)
        return bool(code) or ordinal[0] == self.ordinal

    def _attribute(self, number: int) -> int:
        value: int = self.driver.made("cuDeviceGetAttribute", "int", number, self._number)
        return value

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the device's context current in this thread, and restore the previous one."""
        self.driver.call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self.driver.call("cuCtxPopCurrent_v2", self.driver.ffi.new("CUcontext *"))


@contextmanager
def events(driver: Driver, count: int) -> Iterator[list[Any]]:
    """Create events in the current context, and destroy them at the end.

    CUDA frees an event that is still awaited once it has come.
    """
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(driver.made("cuEventCreate", "CUevent", 0))
            # Unchecked: if there was an error before, that is the one to tell.
            stack.callback(driver.library.cuEventDestroy_v2, made[-1])
        yield made


class DeviceMemory:
    """Hold an allocation of a device; it is freed with this object."""

    def __init__(self, device: Device, size: int) -> None:
        self._device, self.size = device, size
        with device.current():
            # cuMemAlloc refuses 0 bytes (CUDA_ERROR_INVALID_VALUE).
            self.address: int = device.driver.made(
                "cuMemAlloc_v2", "CUdeviceptr", max(size, 1), doing=f"allocating {size} bytes"
            )

    def close(self) -> None:
        """Free the allocation."""
        if address := getattr(self, "address", 0):
            self.address = 0
            # When Python ends, the context may be gone already.
            with suppress(DeviceError), self._device.current():
                self._device.driver.call("cuMemFree_v2", address)

    __del__ = close


class LoadedModule:
    """Hold a cubin that is loaded on a device."""

    def __init__(self, device: Device, image: bytes) -> None:
        self.device = device
        self._image = device.driver.ffi.from_buffer(image)
        with device.current():
            self.handle = device.driver.made(
                "cuModuleLoadData", "CUmodule", self._image, doing="loading kernels"
            )

    def function(self, name: str) -> Any:
        """Return a kernel's handle; the device's context must be current."""
        return self.device.driver.made(
            "cuModuleGetFunction", "CUfunction", self.handle, name.encode(), doing=name
        )

    def close(self) -> None:
        """Unload the cubin from the device."""
        if handle := getattr(self, "handle", None):
            self.handle = None
            with suppress(DeviceError), self.device.current():
                self.device.driver.call("cuModuleUnload", handle)

    __del__ = close

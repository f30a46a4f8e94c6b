"""Exchange arrays in memory of a GPU with other libraries, without copies.

Two protocols are spoken both ways: ``__cuda_array_interface__`` version 3 (CuPy, Numba, PyTorch,
JAX) and DLPack (these, and types that the first has no name for, as bf16).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from backend_c.native import dlpack
from backend_c.native.cuda_driver import Device, DeviceMemory, events
from backend_c.native.in_place import is_fixed
from backend_c.native.marshalling import Memory, Value
from backend_c.native.marshalling import arguments as host_arguments
from backend_c.render.translation_units import storage_type
from hlo.caller_values import described, require_count
from hlo.errors import ArgumentError
from hlo.types import ArrayShape, Shape, TupleShape
from hlo.values import Array

_INTERFACE = "__cuda_array_interface__"
_VERSION = 3
_ELSEWHERE = "{}: the array is not on GPU {}"


class Writer(Protocol):
    """Hold runs that may be writing arrays."""

    def wait(self) -> None:
        """Wait for the runs; there are none once it is closed."""


class DeviceArray:
    """Hold a row-major array in memory of a GPU: a result.

    ``numpy()`` copies it to the host. That and both protocols wait for runs that may be writing it;
    ``address`` does not.
    """

    def __init__(
        self, device: Device, dims: tuple[int, ...], dtype: np.dtype[Any], memory: DeviceMemory
    ) -> None:
        self._device, self._memory = device, memory
        self.shape, self.dtype = dims, dtype
        self.address = memory.address
        self._writer: Writer | None = None  # whose runs may be writing it

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}{list(self.shape)} on {self._device.name})"

    @property
    def nbytes(self) -> int:
        """Return the size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self._wait()
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "stream": None,  # nothing is under way
            "version": _VERSION,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self._device.ordinal

    def __dlpack__(self, **options: Any) -> Any:
        device = self.__dlpack_device__()
        asked = options.get("dl_device")
        if options.get("copy") or asked not in (None, device):
            raise BufferError("a copy is what numpy() makes")
        if options.get("stream") != dlpack.NO_WAIT:
            self._wait()
        # Whatever `max_version` is: one who takes newer capsules takes those without a version.
        return dlpack.exported(self.address, self.shape, self.dtype, device, self._memory)

    def numpy(self) -> Array:
        """Return a copy in memory of the host."""
        self._wait()
        array = np.empty(self.shape, self.dtype)
        driver = self._device.driver
        if array.nbytes:
            with self._device.current():
                words = driver.ffi.from_buffer(array), self.address, array.nbytes, driver.ffi.NULL
                driver.call("cuMemcpyDtoHAsync_v2", *words, doing="copying from the GPU")
                driver.call("cuStreamSynchronize", driver.ffi.NULL)
        return array

    def write(self, writer: Writer) -> None:
        """Let whoever takes the array wait for the runs of ``writer``."""
        self._writer = writer

    def complete(self) -> None:
        """Let nobody wait: the last run that writes the array was waited for."""
        self._writer = None

    def _wait(self) -> None:
        """Wait for the runs that may be writing the array."""
        # One that is held meanwhile: closed by the collector it would wait for itself.
        if (writer := self._writer) is not None:
            writer.wait()


class DeviceInput:
    """Hold the device memory of an argument; ``data`` is the host array to copy there, if any.

    ``stream`` is the one to wait for before it is read, None if there is none.
    """

    __slots__ = ("_device", "_kept", "_stream", "address", "data")

    def __init__(
        self,
        device: Device,
        address: int,
        kept: object,
        data: Array | None = None,
        stream: int | None = None,
    ) -> None:
        self._device, self.address, self._kept = device, address, kept
        self.data, self._stream = data, stream

    def wait(self, stream: Any) -> None:
        """Let a stream wait until the argument is written."""
        if self._stream is None:
            return
        driver = self._device.driver
        other = driver.ffi.cast("CUstream", self._stream)
        with events(driver, 1) as (event,):
            driver.call("cuEventRecord", event, other, doing="waiting for an argument's stream")
            driver.call("cuStreamWaitEvent", stream, event, 0)


def device_arguments(
    device: Device, parameters: Sequence[tuple[str, Shape]], values: Sequence[Value]
) -> list[DeviceInput]:
    """Return the device memory of the arrays in one value for each parameter.

    Raises ArgumentError for the first value that does not fit.
    """
    require_count(len(parameters), values)
    found: list[DeviceInput] = []
    for number, ((name, shape), value) in enumerate(zip(parameters, values, strict=True)):
        found += _inputs(device, f"parameter {number} ({name})", shape, value)
    return found


def _inputs(device: Device, what: str, shape: Shape, value: Value) -> Iterator[DeviceInput]:
    """Yield the device memory of each array in a value of a shape."""
    if isinstance(shape, TupleShape):
        if not isinstance(value, tuple) or len(value) != len(shape.elements):
            raise ArgumentError(f"{what}: expected {shape}, got {described(value)}")
        for number, (element, part) in enumerate(zip(shape.elements, value, strict=True)):
            yield from _inputs(device, f"{what}, element {number}", element, part)
    elif not shape.element_type.is_array:
        if value is not None:
            raise ArgumentError(f"{what}: expected None for a token, got {described(value)}")
    elif not is_fixed(shape):
        raise ArgumentError(f"{what}: {shape} is converted at each call: call it without on_device")
    elif hasattr(value, _INTERFACE):
        yield _by_interface(device, what, shape, value)
    elif dlpack.is_on_device(value):
        yield _by_dlpack(device, what, shape, value)
    else:
        (memory,) = host_arguments([(what, shape)], [value])
        yield _copied(device, memory)


def _copied(device: Device, memory: Memory) -> DeviceInput:
    """Allocate device memory for an array of the host, to be copied there."""
    place = DeviceMemory(device, memory.data.nbytes)
    return DeviceInput(device, place.address, place, memory.data)


def _by_interface(device: Device, what: str, shape: ArrayShape, value: Any) -> DeviceInput:
    """Return the memory of a value with ``__cuda_array_interface__``."""
    interface = getattr(value, _INTERFACE)
    dtype = storage_type(shape.element_type)
    dims, typestr = tuple(interface["shape"]), interface["typestr"]
    if dims != shape.dims or typestr != dtype.str:
        raise ArgumentError(f"{what}: expected {shape}, got {typestr}{list(dims)} on the GPU")
    strides = interface.get("strides")
    if strides is not None and not _is_row_major(dims, strides, dtype.itemsize):
        raise ArgumentError(f"{what}: the array on the GPU is not row-major: copy it")
    address = interface["data"][0]
    if not device.may_have(address):
        raise ArgumentError(_ELSEWHERE.format(what, device.ordinal))
    return DeviceInput(device, address, value, stream=interface.get("stream"))


def _by_dlpack(device: Device, what: str, shape: ArrayShape, value: Any) -> DeviceInput:
    """Return the memory of a value with ``__dlpack__``."""
    kind, ordinal = value.__dlpack_device__()
    if kind != dlpack.CUDA or ordinal != device.ordinal:
        raise ArgumentError(_ELSEWHERE.format(what, device.ordinal))
    view = dlpack.imported(value)
    dtype = storage_type(shape.element_type)
    if view.dims != shape.dims or view.kind != dlpack.kind_of(dtype):
        raise ArgumentError(f"{what}: expected {shape}, got another array on the GPU")
    strides = view.strides
    if strides is not None and not _is_row_major(view.dims, strides, 1):
        raise ArgumentError(f"{what}: the array on the GPU is not row-major: copy it")
    return DeviceInput(device, view.address, view, stream=dlpack.DEFAULT_STREAM)


def _is_row_major(dims: Sequence[int], strides: Sequence[int], unit: int) -> bool:
    """Return whether an array whose elements are ``unit`` apart is row-major.

    The stride of a dimension of size 1, or of any where there are no elements, is never taken.
    """
    step = unit
    for size, stride in zip(reversed(dims), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return 0 in dims
        step *= size
    return True

"""Give arrays to other libraries, and take theirs of a GPU, by DLPack.

A capsule named ``dltensor`` holds a pointer to a DLManagedTensor (dlpack.h, version 0.8), whose
deleter whoever took it calls; who takes it renames the capsule ``used_dltensor``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

CPU, CUDA = 1, 2  # kDLCPU, kDLCUDA
_OF_HOST = (CPU, 3)  # kDLCUDAHost: pinned
NO_WAIT = -1  # in a stream's place: whoever takes an array sees to that it is complete
DEFAULT_STREAM = 1  # the legacy one: who gives an array makes it wait until that is written
_NAME, _USED = b"dltensor", b"used_dltensor"
# kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLComplex, kDLBool by NumPy's kind.
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),  # of the address of this
    )


_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Kind(NamedTuple):
    """Hold an element type of DLPack."""

    code: int
    bits: int


def kind_of(dtype: np.dtype[Any]) -> Kind | None:
    """Return the type of elements in DLPack's terms; None if it has none."""
    known = _CODES.get(dtype.kind) if dtype.isbuiltin == 1 else None  # no float8 of ml_dtypes
    code = _BFLOAT if dtype.name == "bfloat16" else known
    return None if code is None else Kind(code, dtype.itemsize * 8)


def is_on_device(value: Any) -> bool:
    """Return whether a value speaks DLPack and lies elsewhere than in the host's memory."""
    if isinstance(value, np.ndarray | tuple) or not hasattr(value, "__dlpack_device__"):
        return False
    kind, _ = value.__dlpack_device__()
    return kind not in _OF_HOST


def _function(name: str, result: Any, *parameters: Any) -> Callable[..., Any]:
    """Return a function of Python's C API with its types."""
    return ctypes.PYFUNCTYPE(result, *parameters)((name, ctypes.pythonapi))


_new = _function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _RELEASE)
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# By address: a destructor may not make a reference to the capsule that it destroys.
_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_address = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


class _Exports:
    """Keep exported tensors, and the memory behind them, alive until their consumers release
    them."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[object, ...]] = {}
        self._deleter, self._destructor = _RELEASE(self._delete), _RELEASE(self._destroy)

    def capsule(self, tensor: _Tensor, *kept: object) -> Any:
        """Return a capsule for a tensor; ``kept`` lives until it is released."""
        managed = _Managed(tensor, None, ctypes.cast(self._deleter, ctypes.c_void_p))
        address = ctypes.addressof(managed)
        self._kept[address] = (managed, *kept)
        return _new(address, _NAME, self._destructor)

    def _delete(self, address: int) -> None:
        self._kept.pop(address, None)

    def _destroy(self, capsule: int) -> None:
        # A capsule that somebody took has another name, and they call the deleter.
        if _is_valid(capsule, _NAME):
            self._kept.pop(_address(capsule, _NAME), None)


_EXPORTS = _Exports()


def exported(
    address: int,
    dims: tuple[int, ...],
    dtype: np.dtype[Any],
    device: tuple[int, int],
    owner: object,
) -> Any:
    """Return a capsule for a row-major array on ``device = (kind, number)``.

    ``owner`` lives until it is released. Raises BufferError, as the protocol has it, for types that
    DLPack has no name for.
    """
    kind = kind_of(dtype)
    if kind is None:
        raise BufferError(f"DLPack has no type for {dtype}")
    shape = (ctypes.c_int64 * max(len(dims), 1))(*dims)
    tensor = _Tensor(address, *device, len(dims), kind.code, kind.bits, 1, shape, None, 0)
    return _EXPORTS.capsule(tensor, shape, owner)


class View:
    """Hold an array imported from another library; release it with this object.

    ``strides`` count elements; None is row-major.
    """

    def __init__(self, value: Any) -> None:
        self._managed: _Managed | None = None
        capsule = value.__dlpack__(stream=DEFAULT_STREAM)
        self._managed = managed = _Managed.from_address(_pointer(capsule, _NAME))
        _rename(capsule, _USED)
        tensor = managed.tensor
        self.dims = tuple(tensor.shape[n] for n in range(tensor.ndim))
        self.strides = (
            tuple(tensor.strides[n] for n in range(tensor.ndim)) if tensor.strides else None
        )
        self.kind = Kind(tensor.code, tensor.bits * tensor.lanes)
        self.address = (tensor.data or 0) + tensor.byte_offset

    def __del__(self) -> None:
        managed = getattr(self, "_managed", None)
        if managed is not None and managed.deleter:
            _RELEASE(managed.deleter)(ctypes.addressof(managed))


def imported(value: Any) -> View:
    """Import an array of another library by DLPack."""
    return View(value)

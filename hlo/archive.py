"""Read and write arrays as NumPy's ``.npz``."""

from __future__ import annotations

import io
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hlo.errors import ArgumentError
from hlo.io_errors import of_file
from hlo.types import ArrayShape, Shape
from hlo.values import Value, arrays_of

# How files begin: one array; an archive with members, and without.
_ARRAY, _ARCHIVES = b"\x93NUMPY", (b"PK\x03\x04", b"PK\x05\x06")
# What NumPy and zipfile raise for a file that is damaged, or made to be no file of arrays.
_DAMAGED = (
    EOFError,
    OverflowError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
_UNREADABLE = "'<f1'"  # the type of f8e5m2, in the header of a file


def write(
    path: Path, arrays: Iterable[tuple[str, np.ndarray]], *, is_compressed: bool = False
) -> None:
    """Write named arrays; an array with an empty name is called ``result``."""
    named: dict[str, Any] = {name or "result": _stored(array) for name, array in arrays}
    with of_file(path), path.open("wb") as file:
        (np.savez_compressed if is_compressed else np.savez)(file, **named)


def _stored(array: np.ndarray) -> np.ndarray:
    """Return an array of a type that NumPy lacks (bf16, …) as raw bytes of its size (V1, V2), which
    it reads back: as f8e5m2 it would write a file that it cannot read."""
    # 1 for NumPy's own types, 2 for those that a package registers, as ml_dtypes does.
    is_known = array.dtype.isbuiltin == 1
    return array if is_known else array.view(np.dtype(("V", array.dtype.itemsize)))


def numbered(arguments: Value) -> list[tuple[str, np.ndarray]]:
    """Flatten arguments to arrays named ``p0``, ``p1``, …, tuples in order."""
    return [(f"p{n}", array) for n, array in enumerate(arrays_of(arguments))]


def read(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of an ``.npz``, or the one of an ``.npy``.

    Types that NumPy lacks (bf16, …) are returned as raw bytes of their size (V2, …). Raises
    ArgumentError for other files, and for arrays of Python objects, which would be code to run.
    """
    with of_file(path), path.open("rb") as file:
        return _arrays(path, file)


def _arrays(path: Path, file: BinaryIO) -> dict[str, np.ndarray]:
    first = file.read(len(_ARRAY))
    file.seek(0)
    if not first.startswith((_ARRAY, *_ARCHIVES)):
        is_pickle = first.startswith(b"\x80")
        why = ": it is a pickle, which may run code" if is_pickle else ""
        raise ArgumentError(f"{path}: not a file of arrays (.npz or .npy){why}")
    try:
        loaded = _loaded(file)
        if isinstance(loaded, np.ndarray):
            return {"array": loaded}
        with loaded as archive:
            found = {name: _member(archive, name) for name in archive.files}
    except ValueError as error:
        objects = "Object arrays" in str(error) or "pickle" in str(error)
        why = "it holds Python objects, not numbers" if objects else "it is damaged"
        raise ArgumentError(f"{path}: not a file of arrays: {why}") from error
    except _DAMAGED as error:
        raise ArgumentError(f"{path}: not a file of arrays: it is damaged or cut off") from error
    except MemoryError as error:
        raise ArgumentError(f"{path}: its arrays do not fit into memory") from error
    except RuntimeError as error:  # NotImplementedError among them, for a way of compression
        raise ArgumentError(f"{path}: encrypted, or compressed in an unknown way") from error
    for name, array in found.items():
        if not isinstance(array, np.ndarray):  # NumPy gives other members as bytes
            raise ArgumentError(f"{path}: not a file of arrays: its member {name!r} is none")
    return found


def _loaded(file: BinaryIO) -> Any:
    """Load what NumPy wrote: an array, or an archive that is open."""
    try:
        return np.load(file)
    except ValueError as error:
        if _UNREADABLE not in str(error):
            raise
    file.seek(0)
    return _of_raw_bytes(file.read())


def _member(archive: Any, name: str) -> Any:
    """Load an array of an archive."""
    try:
        return archive[name]
    except ValueError as error:
        if _UNREADABLE not in str(error):
            raise
    return _of_raw_bytes(archive.zip.read(f"{name}.npy"))


def _of_raw_bytes(file: bytes) -> Any:
    """Load an array of f8e5m2, which NumPy writes as a float of one byte and does not read, as raw
    bytes."""
    return np.load(io.BytesIO(file.replace(_UNREADABLE.encode(), b"'|V1'", 1)))


def typed(array: np.ndarray, shape: Shape) -> np.ndarray:
    """Restore the element type of an array read as raw bytes; return any other unchanged.

    Raises ArgumentError for an array of records, whose bytes are those of several numbers.
    """
    if array.dtype.kind != "V" or not isinstance(shape, ArrayShape):
        return array
    if array.dtype.names is not None:
        fields = ", ".join(array.dtype.names)
        raise ArgumentError(f"an array of records (of {fields}), where {shape} is expected")
    dtype = shape.element_type.dtype
    return array if dtype is None or dtype.itemsize != array.dtype.itemsize else array.view(dtype)

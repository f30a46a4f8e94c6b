"""Arrays of every type through a file, bit for bit."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hlo import archive
from hlo.errors import ArgumentError
from hlo.types import ELEMENT_TYPES, ArrayShape

TYPES = [name for name, one in ELEMENT_TYPES.items() if one.dtype is not None]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("dims", [(), (3,), (2, 5), (0, 4)])
def test_arrays_come_back(name: str, dims: tuple[int, ...], tmp_path: Path) -> None:
    """Arrays of every type come back from an archive; NumPy wrote f8e5m2 in a form that it cannot
    read."""
    shape = ArrayShape(ELEMENT_TYPES[name], dims)
    array = np.arange(shape.elements).reshape(dims).astype(shape.element_type.numpy)
    for kept in (array, array[..., ::-1] if dims else array):
        archive.write(tmp_path / "file.npz", [("x", kept)])
        found = archive.typed(archive.read(tmp_path / "file.npz")["x"], shape)
        assert (found.dtype, found.shape) == (array.dtype, dims)
        assert found.tobytes() == kept.tobytes()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("dims", [(), (3,), (0, 4)])
def test_what_numpy_itself_writes_is_read(name: str, dims: tuple[int, ...], tmp_path: Path) -> None:
    """NumPy's own savez and save write f8e5m2 in a form that NumPy's load does not read."""
    shape = ArrayShape(ELEMENT_TYPES[name], dims)
    array = np.arange(shape.elements).reshape(dims).astype(shape.element_type.numpy)
    np.savez(tmp_path / "file.npz", x=array)
    np.savez_compressed(tmp_path / "small.npz", x=array)
    np.save(tmp_path / "file.npy", array)
    for file, key in (("file.npz", "x"), ("small.npz", "x"), ("file.npy", "array")):
        found = archive.typed(archive.read(tmp_path / file)[key], shape)
        assert (found.dtype, found.shape) == (array.dtype, dims)
        assert found.tobytes() == array.tobytes()


def test_records_are_not_raw_bytes() -> None:
    records = np.zeros(3, [("x", "i2"), ("y", "i2")])
    with pytest.raises(ArgumentError, match=r"records \(of x, y\), where f32\[3\] is expected"):
        archive.typed(records, ArrayShape(ELEMENT_TYPES["f32"], (3,)))


def _header(text: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def _member(name: str, data: bytes, flags: int = 0, way: int = 0) -> Callable[[Path], object]:
    """Write an archive of one member, whose flags and way of compression are then overwritten."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(name, data)
        found = bytearray(path.read_bytes())
        for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            place = found.index(signature) + at
            found[place : place + 4] = bytes([flags, 0, way, 0])
        path.write_bytes(found)

    return write


def _array(shape: str) -> Callable[[Path], object]:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return lambda path: path.write_bytes(_header(header))


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (_member("read.me", b"text"), "its member 'read.me' is none"),
        (_member("x.npy", b"text"), "its member 'x' is none"),
        (_member("folder/", b""), "its member 'folder/' is none"),
        (_member("x.npy", b"text", flags=1), "encrypted"),
        (_member("x.npy", b"text", way=99), "compressed in an unknown way"),
        (lambda path: path.write_bytes(_header(b"\xff\xfe{[( :")), "damaged"),
        (_array(f"({10**13},)"), "do not fit into memory"),
        (_array(f"({10**30},)"), "damaged"),
    ],
)
def test_other_files_are_bad_input(
    write: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    write(tmp_path / "file.npz")
    with pytest.raises(ArgumentError, match=said):
        archive.read(tmp_path / "file.npz")

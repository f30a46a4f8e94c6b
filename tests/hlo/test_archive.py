"""Arrays of every type through a file, bit for bit."""

from __future__ import annotations

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


def test_records_are_not_raw_bytes() -> None:
    records = np.zeros(3, [("x", "i2"), ("y", "i2")])
    with pytest.raises(ArgumentError, match=r"records \(of x, y\), where f32\[3\] is expected"):
        archive.typed(records, ArrayShape(ELEMENT_TYPES["f32"], (3,)))

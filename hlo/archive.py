"""Read and write arrays as NumPy's ``.npz``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from hlo.errors import ArgumentError
from hlo.types import ArrayShape, Shape
from hlo.values import Value, arrays_of


def write(path: Path, arrays: Iterable[tuple[str, np.ndarray]]) -> None:
    """Named arrays; a single result without a place in a tuple is called ``result``."""
    named = {name or "result": array for name, array in arrays}
    with path.open("wb") as file:
        np.savez(file, **named)  # type: ignore[arg-type]  # its keywords are typed as flags


def numbered(arguments: Value) -> list[tuple[str, np.ndarray]]:
    """The arrays of arguments as ``p0``, ``p1``, …, those of tuples one after the other."""
    return [(f"p{n}", array) for n, array in enumerate(arrays_of(arguments))]


def read(path: Path) -> dict[str, np.ndarray]:
    """Types that NumPy does not know (bf16, …) come back as bytes of their size (V2, …)."""
    try:
        with np.load(path) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError) as error:
        raise ArgumentError(f"{path}: not a file of arrays (.npz): {error}") from error


def typed(array: np.ndarray, shape: Shape) -> np.ndarray:
    """Bytes that were read are of their type again; anything else stays."""
    if array.dtype.kind != "V" or not isinstance(shape, ArrayShape):
        return array
    dtype = shape.element_type.dtype
    return array if dtype is None or dtype.itemsize != array.dtype.itemsize else array.view(dtype)

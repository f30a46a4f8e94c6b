"""Arrays in a file: NumPy's ``.npz``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from hlo.errors import ArgumentError


def write(path: Path, arrays: Iterable[tuple[str, np.ndarray]]) -> None:
    """Named arrays; a single result without a place in a tuple is called ``result``."""
    named = {name or "result": array for name, array in arrays}
    with path.open("wb") as file:
        np.savez(file, **named)  # type: ignore[arg-type]  # its keywords are typed as flags


def read(path: Path) -> dict[str, np.ndarray]:
    """Types that NumPy does not know (bf16, …) come back as bytes of their size (V2, …)."""
    try:
        with np.load(path) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError) as error:
        raise ArgumentError(f"{path}: not a file of arrays (.npz): {error}") from error

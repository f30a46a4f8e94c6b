"""Find NVIDIA's libraries, which are no part of the driver: NVRTC, cuBLASLt."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import cffi


def nvidia_libraries(name: str, endings: Sequence[str], chosen: str = "") -> Iterator[str]:
    """Yield the places of ``lib<name>.so``: only ``chosen`` if it is given, else those in Python's
    packages, the newest first, and the names with ``endings`` that the loader finds.
    """
    if chosen:
        yield chosen
        return
    spec = importlib.util.find_spec("nvidia")
    places = list(spec.submodule_search_locations or ()) if spec else []
    pattern = re.compile(rf"lib{name}\.so\.(\d+)")
    files = [file for place in places for file in Path(place).glob(f"*/lib/lib{name}.so.*")]
    versions = [(int(match[1]), str(file)) for file in files
                if (match := pattern.fullmatch(file.name))]  # fmt: skip
    yield from (file for _, file in sorted(versions, reverse=True))
    for ending in endings:
        if _loads(f"lib{name}.so{ending}"):
            yield f"lib{name}.so{ending}"


def _loads(name: str) -> bool:
    """Return whether the loader finds a library."""
    try:
        cffi.FFI().dlopen(name)
    except OSError:
        return False
    return True

"""Record where a failure was observed: versions, processor, flags."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

_PACKAGES = ("jaxlib", "jax", "numpy", "ml_dtypes", "hlo-oracle")


def versions() -> dict[str, str]:
    """Collect the versions of Python and of the packages involved."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "from its sources" if name == "hlo-oracle" else "not installed"


def processor() -> dict[str, str]:
    """Read the processor's name and instruction sets, on Linux."""
    found = {"machine": platform.machine(), "name": platform.processor(), "flags": ""}
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return found
    for line in lines:
        key, _, value = (part.strip() for part in line.partition(":"))
        # The instruction sets are "flags" of x86 and "Features" of ARM.
        wanted = {"model name": "name", "flags": "flags", "Features": "flags"}.get(key)
        if wanted is not None:
            found[wanted] = value
        # An empty line ends the first processor.
        if not key:
            break
    return found


def xla_flags() -> str:
    return os.environ.get("XLA_FLAGS", "")

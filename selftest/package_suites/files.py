"""Find the test files inside of installed packages."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import zlib
from dataclasses import dataclass
from pathlib import Path

from hlo.errors import Error

#: Packages that carry their tests, and the distributions that bring them.
DISTRIBUTIONS = {
    "optax": "optax",
    "chex": "chex",
    "rlax": "rlax",
    "distrax": "distrax",
    "haiku": "dm-haiku",
    "jraph": "jraph",
}


@dataclass(frozen=True, slots=True)
class Suite:
    """The test files of a package by their names (``optax/_src/update_test.py``), in the order to
    run them in, which is drawn from the names: a run that ends early is a sample."""

    package: str
    version: str
    files: dict[str, Path]


def suite(package: str) -> Suite:
    """Find the test files of a package; raise Error if it is not installed or has none."""
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None:
        missing = DISTRIBUTIONS.get(package, package)
        raise Error(f"to run its tests: {package} is not installed: pip install {missing}")
    found = {
        str(file.relative_to(Path(root).parent)): file
        for root in spec.submodule_search_locations or ()
        for pattern in ("*_test.py", "test_*.py")
        for file in Path(root).rglob(pattern)
    }
    if not found:
        raise Error(f"{package} is installed without test files")
    order = sorted(found, key=lambda name: zlib.crc32(name.encode()))
    return Suite(package, _version(package), {name: found[name] for name in order})


def _version(package: str) -> str:
    """Return the version of the distribution that brings a package; empty if none does."""
    brought = importlib.metadata.packages_distributions().get(package, [])
    return importlib.metadata.version(brought[0]) if brought else ""

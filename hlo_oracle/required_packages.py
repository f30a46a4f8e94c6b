"""Require packages that only some of the commands need: the extras of the distribution."""

from __future__ import annotations

import importlib.util
import re
from importlib import import_module

from hlo.errors import Error


def require_package(what: str, package: str, extra: str) -> None:
    """Raise Error if a package is not installed; the message names the extra that brings it."""
    if importlib.util.find_spec(package) is None:
        raise Error(f"{what}: {package} is not installed: pip install 'hlo-oracle[{extra}]'")


def require_version(what: str, package: str, extra: str, least: tuple[int, int]) -> None:
    """Raise Error if an installed package is older than the extra admits: it was installed without
    the extra. The package is imported, as its distribution may have one of several names."""
    version = str(getattr(import_module(package), "__version__", ""))
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is not None and (int(found[1]), int(found[2])) < least:
        raise Error(
            f"{what}: {package} {version} is installed, and {least[0]}.{least[1]} is the oldest"
            f" that works: pip install 'hlo-oracle[{extra}]'"
        )

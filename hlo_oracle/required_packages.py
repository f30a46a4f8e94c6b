"""Require packages that only some of the commands need: the extras of the distribution."""

from __future__ import annotations

import importlib.util

from hlo.errors import Error


def require_package(what: str, package: str, extra: str) -> None:
    """Raise Error if a package is not installed; the message names the extra that brings it."""
    if importlib.util.find_spec(package) is None:
        raise Error(f"{what}: {package} is not installed: pip install 'hlo-oracle[{extra}]'")

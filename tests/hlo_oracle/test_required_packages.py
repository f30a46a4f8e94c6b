"""Errors of packages that are missing or too old."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from hlo.errors import Error
from hlo_oracle.frontends import torch
from hlo_oracle.required_packages import require_package, require_version

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_a_package_that_is_not_installed() -> None:
    with pytest.raises(Error, match=r"^to fly: wings is not installed: pip install 'hlo-ora"):
        require_package("to fly", "wings", "torch")


@pytest.mark.parametrize(
    ("version", "works"),
    [("2.4.1+cu121", False), ("1.13.0", False), ("2.6.0", True), ("2.10.0a0", True), ("", True)],
)
def test_a_package_that_is_too_old(
    version: str, works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that says nothing is taken to work."""
    module = ModuleType("wings")
    module.__version__ = version  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wings", module)
    if works:
        return require_version("to fly", "wings", "torch", (2, 6))
    with pytest.raises(Error) as caught:
        require_version("to fly", "wings", "torch", (2, 6))
    assert str(caught.value) == (
        f"to fly: wings {version} is installed, and 2.6 is the oldest that works:"
        " pip install 'hlo-oracle[torch]'"
    )
    return None


def test_the_extra_names_the_oldest_version_that_works() -> None:
    extras = tomllib.loads(_PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    assert "torch>={}.{}".format(*torch._LEAST) in extras["torch"]

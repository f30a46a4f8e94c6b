"""Packages import their public names at their first use."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from hlo.lazy_exports import lazy_exports

PACKAGES = ("backend_c", "bisect_dump", "fuzz", "hlo.passes", "hlo_oracle")
COMMANDS = {"hlo_oracle.record"}  # python -m hlo_oracle.record: run, and never imported


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_takes_the_place_of_a_name(package: str) -> None:
    """The import of a module sets an attribute of its package, which hides ``__getattr__``."""
    exported = import_module(package).__all__
    modules = {f"{package}.{name}" for name in exported if find_spec(f"{package}.{name}")}
    assert modules <= COMMANDS


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there(package: str) -> None:
    home = import_module(package)
    for name in home.__all__:
        assert getattr(home, name) is not None


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(AttributeError, match=r"module 'backend_c' has no attribute 'compil'"):
        lazy_exports("backend_c", {"compile": "backend_c.pipeline"})("compil")


def test_a_run_in_the_interpreter_imports_no_compiler() -> None:
    """Running a program in the interpreter imports neither the compiler nor the envelope: the
    command starts in half of the time."""
    heavy = ("backend_c.pipeline", "cffi", "interp.envelope", "bisect_dump.history")
    code = f"import sys, hlo_oracle.command.run; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

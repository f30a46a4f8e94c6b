"""Tests of units that are compiled while others are still being rendered."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

import pytest

from backend_c.native.cache import Cache, default_directory, open_cache
from backend_c.native.early_objects import EarlyObjects
from backend_c.native.libraries import build
from backend_c.native.toolchain import WORKERS, Compiler, known_compiler
from hlo.errors import CompilerWarning, ToolchainError

_UNITS = {f"unit_{n}.c": f"int answer_{n}(void) {{ return {n}; }}\n" for n in range(WORKERS + 2)}


@pytest.fixture
def compiler() -> Compiler:
    return known_compiler(os.environ, open_cache(default_directory(os.environ)))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return open_cache(tmp_path / "cache")


def test_units_given_early_are_linked_with_the_others(compiler: Compiler, cache: Cache) -> None:
    *given, _ = _UNITS
    with EarlyObjects(compiler, cache) as early:
        for name in given:
            early.give(name, _UNITS[name])
        library = ctypes.CDLL(str(build(_UNITS, compiler, cache, early)))
    assert [getattr(library, f"answer_{n}")() for n in range(len(_UNITS))] == [*range(len(_UNITS))]


def test_a_unit_that_changed_since_is_compiled_as_it_is_now(
    compiler: Compiler, cache: Cache
) -> None:
    with EarlyObjects(compiler, cache) as early:
        early.give("unit_0.c", "int answer_0(void) { return 17; }\n")
        library = ctypes.CDLL(str(build(_UNITS, compiler, cache, early)))
    assert library.answer_0() == 0


def test_errors_of_early_units_are_raised(compiler: Compiler, cache: Cache) -> None:
    sources = _UNITS | {"unit_0.c": "int answer(void) { return forty_two; }\n"}
    with EarlyObjects(compiler, cache) as early:
        early.give("unit_0.c", sources["unit_0.c"])
        with pytest.raises(ToolchainError, match=r"unit_0.c:1:.*error"):
            build(sources, compiler, cache, early)
    assert list(cache.directory.iterdir()) == [], "nothing is left behind"


def test_a_warning_in_an_early_unit_refuses_no_program(compiler: Compiler, cache: Cache) -> None:
    sources = _UNITS | {"unit_0.c": "int answer_0(void) {\n  const int i = 1;\n  return 7;\n}\n"}
    with EarlyObjects(compiler, cache) as early:
        early.give("unit_0.c", sources["unit_0.c"])
        with pytest.warns(CompilerWarning, match="unused variable"):
            library = ctypes.CDLL(str(build(sources, compiler, cache, early)))
    assert library.answer_0() == 7


def test_what_is_not_asked_for_is_given_up(cache: Cache, tmp_path: Path) -> None:
    """Where the program is refused after all, its compilers are not waited for."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    before = time.monotonic()
    with (
        pytest.raises(ZeroDivisionError),
        EarlyObjects(Compiler((str(slow),), "slow 1", ()), cache) as early,
    ):
        for name, text in _UNITS.items():
            early.give(name, text)
        raise ZeroDivisionError
    assert time.monotonic() - before < 30
    assert list(cache.directory.iterdir()) == []


def test_a_compiler_that_does_not_start_is_a_typed_error(cache: Cache, tmp_path: Path) -> None:
    missing = Compiler((str(tmp_path / "missing"),), "missing 1", ())
    with EarlyObjects(missing, cache) as early, pytest.raises(ToolchainError, match="missing"):
        early.give("unit_0.c", _UNITS["unit_0.c"])

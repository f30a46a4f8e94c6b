"""The oracle that runs programs on a GPU, on the emulated driver."""

from __future__ import annotations

import os

import pytest
from conftest import has_c_compiler

import hlo
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.cuda_driver import Device, Driver
from backend_c.native.cuda_emulation import EmulatedCompiler, build_driver
from backend_c.native.toolchain import known_compiler
from fuzz.oracles.cuda import OnDevice
from fuzz.oracles.oracle import Difference, LeftOut, right
from fuzz.reducer.search import Case
from hlo_oracle.arguments import from_seed

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
PROGRAMS = (
    "ENTRY e { x = f32[70] parameter(0)\n ROOT y = f32[70] add(x, x) }",
    "ENTRY e { x = f32[7] parameter(0)\n ROOT y = f32[7] exponential(x) }",
    "ENTRY e { ROOT x = f32[3] constant({...}) }",
)


def on_emulated() -> OnDevice:
    cache = open_cache(default_directory(os.environ))
    compiler = known_compiler(os.environ, cache)
    return OnDevice(
        Device(Driver(build_driver(compiler, cache))), EmulatedCompiler(compiler, cache)
    )


def cases() -> list[Case]:
    modules = [hlo.parse(f"HloModule m\n{text}") for text in PROGRAMS]
    return [Case(module, from_seed(module, 0)) for module in modules]


def test_right_programs_and_one_that_has_no_value() -> None:
    first, second, third = on_emulated()(cases())
    assert first is None and second is None
    assert isinstance(third, LeftOut | Difference)
    assert on_emulated().some(cases(), [1]) == [None]


def test_other_bits_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.oracles.cuda.right", lambda case: -right(case))
    (first,) = on_emulated()(cases()[:1])
    assert isinstance(first, Difference) and first.kind == "other bits"

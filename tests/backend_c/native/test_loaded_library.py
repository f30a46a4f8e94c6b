"""How an OpenMP runtime is loaded: idle threads sleep soon, unless the user decides."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from backend_c.native.loaded_library import short_waits

_PROGRAM = """
import os, tempfile
from backend_c.native.loaded_library import LoadedLibrary
from backend_c.native.toolchain import build_in, find_compiler
before = dict(os.environ)
body = "_Pragma(\\"omp parallel for\\") for (int i = 0; i < 9; ++i) x[i] = i;"
sources = {"unit_0.c": f"void f(int *);\\nvoid f(int *x) {{ {body} }}"}
with tempfile.TemporaryDirectory() as directory:
    LoadedLibrary(build_in(directory, sources, find_compiler(os.environ)))
assert dict(os.environ) == before
"""


@pytest.mark.parametrize(
    ("chosen", "turns"),
    [({}, "5000"), ({"OMP_WAIT_POLICY": "passive"}, "0"), ({"GOMP_SPINCOUNT": "77"}, "77")],
    ids=["by default", "passive", "a number"],
)
def test_idle_threads_sleep_soon_unless_the_environment_decides(
    chosen: dict[str, str], turns: str
) -> None:
    kept = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    environ = {**kept, **chosen, "OMP_DISPLAY_ENV": "verbose"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environ, capture_output=True, text=True, check=True
    )
    if "libgomp" not in done.stderr and "GOMP_" not in done.stderr:
        pytest.skip("the compiler's OpenMP is not libgomp")
    assert f"GOMP_SPINCOUNT = '{turns}'" in done.stderr


def test_an_environment_is_left_as_it_was() -> None:
    environ = {"HOME": "/"}
    with short_waits(environ):
        pass
    assert environ == {"HOME": "/"}

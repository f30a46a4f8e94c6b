"""How the OpenMP runtime is loaded: idle threads sleep soon, unless the user decides."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from backend_c.native.loaded_library import short_waits

_PROGRAM = """
import os
import numpy
import hlo_oracle
before = dict(os.environ)
text = (
    "HloModule m\\n\\nENTRY e { "
    "x = f32[400000]{0} parameter(0) ROOT r = f32[400000]{0} sine(x) }")
hlo_oracle.compile(hlo_oracle.load(text))(numpy.ones(400000, "f"))
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

"""The command that measures whether memory grows with programs; a session of JAX checks that what
is dropped is gone (tests/hlo_oracle/frontends/plugin_alone_session.py)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import ROOT, has_c_compiler


@pytest.mark.skipif(not has_c_compiler(), reason="compiles C")
@pytest.mark.parametrize(("more", "status"), [("1024", 0), ("-1024", 1)])
def test_it_tells_each_quarter(more: str, status: int) -> None:
    pytest.importorskip("jax")
    command = [sys.executable, "-m", "selftest.plugin_memory", "--programs", "4", "--more", more]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == status, done.stderr
    assert [line.split(" programs: ")[0] for line in done.stdout.splitlines()] == [*"1234"]

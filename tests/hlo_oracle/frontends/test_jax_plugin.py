"""JAX on the platform hlo_oracle, in one process: starting JAX takes longer than the checks."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, has_c_compiler

HERE = Path(__file__).parent
PAGE = (ROOT / "docs" / "jax_plugin.md").read_text()


def snippets() -> str:
    """The Python of the page, in order."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.skipif(not has_c_compiler(), reason="compiles C")
@pytest.mark.parametrize(
    ("session", "platforms", "arguments"),
    [
        pytest.param("plugin_session", "hlo_oracle,cpu", [snippets()], id="beside XLA:CPU"),
        pytest.param("plugin_alone_session", "hlo_oracle", [], id="alone"),
    ],
)
def test_jax_runs_on_the_plugin(session: str, platforms: str, arguments: list[str]) -> None:
    """Every check of the session holds, and so does the page."""
    pytest.importorskip("jax")
    platform = {
        "JAX_PLATFORMS": platforms,
        "HLO_ORACLE_MODE": "exact",
        "HLO_ORACLE_DEVICES": "4",
        "OMP_WAIT_POLICY": "passive",  # others are at work on the same processors
        # XLA:CPU is only compared with: its programs are compiled in half of the time.
        "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
    }
    file = HERE / f"{session}.py"
    command = [sys.executable, "-W", "default", str(file), *arguments]
    environ = {**os.environ, **platform, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    wanted = re.findall(r"^@check\ndef (\w+)", file.read_text(), re.MULTILINE)
    assert done.stdout.split() == [*wanted, *["snippet"] * len(arguments)], done.stderr
    assert done.returncode == 0, done.stderr  # nothing crashes when Python ends


def test_the_entry_point_leads_to_the_plugin() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.jax_plugins]\nhlo_oracle = "hlo_oracle.frontends.pjrt"' in text
    given = importlib.metadata.EntryPoint("hlo_oracle", "hlo_oracle.frontends.pjrt", "jax_plugins")
    assert callable(given.load().initialize)

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

SESSION = Path(__file__).with_name("plugin_session.py")
PAGE = (ROOT / "docs" / "jax_plugin.md").read_text()


def snippets() -> str:
    """The Python of the page, in order."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.skipif(not has_c_compiler(), reason="compiles C")
def test_jax_runs_on_the_plugin() -> None:
    """Every check of the session holds beside XLA:CPU, and so does the page."""
    pytest.importorskip("jax")
    platform = {
        "JAX_PLATFORMS": "hlo_oracle,cpu",
        "HLO_ORACLE_MODE": "exact",
        "HLO_ORACLE_DEVICES": "4",
        "OMP_WAIT_POLICY": "passive",  # others are at work on the same processors
    }
    command = [sys.executable, "-W", "default", str(SESSION), snippets()]
    environ = {**os.environ, **platform, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    wanted = re.findall(r"^@check\ndef (\w+)", SESSION.read_text(), re.MULTILINE)
    assert done.stdout.split() == [*wanted, "snippet"], done.stderr
    assert done.returncode == 0, done.stderr  # nothing crashes when Python ends


def test_the_entry_point_leads_to_the_plugin() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.jax_plugins]\nhlo_oracle = "hlo_oracle.frontends.pjrt"' in text
    given = importlib.metadata.EntryPoint("hlo_oracle", "hlo_oracle.frontends.pjrt", "jax_plugins")
    assert callable(given.load().initialize)

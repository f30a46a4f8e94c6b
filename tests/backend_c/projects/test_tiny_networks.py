"""MLPerf Tiny's networks of examples/tiny: their memory, and the interpreter's bits."""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, has_c_compiler

import backend_c
import hlo
import interp
from hlo_oracle import arguments

# Bytes: the largest input and output of one layer, which are there at once. A residual is where its
# sum will be.
WORKSPACE = {
    "anomaly_detection": 256,
    "keyword_spotting": 16_000,
    "visual_wake_words": 55_296,
    "image_classification": 32_768,
}


def _text(name: str, monkeypatch: pytest.MonkeyPatch, *, is_quantised: bool) -> str:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "tiny"))
    networks = importlib.import_module("networks")
    for module in ("networks", "layers"):
        monkeypatch.delitem(sys.modules, module)
    text = networks.text(name, is_quantised=is_quantised)
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("name", WORKSPACE)
def test_workspace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = hlo.parse(_text(name, monkeypatch, is_quantised=True))
    manifest = json.loads(backend_c.emit(module, "embedded")["manifest.json"])
    assert manifest["workspace_bytes"] == manifest["workspace_bound_bytes"] == WORKSPACE[name]


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = hlo.parse(_text("keyword_spotting", monkeypatch, is_quantised=True))
    values = arguments.from_seed(module, 0)
    files = backend_c.emit(
        module, "embedded", "fast", (values, interp.evaluate(module, *values)), name="spot"
    )
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    sources = [name for name in files if name.endswith(".c")]
    subprocess.run([compiler, "-std=c99", *sources, "-o", "spot"], cwd=tmp_path, check=True)
    assert subprocess.run(["./spot"], cwd=tmp_path, check=False).returncode == 0

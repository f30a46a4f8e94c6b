"""Layers by bands of rows: where a bound asks for it, as few products as fit, the same bits."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.errors import Unsupported
from hlo_oracle import arguments

_LAYER = """\
  k{n} = f32[{features},3,3,{inputs}] constant({literal})
  c{n} = f32[1,{rows},{rows},{features}] convolution({x}, k{n}),
    window={{size=3x3 stride={by}x{by} pad=1_1x1_1}}, dim_labels=b01f_o01i->b01f
  z{n} = f32[1,{rows},{rows},{features}] broadcast(zero), dimensions={{}}
  r{n} = f32[1,{rows},{rows},{features}] maximum(c{n}, z{n})
"""


def _network(widths: tuple[tuple[int, int], ...]) -> hlo.Module:
    """Return convolutions, each with a ReLU, of 16 x 16 pixels: features and strides."""
    lines, x, rows, inputs = "", "x", 16, 1
    for n, (features, by) in enumerate(widths):
        rows //= by
        row = ", ".join("{" + ", ".join("1.5" for _ in range(inputs)) + "}" for _ in range(3))
        kernel = ", ".join([f"{{{', '.join([f'{{{row}}}'] * 3)}}}"] * features)
        lines += _LAYER.format(
            n=n, x=x, rows=rows, by=by, features=features, inputs=inputs, literal=f"{{{kernel}}}"
        )
        x, inputs = f"r{n}", features
    head = "  x = f32[1,16,16,1] parameter(0)\n  zero = f32[] constant(0)\n"
    root = f"  ROOT root = f32[1,{inputs},{rows},{rows}] transpose({x}), dimensions={{0,3,1,2}}\n"
    module = hlo.parse(f"HloModule network\nENTRY main {{\n{head}{lines}{root}}}\n")
    hlo.verify(module)
    return module


_NETWORK = ((4, 1), (4, 1), (2, 2), (2, 2))  # 4096, 4096, 512 and 128 bytes


def _manifest(most: int | None) -> dict[str, object]:
    files = backend_c.emit(_network(_NETWORK), "embedded", max_workspace=most)
    manifest = json.loads(files["manifest.json"])
    assert isinstance(manifest, dict)
    return manifest


def test_bands_are_as_high_as_fits() -> None:
    whole = _manifest(None)
    assert whole["workspace_bytes"] == 8192 and whole["bands"] == []
    assert _manifest(8192) == whole
    found = {most: _manifest(most) for most in (4000, 2600)}
    for most, manifest in found.items():
        assert isinstance(manifest["workspace_bytes"], int)
        assert manifest["workspace_bytes"] <= most
        assert manifest["multiply_accumulates"] == whole["multiply_accumulates"]
    heights = [manifest["bands"][0]["rows"] for manifest in found.values()]  # type: ignore[index]
    work = [m["bands"][0]["multiply_accumulates"] for m in found.values()]  # type: ignore[index]
    assert heights == sorted(heights, reverse=True) and heights[0] > heights[-1]
    assert work == sorted(work) and work[0] < work[-1]


def test_bands_are_written_into_the_result() -> None:
    """A convolution writes its bands into the result, however large a part of it they are: there is
    neither a band in memory nor another result."""
    code = backend_c.emit(_network(_NETWORK), "embedded", max_workspace=4000)["module.c"].decode()
    kernels = [text for text in code.split("/* ") if "dynamic-update-slice(" in text]
    assert len(kernels) == 1 and "convolution(" in kernels[0]
    assert "memcpy(results" not in code.partition("static void hlo_entry")[2]


def test_what_no_bands_are_enough_for_is_named() -> None:
    message = r"least that was found, by bands of rows \(1 of %r\d\), more than 300: at %"
    with pytest.raises(Unsupported, match=message):
        _manifest(300)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_bits(tmp_path: Path) -> None:
    module = _network(_NETWORK)
    values = arguments.from_seed(module, 0)
    recorded = values, interp.evaluate(module, *values)
    files = backend_c.emit(module, "embedded", "exact", recorded, max_workspace=3000)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    sources = [name for name in files if name.endswith(".c")]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
    subprocess.run([compiler, *flags, *sources, "-o", "test"], cwd=tmp_path, check=True)
    assert subprocess.run(["./test"], cwd=tmp_path, check=False).returncode == 0

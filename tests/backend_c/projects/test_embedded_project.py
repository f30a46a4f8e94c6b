"""The project of C99: names, weights, what its header promises, and a build as its users do it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, has_c_compiler

import backend_c
import hlo
import interp
from backend_c.projects.c_names import parameter_names
from hlo.errors import Unsupported
from hlo_oracle.arguments import from_seed
from selftest.microcontrollers.host import results_here

STRICT = (
    *("-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror"),
    "-Wmissing-declarations",
)
LAYER = """HloModule layer
ENTRY e {
  x = f32[2,3] parameter(0), metadata={op_name="batch[\\'x\\']"}
  w = f32[3,2] constant({{1, 2}, {3, 4}, {5, 6.5}})
  ROOT y = f32[2,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
DRAWING = """HloModule drawing
ENTRY e {
  low = f32[] constant(0)
  high = f32[] constant(1)
  ROOT r = f32[5] rng(low, high), distribution=rng_uniform
}
"""
needs_c = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


def project(text: str, directory: Path, **wanted: object) -> dict[str, bytes]:
    """Write the project of a program, with a test of the interpreter's bits."""
    module = hlo.parse(text)
    arguments = from_seed(module, 1)
    expected = interp.evaluate(module, *arguments)
    files = backend_c.emit(
        module,
        "embedded",
        "exact",
        (arguments, expected),
        **wanted,  # type: ignore[arg-type]
    )
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return files


def status(directory: Path, compiler: str = "cc", flags: tuple[str, ...] = STRICT) -> int:
    """Build all C files of a directory and run them."""
    sources = map(str, directory.glob("*.c"))
    command = [compiler, "-std=c99", *flags, *sources, "-o", str(directory / "program")]
    subprocess.run(command, check=True)
    return subprocess.run([str(directory / "program")], check=False).returncode


@needs_c
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("text", [LAYER, DRAWING])
def test_a_project_runs(text: str, external: bool, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    files = project(text, tmp_path, name="f_1", external_weights=external)
    assert set(files) == {
        *("f_1.h", "f_1.c", "f_1_test.c", "manifest.json", "CMakeLists.txt"),
        f"f_1_weights.{'bin' if external else 'c'}",
    }
    assert status(tmp_path, compiler) == 0
    manifest = json.loads(files["manifest.json"])
    assert manifest["takes_seed"] == (text is DRAWING)
    assert manifest["external_weights"] == external
    assert [x["name"] for x in manifest["arguments"]] == ["in_batch_x"] * (text is LAYER)
    (result,) = manifest["results"]
    assert result["name"] == "out" and result["bytes"] == (16 if text is LAYER else 20)


def test_a_program_without_constants_has_no_weights(tmp_path: Path) -> None:
    text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[2] add(x, x) }"
    for external in (False, True):
        files = project(text, tmp_path, external_weights=external)
        assert not any("weights" in name for name in files)


@needs_c
def test_damaged_weights_are_found(tmp_path: Path) -> None:
    """The test checks the weights before it runs: 255."""
    project(LAYER, tmp_path, external_weights=True)
    test = tmp_path / "module_test.c"
    lines = test.read_text().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.endswith("} weights = {{\n"))
    numbers = lines[place + 1].split(", ")
    for changed in (0, 8, 12, 16, 20):  # magic, size, sum, the first and another weight
        other = [*numbers]
        other[changed] = str((int(numbers[changed]) + 1) % 256)
        test.write_text("".join([*lines[: place + 1], ", ".join(other), *lines[place + 2 :]]))
        assert status(tmp_path, flags=()) == 255, changed
    test.write_text("".join(lines))
    assert status(tmp_path, flags=()) == 0


@needs_c
def test_two_modules_link_together_and_from_cpp(tmp_path: Path) -> None:
    for name in ("one", "two"):
        files = project(LAYER, tmp_path, name=name)
        (tmp_path / f"{name}_test.c").unlink()
        assert b"malloc" not in b"".join(files.values())
    (tmp_path / "both.cpp").write_text(
        '#include "one.h"\n#include "two.h"\n'
        "static union { unsigned char bytes[ONE_WORKSPACE_BYTES + TWO_WORKSPACE_BYTES + 8];"
        " uint64_t words; } space;\n"
        "int main() {\n"
        "    float x[6] = {1, 0, 0, 0, 1, 0}, y[4], z[4];\n"
        '    static_assert(sizeof x == ONE_IN_BATCH_X_BYTES && sizeof y == TWO_OUT_BYTES, "");\n'
        "    if (one_run(x, y, &space) || two_run(x, z, &space)) return 1;\n"
        "    if (one_run(x, y, space.bytes + 1) != 1) return 2;\n"
        "    return !(y[0] == 1 && y[3] == 4 && z[1] == 2 && z[2] == 3);\n}\n"
    )
    for source in tmp_path.glob("*.c"):
        command = ["cc", "-std=c99", "-c", source, "-o", source.with_suffix(".o")]
        subprocess.run(command, check=True)
    objects = map(str, tmp_path.glob("*.o"))
    words = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-o", str(tmp_path / "program")]
    subprocess.run(["g++", *words, str(tmp_path / "both.cpp"), *objects], check=True)
    assert subprocess.run([str(tmp_path / "program")], check=False).returncode == 0


@pytest.mark.parametrize(
    "name", ["", "1f", "f-g", "../f", "f__g", "_f", "f_", "f" * 41, "test", "é"]
)
def test_names_that_cannot_begin_names(name: str) -> None:
    module = hlo.parse(LAYER)
    with pytest.raises(Unsupported, match="cannot begin names in C"):
        backend_c.emit(module, "embedded", name=name)


def test_other_targets_have_no_weights() -> None:
    for target in ("openmp", "cuda"):
        with pytest.raises(Unsupported, match="external_weights is for the target embedded$"):
            backend_c.emit(hlo.parse(LAYER), target, external_weights=True)


@needs_c
def test_names_of_parameters_are_letters_of_ours(tmp_path: Path) -> None:
    """Hostile ones, equal ones, keywords, macros, tuples: a prefix and ASCII."""
    text = r"""HloModule m
ENTRY e {
  "*/ evil(); /*" = f32[2] parameter(0)
  int = f32[2] parameter(1)
  a = f32[2] parameter(2), metadata={op_name="params[0]['Ünïcode\"'].W"}
  A.1 = f32[2] parameter(3), metadata={op_name="A"}
  b = f32[2] parameter(4), metadata={op_name="a"}
  t = (f32[2], (s32[], token[]), f32[2]) parameter(5), metadata={op_name="__"}
  g = f32[2] get-tuple-element(t), index=0
  "*/ s" = f32[2] add("*/ evil(); /*", int)
  u = f32[2] add(a, A.1)
  v = f32[2] add("*/ s", u)
  w = f32[2] add(v, b)
  ROOT r = f32[2] add(w, g)
}
"""
    names = parameter_names(hlo.parse(text))
    assert names == (
        *("in_evil", "in_int", "in_params_0_n_code_W", "in_A", "in_a_2"),
        *("in_0", "in_1", "in_2"),
    )
    text = text.replace("token[]", "u8[]")
    files = project(text, tmp_path)
    (comment,) = re.findall(r"/\* %r of e\n.*?\*/", files["module.c"].decode(), re.DOTALL)
    assert "  ___s = f32[2] add(param_0, param_1)\n" in comment
    assert status(tmp_path) == 0


@needs_c
def test_sizes_and_parameters_have_different_names(tmp_path: Path) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[<=4] parameter(0)
  x_sizes = s32[1] parameter(1)
  y = f32[<=4] add(x, x)
  ROOT o = (f32[<=4], s32[1]) tuple(y, x_sizes)
}
"""
    assert parameter_names(hlo.parse(text)) == ("in_x", "in_x_sizes_2")
    project(text, tmp_path)
    assert status(tmp_path) == 0


def test_recorded_bits_of_a_large_program_are_refused() -> None:
    module = hlo.parse(
        "HloModule m\nENTRY e { x = f32[2000000] parameter(0)\n ROOT y = f32[2000000] abs(x) }"
    )
    x = np.zeros(2000000, np.float32)
    with pytest.raises(Unsupported, match="15 MiB of arrays as text, at most 8"):
        backend_c.emit(module, "embedded", "exact", ((x,), x))


@needs_c
def test_fast_products_pack_nothing(tmp_path: Path) -> None:
    """A layer of one row takes no more memory than its results (integers: any order is exact)."""
    text = LAYER.replace("[2,", "[1,").replace("6.5", "6")
    module = hlo.parse(text)
    x = np.array([[3, -1, 2]], np.float32)
    files = backend_c.emit(module, "embedded", "fast", ((x,), interp.evaluate(module, x)))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert status(tmp_path) == 0
    assert b"double v" not in files["module.c"]
    assert json.loads(files["manifest.json"])["workspace_bytes"] == 0


@needs_c
def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/embedded.md: the function becomes files, which the main of the page calls."""
    pytest.importorskip("jax")
    page = (ROOT / "docs" / "embedded.md").read_text()
    blocks = dict(re.findall(r"^```(python|c|sh)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks["python"], "embedded.md", "exec"), {})
    (tmp_path / "main.c").write_text(blocks["c"])
    subprocess.run(["sh", "-e"], input=blocks["sh"], text=True, check=True)


CONVOLUTIONS = (
    ("1,8,8,4", "3,3,4,6", "1,8,8,6", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
    (
        *("1,8,8,4", "3,3,1,4", "1,4,4,4"),
        "window={size=3x3 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_01io->b01f,"
        " feature_group_count=4",
    ),
    ("2,3,7,5", "4,3,2,3", "2,4,6,3", "window={size=2x3}, dim_labels=bf01_oi01->bf01"),
    (
        *("1,4,4,2", "2,2,2,3", "1,8,8,3"),
        "window={size=2x2 pad=1_1x1_1 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f",
    ),
    (
        *("4,5,2", "3,2,6", "2,5,6"),
        "window={size=3 pad=1_1 rhs_reversal=1}, dim_labels=b0f_0io->b0f, batch_group_count=2",
    ),
    ("2,3", "3,4", "2,4", "window={}, dim_labels=bf_io->bf"),
)


@needs_c
@pytest.mark.parametrize(("x", "w", "result", "attributes"), CONVOLUTIONS)
def test_fast_convolutions_pack_nothing(
    x: str, w: str, result: str, attributes: str, tmp_path: Path
) -> None:
    module = hlo.parse(
        f"HloModule c\nENTRY e {{\n x = f32[{x}] parameter(0)\n w = f32[{w}] parameter(1)\n"
        f" ROOT r = f32[{result}] convolution(x, w), {attributes}\n}}\n"
    )
    rng = np.random.default_rng(0)
    arguments = [
        rng.integers(-9, 9, [*map(int, dims.split(","))]).astype(np.float32) for dims in (x, w)
    ]
    expected = interp.evaluate(module, *arguments)
    files = backend_c.emit(module, "embedded", "fast", (arguments, expected))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert status(tmp_path) == 0
    assert json.loads(files["manifest.json"])["workspace_bytes"] == 0


@needs_c
def test_size_is_one_sum_at_a_time_with_the_same_bits(tmp_path: Path) -> None:
    """Sums are of the same order in both: convolutions of fractions tell."""
    x, w, result, attributes = CONVOLUTIONS[0]
    text = (
        f"HloModule c\nENTRY e {{\n x = f32[{x}] parameter(0)\n w = f32[{w}] parameter(1)\n"
        f" ROOT r = f32[{result}] convolution(x, w), {attributes}\n}}\n"
    )
    module, lines = hlo.parse(text), {}
    arguments = from_seed(module, 0)
    given = (arguments, results_here(module, arguments))
    for optimize, level in (("size", b"-Os)"), ("speed", b"-O2)")):
        files = backend_c.emit(module, "embedded", "fast", given, optimize=optimize)
        assert level in files["CMakeLists.txt"]
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        assert status(tmp_path) == 0
        lines[optimize] = files["module.c"].count(b"\n")
    assert lines["size"] < lines["speed"]


def test_what_to_optimize_for_is_known_and_of_embedded() -> None:
    module = hlo.parse(LAYER)
    with pytest.raises(Unsupported, match="optimize 'space': one of speed, size"):
        backend_c.emit(module, "embedded", optimize="space")
    for target in ("openmp", "cuda"):
        with pytest.raises(
            Unsupported,
            match="^optimize is for the target embedded",
        ):
            backend_c.emit(module, target, optimize="speed")

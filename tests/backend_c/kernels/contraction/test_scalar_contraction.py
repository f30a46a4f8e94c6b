"""Contractions of the embedded target: the interpreter's bits, warnings and sanitizers silent.

Operands of ``fast`` are small integers, whose sums are exact in any order.
"""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp

_FLAGS = (
    *("-std=c99", "-O1", "-ffp-contract=off"),
    *("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
# Of each: window and groups, dims of the kernel (features first), dims of the result.
CONVOLUTIONS = {
    "padded": ("size=3x3 pad=1_1x1_1", "", (5, 3, 3, 4), (2, 6, 5, 5)),
    "strided": ("size=2x3 stride=2x2 pad=0_1x2_0", "", (4, 2, 3, 4), (2, 3, 3, 4)),
    "padded beyond": ("size=3x2 pad=4_5x3_3", "", (1, 3, 2, 4), (2, 13, 10, 1)),
    "cropped": ("size=3x3 pad=-1_0x0_-1", "", (6, 3, 3, 4), (2, 3, 2, 6)),
    "dilated": ("size=2x3 pad=1_2x3_2 rhs_dilate=3x2", "", (3, 2, 3, 4), (2, 6, 6, 3)),
    "with holes": ("size=3x3 pad=1_1x1_1 lhs_dilate=2x3", "", (3, 3, 3, 4), (2, 11, 13, 3)),
    "reversed": ("size=3x3 pad=1_1x1_1 rhs_reversal=1x1", "", (5, 3, 3, 4), (2, 6, 5, 5)),
    "pointwise": ("size=1x1", "", (9, 1, 1, 4), (2, 6, 5, 9)),
    "depthwise": ("size=3x3 pad=1_1x0_2", ", feature_group_count=4", (4, 3, 3, 1), (2, 6, 5, 4)),
    "multiplied": ("size=3x3 pad=1_1x1_1", ", feature_group_count=4", (8, 3, 3, 1), (2, 6, 5, 8)),
    "grouped": ("size=2x2 pad=1_0x1_0", ", feature_group_count=2", (6, 2, 2, 2), (2, 6, 5, 6)),
    "of batches": ("size=3x3 pad=1_1x1_1", ", batch_group_count=2", (6, 3, 3, 4), (1, 6, 5, 6)),
}
DOTS = {  # the dims of both operands, contracted along the last one
    "one row": ((1, 7), (9, 7)),
    "one column": ((6, 7), (1, 7)),
    "one of each": ((1, 7), (1, 7)),
    "a block and some": ((3, 7), (6, 7)),
}

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


def _program(narrow: str, wide: str) -> str:
    """Return a program of all contractions, each with an epilogue back to the narrow type."""
    lines = [f"x = {narrow}[2,6,5,4] parameter(0)"]
    roots = []

    def operand(dims: tuple[int, ...]) -> str:
        count = int(np.prod(dims))
        values = (np.arange(count) * 7 % 23 - (0 if narrow == "u8" else 11)).reshape(dims)
        text = str(values.tolist()).replace("[", "{").replace("]", "}")
        lines.append(f"c{len(lines)} = {narrow}[{_dims(dims)}] constant({text})")
        return lines[-1].split()[0]

    def ended(dims: tuple[int, ...], contraction: str) -> None:
        n, shape = len(lines), f"{wide}[{_dims(dims)}]"
        bias = f"{wide}[{dims[-1]}] constant({{{', '.join(map(str, range(dims[-1])))}}})"
        lines.append(f"t{n} = {shape} {contraction}")
        lines.append(f"b{n} = {bias}")
        lines.append(f"e{n} = {shape} broadcast(b{n}), dimensions={{{len(dims) - 1}}}")
        lines.append(f"sum{n} = {shape} add(t{n}, e{n})")
        lines.append(f"r{n} = {narrow}[{_dims(dims)}] convert(sum{n})")
        roots.append((f"{narrow}[{_dims(dims)}]", f"r{n}"))

    for window, groups, kernel, result in CONVOLUTIONS.values():
        text = f"window={{{window}}}, dim_labels=b01f_o01i->b01f{groups}"
        ended(result, f"convolution(x, {operand(kernel)}), {text}")
    for lhs, rhs in DOTS.values():
        contracted = "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
        ended((lhs[0], rhs[0]), f"dot({operand(lhs)}, {operand(rhs)}), {contracted}")
    shapes, names = zip(*roots, strict=True)
    lines.append(f"ROOT all = ({', '.join(shapes)}) tuple({', '.join(names)})")
    return "HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


def _dims(dims: tuple[int, ...]) -> str:
    return ",".join(map(str, dims))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("narrow", "wide", "numerics"),
    [
        ("s8", "s32", "exact"),
        ("u8", "u16", "fast"),
        ("f32", "f32", "fast"),
        ("f32", "f32", "exact"),
    ],
)
def test_contractions_with_epilogues(narrow: str, wide: str, numerics: str, tmp_path: Path) -> None:
    module = hlo.parse(_program(narrow, wide))
    x = np.random.default_rng(0).integers(0 if narrow == "u8" else -9, 9, (2, 6, 5, 4))
    if (narrow, numerics) == ("f32", "exact"):  # sums that round, some of them in doubt
        x = np.random.default_rng(0).standard_normal(x.shape) * 10.0**x
    x = x.astype(module.entry.parameters[0].shape.element_type.numpy)
    expected = interp.evaluate(module, x)
    files = backend_c.emit(module, "embedded", numerics, ((x,), expected))
    _run(files, tmp_path)
    # Sums are narrowed before they are stored.
    assert b'"workspace_bytes": 0' in files["manifest.json"]


def _run(files: dict[str, bytes], folder: Path) -> None:
    """Compile an emitted program, and assert that it gives the results that were emitted too."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    sources = [name for name in files if name.endswith(".c")]
    subprocess.run([compiler, *_FLAGS, *sources, "-o", "program"], cwd=folder, check=True)
    assert subprocess.run(["./program"], cwd=folder, check=False).returncode == 0


@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_what_does_not_count_meets_no_infinity(numerics: str, tmp_path: Path) -> None:
    module = hlo.parse("""HloModule m
ENTRY e {
  x = f32[1,2,1] parameter(0)
  w = f32[2,1,1] parameter(1)
  holes = f32[1,2,1] convolution(x, w), window={size=2 lhs_dilate=2}, dim_labels=b0f_0io->b0f
  rows = f32[3,1] constant({{1},{2},{3}})
  matrices = f32[2,1,1] reshape(w)
  free = s32[2] constant({1,1})
  groups = f32[3,1] ragged-dot(rows, matrices, free), lhs_contracting_dims={1},
    rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
  row = f32[1,2] reshape(x)
  column = f32[2,1] reshape(w)
  contracted = s32[3] constant({0,1,1})
  parts = f32[3,1,1] ragged-dot(row, column, contracted), lhs_contracting_dims={1},
    rhs_contracting_dims={0}, lhs_ragged_dims={1}
  ROOT r = (f32[1,2,1], f32[3,1], f32[3,1,1]) tuple(holes, groups, parts)
}
""")
    x = np.ones((1, 2, 1), np.float32)
    w = np.array([np.inf, 1], np.float32).reshape(2, 1, 1)
    expected = interp.evaluate(module, x, w)
    found = [array.ravel().tolist() for array in expected]
    assert found == [[np.inf, 1], [np.inf, 2, 0], [0, np.inf, 1]]
    _run(backend_c.emit(module, "embedded", numerics, ((x, w), expected)), tmp_path)

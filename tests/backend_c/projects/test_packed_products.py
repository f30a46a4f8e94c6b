"""Products of bytes, several at a time: the interpreter's bits, by whatever functions."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.errors import Unsupported
from hlo.types import ELEMENT_TYPES
from selftest.microcontrollers.boards import BOARDS, Board, ran

# What Arm's documents say of the instructions, in C.
CMSIS = """\
#include <stdint.h>
static inline uint32_t __ROR(uint32_t x, uint32_t n) { return x >> n | x << (32 - n); }
static inline uint32_t __SXTB16(uint32_t x) {
    return (uint16_t)(int8_t)x | (uint32_t)(uint16_t)(int8_t)(x >> 16) << 16;
}
static inline uint32_t __UXTB16(uint32_t x) { return x & 0x00ff00ffu; }
static inline uint32_t __PKHBT(uint32_t x, uint32_t y, uint32_t n) {
    return (x & 0xffffu) | (y << n & 0xffff0000u);
}
static inline uint32_t __PKHTB(uint32_t x, uint32_t y, uint32_t n) {
    return (x & 0xffff0000u) | ((uint32_t)((int32_t)y >> n) & 0xffffu);
}
static inline uint32_t __SMLAD(uint32_t x, uint32_t y, uint32_t sum) {
    return sum + (uint32_t)((int16_t)x * (int16_t)y) +
           (uint32_t)((int16_t)(x >> 16) * (int16_t)(y >> 16));
}
"""
_DOT = """\
 d{n} = s32[{m},{c}] dot(x{n}, w{n}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
"""
_FLAGS = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
_TRAPS = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")


def _dots(types: tuple[str, str]) -> tuple[str, list[np.ndarray], int]:
    """Return a program of products of rows by rows, its arguments, and how many can be packed."""
    lines, arguments, roots, packed = [], [], [], 0
    rng = np.random.default_rng(1)
    sizes = [(1, 1, 4), (2, 4, 3), (1, 4, 8), (1, 5, 7), (3, 6, 13), (1, 9, 4), (2, 2, 5)]
    for n, (m, c, k) in enumerate(sizes):
        for name, element_type, rows in (("x", types[0], m), ("w", types[1], c)):
            parameter = len(arguments)
            lines.append(f" {name}{n} = {element_type}[{rows},{k}] parameter({parameter})\n")
            info = np.iinfo(ELEMENT_TYPES[element_type].numpy)
            array = rng.integers(info.min, info.max, (rows, k), info.dtype, endpoint=True)
            array[:, k // 2 :] = info.min if n % 2 else info.max
            arguments.append(array)
        lines.append(_DOT.format(n=n, m=m, c=c))
        roots.append((f"s32[{m},{c}]", f"d{n}"))
        packed += k >= 4
    shapes, names = (", ".join(one) for one in zip(*roots, strict=True))
    root = f" ROOT r = ({shapes}) tuple({names})\n"
    return f"HloModule m\nENTRY e {{\n{''.join(lines)}{root}}}\n", arguments, packed


def _convolution() -> tuple[str, list[np.ndarray]]:
    """Return a convolution whose windows reach into the padding, so that runs differ in length."""
    text = """HloModule m
ENTRY e {
  x = s8[1,5,6,3] parameter(0)
  w = s8[7,3,2,3] parameter(1)
  ROOT y = s32[1,5,6,7] convolution(x, w), window={size=3x2 pad=1_1x0_1}, dim_labels=b01f_o01i->b01f
}
"""
    rng = np.random.default_rng(2)
    shapes = ((1, 5, 6, 3), (7, 3, 2, 3))
    return text, [rng.integers(-128, 127, shape, np.int8, endpoint=True) for shape in shapes]


def _project(
    text: str, arguments: Sequence[np.ndarray], simd: str, directory: Path
) -> dict[str, bytes]:
    module = hlo.parse(text)
    expected = interp.evaluate(module, *arguments)
    files = backend_c.emit(module, "embedded", "fast", (arguments, expected), simd=simd)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return files


def _status(directory: Path, *flags: str) -> int:
    command = ["cc", *_FLAGS, *flags, "module.c", "module_test.c", "-o", "program"]
    subprocess.run(command, cwd=directory, check=True)
    return subprocess.run(["./program"], cwd=directory, check=False).returncode


@pytest.mark.sampled(2)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize(
    "types",
    [
        *((a, b) for a in ("s8", "u8") for b in ("s8", "u8")),
        *(("s16", b) for b in ("s8", "u8", "s16")),
    ],
)
def test_bits_of_products(types: tuple[str, str], tmp_path: Path) -> None:
    text, arguments, packed = _dots(types)
    (tmp_path / "cmsis_compiler.h").write_text(CMSIS)
    for simd in ("cmsis", "auto"):
        code = _project(text, arguments, simd, tmp_path)["module.c"].decode()
        calls = code.partition("HLO_PROCEDURE void kernel_0")[2]
        assert calls.count("hlo_dots_{}_{}_".format(*types)) >= packed
        assert ("cmsis_compiler.h" in code) == (simd == "cmsis")
        if simd == "cmsis" or types in (("u8", "s8"), ("s16", "s16")):
            assert _status(tmp_path, *_TRAPS) == 0, simd
    assert b"hlo_dots" not in _project(text, arguments, "none", tmp_path)["module.c"]


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_bits_of_convolutions(tmp_path: Path) -> None:
    text, arguments = _convolution()
    (tmp_path / "cmsis_compiler.h").write_text(CMSIS)
    code = _project(text, arguments, "cmsis", tmp_path)["module.c"]
    assert b"hlo_dots_s8_s8_4(a0" in code
    assert _status(tmp_path, *_TRAPS) == 0


_PROGRAMS = {
    "bytes": _dots(("u8", "s8")),
    "mixed": _dots(("s16", "s8")),
    "halves": _dots(("s16", "s16")),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("program", _PROGRAMS)
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_bits_by_the_instructions(board: Board, program: str, tmp_path: Path) -> None:
    if board.missing:
        pytest.skip(f"not installed: {', '.join(board.missing)}")
    text, arguments, _ = _PROGRAMS[program]
    module = hlo.parse(text)
    given = (arguments, interp.evaluate(module, *arguments))
    files = backend_c.emit(module, "embedded", "fast", given)
    assert ran(board, files, "module", tmp_path, "-O2").status == 0
    if board.compiler == "arm-none-eabi-gcc":
        words = ["arm-none-eabi-objdump", "-d", "module.o"]
        listing = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        has_pairs = board.name in ("Cortex-M4F", "Cortex-M33")
        widening = {"bytes": ["uxtb16", "sxtb16"], "mixed": ["sxtb16"], "halves": []}
        for word in ("smlad", *widening[program]):
            assert (word in listing.stdout) == has_pairs, word


@pytest.mark.parametrize(
    "body",
    [
        "y = s32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",  # columns
        "z = s32[2,2] convert(x)\n v = s32[2,2] multiply(z, z)\n"
        " y = s32[2,2] dot(v, v), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "y = s8[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    ],
)
def test_what_has_no_runs_of_bytes_is_a_loop(body: str) -> None:
    """Columns, wider integers, sums of bytes, and runs of less than a word."""
    for size in ("2,2", "8,8"):
        text = f"HloModule m\nENTRY e {{\n x = s8[2,2] parameter(0)\n {body}\n}}\n"
        text = text.replace("y =", "ROOT y =").replace("2,2", size)
        assert b"hlo_dots" not in backend_c.emit(hlo.parse(text), "embedded")["module.c"]


def test_what_simd_is_known() -> None:
    module = hlo.parse(_convolution()[0])
    with pytest.raises(Unsupported, match="simd 'mve': one of auto, none, cmsis"):
        backend_c.emit(module, "embedded", simd="mve")
    with pytest.raises(Unsupported, match="^simd is for the target embedded"):
        backend_c.emit(module, "openmp", simd="auto")


@pytest.mark.parametrize(("steps", "packed"), [(2**31 - 1, True), (2**31, False)])
def test_functions_count_in_32_bits(steps: int, packed: bool) -> None:
    text = f"""HloModule m
ENTRY e {{ x = s8[{steps}] parameter(0)
  y = s8[{steps}] parameter(1)
  ROOT r = s32[] dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}} }}"""
    code = backend_c.emit(hlo.parse(text), "embedded")["module.c"]
    assert (b"hlo_dots_s8_s8_1(" in code) == packed

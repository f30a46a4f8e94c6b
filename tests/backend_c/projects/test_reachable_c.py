"""Emitted C has of the runtime headers what its kernels call, and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import backend_c
import hlo
from backend_c.projects.reachable_c import with_reachable_parts
from selftest.microcontrollers.host import results_here

HEADERS = """\
/* What all of it is. */

#include <stdint.h>
/* Small ones. */
#define HLO_TWICE(T, name, \\
                  by)                                  \\
    HLO_FUNCTION T hlo_twice_##name(T x) {             \\
        return (T)(x * (by));                          \\
    }                                                  \\
    HLO_FUNCTION T hlo_half_##name(T x) { return (T)(x / (by)); }

/* Of integers. */
HLO_TWICE(int32_t, s32, 2)
HLO_TWICE(float, f32, 2)

enum { HLO_FEW = 3, HLO_MANY };

typedef struct {
    double re, im;
} hlo_pair;
typedef uint32_t hlo_four __attribute__((vector_size(16), aligned(4)));

static const uint8_t hlo_table[2][2] = {
    {1, 2},
    {3, 4},
};

#if defined(__GNUC__)
HLO_FUNCTION double hlo_wide(double x) { return x; }
#define HLO_WIDE 1
#else
HLO_FUNCTION double hlo_wide(double x) { return x + 0; }
#define HLO_WIDE 0
#endif

#define HLO_CHOSEN_2(x) hlo_twice_s32(x)
#define HLO_CHOSEN_4(x) hlo_half_s32(x)
#define HLO_CHOSEN(n, x) HLO_CHOSEN_##n(x)

HLO_PROCEDURE int64_t
hlo_outer(int64_t x,
          int64_t y) {
    return hlo_twice_s32((int32_t)x) + HLO_MANY + y; /* not hlo_wide */
}
"""


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("int x;", []),
        ("hlo_half_f32(1)", ["hlo_half_f32"]),
        ("hlo_outer(1, 2)", ["hlo_twice_s32", "enum", "hlo_outer"]),
        ("hlo_pair p = HLO_FEW", ["enum", "hlo_pair"]),
        ("hlo_four x = hlo_table[0]", ["hlo_four", "hlo_table"]),
        ("hlo_wide(1)", ["#if", "hlo_wide", "#else", "hlo_wide", "#endif"]),
        (
            "HLO_CHOSEN(2, 1)",  # which of them is known to the preprocessor alone
            ["hlo_twice_s32", "hlo_half_s32", "HLO_CHOSEN_2", "HLO_CHOSEN_4", "HLO_CHOSEN"],
        ),
    ],
)
def test_what_is_named_is_kept(code: str, names: list[str]) -> None:
    kept = with_reachable_parts(HEADERS, code)
    defined = re.findall(
        r"^#define (\w+)|(hlo_\w+)\(\w+ x|^} (\w+);|(\w+) __attr|(\w+)\[2",
        kept,
        re.MULTILINE,
    )
    expected = [name for name in names if name[0] not in "#e"]
    assert ["".join(groups) for groups in defined] == expected
    assert ("#if" in kept, "enum" in kept) == ("#if" in names, "enum" in names)
    assert with_reachable_parts(kept, code) == kept


def test_comments_stay_with_what_they_are_on() -> None:
    kept = with_reachable_parts(HEADERS, "hlo_twice_s32(1) + hlo_twice_f32(1)")
    assert kept == (
        "#include <stdint.h>\n"
        "/* Of integers. */\n"
        "HLO_FUNCTION int32_t hlo_twice_s32(int32_t x) {\n    return (int32_t)(x * (2));\n}\n\n"
        "HLO_FUNCTION float hlo_twice_f32(float x) {\n    return (float)(x * (2));\n}\n\n"
    )


CHOSEN_BY_PROCESSOR = """\
#ifdef __SSE2__
#define HLO_VECTOR(name, T) typedef T hlo_vector_##name __attribute__((vector_size(16)));
#else
#define HLO_VECTOR(name, T) typedef T hlo_vector_##name;
#endif
HLO_VECTOR(f32, float)
HLO_VECTOR(f64, double)
#define HLO_SQUARE(T) HLO_FUNCTION T hlo_square_##T(T x) { return x * x; }
HLO_SQUARE(float)
#undef HLO_SQUARE
#define HLO_SQUARE(T) HLO_FUNCTION T hlo_square_##T(T x) { return x * x + 0; }
HLO_SQUARE(double)
"""


def test_a_macro_with_two_definitions_is_left_to_the_preprocessor() -> None:
    kept = with_reachable_parts(CHOSEN_BY_PROCESSOR, "hlo_vector_f32 x;")
    assert kept.startswith(CHOSEN_BY_PROCESSOR[: CHOSEN_BY_PROCESSOR.index("HLO_VECTOR(f64")])
    assert with_reachable_parts(CHOSEN_BY_PROCESSOR, "int x;") == ""
    one_after_the_other = "hlo_square_float(1) + hlo_square_double(1)"
    kept = with_reachable_parts(CHOSEN_BY_PROCESSOR, one_after_the_other)
    assert " ".join(kept.split()) == (
        "HLO_FUNCTION float hlo_square_float(float x) { return x * x; }"
        " HLO_FUNCTION double hlo_square_double(double x) { return x * x + 0; }"
    )


def _factored(size: int, element_type: str) -> hlo.Module:
    shape = f"{element_type}[{size},{size}]"
    return hlo.parse(
        f"HloModule m ENTRY e {{ a = {shape} parameter(0) b = {shape} parameter(1)"
        f" l = {shape} cholesky(a), lower=true"
        f" x = {shape} triangular-solve(l, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"
        f" y = {shape} dot(x, x), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}"
        f" ROOT r = ({shape}, {shape}, {shape}) tuple(l, x, y) }}"
    )


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("flags", [("-O0",), ("-O2", "-march=native"), ("-O2", "-DHLO_PORTABLE")])
@pytest.mark.parametrize("element_type", ["f32", "f64"])
def test_factors_are_those_of_numpy(element_type: str, flags: tuple[str, ...]) -> None:
    """Vectors as wide as the processor's, whose types were those of a processor without any."""
    for size in (3, 6, 17):
        dtype = {"f32": np.float32, "f64": np.float64}[element_type]
        b = np.random.default_rng(size).standard_normal((size, size)).astype(dtype)
        a = (b @ b.T + size * np.eye(size)).astype(dtype)
        lower, solved, product = results_here(_factored(size, element_type), (a, b), flags)
        right = np.linalg.cholesky(a.astype(np.float64))
        x = np.linalg.solve(right, b)
        for found, wanted in ((np.tril(lower), right), (solved, x), (product, x.T @ x)):
            np.testing.assert_allclose(found, wanted, rtol=0, atol=size * np.finfo(dtype).eps * 8)


PROGRAM = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  i = s32[4] convert(x)
  j = s32[4] divide(i, i)
  h = f8e4m3fnuz[4] convert(x)
  k = f32[4] convert(h)
  y = f32[4] tanh(k)
  ROOT r = (s32[4], f32[4]) tuple(j, y)
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang", "arm-none-eabi-gcc"])
def test_what_is_left_compiles(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    for numerics in ("exact", "fast"):
        files = backend_c.emit(hlo.parse(PROGRAM), "embedded", numerics)
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        text = files["module.c"].decode()
        assert "hlo_load_f8e4m3fnuz(" in text and "hlo_load_f8e5m2(" not in text
        assert "include" not in text.partition("hlo_")[2]
        strict = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
        subprocess.run([compiler, *strict, "-c", "module.c"], cwd=tmp_path, check=True)

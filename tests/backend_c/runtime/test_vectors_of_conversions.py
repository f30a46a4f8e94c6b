"""Conversions to integers leave a loop that compares their results to the vectorizer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import has_c_compiler

from backend_c.native.toolchain import RUNTIME, find_compiler

_SOURCE = """
#include "hlo_types.h"
#include "hlo_integer.h"
#include "hlo_float.h"

void looked_up(const float *restrict x, const int32_t *restrict column, const float *restrict a,
               const float *restrict b, const float *restrict c, float *restrict r) {
#pragma omp simd
    for (int64_t i = 0; i < 4096; ++i) {
        const int32_t row = hlo_s32_from_f32(hlo_floor_f32(x[i])), next = hlo_add_s32(row, 1);
        const _Bool has_row = (row >= 0) & (row < 256), has_next = (next >= 0) & (next < 256);
        const _Bool has_column = (column[i] >= 0) & (column[i] < 256);
        const _Bool has_other = (column[i] >= -1) & (column[i] < 255);
        const float above = x[i] * ((has_row & has_column) ? a[i] : 0.0f);
        const float beside = x[i] * ((has_row & has_other) ? b[i] : 0.0f);
        const float below = x[i] * ((has_next & has_column) ? c[i] : 0.0f);
        r[i] = above + beside + below;
    }
}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("width", ["512", "256", "128"])
def test_what_compares_converted_elements_is_in_lanes(width: str, tmp_path: Path) -> None:
    compiler = find_compiler(os.environ)
    if not compiler.version.startswith("gcc"):
        pytest.skip("it reports its vectors otherwise")
    source = tmp_path / "looked_up.c"
    source.write_text(_SOURCE)
    command = [*compiler.command, *compiler.flags, f"-mprefer-vector-width={width}"]
    command += ["-fopt-info-vec-optimized", "-I", str(RUNTIME), "-c", str(source), "-o", os.devnull]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unrecognized" in run.stderr:
        pytest.skip("a processor without widths")
    assert run.returncode == 0, run.stderr
    assert "loop vectorized" in run.stderr, run.stderr

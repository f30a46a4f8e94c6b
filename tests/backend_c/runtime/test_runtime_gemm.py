"""Products of matrices have every edge of a tile right, in vectors of every width.

The factors are small integers, whose sums are exact in every type, so that results are compared
with plain loops bit by bit, in a program of its own: also for other processors, in an emulator.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from every_width import COMPILERS, EMULATED, WIDTHS, status

from fuzz.compilers.processors import own_features

_SOURCE = """
#include "hlo_kernels.h"
#include "hlo_gemm_f32.h"
#include "hlo_gemm_f64.h"
#include "hlo_gemm_u32.h"

/* An emulator takes fifty times as long: it gets every third of the forms. */
#ifndef SHARE
#define SHARE 1
#endif

enum { MOST_ROWS = 30, MOST_COLUMNS = 70, MOST_STEPS = 270, ROOM = MOST_COLUMNS + 64 };
enum { PAGES = 2048 }; /* elements */
enum { MOST_ROWS_IN_PLACE = 85, IN_PLACE = 33 * 1024 };

static uint32_t pairs(uint32_t a, uint32_t b) {
    return (uint32_t)((int16_t)a * (int16_t)b) +
           (uint32_t)((int16_t)(a >> 16) * (int16_t)(b >> 16));
}

#define PRODUCT_f32(a, b) ((a) * (b))
#define PRODUCT_f64(a, b) ((a) * (b))
#define PRODUCT_u32(a, b) pairs(a, b)

/* Whether left factors lie row by row or step by step, right ones step by step or column by column,
 * and whether the steps are two segments apart; or rows are pages apart. */
#define TEST(name, T)                                                                           \\
    static T x_##name[MOST_ROWS * PAGES], y_##name[IN_PLACE];                                   \\
    static T panels_##name[ROOM * MOST_STEPS], c_##name[MOST_ROWS_IN_PLACE * MOST_COLUMNS];     \\
    static int wrong_##name(int64_t m, int64_t n, int64_t k, int form) {                        \\
        const int64_t row = form & 8 ? PAGES : form & 1 ? 1 : k;                                \\
        const int64_t step = form & 8 || !(form & 1) ? 1 : m;                                   \\
        const int64_t column = form & 2 ? k : 1, right = form & 2 ? 1 : n;                      \\
        const int64_t segments = form & 4 && k % 2 == 0 ? 2 : 1, length = k / segments;         \\
        const int64_t apart = segments == 2 ? m * k : 0, offsets[2] = {0, apart};               \\
        int wrong = 0;                                                                          \\
        hlo_gemm_##name##_pack(y_##name, column, right, n, 0, k, k, panels_##name);             \\
        hlo_gemm_##name##_segments(x_##name, 0, row, step, offsets, segments, length,           \\
                                   panels_##name, 0, 1, m, n, c_##name, 0, n);                  \\
        for (int64_t i = 0; i < m; ++i) {                                                       \\
            for (int64_t j = 0; j < n; ++j) {                                                   \\
                T sum = 0;                                                                      \\
                for (int64_t t = 0; t < k; ++t) {                                               \\
                    const int64_t at = offsets[t / length] + t % length * step + i * row;       \\
                    sum += PRODUCT_##name(x_##name[at], y_##name[t * right + j * column]);      \\
                }                                                                               \\
                wrong += sum != c_##name[i * n + j];                                            \\
            }                                                                                   \\
        }                                                                                       \\
        return wrong;                                                                           \\
    }                                                                                           \\
    /* Right factors are read where they lie, or copied if many rows do. */                     \\
    static int wrong_in_place_##name(int64_t m, int64_t n, int64_t k, int64_t pitch) {          \\
        int wrong = 0;                                                                          \\
        hlo_gemm_##name(x_##name, k, 1, y_##name, pitch, m, n, k, c_##name, n);                 \\
        for (int64_t i = 0; i < m; ++i) {                                                       \\
            for (int64_t j = 0; j < n; ++j) {                                                   \\
                T sum = 0;                                                                      \\
                for (int64_t t = 0; t < k; ++t) {                                               \\
                    sum += PRODUCT_##name(x_##name[i * k + t], y_##name[t * pitch + j]);        \\
                }                                                                               \\
                wrong += sum != c_##name[i * n + j];                                            \\
            }                                                                                   \\
        }                                                                                       \\
        return wrong;                                                                           \\
    }                                                                                           \\
    static int all_wrong_##name(void) {                                                         \\
        int wrong = 0;                                                                          \\
        for (int i = 0; i < MOST_ROWS * PAGES; ++i) {                                           \\
            x_##name[i] = (T)(i * 37 % 101 - 50);                                               \\
        }                                                                                       \\
        for (int i = 0; i < IN_PLACE; ++i) {                                                    \\
            y_##name[i] = (T)(i * 53 % 103 - 51);                                               \\
        }                                                                                       \\
        for (int64_t m = 1; m <= MOST_ROWS; m += 1 + m / 3) {                                   \\
            for (int64_t n = 1; n <= MOST_COLUMNS; n += 1 + n / 2) {                            \\
                for (int64_t k = 1; k <= MOST_STEPS; k += 89) {                                 \\
                    for (int form = (m + n + k) % SHARE; form < 12; form += SHARE) {            \\
                        wrong += wrong_##name(m, n, k, form);                                   \\
                    }                                                                           \\
                }                                                                               \\
            }                                                                                   \\
        }                                                                                       \\
        for (int64_t m = 5; m <= MOST_ROWS_IN_PLACE; m += 16) {                                 \\
            wrong += wrong_in_place_##name(m, 64, 259, 64);                                     \\
            wrong += wrong_in_place_##name(m, 48, 33, 1024);                                    \\
        }                                                                                       \\
        return wrong;                                                                           \\
    }

TEST(f32, float)
TEST(f64, double)
TEST(u32, uint32_t)

/* Right factors are lines with steps side by side. */
#define TEST_LINES(name, T)                                                                 \\
    static int wrong_lines_##name(int64_t m, int64_t n, int64_t k, int64_t pitch) {         \\
        int wrong = 0;                                                                      \\
        hlo_gemm_##name##_lines(x_##name, k, y_##name, pitch, m, n, k, c_##name, n);        \\
        for (int64_t i = 0; i < m; ++i) {                                                   \\
            for (int64_t j = 0; j < n; ++j) {                                               \\
                T sum = 0;                                                                  \\
                for (int64_t t = 0; t < k; ++t) {                                           \\
                    sum += x_##name[i * k + t] * y_##name[j * pitch + t];                   \\
                }                                                                           \\
                wrong += sum != c_##name[i * n + j];                                        \\
            }                                                                               \\
        }                                                                                   \\
        return wrong;                                                                       \\
    }                                                                                       \\
    static int all_wrong_lines_##name(void) {                                               \\
        int wrong = 0;                                                                      \\
        for (int64_t m = 1; m <= 7; ++m) {                                                  \\
            for (int64_t n = 1; n <= 9; n += 1 + n / 5) {                                   \\
                wrong += wrong_lines_##name(m, n, 1 + 8 * m, 77);                           \\
                wrong += wrong_lines_##name(m, n, 1019 + 4 * n, 2048);                      \\
            }                                                                               \\
        }                                                                                   \\
        return wrong + wrong_lines_##name(2, 5, 2100, 2100);                                \\
    }

TEST_LINES(f32, float)
TEST_LINES(f64, double)

int main(void) {
    int wrong = (all_wrong_f32() != 0) | (all_wrong_f64() != 0) << 1 | (all_wrong_u32() != 0) << 2;
    /* With the factors that those have set. */
    wrong |= (all_wrong_lines_f32() != 0) << 3 | (all_wrong_lines_f64() != 0) << 4;
    return wrong;
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_edges_in_vectors_of_each_width(compiler: str, width: str, tmp_path: Path) -> None:
    if not set(WIDTHS[width]) <= own_features():
        pytest.skip("the processor has no such instructions")
    assert status(_SOURCE, compiler, width.split(), tmp_path) == 0


@pytest.mark.parametrize("compiler", EMULATED)
def test_edges_on_other_processors(compiler: str, tmp_path: Path) -> None:
    emulator = shutil.which(EMULATED[compiler])
    if emulator is None:
        pytest.skip(f"no {EMULATED[compiler]}")
    assert status(_SOURCE, compiler, ["-static", "-DSHARE=3"], tmp_path, emulator) == 0

"""Factors and triangular systems have every edge of a block right, in vectors of every width.

The matrices are products of small integers, so that every sum, root and quotient is exact: results
are compared with what the matrices were made of, bit by bit, in a program of its own, also for
other processors in an emulator.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from every_width import EMULATED, WIDTHS, status

from fuzz.compilers.processors import own_features

_SOURCE = """
#include "hlo_kernels.h"
#include "hlo_factor_f32.h"
#include "hlo_factor_f64.h"

/* An emulator takes fifty times as long: it gets fewer orders. */
#ifndef SHARE
#define SHARE 1
#endif

enum { MOST = 200, PANEL = 256 * 64, LANES = 96 };

/* A triangle of small integers, on whose diagonal are 1, 2 and 4. */
static int entry(int64_t row, int64_t column) {
    return row == column ? 1 << row % 3 : (int)((row * 37 + column * 53) % 5) - 2;
}

#define TEST(name, T)                                                                           \\
    static T panels_##name[4 * PANEL], left_##name[MOST * MOST], right_##name[2 * PANEL];       \\
    static int wrong_factor_##name(int64_t n) {                                                 \\
        const int64_t panel = hlo_factor_panel(n), blocks = (n + 63) / 64;                      \\
        int32_t failed = 0;                                                                     \\
        int wrong = 0;                                                                          \\
        for (int64_t row = 0; row < blocks * 64; ++row) {                                       \\
            for (int64_t column = 0; column < blocks * 64; ++column) {                          \\
                const int64_t most = column < row ? column : row;                               \\
                T sum = 0;                                                                      \\
                for (int64_t k = 0; k <= most && row < n && column < n; ++k) {                  \\
                    sum += (T)(entry(row, k) * entry(column, k));                               \\
                }                                                                               \\
                panels_##name[row / 64 * panel + column * 64 + row % 64] = -sum;                \\
            }                                                                                   \\
        }                                                                                       \\
        for (int64_t block = 0; block < blocks; ++block) {                                      \\
            hlo_factor_##name##_cholesky_block(panels_##name, n, block, &failed);               \\
            for (int64_t strip = (n - (block + 1) * 64 + 31) / 32 - 1; strip >= 0; --strip) {   \\
                hlo_factor_##name##_cholesky_strip(panels_##name, n, block, strip);             \\
            }                                                                                   \\
        }                                                                                       \\
        for (int64_t row = 0; row < n; ++row) {                                                 \\
            for (int64_t column = 0; column <= row; ++column) {                                 \\
                wrong += panels_##name[row / 64 * panel + column * 64 + row % 64] !=            \\
                         (T)-entry(row, column);                                                \\
            }                                                                                   \\
        }                                                                                       \\
        return wrong + (failed != 0);                                                           \\
    }                                                                                           \\
    /* Whether a number is two rows and columns, [re -im; im re], of which the imaginary ones   \\
     * are the next number's; rows lie one by one, or in blocks of 64 side by side. */          \\
    static int wrong_solution_##name(int64_t n, int64_t parts, int unit, int is_blocked) {      \\
        const int64_t row_pitch = is_blocked ? 1 : n, step_pitch = is_blocked ? 64 : 1;         \\
        int wrong = 0;                                                                          \\
        for (int64_t row = 0; row < n; ++row) {                                                 \\
            T *known = right_##name + row * 64;                                                 \\
            for (int64_t lane = 0; lane < 32; ++lane) {                                         \\
                known[lane] = 0;                                                                \\
            }                                                                                   \\
            for (int64_t k = 0; k < (row / parts + 1) * parts; ++k) {                           \\
                const int64_t at = is_blocked ? row / 64 * n * 64 + k * 64 + row % 64           \\
                                              : row * n + k;                                    \\
                const int is_own = row / parts == k / parts;                                    \\
                int value = entry(row / parts, k / parts + (row + k) % parts);                  \\
                value = is_own && parts == 2 ? 1 << row / parts % 3 : value;                    \\
                value = unit && is_own ? row == k : value;                                      \\
                value = parts == 2 && row % 2 == 0 && k % 2 ? -value : value;                   \\
                left_##name[at] = unit && is_own ? (T)99 : (T)value;                            \\
                for (int64_t lane = 0; lane < 32; ++lane) {                                     \\
                    known[lane] += (T)(value * (int)((k * 3 + lane) % 7 - 3));                  \\
                }                                                                               \\
            }                                                                                   \\
        }                                                                                       \\
        hlo_factor_##name##_solve(left_##name, (is_blocked ? n : row_pitch) * 64, row_pitch,    \\
                                  step_pitch, n, parts, unit, right_##name, 32);                \\
        for (int64_t row = 0; row < n; ++row) {                                                 \\
            for (int64_t lane = 0; lane < 32; ++lane) {                                         \\
                wrong += right_##name[row * 64 + lane] != (T)-((row * 3 + lane) % 7 - 3);       \\
            }                                                                                   \\
        }                                                                                       \\
        return wrong;                                                                           \\
    }                                                                                           \\
    /* Matrices side by side, each of other numbers, by rows or by columns. */                  \\
    static int wrong_lanes_##name(int64_t n, int64_t row, int64_t column) {                     \\
        const int64_t many = HLO_FACTOR_TOGETHER(T), vectors = 5;                               \\
        int32_t failed[16];                                                                     \\
        int wrong = 0;                                                                          \\
        for (int64_t at = 0; at < n * n * many; ++at) {                                         \\
            const int64_t i = at / many / n, j = at / many % n, lane = at % many;               \\
            T sum = 0;                                                                          \\
            for (int64_t k = 0; k <= i && k <= j; ++k) {                                        \\
                const int64_t own = k + 3 * lane;                                               \\
                sum += (T)(entry(i + 3 * lane, own) * entry(j + 3 * lane, own));                \\
            }                                                                                   \\
            left_##name[(i * row + j * column) * many + lane] = i < j ? (T)99 : sum;            \\
        }                                                                                       \\
        for (int64_t at = 0; at < n * vectors * many; ++at) {                                   \\
            const int64_t i = at / many / vectors, v = at / many % vectors, lane = at % many;   \\
            right_##name[at] = 0;                                                               \\
            for (int64_t k = 0; k <= i; ++k) {                                                  \\
                right_##name[at] += (T)(entry(i + 3 * lane, k + 3 * lane) * (int)(k + v - 7));  \\
            }                                                                                   \\
        }                                                                                       \\
        hlo_factor_##name##_cholesky_lanes(left_##name, n, row, column, failed);                \\
        for (int64_t at = 0; at < n * n * many; ++at) {                                         \\
            const int64_t i = at / many / n, j = at / many % n, lane = at % many;               \\
            const T found = left_##name[(i * row + j * column) * many + lane];                  \\
            wrong += j <= i && found != (T)entry(i + 3 * lane, j + 3 * lane);                   \\
            wrong += failed[lane] != 0;                                                         \\
        }                                                                                       \\
        hlo_factor_##name##_solve_lanes(left_##name, row, column, n, 0, right_##name, vectors,  \\
                                        1, vectors);                                            \\
        for (int64_t at = 0; at < n * vectors * many; ++at) {                                   \\
            wrong += right_##name[at] != (T)(at / many / vectors + at / many % vectors - 7);    \\
        }                                                                                       \\
        left_##name[many - 1] = -1;                                                             \\
        hlo_factor_##name##_cholesky_lanes(left_##name, 1, row, column, failed);                \\
        return wrong + (failed[many - 1] != 1) + (failed[0] != 0);                              \\
    }                                                                                           \\
    /* One system, whose matrix lies by rows or by columns; beside its triangle are 99. */      \\
    static int wrong_vector_##name(int64_t n, int is_across, int is_forward, int unit) {        \\
        int wrong = 0;                                                                          \\
        for (int64_t i = 0; i < n; ++i) {                                                       \\
            right_##name[i] = 0;                                                                \\
            for (int64_t k = 0; k < n; ++k) {                                                   \\
                const int is_read = (is_forward ? k <= i : k >= i) && !(unit && i == k);        \\
                const T value = is_read ? (T)entry(i, k) : i == k;                              \\
                left_##name[is_across ? k * n + i : i * n + k] = is_read ? value : (T)99;       \\
                right_##name[i] += value * (T)(k % 7 - 3);                                      \\
            }                                                                                   \\
        }                                                                                       \\
        hlo_factor_##name##_vector(left_##name, n, n, is_across, is_forward, unit,              \\
                                   right_##name);                                               \\
        for (int64_t i = 0; i < n; ++i) {                                                       \\
            wrong += right_##name[i] != (T)(i % 7 - 3);                                         \\
        }                                                                                       \\
        return wrong;                                                                           \\
    }                                                                                           \\
    static int all_wrong_##name(void) {                                                         \\
        int wrong = 0;                                                                          \\
        for (int64_t n = 1; n <= 90; n += 1 + n / 4) {                                          \\
            for (int form = 0; form < 8; ++form) {                                              \\
                wrong += wrong_vector_##name(n, form & 1, form & 2, form & 4);                  \\
            }                                                                                   \\
        }                                                                                       \\
        for (int64_t n = 1; n <= 12; ++n) {                                                     \\
            wrong += wrong_lanes_##name(n, n, 1) + wrong_lanes_##name(n, 1, n);                 \\
        }                                                                                       \\
        for (int64_t n = 8; n <= MOST; n += 8 * (1 + n / 24) * SHARE) {                         \\
            wrong += wrong_factor_##name(n);                                                    \\
        }                                                                                       \\
        for (int64_t n = 1; n <= 150; n += 1 + n / 3 * SHARE) {                                 \\
            for (int form = 0; form < 8; ++form) {                                              \\
                const int64_t parts = form & 1 ? 2 : 1;                                         \\
                wrong += wrong_solution_##name(n * parts > 150 ? n : n * parts,                 \\
                                               n * parts > 150 ? 1 : parts, form & 2, form & 4); \\
            }                                                                                   \\
        }                                                                                       \\
        return wrong;                                                                           \\
    }

TEST(f32, float)
TEST(f64, double)

int main(void) { return (all_wrong_f32() != 0) | (all_wrong_f64() != 0) << 1; }
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("compiler", "width"),
    [*(("gcc", width) for width in WIDTHS if "native" not in width), ("clang", "-march=haswell")],
)
def test_edges_in_vectors_of_each_width(compiler: str, width: str, tmp_path: Path) -> None:
    if not set(WIDTHS[width]) <= own_features():
        pytest.skip("the processor has no such instructions")
    assert status(_SOURCE, compiler, width.split(), tmp_path) == 0


def test_edges_on_another_processor(tmp_path: Path) -> None:
    compiler = "aarch64-linux-gnu-gcc"
    emulator = shutil.which(EMULATED[compiler])
    if emulator is None:
        pytest.skip(f"no {EMULATED[compiler]}")
    assert status(_SOURCE, compiler, ["-static", "-DSHARE=3"], tmp_path, emulator) == 0

"""Products of narrow types have every edge of a tile right, by the instructions of each processor.

Integers wrap, and the sums of bf16 are exact, as they are of small integers times powers of two
(among them such that products or factors are subnormal): results are compared with plain loops bit
by bit, in a program of its own, also for other processors, in an emulator.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from every_width import status

from fuzz.compilers.processors import own_features

_SOURCE = """
#include "hlo_kernels.h"
#include "hlo_gemm_bf16.h"
#include "hlo_gemm_bytes.h"
#include "hlo_gemm_s16.h"

/* An emulator takes fifty times as long: it gets a share of the shapes. */
#ifndef SHARE
#define SHARE 37
#endif

enum { MOST = 100, STEPS = 2200 };

static uint16_t x[MOST * STEPS], y[MOST * STEPS];
static uint8_t x8[MOST * STEPS], y8[MOST * STEPS];
static uint32_t panels[2 * MOST * STEPS], c[MOST * MOST], least;
static float wide[2 * MOST * STEPS], sums[MOST * MOST];

static const int64_t rows[] = {1, 5, 12, 14, 16, 17, 28, 32, 33, 47, 96};
static const int64_t columns[] = {1, 7, 16, 17, 32, 33, 64, 70};
static const int64_t steps[] = {1, 3, 4, 5, 31, 64, 65, 130, 511, 1024, 1030, 2110};

/* Packs in parts of 64 steps; right factors lie step by step, or column by column. */
#define PRODUCT(name, from, into)                                                                \\
    memset(into, 0x55, sizeof into);                                                             \\
    for (int64_t first = 0; first < k; first += 64) {                                            \\
        hlo_gemm_##name##_pack(from + first * step, column, step, n, first,                      \\
                               k - first < 64 ? k - first : 64, k, into);                        \\
    }

#define TEST(name, S, T, left, right)                                                            \\
    static int wrong_##name(int64_t m, int64_t n, int64_t k, int in_order) {                     \\
        const int64_t column = in_order ? k : 1, step = in_order ? 1 : n;                        \\
        int wrong = 0;                                                                           \\
        PRODUCT(name, right, panels)                                                             \\
        hlo_gemm_##name(left, k, panels, m, n, k, c, n);                                         \\
        for (int64_t i = 0; i < m; ++i) {                                                        \\
            for (int64_t j = 0; j < n; ++j) {                                                    \\
                uint32_t sum = 0;                                                                \\
                for (int64_t t = 0; t < k; ++t) {                                                \\
                    const int32_t a = (S)left[i * k + t], b = (T)right[t * step + j * column];   \\
                    sum += (uint32_t)(a * b);                                                    \\
                }                                                                                \\
                wrong |= sum != c[i * n + j];                                                    \\
            }                                                                                    \\
        }                                                                                        \\
        return wrong;                                                                            \\
    }

TEST(bytes_ss, int8_t, int8_t, x8, y8)
TEST(bytes_su, int8_t, uint8_t, x8, y8)
TEST(bytes_us, uint8_t, int8_t, x8, y8)
TEST(bytes_uu, uint8_t, uint8_t, x8, y8)
TEST(s16, int16_t, int16_t, x, y)

static float value(uint16_t bits) { return hlo_f32_from_bits((uint32_t)bits << 16); }

static int wrong_bf16(int64_t m, int64_t n, int64_t k, int in_order) {
    const int64_t column = in_order ? k : 1, step = in_order ? 1 : n;
    int wrong = 0;
    PRODUCT(bf16, y, wide)
    hlo_gemm_bf16_least(x, k, m, k, &least);
    hlo_gemm_bf16(x, k, wide, m, n, k, sums, n, least);
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
            float sum = 0.0f;
            for (int64_t t = 0; t < k; ++t) {
                sum += value(x[i * k + t]) * value(y[t * step + j * column]);
            }
            wrong |= hlo_bits_f32(sum) != hlo_bits_f32(sums[i * n + j]);
        }
    }
    return wrong;
}

typedef int function(int64_t, int64_t, int64_t, int);
static function *const functions[] = {wrong_bytes_ss, wrong_bytes_su, wrong_bytes_us,
                                      wrong_bytes_uu, wrong_s16,      wrong_bf16};

static uint32_t next(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* All bits, and often the ends of the ranges; or integers times a power of two. */
static void fill(uint16_t *wides, uint8_t *bytes, float scale) {
    for (int i = 0; i < MOST * STEPS; ++i) {
        const uint32_t bits = next();
        const uint16_t end = bits & 2 ? 0x8080 : bits & 4 ? 0x7fff : 0xffff;
        wides[i] = bits & 1 ? end : (uint16_t)(bits >> 8);
        bytes[i] = (uint8_t)wides[i];
        if (scale != 0.0f) {
            wides[i] = (uint16_t)(hlo_bits_f32((float)((int)(bits % 15) - 7) * scale) >> 16);
        }
    }
}

static int wrong_in(int first, int last) {
    int wrong = 0;
    for (int shape = 0; shape < 11 * 8 * 12; shape += SHARE) {
        for (int which = first; which < last; ++which) {
            wrong |= functions[which](rows[shape % 11], columns[shape / 11 % 8],
                                      steps[shape / 88], shape / SHARE % 2) << which;
        }
    }
    return wrong;
}

int main(void) {
    const float scales[][2] = {{1.0f, 1.0f}, {0x1p-70f, 0x1p-72f}, {0x1p-131f, 0x1p40f}};
    fill(x, x8, 0.0f);
    fill(y, y8, 0.0f);
    int wrong = wrong_in(0, 5);
    for (int scale = 0; scale < 3; ++scale) {
        fill(x, x8, scales[scale][0]);
        fill(y, y8, scales[scale][1]);
        wrong |= wrong_in(5, 6);
    }
    return wrong;
}
"""
_NATIVE = {
    "gcc": (
        *("-march=native", "-march=native -mno-amx-tile"),
        *("-march=skylake-avx512", "-march=haswell -mavxvnni", "-march=haswell"),
        *("-march=x86-64", "-DHLO_PORTABLE"),
    ),
    "clang": ("-march=native", "-march=haswell"),
}
_NEEDED = {
    "skylake": ("avx512f", "avx512bw", "avx512vl", "avx512dq"),
    "haswell": ("avx2", "fma"),
    "avxvnni": ("avx_vnni",),
}
_EMULATED = {
    ("aarch64-linux-gnu-gcc", ""): "qemu-aarch64",
    ("aarch64-linux-gnu-gcc", "-march=armv8.2-a+dotprod"): "qemu-aarch64",
    ("riscv64-linux-gnu-gcc", ""): "qemu-riscv64",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("compiler", "flags"),
    [(compiler, flags) for compiler in _NATIVE for flags in _NATIVE[compiler]],
)
def test_edges_by_the_instructions_of(compiler: str, flags: str, tmp_path: Path) -> None:
    needed = {feature for name in _NEEDED if name in flags for feature in _NEEDED[name]}
    if not needed <= own_features():
        pytest.skip("the processor has no such instructions")
    assert status(_SOURCE, compiler, flags.split(), tmp_path) == 0


@pytest.mark.parametrize(("compiler", "flags"), _EMULATED)
def test_edges_on_other_processors(compiler: str, flags: str, tmp_path: Path) -> None:
    emulator = shutil.which(_EMULATED[compiler, flags])
    if emulator is None:
        pytest.skip(f"no {_EMULATED[compiler, flags]}")
    words = ["-static", "-DSHARE=70", *flags.split()]
    assert status(_SOURCE, compiler, words, tmp_path, emulator) == 0

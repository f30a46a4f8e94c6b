"""Rows of f16 are converted as one after the other is, for processors with and without F16C."""

from __future__ import annotations

from pathlib import Path

import pytest
from every_width import COMPILERS, WIDTHS, status

from fuzz.compilers.processors import own_features

_SOURCE = """
#include "hlo_kernels.h"
#include "hlo_half.h"

enum { WORDS = 1 << 16, MOST = 40 };

static uint16_t halves[WORDS], stored[WORDS + 1];
static float values[WORDS + 1], wide[WORDS];

static int loads_differ(int64_t first, int64_t count) {
    int wrong = 0;
    values[count] = 3.0f;
    hlo_half_load(halves + first, values, count);
    for (int64_t i = 0; i < count; ++i) {
        wrong |= hlo_bits_f32(values[i]) != hlo_bits_f32(hlo_load_f16(halves[first + i]));
    }
    return wrong | (values[count] != 3.0f);
}

static int stores_differ(int64_t first, int64_t count) {
    int wrong = 0;
    stored[count] = 3;
    hlo_half_store(wide + first, stored, count);
    for (int64_t i = 0; i < count; ++i) {
        wrong |= stored[i] != hlo_store_f16(wide[first + i]);
    }
    return wrong | (stored[count] != 3);
}

int main(void) {
    int wrong = 0;
    for (int64_t word = 0; word < WORDS; ++word) {
        halves[word] = (uint16_t)word;
    }
    /* All words at once, and alone between others: a NaN changes how its row is converted. */
    wrong |= loads_differ(0, WORDS);
    for (int64_t first = 0; first + MOST <= WORDS; first += 29) {
        wrong |= loads_differ(first, first % (MOST + 1)) << 1;
    }
    /* Each word's value and what lies around it, up to the next word and beyond: ties, too. */
    const int32_t beside[] = {0, 1, -1, 0x0fff, 0x1000, 0x1001, 0x1fff, -0x1000, 0x2fffff};
    for (int64_t n = 0; n < (int64_t)(sizeof beside / sizeof *beside); ++n) {
        for (int64_t word = 0; word < WORDS; ++word) {
            const uint32_t bits = hlo_bits_f32(hlo_load_f16((uint16_t)word));
            wide[word] = hlo_f32_from_bits(bits + (uint32_t)beside[n]);
        }
        wrong |= stores_differ(0, WORDS) << 2;
        for (int64_t first = 0; first + MOST <= WORDS; first += 29) {
            wrong |= stores_differ(first, first % (MOST + 1)) << 3;
        }
    }
    /* Of every exponent of f32, below and beyond those of f16, too. */
    for (int64_t n = 0; n < WORDS; ++n) {
        wide[n] = hlo_f32_from_bits((uint32_t)n << 16 | 0x1357u);
    }
    return wrong | stores_differ(0, WORDS) << 4;
}
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("flag", "needed"), WIDTHS.items(), ids=WIDTHS)
def test_rows_are_converted_as_numbers_are(
    flag: str, needed: tuple[str, ...], compiler: str, tmp_path: Path
) -> None:
    if not own_features().issuperset(needed):
        pytest.skip(f"the processor has not all of {', '.join(needed)}")
    assert status(_SOURCE, compiler, flag.split(), tmp_path) == 0

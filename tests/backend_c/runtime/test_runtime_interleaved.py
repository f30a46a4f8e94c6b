"""Short rows are taken apart and put together, for processors of every vector width."""

from __future__ import annotations

from pathlib import Path

import pytest
from every_width import COMPILERS, WIDTHS, status

from fuzz.compilers.processors import own_features

_SOURCE = """
#include "hlo_kernels.h"
#include "hlo_interleaved.h"

enum { MOST = 16, ROWS = 67, ELEMENTS = (MOST + 1) * ROWS + MOST };

#define TEST(W, T)                                                                                \\
    static T rows_##W[ELEMENTS], columns_##W[MOST][ROWS + 1];                                     \\
    static int wrong_##W(int stride, int lanes, int count) {                                      \\
        void *to[MOST];                                                                           \\
        const void *from[MOST];                                                                   \\
        int wrong = 0;                                                                            \\
        for (int k = 0; k < MOST; ++k) {                                                          \\
            to[k] = columns_##W[k], from[k] = columns_##W[k];                                     \\
        }                                                                                         \\
        for (int i = 0; i < ELEMENTS; ++i) {                                                      \\
            rows_##W[i] = (T)(7 * i + 1);                                                         \\
        }                                                                                         \\
        memset(columns_##W, 0xff, sizeof columns_##W);                                            \\
        hlo_interleaved_load_##W(rows_##W + 3, stride, lanes, to, count);                         \\
        for (int k = 0; k < MOST; ++k) {                                                          \\
            for (int i = 0; i <= ROWS; ++i) {                                                     \\
                const T given = (T)(7 * (3 + i * stride + k) + 1);                                \\
                wrong |= columns_##W[k][i] != (k < count && i < lanes ? given : (T)-1);           \\
                columns_##W[k][i] = (T)(1000 * k + i);                                            \\
            }                                                                                     \\
        }                                                                                         \\
        if (count == stride) {                                                                    \\
            memset(rows_##W, 0xff, sizeof rows_##W);                                              \\
            hlo_interleaved_store_##W(rows_##W + 3, stride, lanes, from, count);                  \\
            for (int i = 0; i < ELEMENTS; ++i) {                                                  \\
                const int place = i - 3, inside = place >= 0 && place < lanes * stride;           \\
                const T given = (T)(1000 * (place % stride) + place / stride);                    \\
                wrong |= 2 * (rows_##W[i] != (inside ? given : (T)-1));                           \\
            }                                                                                     \\
        }                                                                                         \\
        return wrong;                                                                             \\
    }

TEST(4, uint32_t)
TEST(8, uint64_t)

int main(void) {
    int wrong = 0;
    for (int stride = 2; stride <= MOST; ++stride) {
        for (int count = 1; count <= stride; ++count) {
            for (int lanes = 0; lanes <= ROWS; lanes += lanes < 18 ? 1 : 7) {
                wrong |= wrong_4(stride, lanes, count) | wrong_8(stride, lanes, count) << 2;
            }
        }
    }
    return wrong;
}
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("flag", "needed"), WIDTHS.items(), ids=WIDTHS)
def test_each_element_is_at_its_place_and_nothing_beside_is_touched(
    flag: str, needed: tuple[str, ...], compiler: str, tmp_path: Path
) -> None:
    if not own_features().issuperset(needed):
        pytest.skip(f"the processor has not all of {', '.join(needed)}")
    assert status(_SOURCE, compiler, flag.split(), tmp_path) == 0

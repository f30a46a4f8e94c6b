/* Products of matrices by the tiles of x86 (AMX), once for each instruction: HLO_AMX_DEFINE.
 *
 * A tile is 16 rows of 64 bytes. One instruction adds the products of 16 rows of the left factor,
 * 64 bytes of k each, and 16 words of k of the right one, 16 columns each, to 16 x 16 sums, in 16
 * cycles. Two tiles of rows by two of columns are four such with four tiles to load, which the L1
 * cache gives in less time. Right factors are the panels of hlo_gemm.h: rows of 32 words, each of
 * which is a column's next bytes of k.
 *
 *   tiles 0 to 3   sums: rows 0 to 15 by columns 0 to 15, by 16 to 31; rows 16 to 31 likewise
 *   tiles 4, 5     left factors of rows 0 to 15, 16 to 31
 *   tiles 6, 7     right factors of columns 0 to 15, 16 to 31
 *
 * Linux lets a process use tiles when it has asked for that. HLO_AMX is 0 where the compiler does
 * not make such code for the processor.
 */
#ifndef HLO_AMX_H
#define HLO_AMX_H

#include "hlo_types.h"

/* gcc and clang spell these in two ways. */
#if defined(__AMX_TILE__) || defined(__AMXTILE__)
#if (defined(__AMX_INT8__) || defined(__AMXINT8__)) && \
    (defined(__AMX_BF16__) || defined(__AMXBF16__)) && defined(__AVX512F__)
#define HLO_AMX_KNOWN 1
#endif
#endif

#if defined(HLO_AMX_KNOWN) && defined(__linux__) && defined(__LP64__) && defined(__GNUC__) && \
    !defined(HLO_PORTABLE) && !defined(__CUDACC__)
#define HLO_AMX 1

enum {
    HLO_AMX_ROWS = 16,
    HLO_AMX_BYTES = 64, /* of k, and of a row of a tile */
    HLO_AMX_PANEL = 32, /* columns */
    /* Bytes of k for which sums stay in tiles: of both factors as much as the L1 cache has. */
    HLO_AMX_DEPTH = 1024
};

/* Returns whether the system lets this process use tiles: arch_prctl(ARCH_REQ_XCOMP_PERM,
 * XFEATURE_XTILEDATA), by number, as kernels call no library. Threads that ask at once get the same
 * answer. */
HLO_PROCEDURE int hlo_amx_is_usable(void) {
    static int32_t answer; /* 1: yes, 2: no */
    int32_t known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
    if (!known) {
        int64_t result;
        __asm__ volatile("syscall"
                         : "=a"(result)
                         : "a"((int64_t)158), "D"((int64_t)0x1023), "S"((int64_t)18)
                         : "rcx", "r11", "memory");
        known = result == 0 ? 1 : 2;
        __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
    }
    return known == 1;
}

/* What ldtilecfg reads. */
typedef struct {
    uint8_t palette, start, none[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} hlo_amx_shapes;

/* Gives the tiles of left factors and of sums their rows, upper and lower ones. Shapes that were
 * written byte by byte just before take longer to load than those of whole tiles, from a table. */
HLO_FUNCTION void hlo_amx_configure(int64_t upper, int64_t lower) {
    static const hlo_amx_shapes whole = {
        1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    hlo_amx_shapes shapes = whole;
    if (upper == HLO_AMX_ROWS && lower == HLO_AMX_ROWS) {
        __asm__ volatile("ldtilecfg %0" : : "m"(whole) : "memory");
        return;
    }
    shapes.rows[0] = shapes.rows[1] = shapes.rows[4] = (uint8_t)upper;
    shapes.rows[2] = shapes.rows[3] = shapes.rows[5] = (uint8_t)(lower < 1 ? 1 : lower);
    __asm__ volatile("ldtilecfg %0" : : "m"(shapes) : "memory");
}

HLO_FUNCTION void hlo_amx_release(void) { __asm__ volatile("tilerelease" : : : "memory"); }

#define HLO_AMX_LOAD(tile, from, pitch)                                                            \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                                            \
                     :                                                                             \
                     : "r"(from), "r"((int64_t)(pitch))                                            \
                     : "memory")
#define HLO_AMX_STORE(tile, into, pitch)                                                           \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)"                                        \
                     :                                                                             \
                     : "r"(into), "r"((int64_t)(pitch))                                            \
                     : "memory")
#define HLO_AMX_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : : : "memory")

/* What a block of four tiles has at hand: how many rows the lower ones have, whether there are
 * columns of the right ones, and where sums are, at a pitch of bytes. */
typedef struct {
    int64_t lower;
    int is_wide, is_new;
    unsigned char *sums;
    int64_t pitch;
} hlo_amx_tile;

HLO_FUNCTION void hlo_amx_begin(const hlo_amx_tile *t) {
    HLO_AMX_ZERO(0);
    HLO_AMX_ZERO(1);
    HLO_AMX_ZERO(2);
    HLO_AMX_ZERO(3);
    if (t->is_new) {
        return;
    }
    unsigned char *lower = t->sums + HLO_AMX_ROWS * t->pitch;
    HLO_AMX_LOAD(0, t->sums, t->pitch);
    if (t->is_wide) {
        HLO_AMX_LOAD(1, t->sums + HLO_AMX_BYTES, t->pitch);
    }
    if (t->lower > 0) {
        HLO_AMX_LOAD(2, lower, t->pitch);
        if (t->is_wide) {
            HLO_AMX_LOAD(3, lower + HLO_AMX_BYTES, t->pitch);
        }
    }
}

HLO_FUNCTION void hlo_amx_end(const hlo_amx_tile *t) {
    unsigned char *lower = t->sums + HLO_AMX_ROWS * t->pitch;
    HLO_AMX_STORE(0, t->sums, t->pitch);
    if (t->is_wide) {
        HLO_AMX_STORE(1, t->sums + HLO_AMX_BYTES, t->pitch);
    }
    if (t->lower > 0) {
        HLO_AMX_STORE(2, lower, t->pitch);
        if (t->is_wide) {
            HLO_AMX_STORE(3, lower + HLO_AMX_BYTES, t->pitch);
        }
    }
}

/* Copies rows to others at a pitch; there are as many bytes of each row. */
HLO_FUNCTION void hlo_amx_copy(const unsigned char *from, int64_t pitch, unsigned char *into,
                               int64_t into_pitch, int64_t rows, int64_t bytes) {
    for (int64_t row = 0; row < rows; ++row) {
        memcpy(into + row * into_pitch, from + row * pitch, (size_t)bytes);
    }
}

HLO_FUNCTION int64_t hlo_amx_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Adds the products of 64 bytes of k. */
#define HLO_AMX_STEP(name, instruction)                                                            \
    HLO_FUNCTION void hlo_amx_##name##_step(const hlo_amx_tile *t, const unsigned char *left,      \
                                            int64_t pitch, const uint32_t *right) {                \
        HLO_AMX_LOAD(4, left, pitch);                                                              \
        HLO_AMX_LOAD(6, right, 4 * HLO_AMX_PANEL);                                                 \
        __asm__ volatile(instruction " %%tmm6, %%tmm4, %%tmm0" : : : "memory");                    \
        if (t->is_wide) {                                                                          \
            HLO_AMX_LOAD(7, right + HLO_AMX_PANEL / 2, 4 * HLO_AMX_PANEL);                         \
            __asm__ volatile(instruction " %%tmm7, %%tmm4, %%tmm1" : : : "memory");                \
        }                                                                                          \
        if (t->lower > 0) {                                                                        \
            HLO_AMX_LOAD(5, left + HLO_AMX_ROWS * pitch, pitch);                                   \
            __asm__ volatile(instruction " %%tmm6, %%tmm5, %%tmm2" : : : "memory");                \
            if (t->is_wide) {                                                                      \
                __asm__ volatile(instruction " %%tmm7, %%tmm5, %%tmm3" : : : "memory");            \
            }                                                                                      \
        }                                                                                          \
    }

/* Products of up to 32 rows and columns, for up to HLO_AMX_DEPTH bytes of k; of the last 64 what is
 * there of the left factors is copied. */
#define HLO_AMX_TILE(name)                                                                         \
    HLO_FUNCTION void hlo_amx_##name##_tile(const hlo_amx_tile *t, int64_t rows,                   \
                                            const unsigned char *left, int64_t left_pitch,         \
                                            const uint32_t *right, int64_t bytes) {                \
        int64_t done = 0;                                                                          \
        hlo_amx_begin(t);                                                                          \
        for (; done + HLO_AMX_BYTES <= bytes; done += HLO_AMX_BYTES) {                             \
            hlo_amx_##name##_step(t, left + done, left_pitch, right + done / 4 * HLO_AMX_PANEL);   \
        }                                                                                          \
        if (done < bytes) {                                                                        \
            unsigned char copy[2 * HLO_AMX_ROWS * HLO_AMX_BYTES];                                  \
            uint32_t words[HLO_AMX_BYTES / 4 * HLO_AMX_PANEL];                                     \
            const int64_t count = (bytes - done + 3) / 4 * HLO_AMX_PANEL;                          \
            memset(copy, 0, sizeof copy);                                                          \
            memset(words, 0, sizeof words);                                                        \
            hlo_amx_copy(left + done, left_pitch, copy, HLO_AMX_BYTES, rows, bytes - done);        \
            memcpy(words, right + done / 4 * HLO_AMX_PANEL, (size_t)count * sizeof words[0]);      \
            hlo_amx_##name##_step(t, copy, HLO_AMX_BYTES, words);                                  \
        }                                                                                          \
        hlo_amx_end(t);                                                                            \
    }

/* Writes sums of products to c, of `bytes` of k: as hlo_gemm_narrow.h has it, whose panels have
 * `room` words for each column. Sums at the right edge pass through a copy. */
#define HLO_AMX_DEFINE(name, instruction)                                                          \
    HLO_AMX_STEP(name, instruction)                                                                \
    HLO_AMX_TILE(name)                                                                             \
    HLO_PROCEDURE void hlo_amx_##name(const unsigned char *lhs, int64_t row_pitch,                 \
                                      const uint32_t *panels, int64_t room, int64_t rows,          \
                                      int64_t columns, int64_t bytes, void *c, int64_t c_pitch) {  \
        uint32_t copy[2 * HLO_AMX_ROWS * HLO_AMX_PANEL];                                           \
        hlo_amx_tile t;                                                                            \
        int64_t configured = 0;                                                                    \
        for (int64_t first = 0; first < bytes; first += HLO_AMX_DEPTH) {                           \
            const int64_t depth = hlo_amx_least(bytes - first, HLO_AMX_DEPTH);                     \
            t.is_new = first == 0;                                                                 \
            for (int64_t row = 0; row < rows; row += 2 * HLO_AMX_ROWS) {                           \
                const int64_t count = hlo_amx_least(rows - row, 2 * HLO_AMX_ROWS);                 \
                t.lower = count - HLO_AMX_ROWS;                                                    \
                if (configured != count) {                                                         \
                    hlo_amx_configure(hlo_amx_least(count, HLO_AMX_ROWS), t.lower);                \
                    configured = count;                                                            \
                }                                                                                  \
                for (int64_t column = 0; column < columns; column += HLO_AMX_PANEL) {              \
                    const int64_t some = hlo_amx_least(columns - column, HLO_AMX_PANEL);           \
                    unsigned char *sums = (unsigned char *)c + (row * c_pitch + column) * 4;       \
                    /* A tile stores 16 columns whether they are there or not; 16 and 32 end with  \
                     * a tile. */                                                                  \
                    const int is_edge = some % (HLO_AMX_PANEL / 2) != 0;                           \
                    t.is_wide = some > HLO_AMX_PANEL / 2;                                          \
                    t.sums = is_edge ? (unsigned char *)copy : sums;                               \
                    t.pitch = is_edge ? 4 * HLO_AMX_PANEL : 4 * c_pitch;                           \
                    if (is_edge && !t.is_new) {                                                    \
                        hlo_amx_copy(sums, 4 * c_pitch, t.sums, t.pitch, count, 4 * some);         \
                    }                                                                              \
                    hlo_amx_##name##_tile(&t, count, lhs + row * row_pitch + first, row_pitch,     \
                                          panels + column * room + first / 4 * HLO_AMX_PANEL,      \
                                          depth);                                                  \
                    if (is_edge) {                                                                 \
                        hlo_amx_copy(t.sums, t.pitch, sums, 4 * c_pitch, count, 4 * some);         \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        hlo_amx_release();                                                                         \
    }

#else
#define HLO_AMX 0
#endif

#endif

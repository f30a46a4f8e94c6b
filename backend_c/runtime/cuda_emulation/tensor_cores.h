/* Matrix instructions of a warp in software: ldmatrix and mma.sync, by the PTX ISA.
 *
 * Fragments are those of the PTX ISA, "Warp-level matrix instructions" (of ldmatrix, and "Matrix
 * fragments for mma.m16n8k16 with floating point type" and "… for mma.m16n8k32"). With group =
 * lane / 4 and own = lane % 4, and a word being 4 bytes:
 *
 *   A, 16 rows of 8 words   word n of a lane is row group + 8 (n % 2), word own + 4 (n / 2)
 *   B, 8 columns of 8 words word n of a lane is column group, word own + 4 n
 *   C and D, 16 by 8        element n is row group + 8 (n / 2), column 2 own + n % 2
 *
 * ldmatrix takes the address of row r of matrix m from lane 8 m + r; element n of lane's word is
 * row group, column 2 own + n of the matrix, or with .trans row 2 own + n, column group.
 *
 * Products of narrow floats are exact in f64, as sums of 16 of them nearly are; hardware rounds
 * them in ways that NVIDIA does not tell, to no less than the precision of f32.
 */
#ifndef HLO_TENSOR_CORES_H
#define HLO_TENSOR_CORES_H

struct hlo_emulated_fragments {
    uint32_t a[4], b[2], c[4];
};

/* What each lane of a warp has; all lanes must come. */
template <class T>
HLO_UNCHECKED static inline void hlo_emulated_exchange(int line, const T *own, T *all) {
    uint64_t places[32];
    hlo_emulated_warp(0xffffffffu, (uint64_t)(uintptr_t)own, places, line);
    for (unsigned int lane = 0; lane < 32; ++lane) {
        hlo_emulated_warp_read(0xffffffffu, lane, line);
        __builtin_memcpy(&all[lane], (const void *)(uintptr_t)places[lane], sizeof(T));
    }
    hlo_emulated_warp(0xffffffffu, 0, places, line); /* before any of them changes */
}

HLO_UNCHECKED static inline void hlo_emulated_ldmatrix(int line, uint32_t *words, const void *row,
                                                       bool is_transposed) {
    const unsigned int lane = threadIdx.x % 32u, group = lane / 4, own = lane % 4;
    const unsigned char *rows[32], *mine = (const unsigned char *)row;
    if ((uintptr_t)row % 16 != 0) __builtin_trap();
    hlo_emulated_exchange(line, &mine, rows);
    for (unsigned int matrix = 0; matrix < 4; ++matrix) {
        uint16_t parts[2];
        for (unsigned int n = 0; n < 2; ++n) {
            const unsigned int from = is_transposed ? 2 * own + n : group;
            const unsigned int column = is_transposed ? group : 2 * own + n;
            const unsigned char *place = rows[8 * matrix + from] + 2 * column;
            hlo_emulated_range(place, 2, 0);
            __builtin_memcpy(&parts[n], place, 2);
        }
        words[matrix] = (uint32_t)parts[0] | (uint32_t)parts[1] << 16;
    }
}

/* The words of row `row` of A, or of column `column` of B. */
HLO_UNCHECKED static inline uint32_t hlo_word_of_a(const hlo_emulated_fragments *all, int row,
                                                   int word) {
    return all[row % 8 * 4 + word % 4].a[row / 8 + 2 * (word / 4)];
}
HLO_UNCHECKED static inline uint32_t hlo_word_of_b(const hlo_emulated_fragments *all, int column,
                                                   int word) {
    return all[column * 4 + word % 4].b[word / 4];
}

/* D = A B + C: `dot` adds up the products of 8 words. */
template <class T, class F>
HLO_UNCHECKED void hlo_emulated_mma(int line, T *sums, const uint32_t *a, const uint32_t *b, F dot) {
    const unsigned int lane = threadIdx.x % 32u;
    hlo_emulated_fragments own, all[32];
    __builtin_memcpy(own.a, a, sizeof own.a);
    __builtin_memcpy(own.b, b, sizeof own.b);
    hlo_emulated_exchange(line, &own, all);
    for (int n = 0; n < 4; ++n) {
        const int row = (int)lane / 4 + n / 2 * 8, column = 2 * ((int)lane % 4) + n % 2;
        uint32_t left[8], right[8];
        for (int word = 0; word < 8; ++word) {
            left[word] = hlo_word_of_a(all, row, word);
            right[word] = hlo_word_of_b(all, column, word);
        }
        sums[n] = dot(left, right, sums[n]);
    }
}

#endif

/* Moves of neighbouring elements between memory and registers, 16 bytes or less at once.
 *
 *   hlo_line_load_B_S(to, from)    B bytes of elements of S bytes, to an array of the thread
 *   hlo_line_store_B_S(to, from)   from there
 *
 * An array of another library may begin anywhere: what is not aligned goes element by element.
 */
#ifndef HLO_LINES_H
#define HLO_LINES_H

#include "hlo_types.h"

#if defined(__CUDACC__)

#define HLO_LINE_OF(bytes)                            \
    typedef struct {                                  \
        uint32_t words[bytes / 4];                    \
    } __attribute__((aligned(bytes))) hlo_line_##bytes;
HLO_LINE_OF(4)
HLO_LINE_OF(8)
HLO_LINE_OF(16)

#define HLO_LINE(bytes, size, T)                                                       \
    HLO_FUNCTION void hlo_line_load_##bytes##_##size(void *to, const void *from) {     \
        if (((uintptr_t)from & (bytes - 1u)) == 0) {                                   \
            const hlo_line_##bytes line = *(const hlo_line_##bytes *)from;             \
            memcpy(to, &line, bytes);                                                  \
            return;                                                                    \
        }                                                                              \
        for (int n = 0; n < bytes / size; ++n) {                                       \
            const T one = ((const T *)from)[n];                                        \
            memcpy((unsigned char *)to + n * size, &one, size);                        \
        }                                                                              \
    }                                                                                  \
    HLO_FUNCTION void hlo_line_store_##bytes##_##size(void *to, const void *from) {    \
        if (((uintptr_t)to & (bytes - 1u)) == 0) {                                     \
            hlo_line_##bytes line;                                                     \
            memcpy(&line, from, bytes);                                                \
            *(hlo_line_##bytes *)to = line;                                            \
            return;                                                                    \
        }                                                                              \
        for (int n = 0; n < bytes / size; ++n) {                                       \
            T one;                                                                     \
            memcpy(&one, (const unsigned char *)from + n * size, size);                \
            ((T *)to)[n] = one;                                                        \
        }                                                                              \
    }

HLO_LINE(4, 1, uint8_t)
HLO_LINE(8, 1, uint8_t)
HLO_LINE(16, 1, uint8_t)
HLO_LINE(4, 2, uint16_t)
HLO_LINE(8, 2, uint16_t)
HLO_LINE(16, 2, uint16_t)
HLO_LINE(8, 4, uint32_t)
HLO_LINE(16, 4, uint32_t)
HLO_LINE(16, 8, uint64_t)

#endif

#endif

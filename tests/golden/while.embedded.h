/* A compiled HLO module: no allocation, no library beyond string.h, nothing kept between calls.
 *
 * Arrays are row-major, a complex number is two floats, the real part first:
 *
 *     in_start  s32[]
 *     out_0     s32[]
 *     out_1     s32[]
 *
 * workspace: MODULE_WORKSPACE_BYTES bytes, aligned to 8. Returns 0; 1, with nothing done,
 * if the workspace is not aligned. */
#ifndef MODULE_H
#define MODULE_H

#include <stdint.h>
#include <string.h>

#define MODULE_IN_START_BYTES 4
#define MODULE_OUT_0_BYTES 4
#define MODULE_OUT_1_BYTES 4
#define MODULE_WORKSPACE_BYTES 1

#ifdef __cplusplus
extern "C" {
#endif

/* The constants of the program, in module_weights.c. */
#define MODULE_WEIGHTS_BYTES 4
extern const union module_block {
    unsigned char bytes[4];
    uint64_t words;
} module_weights;

int module_run(const int32_t *in_start, int32_t *out_0, int32_t *out_1, void *workspace);

#ifdef __cplusplus
}
#endif

#endif

/* A compiled HLO module: no allocation, no library beyond string.h, nothing kept between calls.
 *
 * Arrays are row-major, a complex number is two floats, the real part first:
 *
 *     in_x  bf16[50,900]
 *     in_i  u64[]
 *     in_j  u64[]
 *     out   bf16[30,700]
 *
 * workspace: MODULE_WORKSPACE_BYTES bytes, aligned to 8. Returns 0; 1, with nothing done,
 * if the workspace is not aligned. */
#ifndef MODULE_H
#define MODULE_H

#include <stdint.h>
#include <string.h>

#define MODULE_IN_X_BYTES 90000
#define MODULE_IN_I_BYTES 8
#define MODULE_IN_J_BYTES 8
#define MODULE_OUT_BYTES 42000
#define MODULE_WORKSPACE_BYTES 1

#ifdef __cplusplus
extern "C" {
#endif

int module_run(const uint16_t *in_x, const uint64_t *in_i, const uint64_t *in_j, uint16_t *out, void *workspace);

#ifdef __cplusplus
}
#endif

#endif

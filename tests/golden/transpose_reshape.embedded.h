/* A compiled HLO module: no allocation, no library beyond string.h, nothing kept between calls.
 *
 * Arrays are row-major, a complex number is two floats, the real part first:
 *
 *     in_x  f32[8,12,128]
 *     out   f32[128,96]
 *
 * workspace: MODULE_WORKSPACE_BYTES bytes, aligned to 8. Returns 0; 1, with nothing done,
 * if the workspace is not aligned. */
#ifndef MODULE_H
#define MODULE_H

#include <stdint.h>
#include <string.h>

#define MODULE_IN_X_BYTES 49152
#define MODULE_OUT_BYTES 49152
#define MODULE_WORKSPACE_BYTES 1

#ifdef __cplusplus
extern "C" {
#endif

int module_run(const float *in_x, float *out, void *workspace);

#ifdef __cplusplus
}
#endif

#endif

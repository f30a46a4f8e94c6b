/* A compiled HLO module: no allocation, no library beyond string.h, nothing kept between calls.
 *
 * Arrays are row-major, a complex number is two floats, the real part first:
 *
 *     in_x  f32[128,1000]
 *     in_y  f32[128,1000]
 *     in_z  f32[128,1000]
 *     out   f32[128]
 *
 * workspace: MODULE_WORKSPACE_BYTES bytes, aligned to 8. Returns 0; 1, with nothing done,
 * if the workspace is not aligned. */
#ifndef MODULE_H
#define MODULE_H

#include <stdint.h>
#include <string.h>

#define MODULE_IN_X_BYTES 512000
#define MODULE_IN_Y_BYTES 512000
#define MODULE_IN_Z_BYTES 512000
#define MODULE_OUT_BYTES 512
#define MODULE_WORKSPACE_BYTES 1

#ifdef __cplusplus
extern "C" {
#endif

int module_run(const float *in_x, const float *in_y, const float *in_z, float *out, void *workspace);

#ifdef __cplusplus
}
#endif

#endif

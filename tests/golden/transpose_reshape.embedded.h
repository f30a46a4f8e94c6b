/* A compiled HLO module: no allocation, no library beyond string.h.
 *
 * workspace: MODULE_WORKSPACE bytes aligned to 8; arrays are row-major; a complex number
 * is two floats, the real part first. */
#ifndef MODULE_H
#define MODULE_H

#include <stdint.h>
#include <string.h>

#define MODULE_WORKSPACE 1

void module_run(const float *argument0, float *result0, unsigned char *workspace, uint64_t seed);

#endif

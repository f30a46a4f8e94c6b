/* A compiled HLO module: no allocation, no library beyond string.h.
 *
 * workspace: MODULE_WORKSPACE bytes aligned to 8; arrays are row-major; a complex number
 * is two floats, the real part first. */
#ifndef MODULE_H
#define MODULE_H

#include <stdint.h>
#include <string.h>

#define MODULE_WORKSPACE 192

void module_run(const int32_t *argument0, int32_t *result0, int32_t *result1, unsigned char *workspace, uint64_t seed);

#endif

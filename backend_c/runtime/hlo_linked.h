/* What takes a compiler long, and is the same in every library, is compiled once for a machine.
 *
 *   HLO_LINKED defined           the unit gets declarations, and is linked with the object
 *   HLO_LINKED_OBJECT defined    the object gets definitions that other units of a library see
 *   neither                      the unit gets definitions of its own
 */
#ifndef HLO_LINKED_H
#define HLO_LINKED_H

#include "hlo_types.h"

#if defined(HLO_LINKED) || defined(HLO_LINKED_OBJECT)
#define HLO_LINKED_PROCEDURE __attribute__((visibility("hidden")))
#else
#define HLO_LINKED_PROCEDURE HLO_PROCEDURE
#endif

#endif

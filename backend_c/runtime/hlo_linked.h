/* What takes a compiler long, and is the same in every library, is compiled once for a machine: an
 * object for each header that includes this one, with which libraries are linked. In that object
 * (HLO_LINKED_OBJECT) the procedures that generated code calls can be seen by the other units of a
 * library, which get their declarations alone (backend_c/native/linked_runtime.py). They are weak,
 * as objects of headers that include one another have the same ones.
 *
 * Everywhere else each unit has procedures of its own.
 */
#ifndef HLO_LINKED_H
#define HLO_LINKED_H

#include "hlo_types.h"

#if defined(HLO_LINKED_OBJECT)
#define HLO_LINKED_PROCEDURE __attribute__((visibility("hidden"), weak))
#else
#define HLO_LINKED_PROCEDURE HLO_PROCEDURE
#endif

#endif

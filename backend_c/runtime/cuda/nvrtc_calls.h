/* The calls of NVRTC (libnvrtc.so), NVIDIA's compiler as a library, with the signatures of nvrtc.h.
 *
 * Python reads them from here. Included after nvrtc.h, any signature that differs is a conflict: a
 * test compiles that where there is an nvrtc.h. */
#ifndef HLO_NVRTC_CALLS_H
#define HLO_NVRTC_CALLS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef __NVRTC_H__
typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;
#endif

const char *nvrtcGetErrorString(nvrtcResult result);
nvrtcResult nvrtcVersion(int *major, int *minor);
nvrtcResult nvrtcCreateProgram(nvrtcProgram *prog, const char *src, const char *name,
                               int numHeaders, const char *const *headers,
                               const char *const *includeNames);
nvrtcResult nvrtcDestroyProgram(nvrtcProgram *prog);
nvrtcResult nvrtcCompileProgram(nvrtcProgram prog, int numOptions, const char *const *options);
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram prog, size_t *logSizeRet);
nvrtcResult nvrtcGetProgramLog(nvrtcProgram prog, char *log);
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram prog, size_t *cubinSizeRet);
nvrtcResult nvrtcGetCUBIN(nvrtcProgram prog, char *cubin);

#ifdef __cplusplus
}
#endif

#endif

/* CUDA's driver on the CPU: the calls of ../cuda/cuda_driver.h, whose cubins are libraries of
 * emulated kernels (cuda_emulation.h, engine.cpp).
 *
 * It is stricter than a GPU where that costs nothing. What a stream is given runs when somebody
 * waits for it and no sooner, so that a result read or memory changed too early is seen; addresses
 * of device memory are no addresses of the host; copies, fills and arguments of kernels must lie in
 * memory that is allocated; handles must be alive; a block has at most 1,024 threads. An error of a
 * kernel is reported by what waits for it, and by all that comes after, as by a GPU. */
#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
#include "../cuda/cuda_driver.h"
#pragma GCC visibility pop
#define HLO_CUDA_ENGINE
#include "cuda_emulation.h"
#undef memcpy
#undef memset

#define HLO_EXPORTED extern "C" __attribute__((visibility("default")))

enum { /* as cuda.h numbers them */
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    STREAM_CAPTURE_UNSUPPORTED = 900,
    STREAM_CAPTURE_UNMATCHED = 903,
    LAUNCH_FAILED = 719,
};

typedef int64_t (*hlo_launch_type)(const hlo_emulated_kernel *, int, uint32_t, uint32_t,
                                   const hlo_emulated_memory *, void **);
typedef std::function<CUresult()> work;

struct CUctx_st {
    int holders;
};
struct CUfunc_st {
    const hlo_emulated_kernel *kernel;
    hlo_launch_type launch;
    unsigned int most_shared; /* bytes that a launch may ask for */
};
struct CUmod_st {
    void *library;
    int file;
    std::map<std::string, CUfunc_st *> functions;
};
struct CUstream_st {
    bool is_apart; /* CU_STREAM_NON_BLOCKING: from the default stream */
    std::vector<work> waiting;
    struct CUgraph_st *captured; /* what takes the work in the stream's stead, if anything */
};
struct CUgraph_st {
    std::vector<work> steps;
};
struct CUgraphExec_st {
    std::vector<work> steps;
};
struct CUevent_st {
    CUstream_st *stream; /* that will reach it, NULL if it is reached */
    bool is_recorded;
    double milliseconds;
};

namespace {

const CUdeviceptr DEVICE = 1ull << 62; /* in no address of the host */

std::recursive_mutex mutex;
bool is_initialized;
CUctx_st primary;
thread_local std::vector<CUcontext> current;
std::set<CUmodule> modules;
std::set<CUfunction> functions;
std::set<CUstream> streams;
std::set<CUevent> events;
std::set<CUgraph> graphs;
std::set<CUgraphExec> executable_graphs;
CUstream_st default_stream;
std::map<CUdeviceptr, size_t> allocated; /* bytes by start */
std::map<CUdeviceptr, char *> blocks;    /* what to free */
CUresult failure;                        /* of a kernel: the context is lost */
/* What the next launch is told beyond what a GPU is: its number, and the sizes of its arrays. */
int told_number;
std::vector<int64_t> told_elements;

CUresult usable() {
    if (!is_initialized) return NOT_INITIALIZED;
    if (current.empty() || current.back() != &primary || !primary.holders) return INVALID_CONTEXT;
    return failure;
}

#define HLO_REQUIRE_USABLE                                   \
    std::lock_guard<std::recursive_mutex> locked(mutex);     \
    if (const CUresult why = usable()) return why

/* The bytes from an address of the device to the end of its allocation; -1 if it is in none. */
int64_t left_at(CUdeviceptr address) {
    auto after = allocated.upper_bound(address);
    if (after == allocated.begin()) return -1;
    --after;
    const CUdeviceptr end = after->first + after->second;
    return address <= end ? (int64_t)(end - address) : -1;
}

bool is_allocated(CUdeviceptr start, size_t bytes) {
    return left_at(start) >= (int64_t)bytes;
}

/* Memory of the device is no memory of the host, whatever the caller takes it for. */
bool is_host(const void *memory, size_t bytes) {
    return !bytes || (memory && !((uintptr_t)memory & DEVICE) &&
                      left_at((CUdeviceptr)(uintptr_t)memory | DEVICE) <= 0);
}

char *memory_of(CUdeviceptr address) { return (char *)(uintptr_t)(address & ~DEVICE); }

double now_in_milliseconds() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

CUstream_st *stream_of(CUstream stream) {
    if ((uintptr_t)stream <= 2) return &default_stream; /* 1 and 2 are names of default streams */
    return streams.count(stream) ? stream : NULL;
}

/* Does what a stream was given; the default stream waits for all that are not apart from it. */
CUresult finish(CUstream_st *stream) {
    std::vector<work> waiting;
    if (stream == &default_stream) {
        for (CUstream one : streams) {
            if (!one->is_apart) finish(one);
        }
    }
    waiting.swap(stream->waiting);
    for (const work &one : waiting) {
        if (failure) return failure;
        failure = one();
    }
    return failure;
}

CUresult finish_all() {
    for (CUstream stream : streams) finish(stream);
    return finish(&default_stream);
}

CUresult given_to(CUstream stream, work one) {
    CUstream_st *found = stream_of(stream);
    if (!found) return INVALID_HANDLE;
    (found->captured ? found->captured->steps : found->waiting).push_back(one);
    return SUCCESS;
}

/* The bytes of an ELF file, which ends with the table of its sections. */
size_t size_of_image(const void *image) {
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)image;
    if (!image || memcmp(head->e_ident, ELFMAG, SELFMAG)) return 0;
    return head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
}

std::string path_of(int file) { return "/proc/self/fd/" + std::to_string(file); }

/* Loads an image. Its file stays open: the loader knows libraries by the names of their files. */
void *loaded(const void *image, size_t bytes, int *file) {
    *file = memfd_create("emulated.cubin", MFD_CLOEXEC);
    if (*file < 0) return NULL;
    if (write(*file, image, bytes) == (ssize_t)bytes) {
        if (void *library = dlopen(path_of(*file).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
    close(*file);
    return NULL;
}

/* A launch that was given its arguments: their values are those of the call. */
struct launch {
    CUfunc_st function;
    int number;
    uint32_t blocks, threads;
    std::vector<uint64_t> values;
    std::vector<hlo_emulated_memory> memory;
};

CUresult run(launch &one) {
    std::vector<void *> arguments;
    for (uint64_t &value : one.values) arguments.push_back(&value);
    return one.function.launch(one.function.kernel, one.number, one.blocks, one.threads,
                               one.memory.data(), arguments.data())
               ? LAUNCH_FAILED
               : SUCCESS;
}

/* Reads the arguments. An array must lie in memory of the device for as long as it was told; one of
 * which nothing was told ends where the next one begins, or its allocation. */
CUresult with_arguments(launch &one, void **given) {
    const hlo_emulated_kernel *kernel = one.function.kernel;
    std::set<uint64_t> starts;
    if (kernel->count && !given) return INVALID_VALUE;
    for (int n = 0; n < kernel->count; ++n) {
        const hlo_emulated_parameter how = kernel->parameters[n];
        uint64_t value = 0;
        if (!given[n]) return INVALID_VALUE;
        /* By value there are seeds alone, of 8 bytes (host_plan.py). */
        memcpy(&value, given[n], how.passing == HLO_BY_VALUE ? how.size : sizeof value);
        if (how.passing != HLO_BY_VALUE) starts.insert(value);
        one.values.push_back(value);
    }
    for (int n = 0; n < kernel->count; ++n) {
        const hlo_emulated_parameter how = kernel->parameters[n];
        hlo_emulated_memory memory = {NULL, 0, how.size, how.passing == HLO_TO_WRITE};
        uint64_t &value = one.values[n];
        if (how.passing != HLO_BY_VALUE) {
            const int64_t left = (value & DEVICE) ? left_at(value) : -1;
            const int64_t size = how.size;
            if (left < 0) return INVALID_VALUE;
            if (n < (int)told_elements.size()) {
                memory.elements = told_elements[n];
            } else {
                const auto next = starts.upper_bound(value);
                const bool is_between = next != starts.end() && (int64_t)(*next - value) < left;
                memory.elements = (is_between ? (int64_t)(*next - value) : left) / size;
            }
            if (left < memory.elements * size) return INVALID_VALUE;
            value &= ~DEVICE;
            memory.data = (const void *)(uintptr_t)value;
        }
        one.memory.push_back(memory);
    }
    return SUCCESS;
}

}  // namespace

/* ---- what the emulation adds ---- */

/* Tells the next launch its number, and the elements of its arrays in order. */
HLO_EXPORTED void hlo_emulated_tell(int number, const int64_t *elements, int64_t count) {
    told_number = number;
    told_elements.assign(elements, elements + count);
}

/* Returns a symbol of a module's library. */
HLO_EXPORTED void *hlo_emulated_symbol(CUmodule module, const char *name) {
    return modules.count(module) ? dlsym(module->library, name) : NULL;
}

/* Makes the context usable again after an error of a kernel; what waits is not done. */
HLO_EXPORTED void hlo_emulated_forgive(void) {
    for (CUstream stream : streams) stream->waiting.clear();
    default_stream.waiting.clear();
    failure = SUCCESS;
}

/* Counts what is alive: allocations, modules, streams, events and graphs. */
HLO_EXPORTED int64_t hlo_emulated_alive(void) {
    return (int64_t)(allocated.size() + modules.size() + streams.size() + events.size() +
                     graphs.size() + executable_graphs.size());
}

/* Gives a stream work of a library: a function of the host that takes a copy of some data. */
HLO_EXPORTED CUresult hlo_emulated_enqueue(CUstream stream, CUresult (*function)(void *),
                                           const void *data, size_t bytes) {
    HLO_REQUIRE_USABLE;
    std::vector<char> kept((const char *)data, (const char *)data + bytes);
    return given_to(stream, [function, kept]() mutable { return function(kept.data()); });
}

/* Returns the memory behind an address of the device; NULL if it has fewer bytes there. */
HLO_EXPORTED void *hlo_emulated_bytes(const void *address, size_t bytes) {
    std::lock_guard<std::recursive_mutex> locked(mutex);
    const CUdeviceptr start = (CUdeviceptr)(uintptr_t)address;
    return (start & DEVICE) && is_allocated(start, bytes) ? memory_of(start) : NULL;
}

/* Makes a function of a kernel in this program, for the runtime API. */
CUfunction hlo_emulated_function(const hlo_emulated_kernel *kernel, hlo_launch_type launch) {
    CUfunction made = new CUfunc_st{kernel, launch, 48u << 10};
    functions.insert(made);
    return made;
}

/* ---- the driver ---- */

extern "C" {

CUresult cuInit(unsigned int flags) {
    if (flags) return INVALID_VALUE;
    is_initialized = true;
    return SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
    *version = 13000;
    return SUCCESS;
}

static const struct {
    CUresult error;
    const char *name, *text;
} errors[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "the capture was not initiated in this stream"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

CUresult cuGetErrorName(CUresult error, const char **name) {
    for (const auto &one : errors) {
        if (one.error != error) continue;
        *name = one.name;
        return SUCCESS;
    }
    *name = NULL;
    return INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    for (const auto &one : errors) {
        if (one.error != error) continue;
        *text = one.text;
        return SUCCESS;
    }
    *text = NULL;
    return INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count) {
    if (!is_initialized) return NOT_INITIALIZED;
    *count = 1;
    return SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    if (!is_initialized) return NOT_INITIALIZED;
    if (ordinal) return INVALID_DEVICE;
    *device = 0;
    return SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    if (!is_initialized) return NOT_INITIALIZED;
    if (device) return INVALID_DEVICE;
    if (length < 1) return INVALID_VALUE;
    strncpy(name, "emulated threads", (size_t)length);
    name[length - 1] = 0;
    return SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    if (!is_initialized) return NOT_INITIALIZED;
    if (device) return INVALID_DEVICE;
    switch (attribute) {
        case 1: *value = 1024; break;      /* threads of a block */
        case 8: *value = 48 << 10; break;  /* shared memory of a block */
        case 16: *value = 2; break;        /* multiprocessors */
        case 75: *value = 9; break;        /* compute capability */
        case 76: *value = 0; break;
        default: return INVALID_VALUE;
    }
    return SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    if (!is_initialized) return NOT_INITIALIZED;
    if (device) return INVALID_DEVICE;
    ++primary.holders;
    *context = &primary;
    return SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (device) return INVALID_DEVICE;
    if (!primary.holders) return INVALID_CONTEXT;
    --primary.holders;
    return SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    if (!is_initialized) return NOT_INITIALIZED;
    if (context != &primary || !primary.holders) return INVALID_CONTEXT;
    current.push_back(context);
    return SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    if (current.empty()) return INVALID_CONTEXT;
    if (context) *context = current.back();
    current.pop_back();
    return SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    HLO_REQUIRE_USABLE;
    const size_t bytes = size_of_image(image);
    int file = -1;
    void *library = bytes ? loaded(image, bytes, &file) : NULL;
    if (!library) return INVALID_IMAGE;
    auto launch = (hlo_launch_type)dlsym(library, "hlo_emulation_launch");
    auto kernel = (const hlo_emulated_kernel *)dlsym(library, "hlo_emulated_kernels");
    if (!launch || !kernel) return INVALID_IMAGE;
    *module = new CUmod_st{library, file, {}};
    for (; kernel->name; ++kernel) {
        (*module)->functions[kernel->name] = hlo_emulated_function(kernel, launch);
    }
    modules.insert(*module);
    return SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
    HLO_REQUIRE_USABLE;
    if (!modules.erase(module)) return INVALID_HANDLE;
    finish_all();
    for (auto &one : module->functions) {
        functions.erase(one.second);
        delete one.second;
    }
    dlclose(module->library);
    /* A library that the loader keeps would be taken for the next one of that name. */
    if (!dlopen(path_of(module->file).c_str(), RTLD_NOW | RTLD_NOLOAD)) close(module->file);
    delete module;
    return failure;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    HLO_REQUIRE_USABLE;
    if (!modules.count(module)) return INVALID_HANDLE;
    auto found = module->functions.find(name);
    if (found == module->functions.end()) return NOT_FOUND;
    *function = found->second;
    return SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    HLO_REQUIRE_USABLE;
    if (!functions.count(function)) return INVALID_HANDLE;
    /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, of compute capability 9.0 */
    if (attribute != 8 || value < 0 || value > 227 << 10) return INVALID_VALUE;
    function->most_shared = (unsigned int)value;
    return SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    HLO_REQUIRE_USABLE;
    *free = *total = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGE_SIZE);
    return SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    HLO_REQUIRE_USABLE;
    if (!bytes) return INVALID_VALUE;
    void *memory = NULL;
    if (posix_memalign(&memory, 256, bytes)) return OUT_OF_MEMORY;
    /* Nothing is known of memory that nobody wrote: no zeros. */
    memset(memory, 0xa5, bytes < 65536 ? bytes : 65536);
    *address = (CUdeviceptr)(uintptr_t)memory | DEVICE;
    allocated[*address] = bytes;
    blocks[*address] = (char *)memory;
    return SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    std::lock_guard<std::recursive_mutex> locked(mutex);
    if (!allocated.count(address)) return INVALID_VALUE;
    finish_all();
    free(blocks[address]);
    allocated.erase(address);
    blocks.erase(address);
    return SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address) {
    HLO_REQUIRE_USABLE;
    /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
    if (attribute != 9 || left_at(address) <= 0) return INVALID_VALUE;
    *(int *)data = 0;
    return SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    HLO_REQUIRE_USABLE;
    if (!is_allocated(to, bytes) || !is_host(from, bytes)) return INVALID_VALUE;
    return given_to(stream, [=]() {
        memcpy(memory_of(to), from, bytes);
        return (CUresult)SUCCESS;
    });
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    HLO_REQUIRE_USABLE;
    if (!is_allocated(from, bytes) || !is_host(to, bytes)) return INVALID_VALUE;
    return given_to(stream, [=]() {
        memcpy(to, memory_of(from), bytes);
        return (CUresult)SUCCESS;
    });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    HLO_REQUIRE_USABLE;
    /* CUDA does not define copies between ranges that overlap. */
    const bool overlap = to < from + bytes && from < to + bytes;
    if (!is_allocated(to, bytes) || !is_allocated(from, bytes) || overlap) return INVALID_VALUE;
    return given_to(stream, [=]() {
        memcpy(memory_of(to), memory_of(from), bytes);
        return (CUresult)SUCCESS;
    });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
    HLO_REQUIRE_USABLE;
    if (!is_allocated(to, bytes)) return INVALID_VALUE;
    return given_to(stream, [=]() {
        memset(memory_of(to), value, bytes);
        return (CUresult)SUCCESS;
    });
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
    HLO_REQUIRE_USABLE;
    if (flags > 1) return INVALID_VALUE;
    *stream = new CUstream_st{flags == 1, {}, NULL};
    streams.insert(*stream);
    return SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    std::lock_guard<std::recursive_mutex> locked(mutex);
    if (!streams.count(stream)) return INVALID_HANDLE;
    finish(stream);
    streams.erase(stream);
    delete stream;
    return SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
    HLO_REQUIRE_USABLE;
    CUstream_st *found = stream_of(stream);
    if (!found) return INVALID_HANDLE;
    if (found->captured) return STREAM_CAPTURE_UNSUPPORTED;
    return finish(found);
}

CUresult cuEventCreate(CUevent *event, unsigned int flags) {
    HLO_REQUIRE_USABLE;
    if (flags > 7) return INVALID_VALUE;
    *event = new CUevent_st{NULL, false, 0};
    events.insert(*event);
    return SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
    std::lock_guard<std::recursive_mutex> locked(mutex);
    if (!events.count(event)) return INVALID_HANDLE;
    /* What waits there would write to the event. */
    if (event->stream) finish(event->stream);
    events.erase(event);
    delete event;
    return SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    HLO_REQUIRE_USABLE;
    if (!events.count(event) || !stream_of(stream)) return INVALID_HANDLE;
    event->stream = stream_of(stream);
    event->is_recorded = true;
    return given_to(stream, [=]() {
        event->milliseconds = now_in_milliseconds();
        event->stream = NULL;
        return (CUresult)SUCCESS;
    });
}

CUresult cuEventSynchronize(CUevent event) {
    HLO_REQUIRE_USABLE;
    if (!events.count(event)) return INVALID_HANDLE;
    return event->stream ? finish(event->stream) : (CUresult)SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
    HLO_REQUIRE_USABLE;
    if (flags) return INVALID_VALUE;
    if (!events.count(event)) return INVALID_HANDLE;
    /* One that is reached, or was never recorded, holds nothing up, as in CUDA. */
    CUstream_st *awaited = event->stream;
    if (!awaited || awaited == stream_of(stream)) return SUCCESS;
    return given_to(stream, [=]() { return finish(awaited); });
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    HLO_REQUIRE_USABLE;
    if (!events.count(start) || !events.count(end)) return INVALID_HANDLE;
    if (!start->is_recorded || !end->is_recorded) return INVALID_HANDLE;
    if (start->stream || end->stream) return NOT_READY;
    *milliseconds = (float)(end->milliseconds - start->milliseconds);
    return SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared, CUstream stream,
                        void **arguments, void **extra) {
    HLO_REQUIRE_USABLE;
    if (!functions.count(function)) return INVALID_HANDLE;
    const bool is_flat = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
    if (!is_flat || !grid_x || grid_x > 0x7fffffffu || !block_x || block_x > 1024 || extra ||
        shared > function->most_shared) {
        return INVALID_VALUE;
    }
    launch one = {*function, told_number, grid_x, block_x, {}, {}};
    const CUresult wrong = with_arguments(one, arguments);
    told_number = 0;
    told_elements.clear();
    if (wrong) return wrong;
    return given_to(stream, [one]() mutable { return run(one); });
}
/* Graphs: what a stream is given from here on is kept, to be given to streams as often as wanted. */
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    HLO_REQUIRE_USABLE;
    if ((uintptr_t)stream <= 2) return STREAM_CAPTURE_UNSUPPORTED;
    CUstream_st *found = stream_of(stream);
    if (!found) return INVALID_HANDLE;
    if (mode < 0 || mode > 2 || found->captured) return INVALID_VALUE;
    found->captured = new CUgraph_st();
    graphs.insert(found->captured);
    return SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    HLO_REQUIRE_USABLE;
    CUstream_st *found = stream_of(stream);
    if (!found) return INVALID_HANDLE;
    if (!found->captured) return STREAM_CAPTURE_UNMATCHED;
    *graph = found->captured;
    found->captured = NULL;
    return SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph graph, unsigned long long flags) {
    HLO_REQUIRE_USABLE;
    if (!graphs.count(graph) || flags) return INVALID_VALUE;
    *made = new CUgraphExec_st{graph->steps};
    executable_graphs.insert(*made);
    return SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
    HLO_REQUIRE_USABLE;
    if (!executable_graphs.count(graph)) return INVALID_VALUE;
    const std::vector<work> steps = graph->steps;
    return given_to(stream, [steps]() {
        for (const work &one : steps) {
            if (const CUresult wrong = one()) return wrong;
        }
        return (CUresult)SUCCESS;
    });
}

CUresult cuGraphExecDestroy(CUgraphExec graph) {
    std::lock_guard<std::recursive_mutex> locked(mutex);
    if (!executable_graphs.erase(graph)) return INVALID_VALUE;
    delete graph; /* what streams were given of it they have a copy of */
    return SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
    std::lock_guard<std::recursive_mutex> locked(mutex);
    if (!graphs.erase(graph)) return INVALID_VALUE;
    delete graph;
    return SUCCESS;
}
}

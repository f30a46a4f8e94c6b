"""Kernels of CUDA with a fault each, and sound ones, for the emulation to tell apart.

Each runs in blocks of 64 threads, two of them, on a0 of 64 floats and r0 of 128, of which r0 has
something in it.
"""

FAULTS = {
    # barriers
    "a barrier inside of a branch": (
        "barrier not reached",
        "if (threadIdx.x < 40) { __syncthreads(); } r0[g] = a0[t];",
    ),
    "a thread that leaves before the barrier": (
        "barrier not reached",
        "if (threadIdx.x == 63) { return; } __syncthreads(); r0[g] = a0[t];",
    ),
    "a barrier in a loop of unequal length": (
        "barrier not reached",
        "for (int64_t i = 0; i < t; ++i) { __syncthreads(); } r0[g] = a0[t];",
    ),
    "different barriers of two branches": (
        "different barriers",
        "if (t < 32) {\n__syncthreads();\n} else {\n__syncthreads();\n} r0[g] = a0[t];",
    ),
    "a warp that waits for a lane at a barrier": (
        "barrier not reached",
        "if (t == 3) { __syncthreads(); } else { __syncwarp(); __syncthreads(); }",
    ),
    "lanes that wait for each other's masks": (
        "warp waits",
        "if (t & 1) {\n__syncwarp(3u);\n} else {\n__syncwarp(7u);\n}",
    ),
    "a shuffle from a lane that is not asked": (
        "lane undefined",
        "if (t < 16) { r0[g] = __shfl_sync(0xffffu, a0[t], (int)t + 16); }",
    ),
    # shared memory
    "a shared array read before its barrier": (
        "read race",
        "s[t] = a0[t]; r0[g] = s[63 - t];",
    ),
    "a sum in a tree without barriers": (
        "race",
        "s[t] = a0[t]; for (int64_t n = 32; n; n /= 2) {\nif (t < n) { s[t] += s[t + n]; }\n}"
        "if (t == 0) { r0[g] = s[0]; }",
    ),
    "a shared array written before all have read it": (
        "write race",
        "s[t] = a0[t]; __syncthreads(); r0[g] = s[63 - t]; s[t] = 1.0f;",
    ),
    "two threads that write one shared element": (
        "writes race",
        "s[t / 2] = a0[t]; __syncthreads(); r0[g] = s[t / 2];",
    ),
    "all threads write the same to one shared element": (
        "writes race",
        "s[0] = a0[0]; __syncthreads(); r0[g] = s[0];",
    ),
    "a warp's barrier where warps meet": (
        "read race",
        "s[t] = a0[t]; __syncwarp(); r0[g] = s[63 - t];",
    ),
    "shared memory that nobody wrote": (
        "uninitialised",
        "if (t < 63) { s[t] = a0[t]; } __syncthreads(); r0[g] = s[t];",
    ),
    "shared memory that another block wrote": (
        "uninitialised",
        "if (blockIdx.x == 0) { s[t] = a0[t]; } __syncthreads(); r0[g] = s[t];",
    ),
    "beyond a shared array": (
        "out of bounds",
        "s[t + 1] = a0[t]; __syncthreads(); r0[g] = s[t + 1];",
    ),
    "before a shared array": (
        "out of bounds",
        "s[t - 1] = a0[t]; __syncthreads(); r0[g] = s[t - 1];",
    ),
    # copies that are not waited for
    "a copy that nobody waits for": (
        "copy not awaited",
        "hlo_block_copy_4(&s[t], &a0[t], true); __syncthreads(); r0[g] = s[63 - t];",
    ),
    "a copy that another thread waits for": (
        "copy not awaited",
        "hlo_block_copy_4(&s[t], &a0[t], true); if (t < 32) { hlo_block_copies_done(); }"
        " __syncthreads(); r0[g] = s[63 - t];",
    ),
    "a copy of a group that is not waited for": (
        "copy not awaited",
        "hlo_block_copy_4(&s[t], &a0[t], true); hlo_block_copies_group();"
        " hlo_block_copies_but_1(); __syncthreads(); r0[g] = s[63 - t];",
    ),
    "a copy read before the barrier": (
        "read race",
        "hlo_block_copy_4(&s[t], &a0[t], true); hlo_block_copies_done(); r0[g] = s[63 - t];",
    ),
    "a copy to what others still read": (
        "write race",
        "s[t] = a0[t]; __syncthreads(); r0[g] = s[63 - t]; hlo_block_copy_4(&s[t], &a0[t], true);"
        " hlo_block_copies_done();",
    ),
    "a copy from beyond the argument": (
        "out of bounds",
        "hlo_block_copy_4(&s[t], &a0[t + 1], true); hlo_block_copies_done();",
    ),
    # global memory
    "blocks that write the same elements": ("writes race", "r0[t] = a0[t];"),
    "a block that reads what another writes": (
        "read race",
        "r0[g] = a0[t]; if (blockIdx.x == 1) { r0[g] += r0[t]; }",
    ),
    "a block that writes what another reads": (
        "write race",
        "r0[g] = r0[64 + t];",
    ),
    "a neighbour's element without a barrier": (
        "read race",
        "r0[g] = a0[t]; if (t) { r0[g] = r0[g - 1]; }",
    ),
    "all threads add to one element": ("writes race", "if (t < 2) { r0[127] += a0[t]; }"),
    "atomics beside a plain write": (
        "writes race",
        "unsigned *n = (unsigned *)r0; if (g == 0) { n[0] = 0u; } else { atomicAdd(n, 1u); }",
    ),
    "beyond the argument": ("out of bounds", "r0[g] = a0[t + 1];"),
    "before the result": ("out of bounds", "r0[g - 1] = a0[t];"),
    "far away": ("out of bounds", "r0[g] = a0[t * 1000000000];"),
    "a write to an argument": ("input written", "((float *)a0)[t] = 0.0f; r0[g] = 1.0f;"),
    "a copy that is too long": (
        "out of bounds",
        "if (g == 0) { memcpy(r0, a0, (size_t)(gridDim.x * 256 - 128)); }",
    ),
    "the stack of another thread": (
        "stack of another thread",
        "float own[4] = {a0[t], 0.0f, 0.0f, 0.0f}; p[t] = own; __syncthreads();"
        "r0[g] = p[63 - t][t & 1];",
    ),
}
SOUND = {
    "a map": "r0[g] = a0[t];",
    "a reversal through shared memory": "s[t] = a0[t]; __syncthreads(); r0[g] = s[63 - t];",
    "a sum in a tree": "s[t] = a0[t]; for (int64_t n = 32; n; n /= 2) { __syncthreads();"
    " if (t < n) { s[t] += s[t + n]; } } if (t == 0) { r0[g] = s[0]; }",
    "a reversal in each warp": "s[t] = a0[t]; __syncwarp(); r0[g] = s[t ^ 31];"
    " __syncwarp(); s[t] = 1.0f;",
    "a sum by shuffles": "float x = a0[t]; for (int n = 16; n; n /= 2) {"
    " x += __shfl_down_sync(0xffffffffu, x, n); } r0[g] = x;",
    "some lanes alone": "if (t < 5) { r0[g] = __shfl_xor_sync(31u, a0[t], t == 4 ? 0 : 1); }",
    "votes": "const unsigned n = __ballot_sync(0xffffffffu, a0[t] > 0.0f);"
    " r0[g] = __any_sync(0xffffffffu, n != 0u) && __all_sync(0xffffffffu, 1) ? 1.0f : (float)n;",
    "atomics of all threads": "unsigned *n = (unsigned *)r0; atomicAdd(n, 1u);"
    " atomicMax(n + 1, 3u);",
    "one element read by all, then written": "const float x = r0[127 - 64 * blockIdx.x];"
    " __syncthreads(); if (t == 0) { r0[127 - 64 * blockIdx.x] = x + 1.0f; }",
    "uniform loops of barriers": "for (int n = 0; n < 3; ++n) { if (t == n) { s[0] = a0[t]; }"
    " __syncthreads(); r0[g] = s[0]; __syncthreads(); }",
    "copies": "hlo_block_copy_4(&s[t], &a0[t + 64], false); hlo_block_copies_done();"
    " __syncthreads(); r0[g] = s[63 - t]; __syncthreads(); if (t < 16) {"
    " hlo_block_copy_line_4(&s[4 * t], &a0[4 * t], 4); } hlo_block_copies_done(); __syncthreads();"
    " r0[g] += s[63 - t];",
    "copies in groups": "hlo_block_copy_4(&s[t], &a0[t], true); hlo_block_copies_group();"
    " hlo_block_copies_group(); hlo_block_copies_but_1(); __syncthreads(); r0[g] = s[63 - t];",
    "no shared array at all": "if (t < 3) { r0[g] = 1.0f; }",
}


def unit() -> str:
    """The kernels of both."""
    bodies = [*(body for _, body in FAULTS.values()), *SOUND.values()]
    kernels = "".join(map(_kernel, range(len(bodies)), bodies))
    return f'#include "hlo_kernels.h"\n#include "hlo_block_copy.h"\n{kernels}'


def _kernel(number: int, body: str) -> str:
    return (
        f'extern "C" __global__ void kernel_{number}(const float *HLO_RESTRICT a0,'
        " float *HLO_RESTRICT r0) {\n"
        "    __shared__ __align__(16) float s[64];\n    __shared__ float *p[64];\n"
        "    const int64_t t = threadIdx.x, g = (int64_t)blockIdx.x * blockDim.x + t;\n"
        f"    (void)s; (void)p; (void)g;\n    {body}\n}}\n"
    )

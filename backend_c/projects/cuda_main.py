"""Render ``main.cu``, which runs a module on recorded arguments and compares bits, and its data.

It exits with 0 if every result has the expected bits (any NaN stands for any other), with the
number of the first result that differs, counted from 1, or with 255 if a call fails.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from backend_c.cuda.host_plan import HostPlan
from backend_c.lower.buffers import ALIGNMENT
from backend_c.projects.cuda_launch import public_type
from backend_c.projects.cuda_names import ProjectNames
from backend_c.projects.embedded_check import INFINITY, SAME, Leaf, recorded_leaves
from hlo.module import Module

_PROLOGUE = """\
/* Runs the module on the arguments of recorded.bin and compares the results, bit by bit.
 *
 *     main [DIRECTORY [TIMES]]
 *
 * DIRECTORY has recorded.bin and constants.bin. With TIMES, prints the least time of so many runs.
 * The status is 0, or the number of the first result that differs (from 1), or 255. */
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>
#include <vector>

"""
_MAIN = """\
struct recorded {
    size_t start, bytes;
};

/* `there`: as many bytes, not 0 where a bounded array has elements; 0 if it is static. An element
 * of `size` bytes is a NaN if its bits under `mask` are above `infinity`. */
struct expectation {
    size_t start, there, bytes;
    uint32_t size;
    uint64_t mask, infinity;
};

const char *const what_failed = "%s: %s\\n";

#define REQUIRE(call)                                                        \\
    do {                                                                     \\
        const cudaError_t error = (cudaError_t)(call);                       \\
        if (error != cudaSuccess) {                                          \\
            fprintf(stderr, what_failed, #call, cudaGetErrorString(error));  \\
            return 255;                                                      \\
        }                                                                    \\
    } while (0)

"""
_READ = """\
/* Reads a file; false if it is not of this size. */
bool read_file(const std::string &name, std::vector<unsigned char> *data) {
    FILE *opened = fopen(name.c_str(), "rb");
    if (!opened) return false;
    const bool is_whole = fread(data->data(), 1, data->size(), opened) == data->size();
    return fclose(opened) == 0 && is_whole;
}

"""
_BODY = """\
int run(const std::string &directory, int times) {
    std::vector<unsigned char> data(RECORDED_BYTES);
    if (!read_file(directory + "/recorded.bin", &data)) {
        fprintf(stderr, "%s/recorded.bin: cannot be read, or is not of this module\\n",
                directory.c_str());
        return 255;
    }
    cudaStream_t stream;
    REQUIRE(cudaStreamCreate(&stream));
    void *memory[ARGUMENTS + RESULTS + 2] = {0};
    for (int n = 0; n < ARGUMENTS; ++n) {
        REQUIRE(cudaMalloc(&memory[n], arguments[n].bytes ? arguments[n].bytes : 1));
        REQUIRE(cudaMemcpyAsync(memory[n], data.data() + arguments[n].start, arguments[n].bytes,
                                cudaMemcpyHostToDevice, stream));
    }
    for (int n = 0; n < RESULTS; ++n) {
        REQUIRE(cudaMalloc(&memory[ARGUMENTS + n], results[n].bytes ? results[n].bytes : 1));
    }
    void *&workspace = memory[ARGUMENTS + RESULTS];
    REQUIRE(cudaMalloc(&workspace, MODULE_WORKSPACE_BYTES));
@CONSTANTS@
    REQUIRE(@CALL@);
    std::vector<std::vector<unsigned char>> found(RESULTS);
    for (int n = 0; n < RESULTS; ++n) {
        found[(size_t)n].resize(results[n].bytes + 1);
        REQUIRE(cudaMemcpyAsync(found[(size_t)n].data(), memory[ARGUMENTS + n], results[n].bytes,
                                cudaMemcpyDeviceToHost, stream));
    }
    REQUIRE(cudaStreamSynchronize(stream));
    float least = 0;
    for (int n = 0; n < times; ++n) {
        cudaEvent_t start, end;
        float milliseconds = 0;
        REQUIRE(cudaEventCreate(&start));
        REQUIRE(cudaEventCreate(&end));
        REQUIRE(cudaEventRecord(start, stream));
        REQUIRE(@CALL@);
        REQUIRE(cudaEventRecord(end, stream));
        REQUIRE(cudaStreamSynchronize(stream));
        REQUIRE(cudaEventElapsedTime(&milliseconds, start, end));
        least = n == 0 || milliseconds < least ? milliseconds : least;
        REQUIRE(cudaEventDestroy(start));
        REQUIRE(cudaEventDestroy(end));
    }
    if (times) printf("%.1f us\\n", (double)least * 1e3);
    for (void *one : memory) {
        if (one) REQUIRE(cudaFree(one));
    }
    REQUIRE(cudaStreamDestroy(stream));
    for (int n = 0; n < RESULTS; ++n) {
        const expectation &one = results[n];
        const unsigned char *there = one.there ? data.data() + one.there : 0;
        if (!same(found[(size_t)n].data(), data.data() + one.start, there, one.bytes,
                  one.size, one.mask, one.infinity)) {
            fprintf(stderr, "result %d has other bits\\n", n);
            return n < 253 ? n + 1 : 254;
        }
    }
    return 0;
}

}  // namespace

int main(int count, char **words) {
    return run(count > 1 ? words[1] : ".", count > 2 ? atoi(words[2]) : 0);
}
"""
_LOADED = """\
    void *&constants = memory[ARGUMENTS + RESULTS + 1];
    REQUIRE(cudaMalloc(&constants, MODULE_CONSTANT_BYTES));
    REQUIRE(module_load_constants((directory + "/constants.bin").c_str(), constants, stream));"""


def check_files(
    host: HostPlan,
    names: ProjectNames,
    module: Module,
    arguments: Sequence[Any],
    expected: Any,
    seed: int,
) -> dict[str, bytes]:
    """Render ``main.cu`` and ``recorded.bin``; ``expected`` is the value for ``arguments``."""
    parameters = [p.shape for p in module.entry.parameters]
    pairs = zip(parameters, arguments, strict=True)
    given = [leaf for p, a in pairs for leaf in recorded_leaves(p, a)]
    wanted = recorded_leaves(module.entry.root_instruction.shape, expected)
    data = bytearray(ALIGNMENT)  # so that 0 is no place
    inputs = [f"{{{_placed(data, leaf.data)}, {len(leaf.data)}}}" for leaf in given]
    outputs = [_expectation(data, leaf) for leaf in wanted]
    tables = _table("recorded", "arguments", inputs, "{0, 0}")
    tables += _table("expectation", "results", outputs, "{0, 0, 0, 0, 0, 0}")
    sizes = f"const int ARGUMENTS = {len(given)}, RESULTS = {len(wanted)};\n"
    sizes += f"const size_t RECORDED_BYTES = {len(data)};\n\n"
    body = _BODY.replace("@CALL@", _call(host, len(given), seed))
    body = body.replace("@CONSTANTS@", _LOADED if host.constants else "")
    # Unlike on a microcontroller, a result may have 4 GiB.
    same = SAME.replace("static int same", "int same")
    same = re.sub("uint32_t (bytes|start)", r"size_t \1", same)
    text = f"{_PROLOGUE}namespace {{\n\n{_MAIN}{sizes}{tables}{same}\n{_READ}{body}"
    return {"main.cu": names.begun(text).encode(), "recorded.bin": bytes(data)}


def _placed(data: bytearray, one: bytes) -> int:
    """Append bytes at an aligned offset and return that."""
    data.extend(b"\0" * (-len(data) % ALIGNMENT))
    start = len(data)
    data.extend(one)
    return start


def _expectation(data: bytearray, leaf: Leaf) -> str:
    # Types without NaN, or with one, are compared byte by byte: no mask is set.
    size, mask, infinity = INFINITY.get(leaf.shape.element_type.name, (1, 0, 0))
    start = _placed(data, leaf.data)
    there = _placed(data, leaf.there) if leaf.there else 0
    return f"{{{start}, {there}, {len(leaf.data)}, {size}, {mask}u, {infinity}u}}"


def _table(kind: str, name: str, rows: Sequence[str], none: str) -> str:
    listed = "".join(f"    {row},\n" for row in rows or [none])
    return f"const {kind} {name}[] = {{\n{listed}}};\n\n"


def _call(host: HostPlan, given: int, seed: int) -> str:
    """Render the call of the module."""
    words = [
        f"static_cast<const {public_type(s)} *>(memory[{n}])" for n, s in enumerate(host.arguments)
    ]
    words += [
        f"static_cast<{public_type(s)} *>(memory[{given + n}])" for n, s in enumerate(host.results)
    ]
    words += ["constants"] * bool(host.constants)
    words += ["workspace", *[f"{seed}u"] * host.uses_seed, "stream"]
    return f"module_run({', '.join(words)})"

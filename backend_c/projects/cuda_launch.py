"""Render the host plan of a module as C++: ``launch.cu``, its header ``module.h``, a kernel
table.

What is written here of names that begin with ``module`` is another name where the project has one
(:class:`ProjectNames`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from backend_c.cuda.host_plan import (
    CopyBytes,
    FillBytes,
    HostLoop,
    HostPlan,
    HostStep,
    HostSwitch,
    LaunchKernel,
    MultiplyMatrices,
    in_text_order,
    launches,
    products,
)
from backend_c.projects.cuda_names import ProjectNames
from backend_c.projects.cuda_products import product_lines, products_text
from backend_c.projects.origin_comments import safe_name, safe_shape
from backend_c.render.c_types import memory_type
from backend_c.render.translation_units import Place
from hlo.types import ArrayShape

_INDENT = "    "
_WORD = re.compile(r"\w+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_WIDE = 100  # columns
_PAIRS = {"hlo_c64": "float", "hlo_c128": "double"}
_HEADER = """\
/* A compiled HLO module for NVIDIA GPUs; C and C++.
 *
 * module_run does all of it on one stream and returns 0, or the cudaError_t of the first call that
 * failed.
 *
 * {waiting}
 *
 * All pointers are to memory of the GPU. Arrays are row-major and aligned to 16 bytes; a complex
 * number is two floats, the real part first; integers of less than a byte have one each, sign- or
 * zero-extended; after an array with bounded dimensions, which has the strides of its bounds, comes
 * one with its actual sizes, which are clamped to them. Results, arguments and workspace may not
 * overlap. The workspace may hold anything, and belongs to one run at a time. */
#ifndef MODULE_H
#define MODULE_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

"""
_WAITS = """Loops and branches depend on values that it reads back: it waits for the stream, which
 * cannot be one that is captured as a graph."""
_DOES_NOT_WAIT = """It waits for nothing: a stream that is captured as a graph takes it, too
 * (cudaStreamBeginCapture)."""
_STARTS = """
 *
 * The first run on a device starts cuBLASLt, if it is found: not in a stream that is captured."""
_PROLOGUE = """\
/* The host's part of a compiled HLO module: which kernels run, in which order, on what.
 *
 * Compiled with -DMODULE_TRACE, each launch is waited for, and one that fails is told to stderr
 * with its kernel and its HLO instruction. */
#include "module.h"

#include <stdio.h>
#include <string.h>

#include "kernels.h"

namespace {

#define REQUIRE(call)                                   \\
    do {                                                \\
        const int error_of_call = (int)(call);          \\
        if (error_of_call != 0) return error_of_call;   \\
    } while (0)

"""
_AT = """\
template <class T> T *at(T *memory, size_t offset) { return memory + offset; }

"""
_LAUNCH = """\
/* Launches a kernel; what it takes are the addresses of `count` arrays. */
int launch(module_kernel kernel, const char *what, unsigned int blocks, unsigned int threads,
           size_t shared, const void *const *pointers, int count, cudaStream_t stream) {
    const void *values[MODULE_MOST_POINTERS];
    void *words[MODULE_MOST_POINTERS];
    for (int n = 0; n < count; ++n) {
        values[n] = pointers[n];
        words[n] = &values[n];
    }
    const void *function = module_kernels[kernel];
    cudaError_t error = cudaSuccess;
    if (shared > 0) {
        error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)shared);
    }
    if (error == cudaSuccess) {
        error = cudaLaunchKernel(function, dim3(blocks, 1, 1), dim3(threads, 1, 1), words, shared,
                                 stream);
    }
#ifdef MODULE_TRACE
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\\n", what, cudaGetErrorString(error));
    }
#else
    (void)what;
#endif
    return (int)error;
}

"""
_RANDOM = """\
/* Starts the random state of a run. */
int start_random(void *state, uint64_t seed, cudaStream_t stream) {
    void *words[] = {&state, &seed};
    return (int)cudaLaunchKernel(module_kernels[MODULE_hlo_random_start], dim3(1, 1, 1),
                                 dim3(1, 1, 1), words, 0, stream);
}

"""
_COPY = """\
int copied(void *to, const void *from, size_t bytes, cudaStream_t stream) {
    return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

"""
_READ = """\
/* Reads a value that the host decides by. */
int read_back(void *value, const void *place, size_t bytes, cudaStream_t stream) {
    REQUIRE(cudaMemcpyAsync(value, place, bytes, cudaMemcpyDeviceToHost, stream));
    return (int)cudaStreamSynchronize(stream);
}

"""
_CONSTANTS = """\
int module_load_constants(const char *file, void *constants, cudaStream_t stream) {
    enum { PART = 1 << 16 };
    static_assert(MODULE_CONSTANT_BYTES > 0, "a program without constants loads none");
    unsigned char part[PART];
    size_t done = 0;
    int error = 0;
    FILE *opened = fopen(file, "rb");
    if (!opened) return (int)cudaErrorFileNotFound;
    while (!error && done < MODULE_CONSTANT_BYTES) {
        const size_t left = MODULE_CONSTANT_BYTES - done;
        const size_t bytes = fread(part, 1, left < PART ? left : (size_t)PART, opened);
        if (!bytes) {
            error = (int)cudaErrorInvalidValue; /* the file is too short */
            break;
        }
        void *place = static_cast<unsigned char *>(constants) + done;
        error = (int)cudaMemcpyAsync(place, part, bytes, cudaMemcpyHostToDevice, stream);
        if (!error) error = (int)cudaStreamSynchronize(stream);
        done += bytes;
    }
    fclose(opened);
    return error;
}

"""


def header_text(host: HostPlan, names: ProjectNames) -> str:
    """Render ``module.h``."""
    waits = any(isinstance(step, HostLoop | HostSwitch) for step in in_text_order(host.steps))
    lines = [f"#define MODULE_WORKSPACE_BYTES {_workspace(host)}u"]
    lines += [f"#define MODULE_CONSTANT_BYTES {len(host.constants)}u", ""]
    if host.constants:
        lines += ["/* Fills MODULE_CONSTANT_BYTES of the GPU from constants.bin, once. */"]
        lines += ["int module_load_constants(const char *file, void *constants, "
                  "cudaStream_t stream);", ""]  # fmt: skip
    told = [f" * argument{n}: {safe_shape(shape)}" for n, shape in enumerate(host.arguments)]
    told += [f" * result{n}: {safe_shape(shape)}" for n, shape in enumerate(host.results)]
    lines += ["/* Runs the module.", " *", *told, " */"]
    lines += [f"int module_run({_joined(parameters(host))});", ""]
    lines += ["#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    waiting = _WAITS if waits else _DOES_NOT_WAIT
    waiting += _STARTS if products(host) else ""
    return names.begun(_HEADER.format(waiting=waiting) + "\n".join(lines))


def parameters(host: HostPlan) -> list[str]:
    """Return the parameters of ``module_run``."""
    names = [f"const {public_type(s)} *argument{n}" for n, s in enumerate(host.arguments)]
    names += [f"{public_type(s)} *result{n}" for n, s in enumerate(host.results)]
    names += ["const void *constants"] * bool(host.constants)
    return [*names, "void *workspace", *["uint64_t seed"] * host.uses_seed, "cudaStream_t stream"]


def _workspace(host: HostPlan) -> int:
    """Return the bytes to allocate for the workspace, at least 1."""
    return max(host.workspace_bytes, 1)


def public_type(shape: ArrayShape) -> str:
    """Return the type of a parameter: complex numbers are pairs of floats to a caller."""
    own = memory_type(shape.element_type)
    return _PAIRS.get(own, own)


def _joined(words: Sequence[str]) -> str:
    """Return parameters, one a line if there are many."""
    text = ", ".join(words)
    return text if len(text) < 70 else "\n    " + ",\n    ".join(words)


def kernels_header(kernels: Sequence[str], host: HostPlan, names: ProjectNames) -> str:
    """Render ``kernels.h``, what module.cu and launch.cu share."""
    most = max((len(step.operands) for step in launches(host)), default=0)
    numbered = "".join(f"{_INDENT}MODULE_{kernel},\n" for kernel in kernels)
    return names.begun(
        "/* The kernels of module.cu by number, for launch.cu. */\n"
        "#ifndef KERNELS_H\n#define KERNELS_H\n\n"
        # The table has one more: C++ has no array of 0 elements, for a module without kernels.
        f"enum module_kernel {{\n{numbered}{_INDENT}MODULE_KERNELS\n}};\n"
        f"enum {{ MODULE_MOST_POINTERS = {max(most, 1)} }};\n\n"
        'extern "C" const void *const module_kernels[MODULE_KERNELS + 1];\n\n#endif\n'
    )


def kernel_table(kernels: Sequence[str], names: ProjectNames) -> str:
    """Render the table at the end of module.cu."""
    rows = "".join(f"{_INDENT}(const void *){names.kernel(kernel)},\n" for kernel in kernels)
    head = names.begun("const void *const module_kernels[MODULE_KERNELS + 1]")
    return f"{head} = {{\n{rows}{_INDENT}0}};\n"


def launch_text(host: HostPlan, names: ProjectNames) -> str:
    """Render ``launch.cu``."""
    steps = list(in_text_order(host.steps))
    lines = [line for step in host.steps for line in _step(step, names)]
    plain = any(isinstance(s, LaunchKernel) and not s.takes_seed for s in steps)
    used = _identifiers(lines)
    parts = [_PROLOGUE, _AT * ("at" in used)]
    parts += [_LAUNCH] * plain + [_RANDOM] * host.uses_seed
    parts += [_COPY] * any(isinstance(step, CopyBytes) for step in steps)
    parts += [_READ] * any(isinstance(step, HostLoop | HostSwitch) for step in steps)
    parts += ["}  // namespace\n\n", _CONSTANTS if host.constants else "", products_text(host)]
    lines = [*_blocks(used), *lines]
    used = _identifiers(lines)
    unused = [f"(void){name};" for name in _names(host) if name not in used]
    body = [*unused, *lines, "return 0;"]
    text = "".join(f"{_INDENT}{line}\n" for line in body)
    head = names.begun(f"int module_run({_joined(parameters(host))})")
    return f"{names.begun(''.join(parts))}{head} {{\n{text}}}\n"


def _names(host: HostPlan) -> list[str]:
    """Return the names of parameters that the steps may not need."""
    names = [f"argument{n}" for n, _ in enumerate(host.arguments)]
    names += [f"result{n}" for n, _ in enumerate(host.results)]
    return [*names, *["constants"] * bool(host.constants), "workspace", "stream"]


def _identifiers(lines: Sequence[str]) -> set[str]:
    """Return the identifiers in C++ text without those in strings, which hold names of
    instructions."""
    return set(_WORD.findall(_STRING.sub('""', "\n".join(lines))))


def _blocks(used: set[str]) -> list[str]:
    """Render the addresses of blocks as bytes, of those that are ``used``."""
    made = []
    if "constant_bytes" in used:
        made.append("const unsigned char *constant_bytes = (const unsigned char *)constants;")
    if "work_bytes" in used:
        made.append("unsigned char *work_bytes = (unsigned char *)workspace;")
    return made


def _address(place: Place) -> str:
    """Render an address."""
    match place.block:
        case "arguments" | "results":
            return f"{place.block[:-1]}{place.offset}"
        case "constants":
            return f"at(constant_bytes, {place.offset})"
        case _:
            return f"at(work_bytes, {place.offset})"


def _step(step: HostStep, names: ProjectNames) -> list[str]:
    """Render a step."""
    match step:
        case LaunchKernel():
            return _launch(step, names)
        case MultiplyMatrices():
            places = (step.lhs, step.rhs, step.result, step.workspace)
            otherwise = [line for one in step.launches for line in _launch(one, names)]
            return product_lines(step, list(map(_address, places)), otherwise, names)
        case CopyBytes(source, target, size):
            words = f"{_address(target)}, {_address(source)}, {size}"
            return [f"REQUIRE(copied({words}, stream));"]
        case FillBytes(target, value, size):
            return [f"REQUIRE(cudaMemsetAsync({_address(target)}, {value}, {size}, stream));"]
        case HostLoop(number, _, _, body, trips) if trips is not None:
            head = f"for (int64_t trip_{number} = 0; trip_{number} < {trips}; ++trip_{number}) {{"
            return [head, *_indented(body, names), "}"]
        case HostLoop(number, condition, predicate, body):
            read = [f"uint8_t again_{number} = 0;",
                    f"REQUIRE(read_back(&again_{number}, {_address(predicate)}, 1, stream));",
                    f"if (!again_{number}) break;"]  # fmt: skip
            return ["for (;;) {", *_indented(condition, names), *(_INDENT + line for line in read),
                    *_indented(body, names), "}"]  # fmt: skip
        case HostSwitch():
            return _switch(step, names)


def _indented(steps: Sequence[HostStep], names: ProjectNames) -> list[str]:
    return [_INDENT + line for step in steps for line in _step(step, names)]


def _launch(step: LaunchKernel, names: ProjectNames) -> list[str]:
    """Render a launch."""
    if step.takes_seed:
        return [f"REQUIRE(start_random({_address(step.operands[0].place)}, seed, stream));"]
    name, kernel = safe_name(step.origin.instruction), names.kernel(step.kernel)
    what = f'"{kernel} (%{name})"' if name else f'"{kernel}"'
    blocks, threads, shared = step.geometry
    count = len(step.operands)
    words = f"{names.number(step.kernel)}, {what}, {blocks}, {threads}, {shared}"
    if not count:
        return [f"REQUIRE(launch({words}, 0, 0, stream));"]
    pointers = _wrapped([_address(operand.place) for operand in step.operands])
    return [
        "{",
        f"{_INDENT}const void *const pointers[] = {{",
        *(f"{_INDENT}{_INDENT}{line}" for line in pointers),
        f"{_INDENT}}};",
        f"{_INDENT}REQUIRE(launch({words}, pointers, {count}, stream));",
        "}",
    ]


def _wrapped(words: Sequence[str]) -> list[str]:
    """Return words with commas behind them, as many in a line as fit."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > _WIDE - 20:
            lines.append("")
        lines[-1] += f"{word}, "
    return [line.rstrip() for line in lines]


def _switch(step: HostSwitch, names: ProjectNames) -> list[str]:
    """Render a branch, whose default is the last case."""
    name = f"chosen_{step.number}"
    c_type, size = ("uint8_t", 1) if step.is_pred else ("int32_t", 4)
    value = f"{name} ? 0 : 1" if step.is_pred else name
    lines = [f"{c_type} {name} = 0;",
             f"REQUIRE(read_back(&{name}, {_address(step.selector)}, {size}, stream));",
             f"switch ({value}) {{"]  # fmt: skip
    for number, case in enumerate(step.cases):
        last = number == len(step.cases) - 1
        lines += ["default: {" if last else f"case {number}: {{"]
        lines += [*_indented(case, names), f"{_INDENT}break;", "}"]
    return [*lines, "}"]

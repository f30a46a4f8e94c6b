"""Emit a project of CUDA: kernels, the host's part, a header, a build, and a test of bits."""

from __future__ import annotations

import re
from collections.abc import Mapping

from backend_c.cuda.host_plan import HostPlan, LaunchKernel, launches, products
from backend_c.lower.plan import Origin
from backend_c.projects.cuda_launch import header_text, kernel_table, kernels_header, launch_text
from backend_c.projects.cuda_names import ProjectNames
from backend_c.projects.origin_comments import origin_comment
from backend_c.render.translation_units import LAUNCHED
from hlo.errors import Unsupported

# One line each: main.cu is there if bits were recorded.
_BANNER = """\
/* Kernels of a compiled HLO module.
 *
 *     cmake -B build && cmake --build build        (or nvcc with the flags of CMakeLists.txt)
 *
 *     module.h        how to call it: memory, one function
 *     module.cu       this file: the runtime functions that kernels call, then the kernels, each
 *                     after the HLO that it computes
 *     launch.cu       the host's part: geometry of each launch, copies, loops, error checks
 *     kernels.h       the kernels by number, for launch.cu
 *     constants.bin   to be copied to the GPU once (module_load_constants)
 *     main.cu         if bits were recorded: runs the module on recorded arguments (recorded.bin)
 *                     and compares the results bit by bit
 *     launches.json   the host's part as data, manifest.json the shapes
 *
 * Exact bits need --fmad=false and no --use_fast_math: a fused multiply-add rounds once where HLO
 * rounds twice. */
#include "kernels.h"

"""
_CMAKE = """\
cmake_minimum_required(VERSION 3.18)
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)
endif()
project(module LANGUAGES CXX CUDA)

option(MODULE_TRACE "Wait for each launch, and tell which one failed" OFF)

add_library(module STATIC module.cu launch.cu)
target_include_directories(module PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_features(module PRIVATE cuda_std_17)
# What exact bits need: no fused multiply-adds, IEEE divisions, roots and subnormals.
target_compile_options(module PRIVATE
  --fmad=false --prec-div=true --prec-sqrt=true --ftz=false -Werror all-warnings)
if(MODULE_TRACE)
  target_compile_definitions(module PRIVATE MODULE_TRACE)
endif()
set_target_properties(module PROPERTIES POSITION_INDEPENDENT_CODE ON)
"""
_FILES = ("kernels", "launch", "main")
_LIBRARY = "; by cuBLASLt where it is found"
# A library that is loaded at run time, if it is there.
_CMAKE_PRODUCTS = """target_link_libraries(module PUBLIC ${CMAKE_DL_LIBS})
"""
_CMAKE_MAIN = """
add_executable(main main.cu)
target_link_libraries(main PRIVATE module)
enable_testing()
add_test(NAME recorded_bits COMMAND main ${CMAKE_CURRENT_SOURCE_DIR})
"""


def project_files(
    text: str, host: HostPlan, has_main: bool, names: ProjectNames
) -> dict[str, bytes]:
    """Return the files of a project by name; ``text`` is the kernels' code, without includes.

    Raises Unsupported for the name of another file.
    """
    if names.module in _FILES:
        raise Unsupported(f"the name {names.module!r} is that of a file of the project")
    kernels = LAUNCHED.findall(text)
    code = _commented(names.with_kernels(text), host, names)
    parts = [_CMAKE, _CMAKE_PRODUCTS * bool(products(host)), _CMAKE_MAIN * has_main]
    files = {
        f"{names.module}.cu": f"{_banner(names)}{code}\n{kernel_table(kernels, names)}",
        "kernels.h": kernels_header(kernels, host, names),
        "launch.cu": launch_text(host, names),
        f"{names.module}.h": header_text(host, names),
        "CMakeLists.txt": names.begun(re.sub(r"\bmodule(?=[ )])", names.module, "".join(parts))),
    }
    return {name: content.encode() for name, content in files.items()}


def _banner(names: ProjectNames) -> str:
    """Render the comment at the beginning, what it says of files in one column."""

    def padded(match: re.Match[str]) -> str:
        return f"{names.begun(match[1]):{len(match[1]) + len(match[2]) - 2}}  "

    return names.begun(re.sub(r"(module\.(?:h|cu))( {2,})", padded, _BANNER))


def _commented(text: str, host: HostPlan, names: ProjectNames) -> str:
    """Put a comment before each kernel: which instructions it computes."""
    by_kernel: dict[str, list[LaunchKernel]] = {}
    for step in launches(host):
        by_kernel.setdefault(names.kernel(step.kernel), []).append(step)
    of_products = {
        names.kernel(launch.kernel) for step in products(host) for launch in step.launches
    }
    comments = {
        name: origin_comment(_origins(steps), _LIBRARY if name in of_products else "")
        for name, steps in by_kernel.items()
    }
    return _with_comments(text, comments)


def _origins(steps: list[LaunchKernel]) -> list[Origin]:
    """Return the origins of launches, each once."""
    named = {(s.origin.computation, s.origin.instruction): s.origin for s in reversed(steps)}
    return list(reversed(named.values()))


def _with_comments(text: str, comments: Mapping[str, str]) -> str:
    return LAUNCHED.sub(lambda match: comments.get(match[1], "") + match[0], text)

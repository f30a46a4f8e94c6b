"""Emit OpenMP C as a project: the units, the runtime headers, a header to call it by, a build.

The flags that a result depends on are those of :mod:`backend_c.native.toolchain`, as far as the
compiler takes them; the processor is whoever builds it's to name (``CMAKE_C_FLAGS``).
"""

from __future__ import annotations

from backend_c.native.toolchain import PORTABLE_FLAGS, RUNTIME
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import ENTRY, Program

_HEADER = """\
/* A compiled HLO module.
 *
 * arguments and results point to row-major arrays, in this order; an array with bounded dimensions
 * is followed by its int32_t sizes:
 *
{shapes}
 *
 * constants: what constants.bin has. seed: of random numbers. Constants and workspace are aligned
 * to {alignment} bytes; calls with different workspaces may run at the same time. */
#ifndef MODULE_H
#define MODULE_H

#include <stdint.h>

#define MODULE_CONSTANT_BYTES {constants}
#define MODULE_WORKSPACE_BYTES {workspace}

#ifdef __cplusplus
extern "C" {{
#endif

{entry};

#ifdef __cplusplus
}}
#endif

#endif
"""
_CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(module C)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# A static library, or a shared one by -DBUILD_SHARED_LIBS=ON. Vectors of the processor that it is
# for: -DCMAKE_C_FLAGS=-march=native.
add_library(module {units})
target_include_directories(module PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties(module PROPERTIES
  C_STANDARD 11 C_EXTENSIONS ON POSITION_INDEPENDENT_CODE ON)

# What exact bits need, and optimisations that compilers get wrong or that make it slow.
include(CheckCCompilerFlag)
foreach(flag
{flags})
  string(MAKE_C_IDENTIFIER "takes${{flag}}" is_taken)
  check_c_compiler_flag(${{flag}} ${{is_taken}})
  if(${{is_taken}})
    target_compile_options(module PRIVATE ${{flag}})
  endif()
endforeach()
find_package(OpenMP)
if(OpenMP_C_FOUND)
  target_link_libraries(module PUBLIC OpenMP::OpenMP_C)
endif()
"""


def project_files(program: Program) -> dict[str, bytes]:
    """Return the files of a project by name, but for its manifest."""
    files = {name: text.encode() for name, text in program.sources.items()}
    files |= {header.name: header.read_bytes() for header in sorted(RUNTIME.glob("*.h"))}
    return files | {
        "constants.bin": program.constants,
        "module.h": _header(program).encode(),
        "CMakeLists.txt": _cmake(list(program.sources)).encode(),
    }


def _header(program: Program) -> str:
    """Render the header: order and shapes of the arrays, block sizes, the entry point."""
    named = [("arguments", program.parameters), ("results", program.results)]
    shapes = [
        f" *     {name}[{n}]  {shape}" for name, listed in named for n, shape in enumerate(listed)
    ]
    return _HEADER.format(
        shapes="\n".join(shapes) or " *     (none)",
        alignment=OPENMP.alignment,
        constants=len(program.constants),
        workspace=program.workspace_bytes,
        entry=ENTRY,
    )


def _cmake(units: list[str]) -> str:
    """Render CMakeLists.txt."""
    flags = "\n".join(f"    {flag}" for flag in PORTABLE_FLAGS)
    return _CMAKE.format(units=" ".join(units), flags=flags)

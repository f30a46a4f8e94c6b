"""Emit OpenMP C as a project: the units, the runtime headers, a header to call it by, a build.

The flags that a result depends on are those of :mod:`backend_c.native.toolchain`, as far as the
compiler takes them; the processor is whoever builds it's to name (``CMAKE_C_FLAGS``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from backend_c.lower.plan import Plan
from backend_c.native.toolchain import PORTABLE_FLAGS, RUNTIME
from backend_c.projects.call_arrays import call_arrays, layout_notes
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import ENTRY, Program
from hlo.errors import Unsupported

_HEADER = """\
/* A compiled HLO module.
 *
 * arguments and results point to row-major arrays, in this order; a complex number is two floats,
 * the real part first:
 *
{shapes}
 *{notes}
 * constants: what constants.bin has. seed: of random numbers. Constants and workspace are aligned
 * to {alignment} bytes; calls with different workspaces may run at the same time. */
#ifndef {macro}_H
#define {macro}_H

#include <stdint.h>

#define {macro}_CONSTANT_BYTES {constants}
#define {macro}_WORKSPACE_BYTES {workspace}

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
project({name} C)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# A static library, or a shared one by -DBUILD_SHARED_LIBS=ON. Vectors of the processor that it is
# for: -DCMAKE_C_FLAGS=-march=native.
add_library({name} {units})
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES
  C_STANDARD 11 C_EXTENSIONS ON POSITION_INDEPENDENT_CODE ON)

# What exact bits need, and optimisations that compilers get wrong or that make it slow.
include(CheckCCompilerFlag)
foreach(flag
{flags})
  string(MAKE_C_IDENTIFIER "takes${{flag}}" is_taken)
  check_c_compiler_flag(${{flag}} ${{is_taken}})
  if(${{is_taken}})
    target_compile_options({name} PRIVATE ${{flag}})
  endif()
endforeach()
find_package(OpenMP)
if(OpenMP_C_FOUND)
  target_link_libraries({name} PUBLIC OpenMP::OpenMP_C)
endif()
"""


# What the entry is called of a project without a name, and what others may have, too.
_PLAIN, _ENTRY = "module", "hlo_entry"
_LINKED = re.compile(rf"\b({_ENTRY}|kernel_\d+)\b")


def project_files(
    plan: Plan, program: Program, name: str, parameters: Sequence[str]
) -> dict[str, bytes]:
    """Return the files of a project by name, but for its manifest.

    With a ``name`` of its own (Unsupported for that of a runtime header) all that other modules of
    a binary, or of a build by CMake, could have, too, begins with it. ``parameters`` are the names
    of the arguments.
    """
    files = {unit: _named(text, name).encode() for unit, text in program.sources.items()}
    files |= {header.name: header.read_bytes() for header in sorted(RUNTIME.glob("*.h"))}
    if f"{name}.h" in files:
        raise Unsupported(f"the name {name!r} is that of a header of the runtime, {name}.h")
    return files | {
        "constants.bin": program.constants,
        f"{name}.h": _header(plan, program, name, parameters).encode(),
        "CMakeLists.txt": _cmake(list(program.sources), name).encode(),
    }


def _named(text: str, name: str) -> str:
    """Begin the names that a linker sees with that of the module."""
    if name == _PLAIN:
        return text
    return _LINKED.sub(lambda m: f"{name}_{'run' if m[1] == _ENTRY else m[1]}", text)


def _header(plan: Plan, program: Program, name: str, parameters: Sequence[str]) -> str:
    """Render the header: order, names and shapes of the arrays, block sizes, the entry point."""
    arrays = call_arrays(plan, parameters)
    places = [f"arguments[{n}]" for n, _ in enumerate(a for a in arrays if not a.is_result)]
    places += [f"results[{n}]" for n, _ in enumerate(a for a in arrays if a.is_result)]
    wide, long = (max(map(len, x), default=0) for x in (places, [one.name for one in arrays]))
    shapes = [
        f" *     {place:{wide}}  {one.name:{long}}  {one.buffer.shape}"
        for place, one in zip(places, arrays, strict=True)
    ]
    return _HEADER.format(
        shapes="\n".join(shapes) or " *     (none)",
        notes=layout_notes(one.buffer.shape for one in arrays),
        macro=name.upper(),
        alignment=OPENMP.alignment,
        constants=len(program.constants),
        workspace=program.workspace_bytes,
        entry=_named(ENTRY, name),
    )


def _cmake(units: list[str], name: str) -> str:
    """Render CMakeLists.txt."""
    flags = "\n".join(f"    {flag}" for flag in PORTABLE_FLAGS)
    return _CMAKE.format(name=name, units=" ".join(units), flags=flags)

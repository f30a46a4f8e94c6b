"""Emit self-contained C99: a header, the code, the weights, a build, and a test of recorded bits.

The caller owns all memory: ``NAME_run`` reads arrays and constants, writes results, and computes in
a workspace that it is given. Nothing of it is allocated, global or changed but by the caller, so
calls with different workspaces may run at the same time.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from dataclasses import asdict, dataclass

from backend_c.ir.settings import Optimize
from backend_c.lower.buffers import peak
from backend_c.lower.plan import Buffer, Launch, Origin, Plan, in_order
from backend_c.projects.banded_plan import Bands
from backend_c.projects.byte_array import aligned_union, initializer
from backend_c.projects.call_arrays import CallArray, call_arrays, layout_notes
from backend_c.projects.compiled_sizes import CompiledSizes
from backend_c.render.c_types import memory_type
from backend_c.render.translation_units import Program

_MAGIC = b"HLOWEIGH"
_HEAD = 16  # bytes of a file of weights before them: magic, size and CRC-32 as little-endian words
_HEADER = """\
/* A compiled HLO module: no allocation, no library beyond string.h, nothing kept between calls.
 *
 * Arrays are row-major, a complex number is two floats, the real part first:
 *
{shapes}
 *{notes}
 * workspace: {macro}_WORKSPACE_BYTES bytes, aligned to 8.{seed} Returns 0; 1, with nothing done,
 * if the workspace is not aligned. */
#ifndef {macro}_H
#define {macro}_H

#include <stdint.h>
#include <string.h>

{sizes}#define {macro}_WORKSPACE_BYTES {workspace}

#ifdef __cplusplus
extern "C" {{
#endif

{weights}int {name}_run({parameters});

#ifdef __cplusplus
}}
#endif

#endif
"""
_SEED_NOTE = " seed: of random numbers."
_WEIGHTS = """\
/* The constants of the program, in {name}_weights.c. */
#define {macro}_WEIGHTS_BYTES {size}
extern const union {name}_block {union} {name}_weights;

"""
_EXTERNAL_WEIGHTS = """\
/* weights: the file {name}_weights.bin, aligned to 8. Its first {head} bytes say what it is. */
#define {macro}_WEIGHTS_BYTES ({size} + {head})

/* Returns 0 if these are the weights of this program, unchanged (CRC-32), else 1. */
int {name}_check_weights(const void *weights);

"""
_CHECK = """
int {name}_check_weights(const void *weights) {{
    static const unsigned char magic[] = {{{magic}}};
    const unsigned char *const bytes = (const unsigned char *)weights;
    const uint32_t size = {size};
    uint32_t stored_size = 0, stored_sum = 0, sum = 0xffffffffu, i;
    int bit;
    for (i = 0; i < 4; ++i) {{
        stored_size |= (uint32_t)bytes[8 + i] << (8 * i);
        stored_sum |= (uint32_t)bytes[12 + i] << (8 * i);
    }}
    if (memcmp(bytes, magic, sizeof magic) != 0 || stored_size != size) {{
        return 1;
    }}
    for (i = 0; i < size; ++i) {{
        sum ^= bytes[{head} + i];
        for (bit = 0; bit < 8; ++bit) {{
            sum = (sum >> 1) ^ (0xedb88320u & (0u - (sum & 1u)));
        }}
    }}
    return (sum ^ 0xffffffffu) != stored_sum;
}}
"""
_CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project({name} C)

add_library({name} STATIC {sources})
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON)
# What exact bits need: no fused multiply-adds, and floats of their own width.
target_compile_options({name} PRIVATE {options})
"""
_CMAKE_TEST = """
enable_testing()
add_executable({name}_test {name}_test.c)
target_link_libraries({name}_test PRIVATE {name})
add_test(NAME {name}_recorded_bits COMMAND {name}_test)
"""
# In the C itself, as whoever compiles it chooses the flags (docs/same_bits.md has the defects).
_NO_WRONG_VECTORS = """\
/* gcc 12 loads neighbouring elements, each under a condition, under that of one of them. */
#if defined(__GNUC__) && !defined(__clang__) && (defined(__AVX__) || defined(__ARM_FEATURE_SVE))
#pragma GCC optimize("no-tree-loop-if-convert")
#endif
/* gcc 12 drops the rounding of (double)(float)x where it makes vectors of straight code. */
#if defined(__GNUC__) && !defined(__clang__) && (defined(__SSE2__) || defined(__ARM_NEON))
#pragma GCC optimize("no-tree-slp-vectorize")
#endif
"""
_EXACT_FLAGS = ("-ffp-contract=off",)
_LEVELS = {Optimize.SPEED: "-O2", Optimize.SIZE: "-Os"}
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SIZES = (("uint8_t", 1), ("uint64_t", 8), ("float", 4), ("double", 8))


@dataclass(frozen=True)
class EmbeddedProject:
    """Render the files of one project.

    All public names begin with ``name``. ``parameters`` are names in C of the arrays of the
    parameters, by default numbered. Weights, which are the constants of the program, are code, or a
    file whose bytes are given to each run (``has_external_weights``). ``multiply_accumulates``
    counts those of matrix products and convolutions, each loop run once; ``optimize`` is the
    compiler's goal in the build, ``bands`` the loops over bands of rows.
    """

    plan: Plan
    program: Program
    name: str
    parameters: tuple[str, ...]
    has_external_weights: bool
    multiply_accumulates: int = 0
    optimize: Optimize = Optimize.SPEED
    bands: tuple[Bands, ...] = ()

    @property
    def macro(self) -> str:
        """Return the prefix of macros."""
        return self.name.upper()

    @property
    def weights(self) -> bytes:
        """Return the block of constants."""
        return self.program.constants

    @property
    def takes_seed(self) -> bool:
        """Return whether the program draws random numbers."""
        return any(kernel.uses_seed for kernel in self.plan.kernels)

    @property
    def takes_weights(self) -> bool:
        """Return whether the weights are an argument of runs."""
        return self.has_external_weights and bool(self.weights)

    @property
    def arrays(self) -> list[CallArray]:
        """List the arrays of a call."""
        return call_arrays(self.plan, self.parameters)

    def files(self, body: str) -> dict[str, bytes]:
        """Return the C files and the weights by name; ``body`` defines an internal
        ``hlo_entry``."""
        files = {
            f"{self.name}.h": self._header().encode(),
            f"{self.name}.c": f"{self._source_head(body)}\n{body}\n{self._run()}".encode(),
        }
        if self.takes_weights:
            files[f"{self.name}_weights.bin"] = self.weights_file
        elif self.weights:
            files[f"{self.name}_weights.c"] = self._weights_source().encode()
        return files

    @property
    def compiler_flags(self) -> tuple[str, ...]:
        """Return the compiler flags of the build."""
        return ("-std=c99", *_EXACT_FLAGS, _LEVELS[self.optimize])

    def cmake(self, has_test: bool) -> bytes:
        """Return CMakeLists.txt: a static library, and the test if bits were recorded."""
        sources = [f"{self.name}.c"]
        if self.weights and not self.takes_weights:
            sources.append(f"{self.name}_weights.c")
        options = " ".join((*_EXACT_FLAGS, _LEVELS[self.optimize]))
        text = _CMAKE.format(name=self.name, sources=" ".join(sources), options=options)
        return (text + _CMAKE_TEST.format(name=self.name) * has_test).encode()

    def _parameters(self) -> list[str]:
        """Return the parameters of ``NAME_run``."""
        listed = [
            f"{'' if is_result else 'const '}{_public_type(buffer)} *{name}"
            for name, buffer, is_result in self.arrays
        ]
        listed += ["const void *weights"] * self.takes_weights + ["void *workspace"]
        return listed + ["uint64_t seed"] * self.takes_seed

    def _header(self) -> str:
        width = max((len(name) for name, _, _ in self.arrays), default=0)
        shapes = [f" *     {name:{width}}  {buffer.shape}" for name, buffer, _ in self.arrays]
        sizes = [
            f"#define {self.macro}_{name.upper()}_BYTES {buffer.bytes}\n"
            for name, buffer, _ in self.arrays
        ]
        return _HEADER.format(
            name=self.name,
            macro=self.macro,
            shapes="\n".join(shapes) or " *     (none)",
            notes=layout_notes(buffer.shape for _, buffer, _ in self.arrays),
            sizes="".join(sizes),
            # Callers declare an array of so many bytes, and C has none of 0.
            workspace=max(self.program.workspace_bytes, 1),
            weights=self._weights_head(),
            seed=_SEED_NOTE * self.takes_seed,
            parameters=", ".join(self._parameters()),
        )

    def _weights_head(self) -> str:
        """Return the declarations of the weights in the header."""
        if not self.weights:
            return ""
        text = _EXTERNAL_WEIGHTS if self.takes_weights else _WEIGHTS
        size, union = len(self.weights), aligned_union(len(self.weights))
        return text.format(name=self.name, macro=self.macro, size=size, head=_HEAD, union=union)

    def _source_head(self, body: str) -> str:
        """Return the lines before the code: pragmas, the header, and checks of the sizes of
        types."""
        code = _COMMENT.sub("", body)
        sizes = [
            f"typedef char {self.name}_{t}_has_{size}_bytes[sizeof({t}) == {size} ? 1 : -1];\n"
            for t, size in _SIZES
            if re.search(rf"\b{t}\b", code)
        ]
        return f'{_NO_WRONG_VECTORS}#include "{self.name}.h"\n\n{"".join(sizes)}'

    def _weights_source(self) -> str:
        union = f"const union {self.name}_block {self.name}_weights"
        return f'#include "{self.name}.h"\n\n{union} = {initializer(self.weights)};\n'

    @property
    def weights_file(self) -> bytes:
        """Return the file of weights: magic, size, CRC-32, then the constants."""
        head = _MAGIC + struct.pack("<II", len(self.weights), zlib.crc32(self.weights))
        return head + self.weights

    def _run(self) -> str:
        """Return ``NAME_run``, which collects the pointers and calls the entry."""
        lines = [f"int {self.name}_run({', '.join(self._parameters())}) {{"]
        for kind, const, is_result in (("arguments", "const ", False), ("results", "", True)):
            names = [name for name, _, result in self.arrays if result is is_result]
            listed = "".join(f"\n        {name}," for name in names or ["0"])
            lines.append(f"    {const}void *{kind}[] = {{{listed}\n    }};")
        constants = f"{self.name}_weights.bytes" if self.weights else "0"
        if self.takes_weights:
            constants = f"(const unsigned char *)weights + {_HEAD}"
        call = f"(const void *const *)arguments, results, {constants}, (unsigned char *)workspace"
        lines += [
            "    if ((uintptr_t)workspace % 8 != 0) {\n        return 1;\n    }",
            f"    hlo_entry({call}, {'seed' if self.takes_seed else '0'});",
            "    return 0;\n}\n",
        ]
        check = _CHECK.format(
            name=self.name, magic=", ".join(map(str, _MAGIC)), head=_HEAD, size=len(self.weights)
        )
        return "\n".join(lines) + check * self.takes_weights

    def manifest(self, compiled: CompiledSizes | None) -> bytes:
        """Describe the call as JSON, for programs that make it, with compiled sizes if measured."""

        def described(is_result: bool) -> list[dict[str, object]]:
            return [
                {
                    "name": name,
                    "shape": list(buffer.shape.dims),
                    "type": str(buffer.shape.element_type),
                    "c_type": _public_type(buffer),
                    "bytes": buffer.bytes,
                }
                for name, buffer, result in self.arrays
                if result is is_result
            ]

        manifest = {
            "name": self.name,
            "arguments": described(False),
            "results": described(True),
            "takes_seed": self.takes_seed,
            "external_weights": self.takes_weights,
            "weights_bytes": len(self.weights),
            "workspace_bytes": self.program.workspace_bytes,
            "workspace_bound_bytes": peak(self.plan).bytes,
            "multiply_accumulates": self.multiply_accumulates,
            "bands": [asdict(one) for one in self.bands],
            "kernels": self._kernels(compiled),
        }
        if compiled is not None:
            manifest |= self._measured(compiled)
        return (json.dumps(manifest, indent=2) + "\n").encode()

    @property
    def origins(self) -> dict[str, list[Origin]]:
        """Return the distinct origins of each kernel, by its name."""
        found: dict[str, dict[tuple[str, str], Origin]] = {}
        for _, step in in_order(self.plan.steps):
            if isinstance(step, Launch):
                name, of = self.program.kernel_names[step.kernel], step.origin
                found.setdefault(name, {}).setdefault((of.computation, of.instruction), of)
        return {name: [*origins.values()] for name, origins in found.items()}

    def _kernels(self, compiled: CompiledSizes | None) -> list[dict[str, object]]:
        """Describe each kernel: its instructions, and its stack if measured."""
        # A compiler may write a kernel where it is called: it has no frame of its own then.
        stack = {} if compiled is None else compiled.stack
        return [
            {"name": name, "instructions": [f"{o.computation}/{o.instruction}" for o in origins]}
            | ({} if compiled is None else {"stack_bytes": stack.get(name, 0)})
            for name, origins in self.origins.items()
        ]

    def _measured(self, compiled: CompiledSizes) -> dict[str, object]:
        """Describe the compiled sizes."""
        external = len(self.weights_file) if self.takes_weights else 0
        return {
            "compiler": compiled.compiler,
            "command": list(compiled.command),
            "text_bytes": compiled.flash[f"{self.name}.c"],
            "flash_bytes": sum(compiled.flash.values()) + external,
            "stack_bytes": compiled.stack[f"{self.name}_run"],
            "library_functions": list(compiled.library_functions),
        }


def _public_type(buffer: Buffer) -> str:
    """Return the type of a parameter: complex numbers are pairs of floats to a caller."""
    parts = {"hlo_c64": "float", "hlo_c128": "double"}
    own = memory_type(buffer.shape.element_type)
    return parts.get(own, own)

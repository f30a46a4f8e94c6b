"""Emit the files of each target: OpenMP C, self-contained C99, CUDA."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from backend_c.cuda import phases
from backend_c.cuda.threads import launch_shape
from backend_c.emit.byte_array import aligned_bytes
from backend_c.lower.plan import Branch, Buffer, Copy, Exchange, Launch, Plan, Repeat, Step
from backend_c.native.toolchain import RUNTIME
from backend_c.render.c_types import memory_type
from backend_c.render.dialect import CUDA, EMBEDDED, OPENMP
from backend_c.render.translation_units import Program, render_plan, with_sizes

_Files = dict[str, bytes]
_INCLUDE = re.compile(r'#include "(hlo_\w+\.h)"\n')


def _openmp(plan: Plan) -> _Files:
    """Emit translation units, the runtime headers, and the block of constants."""
    program = render_plan(plan, OPENMP)
    files = {name: text.encode() for name, text in program.sources.items()}
    files |= {header.name: header.read_bytes() for header in sorted(RUNTIME.glob("*.h"))}
    return files | {"constants.bin": program.constants} | _manifest(program)


def _embedded(plan: Plan) -> _Files:
    """Emit one self-contained C99 file and its header."""
    program = render_plan(plan, EMBEDDED)
    ((_, text),) = program.sources.items()
    header = _embedded_header(program, plan)
    # The entry is internal here: callers get ``module_run`` with a typed parameter per array.
    body = _inlined(text).replace("void hlo_entry(", "static void hlo_entry(")
    constants = aligned_bytes("module_constants", program.constants)
    source = f'#include "module.h"\n{body}\n{constants}\n{_run_function(plan)}'
    return {"module.c": source.encode(), "module.h": header.encode()} | _manifest(program)


def _cuda(plan: Plan) -> _Files:
    """Emit the kernels as one .cu file, and the order of their launches as JSON."""
    # Before rendering: each phase is a kernel of its own, launched and numbered as such.
    plan = phases.split(plan)
    program = render_plan(plan, CUDA)
    ((_, text),) = program.sources.items()
    files = {"module.cu": _inlined(text).encode(), "constants.bin": program.constants}
    launches = {"steps": [_step(step, plan, program) for step in plan.steps]}
    files["launches.json"] = (json.dumps(launches, indent=1) + "\n").encode()
    return files | _manifest(program)


def _step(step: Step, plan: Plan, program: Program) -> dict[str, object]:
    """Describe a step for whoever launches the kernels.

    Pointers are ``arguments[n]``, ``results[n]``, ``random`` (the ``hlo_seed`` of a run), or an
    offset into the constants or the workspace. The shape of a launch is ``single`` (one block of
    one thread), ``block`` (one block) or ``grid``, blocks of any size, as many as there are.
    """

    def inner(steps: tuple[Step, ...]) -> list[dict[str, object]]:
        return [_step(one, plan, program) for one in steps]

    match step:
        case Launch(kernel, inputs, outputs, scratch):
            return {
                "launch": program.kernel_names[kernel],
                "pointers": [
                    *(program.pointers[b] for b in (*inputs, *outputs, *scratch)),
                    *["random"] * plan.kernels[kernel].uses_seed,
                ],
                "shape": launch_shape(plan.kernels[kernel]),
            }
        case Copy(source, target):
            pointers = [program.pointers[source], program.pointers[target]]
            return {"copy": source.bytes, "from": pointers[0], "to": pointers[1]}
        case Exchange():
            raise AssertionError("launches have addresses of their own: Settings.least_exchanged")
        case Repeat(condition, predicate, body):
            return {
                "while": program.pointers[predicate],
                "condition": inner(condition),
                "body": inner(body),
            }
        case Branch(selector, cases):
            return {"branch": program.pointers[selector], "cases": [inner(case) for case in cases]}


def _inlined(text: str) -> str:
    """Replace the includes of runtime headers by their text, each once."""
    # Headers include each other: each is inlined where it is first included, as its guard would do.
    seen: set[str] = set()

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        return _INCLUDE.sub(replace, (RUNTIME / name).read_text("utf-8"))

    return _INCLUDE.sub(replace, text)


def _public_type(buffer: Buffer) -> str:
    """Return the type of a parameter: complex numbers are pairs of floats to a caller."""
    parts = {"hlo_c64": "float", "hlo_c128": "double"}
    own = memory_type(buffer.shape.element_type)
    return parts.get(own, own)


def _parameters(plan: Plan) -> list[str]:
    """Return the parameters of ``module_run``."""
    names = [
        f"const {_public_type(b)} *argument{n}" for n, b in enumerate(with_sizes(plan.arguments))
    ]
    names += [f"{_public_type(b)} *result{n}" for n, b in enumerate(with_sizes(plan.results))]
    return [*names, "unsigned char *workspace", "uint64_t seed"]


def _embedded_header(program: Program, plan: Plan) -> str:
    """Render ``module.h``."""
    lines = [
        "/* A compiled HLO module: no allocation, no library beyond string.h.",
        " *",
        " * workspace: MODULE_WORKSPACE bytes aligned to 8; arrays are row-major; a complex number",
        " * is two floats, the real part first. */",
        "#ifndef MODULE_H",
        "#define MODULE_H",
        "",
        "#include <stdint.h>",
        "#include <string.h>",
        "",
        f"#define MODULE_WORKSPACE {max(program.workspace_bytes, 1)}",
        "",
        f"void module_run({', '.join(_parameters(plan))});",
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _run_function(plan: Plan) -> str:
    """Render ``module_run``, which collects the pointers and calls the entry point."""
    arguments = [f"argument{n}" for n, _ in enumerate(with_sizes(plan.arguments))]
    results = [f"result{n}" for n, _ in enumerate(with_sizes(plan.results))]
    lines = [f"void module_run({', '.join(_parameters(plan))}) {{"]
    for kind, names, const in (("arguments", arguments, "const "), ("results", results, "")):
        listed = "".join(f"\n        {name}," for name in names or ["0"])
        lines.append(f"    {const}void *{kind}[] = {{{listed}\n    }};")
    call = "(const void *const *)arguments, results, module_constants.bytes, workspace, seed"
    return "\n".join([*lines, f"    hlo_entry({call});", "}", ""])


def _manifest(program: Program) -> _Files:
    """Describe shapes and sizes as JSON, for programs that call the module."""
    manifest = {
        "parameters": [str(shape) for shape in program.parameters],
        "results": [str(shape) for shape in program.results],
        "constant_bytes": len(program.constants),
        "workspace_bytes": program.workspace_bytes,
    }
    return {"manifest.json": (json.dumps(manifest, indent=2) + "\n").encode()}


EMITTERS: Mapping[str, Callable[[Plan], _Files]] = {
    OPENMP.name: _openmp,
    EMBEDDED.name: _embedded,
    CUDA.name: _cuda,
}

"""Files for the world outside: what ``emit`` writes for each target."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from backend_c.emit.byte_array import aligned_bytes
from backend_c.lower.plan import Branch, Buffer, Copy, Launch, Plan, Repeat, Step
from backend_c.native.toolchain import RUNTIME
from backend_c.render import cuda_phases
from backend_c.render.c_types import memory_type
from backend_c.render.dialect import CUDA, EMBEDDED, OPENMP
from backend_c.render.program import Program, program, with_sizes

_Files = dict[str, bytes]
_INCLUDE = re.compile(r'#include "(hlo_\w+\.h)"\n')


def _openmp(plan: Plan) -> _Files:
    """Translation units, the runtime headers, and the block of constants."""
    made = program(plan, OPENMP)
    files = {name: text.encode() for name, text in made.sources.items()}
    files |= {header.name: header.read_bytes() for header in sorted(RUNTIME.glob("*.h"))}
    return files | {"constants.bin": made.constants} | _manifest(made)


def _embedded(plan: Plan) -> _Files:
    """One self-contained C99 file and its header."""
    made = program(plan, EMBEDDED)
    ((_, text),) = made.sources.items()
    header = _embedded_header(made, plan)
    body = _inlined(text).replace("void hlo_entry(", "static void hlo_entry(")
    constants = aligned_bytes("module_constants", made.constants)
    source = f'#include "module.h"\n{body}\n{constants}\n{_run_function(plan)}'
    return {"module.c": source.encode(), "module.h": header.encode()} | _manifest(made)


def _cuda(plan: Plan) -> _Files:
    """The kernels as one .cu file, and the order of their launches as JSON."""
    plan = cuda_phases.split(plan)
    made = program(plan, CUDA)
    ((_, text),) = made.sources.items()
    files = {"module.cu": _inlined(text).encode(), "constants.bin": made.constants}
    launches = {"steps": [_step(step, plan, made) for step in plan.steps]}
    files["launches.json"] = (json.dumps(launches, indent=1) + "\n").encode()
    return files | _manifest(made)


def _step(step: Step, plan: Plan, made: Program) -> dict[str, object]:
    """A step for whoever launches the kernels: pointers are ``arguments[n]``, ``results[n]``, or
    an offset into the constants or the workspace; a ``single_thread`` kernel is launched as one
    block of one thread, any other with as many as there are."""

    def inner(steps: tuple[Step, ...]) -> list[dict[str, object]]:
        return [_step(one, plan, made) for one in steps]

    match step:
        case Launch(kernel, inputs, outputs, scratch):
            return {
                "launch": made.kernel_names[kernel],
                "pointers": [made.places[b] for b in (*inputs, *outputs, *scratch)],
                "single_thread": cuda_phases.is_single(plan.kernels[kernel]),
            }
        case Copy(source, target):
            pointers = [made.places[source], made.places[target]]
            return {"copy": source.bytes, "from": pointers[0], "to": pointers[1]}
        case Repeat(condition, predicate, body):
            return {
                "while": made.places[predicate],
                "condition": inner(condition),
                "body": inner(body),
            }
        case Branch(selector, cases):
            return {"branch": made.places[selector], "cases": [inner(case) for case in cases]}


def _inlined(text: str) -> str:
    """A translation unit with the runtime headers in place of their includes, each once."""
    seen: set[str] = set()

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        return _INCLUDE.sub(replace, (RUNTIME / name).read_text("utf-8"))

    return _INCLUDE.sub(replace, text)


def _public_type(buffer: Buffer) -> str:
    """Complex numbers are pairs of floats to a caller."""
    parts = {"hlo_c64": "float", "hlo_c128": "double"}
    own = memory_type(buffer.shape.element_type)
    return parts.get(own, own)


def _parameters(plan: Plan) -> list[str]:
    names = [
        f"const {_public_type(b)} *argument{n}" for n, b in enumerate(with_sizes(plan.arguments))
    ]
    names += [f"{_public_type(b)} *result{n}" for n, b in enumerate(with_sizes(plan.results))]
    return [*names, "unsigned char *workspace", "uint64_t seed"]


def _embedded_header(made: Program, plan: Plan) -> str:
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
        f"#define MODULE_WORKSPACE {max(made.workspace_bytes, 1)}",
        "",
        f"void module_run({', '.join(_parameters(plan))});",
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _run_function(plan: Plan) -> str:
    arguments = [f"argument{n}" for n, _ in enumerate(with_sizes(plan.arguments))]
    results = [f"result{n}" for n, _ in enumerate(with_sizes(plan.results))]
    lines = [f"void module_run({', '.join(_parameters(plan))}) {{"]
    for kind, names, const in (("arguments", arguments, "const "), ("results", results, "")):
        listed = "".join(f"\n        {name}," for name in names or ["0"])
        lines.append(f"    {const}void *{kind}[] = {{{listed}\n    }};")
    call = "(const void *const *)arguments, results, module_constants.bytes, workspace, seed"
    return "\n".join([*lines, f"    hlo_entry({call});", "}", ""])


def _manifest(made: Program) -> _Files:
    """What a caller needs to know, for programs."""
    manifest = {
        "parameters": [str(shape) for shape in made.parameters],
        "results": [str(shape) for shape in made.results],
        "constant_bytes": len(made.constants),
        "workspace_bytes": made.workspace_bytes,
    }
    return {"manifest.json": (json.dumps(manifest, indent=2) + "\n").encode()}


EMITTERS: Mapping[str, Callable[[Plan], _Files]] = {
    OPENMP.name: _openmp,
    EMBEDDED.name: _embedded,
    CUDA.name: _cuda,
}

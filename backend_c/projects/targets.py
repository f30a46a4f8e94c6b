"""Emit the files of each target: OpenMP C, self-contained C99, CUDA."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from backend_c.cuda import phases
from backend_c.cuda.host_plan import (
    CopyBytes,
    FillBytes,
    HostLoop,
    HostPlan,
    HostStep,
    HostSwitch,
    LaunchKernel,
    MultiplyMatrices,
    host_plan,
)
from backend_c.ir.settings import Optimize, Simd
from backend_c.lower.matrix_product import Matrix
from backend_c.lower.plan import Plan
from backend_c.native.toolchain import RUNTIME
from backend_c.projects import openmp_project
from backend_c.projects.banded_plan import Bands
from backend_c.projects.compiled_sizes import compiled_sizes
from backend_c.projects.conditions import decided
from backend_c.projects.cuda_main import check_files
from backend_c.projects.cuda_names import ProjectNames
from backend_c.projects.cuda_project import project_files
from backend_c.projects.double_precision import require_single
from backend_c.projects.embedded_check import test_text
from backend_c.projects.embedded_project import EmbeddedProject
from backend_c.projects.origin_comments import origin_comment
from backend_c.projects.reachable_c import with_reachable_parts
from backend_c.projects.workspace_limit import required_workspace
from backend_c.render.dialect import CUDA, EMBEDDED, OPENMP
from backend_c.render.translation_units import (
    Place,
    Program,
    render_plan,
    render_plans,
)
from hlo.errors import Unsupported
from hlo.module import Module

_Files = dict[str, bytes]
_GUARD = re.compile(r"^#ifndef (HLO_\w+_H)\n#define \1\n", re.MULTILINE)
# Conditions of the runtime that embedded C has decided.
_DECIDED = dict.fromkeys(("__CUDACC__", "_OPENMP", "HLO_LINKED_OBJECT"), False)
_SINGLE = {"HLO_VECTOR_UNIT": False}  # detours over vectors are in doubles
_KERNEL = re.compile(rf"^{EMBEDDED.kernel} (kernel_\d+)\(", re.MULTILINE)
_INCLUDE = re.compile(r'#include "(hlo_\w+\.h)"\n')


class Recorded(NamedTuple):
    """Hold a module with recorded arguments, and the value expected of them with a seed."""

    module: Module
    arguments: Sequence[Any]
    expected: Any
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """Hold a caller's options for emitted files; all are for the embedded target, ``name`` for the
    others, too, and ``parameters`` for that of OpenMP.

    ``name``: prefix of its names. ``parameters``: names in C of the arrays of the parameters,
    numbered where there are none. ``has_external_weights``: constants are a file, not code.
    ``max_workspace``: the most bytes of the workspace. ``multiply_accumulates``: the program's, for
    the manifest. ``optimize``: the build's goal. ``compiler``: the command whose sizes of code and
    stack are measured. ``no_double``: raise Unsupported where f64 is computed; ``is_fast`` says by
    which numerics. ``simd``: which functions multiply bytes several at a time. ``bands``: the loops
    over bands of rows, for the manifest.
    """

    name: str = "module"
    parameters: tuple[str, ...] = ()
    has_external_weights: bool = False
    max_workspace: int | None = None
    multiply_accumulates: int = 0
    optimize: Optimize = Optimize.SPEED
    compiler: str | None = None
    no_double: bool = False
    is_fast: bool = False
    simd: Simd = Simd.AUTO
    bands: tuple[Bands, ...] = ()


def _openmp(plan: Plan, recorded: Recorded | None, wanted: Wanted) -> _Files:
    """Emit a project of OpenMP C."""
    if recorded is not None:
        raise Unsupported("recorded bits are checked on embedded and cuda, not on openmp")
    program = render_plan(plan, OPENMP)
    names = wanted.parameters
    return openmp_project.project_files(plan, program, wanted.name, names) | _manifest(program)


def _embedded(plan: Plan, recorded: Recorded | None, wanted: Wanted) -> _Files:
    """Emit a project of self-contained C99."""
    workspace = required_workspace(plan, wanted.max_workspace, wanted.bands)
    program = render_plan(plan, EMBEDDED, workspace)
    ((_, text),) = program.sources.items()
    names = wanted.parameters or tuple(f"in_{n}" for n, _ in enumerate(plan.arguments))
    project = EmbeddedProject(
        *(plan, program, wanted.name, names),
        *(wanted.has_external_weights, wanted.multiply_accumulates, wanted.optimize),
        wanted.bands,
    )
    # The entry is internal here: callers get ``run`` with a typed parameter per array.
    code = _INCLUDE.sub("", text).replace("void hlo_entry(", "static void hlo_entry(")
    headers = _inlined("".join(match[0] for match in _INCLUDE.finditer(text)))
    known = {**_DECIDED, **(_SINGLE if wanted.no_double else {})}
    known["HLO_CMSIS"] = wanted.simd is Simd.CMSIS
    headers = with_reachable_parts(decided(headers, known), code)
    if wanted.no_double:
        require_single(f"{headers}{code}", project.origins, is_fast=wanted.is_fast)
    comments = {name: origin_comment(origins) for name, origins in project.origins.items()}
    body = _KERNEL.sub(lambda kernel: comments.get(kernel[1], "") + kernel[0], code)
    files = project.files(f"{headers}{body}")
    compiled = None
    if wanted.compiler is not None:
        compiled = compiled_sizes(wanted.compiler, files, project.compiler_flags)
    if recorded is not None:
        files[f"{wanted.name}_test.c"] = test_text(project, *recorded).encode()
    files["manifest.json"] = project.manifest(compiled)
    return files | {"CMakeLists.txt": project.cmake(recorded is not None)}


def _cuda(plan: Plan, recorded: Recorded | None, wanted: Wanted) -> _Files:
    """Emit a project of CUDA, and its host plan as JSON."""
    text, ((host, program),) = cuda_parts([plan])
    names = ProjectNames(wanted.name)
    launches = {"steps": [_step(step, names) for step in host.steps]}
    files = project_files(text, host, recorded is not None, names)
    if recorded is not None:
        files |= check_files(host, names, *recorded)
    files["constants.bin"] = program.constants
    files["launches.json"] = (json.dumps(launches, indent=1) + "\n").encode()
    return files | _manifest(program)


def cuda_parts(plans: Sequence[Plan]) -> tuple[str, list[tuple[HostPlan, Program]]]:
    """Return the kernels of plans as one text without includes, and each plan's host plan and
    program."""
    # Before rendering: each phase is a kernel of its own, launched and numbered as such.
    split = [phases.split(plan) for plan in plans]
    programs = render_plans(split, CUDA)
    ((_, text),) = programs[0].sources.items()
    hosts = map(host_plan, split, programs)
    return _inlined(text), list(zip(hosts, programs, strict=True))


def _step(step: HostStep, names: ProjectNames) -> dict[str, object]:
    """Describe a step as JSON, for callers that launch the kernels without launch.cu.

    Pointers are ``arguments[n]``, ``results[n]``, or an offset into the constants or the workspace.
    The shape of a launch constrains its size: ``single`` is one block of one thread, ``block`` one
    block of any size, ``grid`` any number of them, ``warps`` the same of whole warps.
    ``most_threads`` is the largest block that a kernel takes. ``seed`` is the one of a run. A
    ``product`` of matrices (their number, m, n, k) is what a library may compute in place of its
    launches, with some bytes at ``workspace``.
    """

    def inner(steps: Sequence[HostStep]) -> list[dict[str, object]]:
        return [_step(one, names) for one in steps]

    match step:
        case LaunchKernel():
            blocks, threads, shared = step.geometry
            pointers = [_address(operand.place) for operand in step.operands]
            return {
                "launch": names.kernel(step.kernel),
                "pointers": [*pointers, *["seed"] * step.takes_seed],
                "shape": step.shape,
                "blocks": blocks,
                "threads": threads,
                "most_threads": step.most_threads,
                "shared_bytes": shared,
            }
        case MultiplyMatrices(_, product, lhs, rhs, result):
            return {
                "product": [product.batch, product.m, product.n, product.k],
                "lhs": _matrix(lhs, product.lhs),
                "rhs": _matrix(rhs, product.rhs),
                "result": {"at": _address(result), "type": str(product.result_type)},
                "workspace": _address(step.workspace),
                "launches": inner(step.launches),
            }
        case CopyBytes(source, target, size):
            return {"copy": size, "from": _address(source), "to": _address(target)}
        case FillBytes(target, value, size):
            return {"fill": size, "with": value, "to": _address(target)}
        case HostLoop(_, _, _, body, trips) if trips is not None:
            return {"trips": trips, "body": inner(body)}
        case HostLoop(_, condition, predicate, body):
            return {
                "while": _address(predicate),
                "condition": inner(condition),
                "body": inner(body),
            }
        case HostSwitch(_, selector, _, cases):
            return {"branch": _address(selector), "cases": [inner(case) for case in cases]}


def _matrix(place: Place, matrix: Matrix) -> dict[str, object]:
    """Describe a factor of a product as JSON: the strides of :class:`Matrix`, in elements."""
    return {
        "at": _address(place),
        "type": str(matrix.element_type),
        "pitch": matrix.pitch,
        "batch_stride": matrix.batch_stride,
        "lines": "along k" if matrix.is_along_k else "across k",
    }


def _address(place: Place) -> str:
    """Render a place as in :func:`_step`."""
    is_array = place.block in ("arguments", "results")
    return f"{place.block}[{place.offset}]" if is_array else f"({place.block} + {place.offset})"


def _inlined(text: str) -> str:
    """Replace the includes of runtime headers by their text, each once."""
    # Headers include each other: each is inlined where it is first included, as its guard would do.
    seen: set[str] = set()

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        return _INCLUDE.sub(replace, _unguarded((RUNTIME / name).read_text("utf-8")))

    return _INCLUDE.sub(replace, text)


def _unguarded(header: str) -> str:
    """Return a header without its include guard, and without the comment before that."""
    guard = _GUARD.search(header)
    assert guard is not None, header
    return header[guard.end() : header.rindex("#endif")]


def _manifest(program: Program) -> _Files:
    """Describe shapes and sizes as JSON, for programs that call the module."""
    manifest = {
        "parameters": [str(shape) for shape in program.parameters],
        "results": [str(shape) for shape in program.results],
        "constant_bytes": len(program.constants),
        "workspace_bytes": program.workspace_bytes,
    }
    return {"manifest.json": (json.dumps(manifest, indent=2) + "\n").encode()}


EMITTERS: Mapping[str, Callable[[Plan, Recorded | None, Wanted], _Files]] = {
    OPENMP.name: _openmp,
    EMBEDDED.name: _embedded,
    CUDA.name: _cuda,
}

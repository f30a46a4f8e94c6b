"""Compile a module: the stages from HLO to a library or to files, top to bottom.

text ─ hlo.parse ▷ Module ─ passes ▷ Module ─ lower ▷ Plan ─ render ▷ Program ─ build ▷ library
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Any, Literal, TypeVar, overload

from backend_c.compilation import compilation
from backend_c.cuda import phases
from backend_c.cuda.host_plan import host_plan
from backend_c.ir.settings import (
    LIBRARY_SIDE,
    Numerics,
    Optimize,
    Settings,
    Simd,
    alone,
    launched,
    threaded,
)
from backend_c.lower.buffers import allocate_apart
from backend_c.lower.plan import Plan, has_products
from backend_c.native.cache import Directory, default_directory, open_cache
from backend_c.native.cublas_lt import CublasLt, find_cublas_lt
from backend_c.native.cuda_compilers import CudaCompiler, cubin, find_cuda_compiler
from backend_c.native.cuda_driver import Device, Driver, LoadedModule
from backend_c.native.cuda_emulation import (
    Emulated,
    EmulatedLibrary,
    build_driver,
    build_emulated,
)
from backend_c.native.cuda_executable import CudaExecutable
from backend_c.native.executable import Executable
from backend_c.native.kept_programs import built_program
from backend_c.native.loaded_library import LoadedLibrary
from backend_c.native.toolchain import known_compiler
from backend_c.probe.verdict import trusted
from backend_c.profiler import Profiler
from backend_c.profiles.listing import Listing
from backend_c.profiles.profile import Profile
from backend_c.programs import lowered as lowered
from backend_c.programs import pass_pipeline, rendered, require_one_rank
from backend_c.programs import planned as planned
from backend_c.projects.banded_plan import Bands, banded_plan
from backend_c.projects.c_names import parameter_names, required_prefix
from backend_c.projects.targets import EMITTERS, Recorded, Wanted, cuda_parts
from backend_c.render.dialect import CUDA, DIALECTS, EMBEDDED, OPENMP, Dialect
from backend_c.render.translation_units import render_plans
from hlo.errors import ArgumentError, Unsupported
from hlo.module import Module
from hlo.verification.verify import verify
from hlo.work import multiply_accumulates

_Choice = TypeVar("_Choice", bound=StrEnum)
_SETTINGS = {EMBEDDED.name: alone, CUDA.name: launched}


@overload
def compile(
    module: Module,
    numerics: str = "fast",
    target: Literal["openmp"] = "openmp",
    threads: int | None = None,
    cache: Directory | None = None,
) -> Executable: ...


@overload
def compile(
    module: Module,
    numerics: str = "fast",
    *,
    target: Literal["cuda"],
    cache: Directory | None = None,
    cublaslt: bool = False,
) -> CudaExecutable: ...


@overload
def compile(
    module: Module,
    numerics: str = "fast",
    target: str = "openmp",
    threads: int | None = None,
    cache: Directory | None = None,
    cublaslt: bool = False,
) -> Executable | CudaExecutable: ...


def compile(
    module: Module,
    numerics: str = "fast",
    target: str = "openmp",
    threads: int | None = None,
    cache: Directory | None = None,
    cublaslt: bool = False,
) -> Executable | CudaExecutable:
    """Compile a module to a library in this process, or to kernels on the first GPU.

    ``numerics``: ``exact`` or ``fast``, what docs/numerics.md says of them.
    ``threads``: OpenMP threads of each call; None is OpenMP's default. ``cache``: where libraries
    are kept; None is ``~/.cache/hlo-oracle``. The compiler is ``$HLO_CC``, else gcc, clang or cc;
    the first time it takes some seconds to give known answers (:mod:`backend_c.probe`). If it
    does not with its flags, it gets others: a CompilerWarning says so.

    ``target="cuda"``: the compiler is nvcc, else NVRTC (docs/cuda.md). With ``cublaslt`` fast
    products of large matrices are cuBLASLt's, where that is found: no GPU has run that yet.

    Raises VerifyError if the module means nothing, Unsupported for what the backend does not take,
    ToolchainError for what the compiler or the cache does not, and DeviceError if there is no GPU.
    """
    dialect = _require(target)
    settings = _with_library(settings_for(numerics, dialect), dialect, cublaslt)
    if dialect is OPENMP:
        return compiled(module, settings, threads, cache)
    if dialect is not CUDA:
        raise Unsupported(f"target {target} is emitted, not run: use emit; run with openmp")
    if threads is not None:
        raise ArgumentError("threads are those of OpenMP: target cuda takes none")
    plan = lowered(module, settings)  # raises what there is to raise of it
    device, compiler = Device(Driver()), find_cuda_compiler(os.environ)
    if not device.has_tensor_cores:
        plan = lowered(module, replace(settings, has_tensor_cores=False))
    library = find_cublas_lt(device, os.environ) if has_products(plan) else None
    (made,) = on_device([(module, plan)], device, compiler, cache, library)
    return made


def on_device(
    planned: Sequence[tuple[Module, Plan]],
    device: Device,
    compiler: CudaCompiler,
    cache: Directory | None = None,
    library: CublasLt | None = None,
) -> list[CudaExecutable]:
    """Compile modules with their plans as one unit of kernels on a device, whose products of
    matrices ``library`` computes if it takes them; raise as :func:`compile`."""
    text, parts = cuda_parts([plan for _, plan in planned])
    kept = open_cache(cache or default_directory(os.environ))
    loaded = LoadedModule(device, cubin(text, device.architecture, compiler, kept))
    source = {"module.cu": text}
    return [
        CudaExecutable(
            loaded,
            host,
            [(p.name, p.shape) for p in module.entry.parameters],
            module.entry.root_instruction.shape,
            source,
            library=library,
        )
        for (module, _), (host, _) in zip(planned, parts, strict=True)
    ]


def compiled(
    module: Module, settings: Settings, threads: int | None = None, cache: Directory | None = None
) -> Executable:
    """Compile a module by given settings; raise as :func:`compile`."""
    kept = open_cache(cache or default_directory(os.environ))
    compiler = trusted(known_compiler(os.environ, kept), kept)
    render = partial(rendered, module, settings)
    library, program = built_program(module, settings, compiler, kept, render)
    profiler = Profiler(module, settings, pass_pipeline(settings), compiler, kept)
    entry = module.entry
    parameters = [(p.name, p.shape) for p in entry.parameters]
    return Executable(
        LoadedLibrary(library), program, parameters, entry.root_instruction.shape, threads, profiler
    )


def emulate(module: Module, numerics: str = "exact", cache: Directory | None = None) -> Emulated:
    """Compile a module to CUDA, and that for the CPU: calls run it on emulated blocks of threads.

    The C compiler must take C++ and -fsanitize=thread, as gcc and clang do. Raises as
    :func:`compile`.
    """
    (made,) = emulated([module], settings_for(numerics, CUDA), cache)
    return made


def emulated(
    modules: Sequence[Module], settings: Settings, cache: Directory | None = None
) -> list[Emulated]:
    """Compile modules by given settings as one unit of CUDA for the CPU: :func:`emulate`."""
    plans = [phases.split(lowered(module, settings)) for module in modules]
    # Apart: what lies between two buffers is nobody's.
    programs = render_plans(plans, CUDA, allocate_apart)
    kept = open_cache(cache or default_directory(os.environ))
    compiler = known_compiler(os.environ, kept)
    path = build_emulated(programs[0].sources, compiler, kept)
    library = EmulatedLibrary(path, build_driver(compiler, kept))
    return [
        Emulated(
            library,
            host_plan(plan, program),
            [(p.name, p.shape) for p in module.entry.parameters],
            module.entry.root_instruction.shape,
            program.sources,
        )
        for module, plan, program in zip(modules, plans, programs, strict=True)
    ]


def explain(
    module: Module,
    numerics: str = "fast",
    threads: int | None = None,
    cache: Directory | None = None,
) -> Profile:
    """Describe a module kernel by kernel without compiling it: :meth:`Executable.explain`.

    Raises as :func:`compile`.
    """
    settings = settings_for(numerics)
    lowered(module, settings)  # raises what there is to raise
    kept = open_cache(cache or default_directory(os.environ))
    compiler = trusted(known_compiler(os.environ, kept), kept)
    return Profiler(module, settings, pass_pipeline(settings), compiler, kept).explain(threads)


def listing(
    module: Module, target: str = "openmp", numerics: str = "fast", *, cublaslt: bool = False
) -> Listing:
    """Return a module's HLO beside the C that a target makes of it, kernel by kernel; raise as
    :func:`compile`. With ``cublaslt`` it says which kernels that library may replace.
    """
    dialect = _require(target)
    settings = _with_library(settings_for(numerics, dialect), dialect, cublaslt)
    verify(module)
    require_one_rank(module)
    return compilation(module, settings, pass_pipeline(settings), dialect).listing


def emit(
    module: Module,
    target: str = "openmp",
    numerics: str = "fast",
    recorded: tuple[Sequence[Any], Any] | None = None,
    name: str | None = None,
    external_weights: bool = False,
    *,
    max_workspace: int | None = None,
    optimize: str | None = None,
    compiler: str | None = None,
    no_double: bool = False,
    simd: str | None = None,
    cublaslt: bool = False,
) -> dict[str, bytes]:
    """Emit a module as files by name: C, self-contained C99, or a project of CUDA.

    ``recorded``: arguments and the results expected of them; the targets embedded and cuda then get
    a ``main`` that runs the module and exits with 0 if the bits are those. ``name`` begins public
    names, the header's, too (by default ``module``; OpenMP C has ``NAME_run`` then in place of
    ``hlo_entry``), so that several can be in one binary. Of the target embedded:
    ``external_weights`` makes a file of the constants, in place of code; where the workspace has
    more than ``max_workspace`` bytes, layers are computed by bands of rows, and if that is not
    enough, it is Unsupported, with the instruction that needs it; ``optimize`` is ``speed``, the
    default, or ``size``; ``compiler`` is the command of a gcc, which is run to tell in
    ``manifest.json`` the bytes of code and of stack that it makes; ``no_double`` makes a program
    that takes double precision Unsupported; ``simd`` is ``auto``, the default, ``none`` or
    ``cmsis``, how products of bytes are taken several at a time. Of the target cuda: with
    ``cublaslt`` products of large matrices are a library's where it is found. Raises as
    :func:`compile`.
    """
    dialect = _require(target)
    wished = {
        "external_weights": external_weights or None,
        "max_workspace": max_workspace,
        "optimize": optimize,
        "compiler": compiler,
        "no_double": no_double or None,
        "simd": simd,
    }
    refused = [option for option, value in wished.items() if value is not None]
    if dialect is not EMBEDDED and refused:
        are = "is" if len(refused) == 1 else "are"
        raise Unsupported(f"{', '.join(refused)} {are} for the target {EMBEDDED.name}")
    given = None if recorded is None else Recorded(module, *recorded)
    goal = _choice(Optimize, "optimize", Optimize.SPEED if optimize is None else optimize)
    pairs = _choice(Simd, "simd", Simd.AUTO if simd is None else simd)
    settings = _with_library(settings_for(numerics, dialect), dialect, cublaslt)
    if dialect is EMBEDDED:
        settings = replace(settings, optimize=goal, packs_products=pairs is not Simd.NONE)
    plan = lowered(module, settings)
    bands: tuple[Bands, ...] = ()
    if max_workspace is not None:
        if not isinstance(max_workspace, int):
            raise ArgumentError(f"max_workspace={max_workspace!r}: a number of bytes")
        after = partial(planned, settings=settings, pipeline="after_bands")
        plan, bands = banded_plan(module, plan, max_workspace, after)
    prefix = required_prefix("module" if name is None else name)
    names, count = parameter_names(module), multiply_accumulates(module)
    wanted = Wanted(
        *(prefix, names, external_weights, max_workspace, count, goal, compiler, no_double),
        is_fast=settings.is_fast,
        simd=pairs,
        bands=bands,
    )
    return EMITTERS[dialect.name](plan, given, wanted)


def settings_for(numerics: str, dialect: Dialect = OPENMP) -> Settings:
    """Return the settings for numerics by name; raise Unsupported for an unknown one."""
    return _SETTINGS.get(dialect.name, threaded)(_choice(Numerics, "numerics", numerics))


def _with_library(settings: Settings, dialect: Dialect, cublaslt: bool) -> Settings:
    """Return settings by which large products of matrices are a library's if ``cublaslt``; raise
    Unsupported for a dialect that has none."""
    if cublaslt and dialect is not CUDA:
        raise Unsupported(f"cuBLASLt is for the target {CUDA.name}")
    return replace(settings, library_side=LIBRARY_SIDE) if cublaslt else settings


def _choice(kind: type[_Choice], what: str, name: str) -> _Choice:
    """Return a member of an enumeration by name; raise Unsupported for an unknown one."""
    if name not in list(kind):
        raise Unsupported(f"{what} {name!r}: one of {', '.join(kind)}")
    return kind(name)


def _require(target: str) -> Dialect:
    """Return the dialect of a target; raise Unsupported for an unknown one."""
    if target not in DIALECTS:
        raise Unsupported(f"target {target!r}: one of {', '.join(DIALECTS)}")
    return DIALECTS[target]

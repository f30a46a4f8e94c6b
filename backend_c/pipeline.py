"""Compile a module, top to bottom.

text ─ hlo.parse ▷ Module ─ passes ▷ Module ─ lower ▷ Plan ─ render ▷ Program ─ build ▷ library
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backend_c.cuda import phases
from backend_c.emit.embedded_check import main_text
from backend_c.emit.targets import EMITTERS
from backend_c.explain.profile import Profile
from backend_c.ir.settings import FAST_GRAIN, GRAIN, Numerics, Settings
from backend_c.lower.buffers import allocate_apart
from backend_c.lower.lowering import lower
from backend_c.lower.plan import Plan
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.cuda_emulation import Emulated, EmulatedLibrary, build_emulated, launches
from backend_c.native.executable import Executable, load
from backend_c.native.libraries import build
from backend_c.native.toolchain import known_compiler
from backend_c.probe.verdict import trusted
from backend_c.profiler import Profiler
from backend_c.render.dialect import CUDA, CUDA_EMULATED, DIALECTS, EMBEDDED, OPENMP, Dialect
from backend_c.render.translation_units import render_plan, render_plans
from hlo.errors import Unsupported
from hlo.module import Module
from hlo.passes.pipelines import run
from hlo.ranks import declared, knows_ranks
from hlo.verification.verify import verify

_EXACT = Settings()
_PIPELINE = {Numerics.EXACT: "backend_c", Numerics.FAST: "backend_c_fast"}


def compile(
    module: Module,
    numerics: str = "fast",
    target: str = "openmp",
    threads: int | None = None,
    cache: Path | None = None,
) -> Executable:
    """Compile a module to a library in this process.

    ``numerics``: ``exact`` or ``fast``, what docs/numerics.md says of them.
    ``threads``: OpenMP threads of each call; None is OpenMP's default. ``cache``: where libraries
    are kept; None is ``~/.cache/hlo-oracle``. The compiler is ``$HLO_CC``, else gcc, clang or cc;
    the first time it takes some two seconds to give known answers (:mod:`backend_c.probe`). If it
    does not with its flags, it gets others: a CompilerWarning says so.

    Raises VerifyError if the module means nothing, Unsupported for what the backend does not take,
    and ToolchainError for what the compiler or the cache does not.
    """
    _require(target)
    if target != OPENMP.name:
        other = ", or emulate" if target == CUDA.name else ""
        raise Unsupported(f"target {target} is emitted, not run: use emit{other}; run with openmp")
    return compiled(module, _settings(numerics), threads, cache)


def compiled(
    module: Module, settings: Settings, threads: int | None = None, cache: Path | None = None
) -> Executable:
    """Compile a module by given settings; raise as :func:`compile`."""
    # The cache is asked after rendering: its key is the C itself, not the module.
    program = render_plan(lowered(module, settings), OPENMP)
    kept = open_cache(cache or default_directory(os.environ))
    compiler = trusted(known_compiler(os.environ, kept), kept)
    library = build(program.sources, compiler, kept)
    profiler = Profiler(module, settings, _PIPELINE[settings.numerics], compiler, kept)
    entry = module.entry
    parameters = [(p.name, p.shape) for p in entry.parameters]
    return Executable(
        load(library), program, parameters, entry.root_instruction.shape, threads, profiler
    )


def emulate(module: Module, numerics: str = "exact", cache: Path | None = None) -> Emulated:
    """Compile a module to CUDA, and that for the CPU: calls run it on emulated blocks of threads.

    The C compiler must take C++ and -fsanitize=thread, as gcc and clang do. Raises as
    :func:`compile`.
    """
    (made,) = emulated([module], _settings(numerics, CUDA), cache)
    return made


def emulated(
    modules: Sequence[Module], settings: Settings, cache: Path | None = None
) -> list[Emulated]:
    """Compile modules by given settings as one unit of CUDA for the CPU: :func:`emulate`."""
    plans = [phases.split(lowered(module, settings)) for module in modules]
    # Apart: what lies between two buffers is nobody's.
    programs = render_plans(plans, CUDA_EMULATED, allocate_apart)
    kept = open_cache(cache or default_directory(os.environ))
    compiler = known_compiler(os.environ, kept)
    path = build_emulated(programs[0].sources, compiler, kept)
    made = [launches(plan, one.kernel_names) for plan, one in zip(plans, programs, strict=True)]
    library = EmulatedLibrary(path, made)
    entries = [module.entry for module in modules]
    return [
        Emulated(
            library,
            program,
            [(p.name, p.shape) for p in entry.parameters],
            entry.root_instruction.shape,
        )
        for program, entry in zip(programs, entries, strict=True)
    ]


def explain(
    module: Module, numerics: str = "fast", threads: int | None = None, cache: Path | None = None
) -> Profile:
    """Describe a module kernel by kernel without compiling it: :meth:`Executable.explain`.

    Raises as :func:`compile`.
    """
    settings = _settings(numerics)
    lowered(module, settings)  # raises what there is to raise
    kept = open_cache(cache or default_directory(os.environ))
    compiler = trusted(known_compiler(os.environ, kept), kept)
    pipeline = _PIPELINE[settings.numerics]
    return Profiler(module, settings, pipeline, compiler, kept).explain(threads)


def emit(
    module: Module,
    target: str = "openmp",
    numerics: str = "fast",
    recorded: tuple[Sequence[Any], Any] | None = None,
) -> dict[str, bytes]:
    """Emit a module as files by name: C, self-contained C99, or CUDA with a list of its launches.

    ``recorded``: arguments and the results expected of them; the embedded target then gets a
    ``main.c`` that runs the module and exits with 0 if the bits are those. Raises as
    :func:`compile`.
    """
    dialect = _require(target)
    files = EMITTERS[dialect.name](lowered(module, _settings(numerics, dialect)))
    if recorded is not None:
        if dialect is not EMBEDDED:
            raise Unsupported(f"recorded bits are checked on embedded, not on {target}")
        files["main.c"] = main_text(module, *recorded, seed=0).encode()
    return files


def lowered(module: Module, settings: Settings = _EXACT, pipeline: str = "") -> Plan:
    """Verify a module and lower it, after the passes of a pipeline: by default the one of its
    numerics.
    """
    verify(module)
    return planned(module, settings, pipeline)


def planned(module: Module, settings: Settings = _EXACT, pipeline: str = "") -> Plan:
    """Lower a module that was verified."""
    _require_one_rank(module)
    try:
        return lower(run(module, pipeline or _PIPELINE[settings.numerics]), settings)
    # The text decides how large constants are: they may need more memory than there is.
    except MemoryError as error:
        raise Unsupported("constants that the program needs do not fit into memory") from error


def _require_one_rank(module: Module) -> None:
    """Raise Unsupported for a module of several ranks that know of each other."""
    replicas, partitions = declared(module)
    if replicas * partitions > 1 and knows_ranks(module):
        raise Unsupported(
            f"the module is made for {replicas} replicas × {partitions} partitions: generated C is"
            f" one rank; use interp.evaluate(…, replicas={replicas}, partitions={partitions})"
        )


def _settings(numerics: str, dialect: Dialect = OPENMP) -> Settings:
    """Return the settings for numerics by name; raise Unsupported for an unknown one."""
    if numerics not in list(Numerics):
        raise Unsupported(f"numerics {numerics!r}: one of {', '.join(Numerics)}")
    grain = FAST_GRAIN if numerics == Numerics.FAST else GRAIN
    if dialect is CUDA:
        # Launches have addresses of their own, and one costs the same for one thread as for all.
        return Settings(Numerics(numerics), grain=1, least_exchanged=sys.maxsize)
    return Settings(Numerics(numerics), grain)


def _require(target: str) -> Dialect:
    """Return the dialect of a target; raise Unsupported for an unknown one."""
    if target not in DIALECTS:
        raise Unsupported(f"target {target!r}: one of {', '.join(DIALECTS)}")
    return DIALECTS[target]

"""List the configurations under which the bits must agree: compilers, flags, sanitizers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from backend_c.native.toolchain import Compiler, find_compiler, links, takes
from fuzz.compilers.processors import PROCESSORS, refusal
from hlo.errors import ToolchainError

THREADS = (1, 2, 3, 8)

_COMPILERS = {
    "gcc": "apt install gcc",
    "clang": "apt install clang libomp-dev",
    "tcc": "apt install tcc",
}
# Cross compilers with what runs their programs, statically linked. Vectors: NEON, VSX, none.
_EMULATED = {
    "aarch64-linux-gnu-gcc": ("qemu-aarch64", "apt install gcc-aarch64-linux-gnu qemu-user"),
    "powerpc64le-linux-gnu-gcc": (
        "qemu-ppc64le",
        "apt install gcc-powerpc64le-linux-gnu qemu-user",
    ),
    "riscv64-linux-gnu-gcc": ("qemu-riscv64", "apt install gcc-riscv64-linux-gnu qemu-user"),
}
_LEVELS = ("-O0", "-O3")
# Without optimisation, too: what a compiler does then is the same for models as for their level.
_UNOPTIMISED = ("x86-64", "x86-64-v3", "x86-64-v4", "native")
_AVX2 = "x86-64-v3"
_EMBEDDED = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
# Signed overflow is undefined again, so that it is found. Division by zero is not: IEEE 754 says
# what it gives, and HLO wants that; float-cast-overflow is not part of -fsanitize=undefined.
_UNDEFINED = (
    *("-O1", "-g", "-fno-omit-frame-pointer", "-ffp-contract=off", "-fno-strict-aliasing"),
    *("-fno-sanitize-recover=all", "-w"),
)
_ADDRESS = (
    "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize=float-divide-by-zero",
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """Describe one way to build and run a program.

    ``target`` is openmp or embedded. ``apart``: no two buffers share memory, and the gaps between
    them are poisoned. ``sources`` are linked in. ``emulator`` runs programs for another processor.
    ``grain`` is the least number of element operations at which a loop gets threads; None for the
    backend's default. ``pipeline`` names the passes before C.
    """

    name: str
    compiler: Compiler
    target: str = "openmp"
    threads: tuple[int, ...] = (1,)
    grain: int | None = None
    apart: bool = False
    sources: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    emulator: str = ""
    is_sanitizer: bool = False
    pipeline: str = "backend_c"


@dataclass(frozen=True, slots=True)
class Missing:
    """Name a configuration that this machine lacks, and how to install it."""

    name: str
    why: str


def configurations(environ: Mapping[str, str]) -> Iterator[Configuration | Missing]:
    """Yield all configurations, in the order of the table."""
    for name, install in _COMPILERS.items():
        try:
            compiler = find_compiler({**environ, "HLO_CC": name})
        except ToolchainError:
            yield Missing(name, f"not installed: {install}")
            continue
        if "-fopenmp" in compiler.flags and not links(compiler.command, ["-fopenmp"]):
            yield Missing(name, f"its OpenMP is not installed: {install}")
            continue
        yield from _unsanitized(name, compiler)
        yield from _embedded(name, compiler)
        yield from _sanitized(name, compiler)
    for name, (emulator, install) in _EMULATED.items():
        yield from _emulated(name, emulator, install, environ)


def _emulated(
    name: str, emulator: str, install: str, environ: Mapping[str, str]
) -> Iterator[Configuration | Missing]:
    """Yield a cross compiler and emulator, with the shipped flags and threads in every loop."""
    path = environ.get("PATH")
    if not (shutil.which(name, path=path) and shutil.which(emulator, path=path)):
        yield Missing(name, f"not installed: {install}")
        return
    found = find_compiler({**environ, "HLO_CC": name})
    compiler = replace(found, flags=(*found.flags, "-static"))
    yield Configuration(f"{name}, {emulator}", compiler, threads=(1, 3), grain=1, emulator=emulator)


def _unsanitized(name: str, compiler: Compiler) -> Iterator[Configuration | Missing]:
    """Yield the shipped flags, and variants for each processor that this one can run."""
    has_threads = "-fopenmp" in compiler.flags
    threads = THREADS if has_threads else (1,)
    shipped = Configuration(f"{name}, as shipped", compiler, threads=threads)
    yield shipped
    yield replace(shipped, name=f"{name}, no passes", grain=1, pipeline="lowerable")
    if not takes(compiler.command, ["-march=native"]):
        yield Configuration(f"{name}, small grain", compiler, threads=threads, grain=1)
        return
    for processor, title in PROCESSORS.items():
        why_not = refusal(compiler.command, processor)
        if why_not:
            yield Missing(f"{name} {title}", why_not)
        else:
            yield from _for_processor(f"{name} {{}} {title}", processor, shipped)


def _for_processor(title: str, processor: str, shipped: Configuration) -> Iterator[Configuration]:
    """Yield flags for a processor with and without OpenMP and, for some, without optimisation."""
    compiler = shipped.compiler
    flags = _replaced(compiler.flags, {"-march=native": f"-march={processor}"})
    built = replace(shipped, compiler=replace(compiler, flags=flags), grain=1)
    if processor in _UNOPTIMISED:
        plain = replace(compiler, flags=_replaced(flags, {"-O3": "-O0"}))
        yield replace(built, name=title.format("-O0"), compiler=plain)
    yield replace(built, name=title.format("-O3"))
    if "-fopenmp" in flags:
        alone = (*(flag for flag in flags if flag != "-fopenmp"), "-Wno-unknown-pragmas")
        serial = replace(built, compiler=replace(compiler, flags=alone), threads=(1,))
        yield replace(serial, name=title.format("-O3") + ", no OpenMP")


def _replaced(flags: tuple[str, ...], others: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(others.get(flag, flag) for flag in flags)


def _embedded(name: str, compiler: Compiler) -> Iterator[Configuration]:
    """Yield strict C99 of the embedded target, with a ``main`` that compares."""
    contract = ("-ffp-contract=off",) if takes(compiler.command, ["-ffp-contract=off"]) else ()
    for level in _LEVELS:
        built = replace(compiler, flags=(*_EMBEDDED, *contract, level))
        yield Configuration(f"{name} {level} embedded C99", built, "embedded")
        if not contract:  # no optimiser: all levels are the same
            return
    if not refusal(compiler.command, _AVX2):
        built = replace(compiler, flags=(*_EMBEDDED, *contract, "-O3", f"-march={_AVX2}"))
        yield Configuration(f"{name} -O3 {PROCESSORS[_AVX2]} embedded C99", built, "embedded")


def _sanitized(name: str, compiler: Compiler) -> Iterator[Configuration | Missing]:
    if name == "tcc":
        return
    yield _checked(f"{name} ASan + UBSan, openmp", compiler, _ADDRESS)
    if name == "clang":
        yield _checked(f"{name} MSan", compiler, ("-fsanitize=memory",))
        return
    yield _checked(f"{name} ASan + UBSan, embedded", compiler, _ADDRESS, "embedded")
    races = _checked(f"{name} TSan", compiler, ("-fsanitize=thread", "-fopenmp"))
    yield replace(races, threads=(2, 8), sources=("threads.c",), links=("-lpthread",))


def _checked(
    name: str, compiler: Compiler, flags: tuple[str, ...], target: str = "openmp"
) -> Configuration:
    standard = "-std=gnu11" if target == "openmp" else "-std=c99"
    built = replace(compiler, flags=(standard, *_UNDEFINED, *flags))
    return Configuration(name, built, target, grain=1, apart=target == "openmp", is_sanitizer=True)


def environment() -> dict[str, str]:
    """Return the environment variables that compiled programs run with."""
    return {
        **os.environ,
        # As many threads as are asked for, also on fewer processors, where waiting must not spin.
        "OMP_DYNAMIC": "false",
        "OMP_WAIT_POLICY": "passive",
        "ASAN_OPTIONS": "detect_leaks=0",
        "TSAN_OPTIONS": "halt_on_error=1",
        "LC_ALL": "C",
    }

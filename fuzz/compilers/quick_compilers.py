"""Choose C compilers for programs that run once, on little data: by compile time, not speed.

    quick(os.environ)     tcc, else clang or gcc without optimisation
    thorough(os.environ)  the compiler of ``backend_c.compile``, without optimisation

Of 50 programs of 30 instructions in a translation unit, each takes tcc 0.6 ms, ``clang -O0`` 14 and
``gcc -O0`` 25 (``bench/same_bits.py``): what they do for a function before they optimise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from backend_c.native.toolchain import Compiler, find_compiler
from hlo.errors import ToolchainError

_QUICK = ("tcc", "clang")

# Runtime functions that nothing calls cost nothing, and those that are called are compiled once:
# half of the time of gcc and clang.
_ONCE = (
    "-DHLO_FUNCTION=static inline __attribute__((unused))",
    "-DHLO_PROCEDURE=static inline __attribute__((unused))",
)
# -march=native alone is 90 ms of gcc for each translation unit. Without OpenMP a library can be
# closed, but its pragmas are unknown; warnings are what the thorough compiler is for.
_LEFT_OUT = (
    "-march=native",
    "-mprefer-vector-width=512",
    "-fopenmp",
    "-Wall",
    "-Wextra",
    "-Werror",
)


def quick(environ: Mapping[str, str]) -> Compiler:
    """Return the compiler with the shortest compile time, for a library without threads; ``HLO_CC``
    overrides it. Raises ToolchainError if there is none."""
    for name in () if environ.get("HLO_CC") else _QUICK:
        try:
            return _hurried(find_compiler({**environ, "HLO_CC": name}))
        except ToolchainError:
            continue
    return _hurried(find_compiler(environ))


def thorough(environ: Mapping[str, str]) -> Compiler:
    """Return the shipped compiler with all its flags (warnings, threads, vector instructions)
    except optimisation."""
    return _unoptimised(find_compiler(environ))


def portable(compiler: Compiler) -> Compiler:
    """Return a compiler whose code of the runtime functions runs on any processor."""
    return replace(compiler, flags=(*compiler.flags, "-DHLO_PORTABLE"))


def _hurried(compiler: Compiler) -> Compiler:
    slow = _unoptimised(compiler)
    kept = tuple(flag for flag in slow.flags if flag not in _LEFT_OUT)
    return replace(slow, flags=(*kept, *_ONCE, "-w"))


def _unoptimised(compiler: Compiler) -> Compiler:
    flags = tuple("-O0" if flag == "-O3" else flag for flag in compiler.flags)
    return replace(compiler, flags=flags)

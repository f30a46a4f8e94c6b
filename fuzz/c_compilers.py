"""C compilers for programs that run once, on little: what compiles soonest, and what is as shipped.

    quick(os.environ)     tcc, else clang or gcc without optimisation
    thorough(os.environ)  the compiler of ``backend_c.compile``, without optimisation

tcc takes a hundredth of the time of ``gcc -O0``: 0.2 ms against 8 ms for a program of 20
instructions, of 50 in a translation unit (``bench/same_bits.py``). clang takes half of gcc's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from backend_c.toolchain import Compiler, find_compiler
from hlo.errors import ToolchainError

_QUICK = ("tcc", "clang")

# Runtime functions that nothing calls cost nothing, and those that are called are compiled once:
# half of the time of gcc and clang.
_ONCE = (
    "-DHLO_FUNCTION=static inline __attribute__((unused))",
    "-DHLO_PROCEDURE=static inline __attribute__((unused))",
)
# -march=native alone is 90 ms of gcc for each translation unit. Without OpenMP a library can be
# closed.
_LEFT_OUT = ("-march=native", "-mprefer-vector-width=512", "-fopenmp")


def quick(environ: Mapping[str, str]) -> Compiler:
    """The one that is done soonest, for a library without threads; ``HLO_CC`` is obeyed.
    ToolchainError if there is none."""
    for name in () if environ.get("HLO_CC") else _QUICK:
        try:
            return _hurried(find_compiler({**environ, "HLO_CC": name}))
        except ToolchainError:
            continue
    return _hurried(find_compiler(environ))


def thorough(environ: Mapping[str, str]) -> Compiler:
    """With all that programs are compiled with (warnings, threads, vector instructions) but
    optimisation."""
    return _plain(find_compiler(environ))


def portable(compiler: Compiler) -> Compiler:
    """Of runtime functions, those for any processor."""
    return replace(compiler, flags=(*compiler.flags, "-DHLO_PORTABLE"))


def _hurried(compiler: Compiler) -> Compiler:
    plain = _plain(compiler)
    kept = tuple(flag for flag in plain.flags if flag not in _LEFT_OUT)
    return replace(plain, flags=(*kept, *_ONCE))


def _plain(compiler: Compiler) -> Compiler:
    flags = tuple("-O0" if flag == "-O3" else flag for flag in compiler.flags)
    return replace(compiler, flags=flags)

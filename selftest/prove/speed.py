"""``python -m selftest.prove.speed [FUNCTION ...]``: nanoseconds per element of fast and exact.

Each function of hlo.elementary.fast runs over 16,384 f32 in a loop as generated C has it, on one
thread, beside the exact sequence and, if jax is installed, XLA:CPU's of the same array; the least
of many interleaved runs counts. The compiler is that of programs: ``HLO_CC='gcc -march=haswell'``
measures another processor's code.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from hlo.elementary.fast import FAST_FUNCTIONS
from hlo.values import Array
from selftest.prove.c_program import build
from selftest.prove.fast import exact_name, largest

_ELEMENTS = 16384
_ROUNDS, _REPEATS = 60, 20
_IN_A_CALL = 100

# Operands between these bounds (f32 of any size would be mostly special cases).
_RANGES = {"rsqrt": (1e-3, 1e3), "log": (1e-3, 1e3), "asin": (-1.0, 1.0), "acos": (-1.0, 1.0),
           "log_plus_one": (-0.9, 10.0), "power": (0.1, 10.0), "acosh": (1.0, 100.0),
           "atanh": (-1.0, 1.0)}  # fmt: skip

# Names of jax.lax that are not those of HLO.
_JAX = {
    "cosine": "cos", "exponential": "exp", "exponential_minus_one": "expm1",
    "log_plus_one": "log1p", "power": "pow", "sine": "sin",
}  # fmt: skip

_MAIN = """#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define ELEMENTS %d
static float x[ELEMENTS], y[ELEMENTS], z[ELEMENTS];
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
#define LOOP(name, call)                              \\
    static __attribute__((noinline)) void name(void) {\\
        _Pragma("omp simd")                           \\
        for (long i = 0; i < ELEMENTS; ++i) {         \\
            z[i] = call;                              \\
        }                                             \\
    }
"""

_TIMING = """
int main(void) {
    double least[2] = {1e30, 1e30};
    void (*loops[2])(void) = {fast, exact};
    if (fread(x, sizeof x, 1, stdin) != 1 || fread(y, sizeof y, 1, stdin) != 1) return 1;
    for (int round = 0; round < %d; ++round) {
        for (int which = 0; which < 2; ++which) {
            const double start = now();
            for (int i = 0; i < %d; ++i) loops[which]();
            const double time = (now() - start) / %d / ELEMENTS;
            least[which] = time < least[which] ? time : least[which];
        }
    }
    printf("%%f %%f %%g\\n", least[0], least[1], (double)z[7]);
    return 0;
}
"""


def operands(name: str) -> tuple[Array, Array]:
    """Draw the operands of a function."""
    generator = np.random.default_rng(0)
    low, high = _RANGES.get(name, (-min(5.0, largest(name)), min(5.0, largest(name))))
    x = generator.uniform(low, high, _ELEMENTS).astype(np.float32)
    return x, generator.uniform(-3, 3, _ELEMENTS).astype(np.float32)


def nanoseconds_of_c(name: str) -> tuple[float, float]:
    """Measure the time per element of the fast and of the exact function."""
    arity = FAST_FUNCTIONS[name].arity
    fast = ", ".join(f"{p}[i]" for p in "xy"[:arity])
    exact = ", ".join(f"(double){p}[i]" for p in "xy"[:arity])
    text = "".join(
        [
            _MAIN % _ELEMENTS,
            f"LOOP(fast, hlo_{name}_fast({fast}))\n",
            f"LOOP(exact, (float)hlo_{exact_name(name)}({exact}))\n",
            _TIMING % (_ROUNDS, _REPEATS, _REPEATS),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder), [exact_name(name), f"{name}_fast"], text)
        data = b"".join(column.tobytes() for column in operands(name))
        found = subprocess.run([program], input=data, capture_output=True, check=True)
    times = found.stdout.split()
    return float(times[0]), float(times[1])


def nanoseconds_of_xla(name: str) -> float | None:
    """Measure the time per element of XLA:CPU on one thread, less that of a negation.

    None where jax is not installed.
    """
    if find_spec("jax") is None:
        return None
    jax: Any = import_module("jax")
    function = getattr(jax.lax, _JAX.get(exact_name(name), exact_name(name)))
    columns = [jax.numpy.asarray(x) for x in operands(name)[: FAST_FUNCTIONS[name].arity]]
    compiled = [jax.jit(_repeated(jax, call)) for call in (function, lambda *parts: -parts[0])]
    least = [1e30, 1e30]
    for round_ in range(_ROUNDS // 2):
        for which, call in enumerate(compiled):
            start = time.perf_counter()
            jax.block_until_ready(call(*columns))
            if round_:  # the first one compiles
                least[which] = min(least[which], time.perf_counter() - start)
    return (least[0] - least[1]) / _IN_A_CALL / _ELEMENTS * 1e9


def _repeated(jax: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of many evaluations in one call, as a call takes longer than one of them.

    Each evaluation depends on the one before, so that none is eliminated.
    """

    def repeated(x: Any, *others: Any) -> Any:
        def step(_: Any, last: Any) -> Any:
            return function(x + last * 1e-30, *others)

        return jax.lax.fori_loop(0, _IN_A_CALL, step, x * 0)

    return repeated


def main(names: list[str]) -> int:
    """Print a row of docs/proofs.md for each of ``names``, all if none are given."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    for name in names or FAST_FUNCTIONS:
        fast, exact = nanoseconds_of_c(name)
        xla = nanoseconds_of_xla(name)
        beside = "" if xla is None else f" {xla:.2f} |"
        print(f"| {name} | {exact:.2f} | {fast:.2f} |{beside}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m selftest.prove.fast [FUNCTION ...]``: the largest error of the fast sequences.

Each one-operand function of hlo.elementary.fast is run on all 2**32 f32 (the nonnegative ones if it
is odd or even, and none above its bound if it has one), as the C that generated programs call,
compiled as they are, once with fused multiply-add and once without, and compared with the exact
sequence (:mod:`selftest.prove`), whose float64 result errs by some 2**-51. Of those of two operands
a sample is run, by NumPy. The exit status is 1 if an error exceeds one unit in the last place, or a
special value is wrong.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from backend_c.render.dialect import OPENMP
from backend_c.render.elementary_functions import definitions
from backend_c.render.elementary_machine import CMachine, Value, function_text
from hlo.elementary import FUNCTIONS
from hlo.elementary.fast import BOUNDED, FAST_FUNCTIONS, SINGLE
from hlo.elementary.machine import with_sign_of
from hlo.values import Array
from interp.exact.elementary_machine import evaluated
from selftest.prove.c_program import build
from selftest.prove.float_machine import evaluated_fast

_PAIRS = 1_000_000  # of each kind
_SPECIAL = (0.0, 1.0, 0.5, 1.5, 2.0, 3.0, 2.0**-149, 2.0**-126, 2.0**23 + 1, 2.0**24, 3e38, np.inf)

_BOUNDED = {one.name: one for one in BOUNDED}
_SINGLE = {own: of for of, own in SINGLE.items()}

_UNFUSED = """
HLO_FUNCTION float unfused_f32(float a, float b, float c) { return a * b + c; }
"""


class Worst(NamedTuple):
    """The largest error in ulps, and its operand.

    ``above``: how many operands have an error above 1 ulp.
    """

    error: float
    operand: float | tuple[float, float]
    above: int


def ulps(found: Array, exact: Array) -> Array:
    """Compute the errors of f32 results in ulps of the exact f64 ones.

    As ``sweep_fast.c`` counts them; a wrong sign, or NaN in one of both only, is infinite.
    """
    limit = 2.0**128
    with np.errstate(all="ignore"):
        got, exact = (
            np.clip(values.astype(np.float64), -limit, limit) for values in (found, exact)
        )
        magnitude = np.minimum(np.abs(exact), 2.0**127)
        unit = np.maximum(np.exp2(np.floor(np.log2(magnitude)) - 23), 2.0**-149)
        errors = np.abs(got - exact) / unit
    unordered = np.isnan(got) != np.isnan(exact)
    signs = (np.signbit(got) != np.signbit(exact)) & ~np.isnan(got)
    errors = np.where(np.isnan(got), 0.0, errors)
    return np.where(unordered | signs, np.inf, errors)


def unfused_definitions(name: str) -> str:
    """Render the fast function of ``name`` without fused operations, as ``hlo_NAME_unfused``."""
    text = definitions(f"hlo_{name}_fast(", OPENMP)
    return _UNFUSED + text.replace("hlo_fused_f32", "unfused_f32").replace("_fast(", "_unfused(")


def exact_name(name: str) -> str:
    """Return the name of the exact sequence of the same function."""
    return _BOUNDED[name].of if name in _BOUNDED else _SINGLE.get(name, name)


def largest(name: str) -> float:
    """Return the largest magnitude that a fast sequence accepts."""
    return _BOUNDED[name].largest if name in _BOUNDED else np.inf


def inputs_of(name: str) -> int:
    """Return the number of f32 operands, from +0 on, that a function is run on.

    Functions with bounds are odd or even.
    """
    if name in _BOUNDED:
        return int(np.float32(_BOUNDED[name].largest).view(np.uint32)) + 1
    return 2**31 if FAST_FUNCTIONS[name].parity else 2**32


def _exact_definition(name: str) -> str:
    """Render the exact sequence as ``hlo_NAME_exact``, without its list of misrounded operands,
    which has rounded results."""
    function = FUNCTIONS[exact_name(name)]
    machine = CMachine()

    def sequence(first: Value, *others: Value) -> Value:
        x = machine.absolute(first) if function.parity else first
        result: Value = function.sequence(x, *others, machine)
        return with_sign_of(result, first, machine) if function.parity == "odd" else result

    return function_text(f"hlo_{name}_exact", "HLO_FUNCTION", function.arity, sequence)


def prove(name: str) -> tuple[Worst, Worst]:
    """Find the largest errors over all f32, with fused operations and without."""
    text = "".join(
        [
            unfused_definitions(name),
            _exact_definition(name),
            f"#define FUSED hlo_{name}_fast\n#define UNFUSED hlo_{name}_unfused\n",
            f"#define EXACT hlo_{name}_exact\n",
            f"#define SWEEP {inputs_of(name)}ull\n",
            Path(__file__).with_name("sweep_fast.c").read_text(),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder), [f"{name}_fast"], text)
        found = subprocess.run([program], capture_output=True, text=True, check=True)
    fused, unfused = (
        Worst(float(error), float(np.uint32(int(word)).view(np.float32)), int(above))
        for error, word, above in (line.split() for line in found.stdout.splitlines())
    )
    return fused, unfused


def pairs(name: str, count: int) -> tuple[Array, Array]:
    """Draw pairs of f32: special values with each other, random encodings, numbers of like size.

    Of power's operands the second is one for which the result is an f32, an integer in half of
    them; the first is close to 1 in many.
    """
    generator = np.random.default_rng(1)
    special = [*_SPECIAL, *(-value for value in _SPECIAL), np.nan]
    grid = np.meshgrid(special, special)
    words = generator.integers(0, 2**32, (2, count), dtype=np.uint32).view(np.float32)
    base = 1 + generator.uniform(-1, 1, count) * 2.0 ** -generator.uniform(0, 23, count)
    other = base + generator.uniform(-1, 1, count)
    if exact_name(name) == "power":  # results from the smallest to the largest f32
        other = generator.uniform(-150, 129, count) / np.log2(np.abs(base))
    signed = base * generator.choice([-1, 1], count)
    whole = (
        np.rint(other) if exact_name(name) == "power" else other * generator.choice([-1, 1], count)
    )
    with np.errstate(all="ignore"):  # of signalling NaNs, and what is beyond f32
        x = np.concatenate([grid[0].ravel(), words[0], base, signed])
        y = np.concatenate([grid[1].ravel(), words[1], other, whole])
        return x.astype(np.float32), y.astype(np.float32)


def worst_of_pairs(name: str, x: Array, y: Array, *, once: bool) -> Worst:
    """Find the largest error over pairs, evaluating the sequence in NumPy."""
    with np.errstate(all="ignore"):
        exact = evaluated(exact_name(name), x.astype(np.float64), y.astype(np.float64))
    found = ulps(evaluated_fast(name, x, y, once=once), exact)
    at = int(np.argmax(found))
    return Worst(float(found[at]), (float(x[at]), float(y[at])), int(np.sum(found > 1)))


def main(names: list[str]) -> int:
    """Prove ``names`` (all if none are given); print a row of docs/proofs.md for each."""
    failed = False
    for name in names or FAST_FUNCTIONS:
        started = time.monotonic()
        if FAST_FUNCTIONS[name].arity == 1:
            inputs = inputs_of(name)
            fused, unfused = prove(name)
        else:
            drawn = pairs(name, _PAIRS)
            inputs = drawn[0].size
            fused, unfused = (worst_of_pairs(name, *drawn, once=once) for once in (True, False))
        seconds = time.monotonic() - started
        print(
            f"| {name} | {inputs:,} | {fused.error:.4f} | {unfused.error:.4f} | {seconds:.0f} |",
            flush=True,
        )
        for worst in (fused, unfused):
            if worst.error > 1:
                print(f"    {worst.above} above 1, {worst.error} at {worst.operand}")
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m selftest.prove.fast [FUNCTION ...]``: the largest error of the fast sequences.

Each one-operand function of hlo.elementary.fast is run on all 2**32 f32 (the nonnegative ones if it
is odd or even), as the C that generated programs call, compiled as they are, once with fused
multiply-add and once without, and compared with the exact sequence (:mod:`selftest.prove`), whose
float64 result errs by some 2**-51. The exit status is 1 if an error exceeds one unit in the last
place, or a special value is wrong.
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
from hlo.elementary.fast import FAST_FUNCTIONS
from hlo.elementary.machine import with_sign_of
from hlo.values import Array
from selftest.prove.c_program import build

_UNFUSED = """
HLO_FUNCTION float unfused_f32(float a, float b, float c) { return a * b + c; }
"""


class Worst(NamedTuple):
    """The largest error, in units in the last place, at ``operand``.

    ``above``: how many operands have an error above 1.
    """

    error: float
    operand: float
    above: int


def ulps(found: Array, exact: Array) -> Array:
    """Return the errors of f32 results in units in the last place of exact f64 ones.

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


def _exact_definition(name: str) -> str:
    """Render the exact sequence as ``hlo_NAME_exact``, without its list of misrounded operands:
    what stands there is the rounded result."""
    function = FUNCTIONS[name]
    machine = CMachine()

    def sequence(first: Value, *others: Value) -> Value:
        x = machine.absolute(first) if function.parity else first
        result: Value = function.sequence(x, *others, machine)
        return with_sign_of(result, first, machine) if function.parity == "odd" else result

    return function_text(f"hlo_{name}_exact", "HLO_FUNCTION", function.arity, sequence)


def prove(name: str) -> tuple[Worst, Worst]:
    """Return the largest errors over all f32 with fused operations, and without them."""
    text = "".join(
        [
            unfused_definitions(name),
            _exact_definition(name),
            f"#define FUSED hlo_{name}_fast\n#define UNFUSED hlo_{name}_unfused\n",
            f"#define EXACT hlo_{name}_exact\n",
            f"#define SWEEP (1ull << {31 if FAST_FUNCTIONS[name].parity else 32})\n",
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


def main(names: list[str]) -> int:
    """Prove ``names`` (all if none are given); print a row of docs/proofs.md for each."""
    failed = False
    for name in names or [name for name, row in FAST_FUNCTIONS.items() if row.arity == 1]:
        started = time.monotonic()
        fused, unfused = prove(name)
        seconds = time.monotonic() - started
        inputs = 2**31 if FAST_FUNCTIONS[name].parity else 2**32
        print(
            f"| {name} | {inputs:,} | {fused.error:.4f} | {unfused.error:.4f} | {seconds:.0f} |",
            flush=True,
        )
        for worst in (fused, unfused):
            if worst.error > 1:
                print(f"    {worst.above} above 1, {worst.error} at {worst.operand.hex()}")
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

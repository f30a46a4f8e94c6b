"""``python -m selftest.prove [FUNCTION ...]``: is every result correctly rounded?

Each one-operand function of hlo.elementary is run on all 2**32 f32 (the nonnegative ones if the
function is odd or even), as the C that generated programs call, compiled as they are. An input is
*undecided* if the result is further than 2**-49 (relative) from the C library's, or if a rounding
boundary of f32 lies within 2**-48 of it, or if ``hlo/elementary/misrounded.py`` lists it: mpmath
judges each of those, and says how far off the sequence really is. All others
are right as long as the library errs by less than 2**-48 - 2**-49, 8 of its units in the last
place; none of its functions does, and it shares nothing with these sequences.
The narrower types are judged the same way on all their inputs. The exit status is 1 if a result is
wrong, that is, if a misrounded operand is missing in the list, or what stands there is wrong.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hlo.elementary import FUNCTIONS
from hlo.elementary.misrounded import MISROUNDED
from hlo.types import ELEMENT_TYPES, F32, F64, ElementType
from hlo.values import Array
from interp.exact.elementary_machine import NumpyMachine, evaluated
from interp.exact.rounding import rounded, rounded_fraction
from selftest.prove.c_program import build, c_name
from selftest.prove.truth import true_value

AGREEMENT = 2.0**-49
UNDECIDED = 2.0**-48

# The C library's functions. 1 - erf(4) is below 2**-25.
_REFERENCES = {
    "exponential": "exp(x)",
    "exponential_minus_one": "expm1(x)",
    "logistic": "1.0 / (1.0 + exp(-(x)))",
    "tanh": "tanh(x)",
    "sinh": "sinh(x)",
    "cosh": "cosh(x)",
    "log": "log(x)",
    "log_plus_one": "log1p(x)",
    "sine": "sin(x)",
    "cosine": "cos(x)",
    "tan": "tan(x)",
    "erf": "((x) > 4.0 ? 1.0 : erf(x))",
    "cbrt": "cbrt(x)",
    "rsqrt": "1.0 / sqrt(x)",
    "sqrt": "sqrt(x)",
    "asin": "asin(x)",
    "acos": "acos(x)",
    "atan": "atan(x)",
    "asinh": "asinh(x)",
    "acosh": "acosh(x)",
    "atanh": "atanh(x)",
}


class Judgement(NamedTuple):
    """An operand at which the function ``wrong`` rounds wrongly, and the correctly rounded
    result."""

    operand: float
    wrong: float
    correct: float


class Proof(NamedTuple):
    """The outcome of a sweep. ``error`` is the largest relative error of the bare sequence among
    the undecided operands. ``repaired``: listed operands at which it rounds wrongly; ``left``:
    operands at which the function, with its list, does."""

    inputs: int
    undecided: int
    error: float
    repaired: list[Judgement]
    left: list[Judgement]


def _undecided(name: str) -> list[tuple[float, float]]:
    """Return all undecided f32 operands, with the results of the C function."""
    text = "".join(
        [
            f"#define FUNCTION {c_name(name)}\n#define REFERENCE(x) ({_REFERENCES[name]})\n",
            f"#define AGREEMENT {AGREEMENT.hex()}\n#define UNDECIDED {UNDECIDED.hex()}\n",
            f"#define SWEEP (1ull << {31 if FUNCTIONS[name].parity else 32})\n",
            Path(__file__).with_name("sweep.c").read_text(),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder), [name], text)
        found = subprocess.run([program], capture_output=True, text=True)
    if found.returncode:
        raise SystemExit(f"{name}: more than 100,000 undecided inputs, e.g.\n{found.stdout[:500]}")
    rows = (line.split() for line in found.stdout.splitlines())
    return [(_f32(int(word)), float.fromhex(result)) for word, result in rows]


def _f32(word: int) -> float:
    return float(np.array(word, np.uint32).view(np.float32))


def _nudged(truth: Any, element_type: ElementType) -> float:
    """Return a float64 that rounds as ``truth`` does: the correctly rounded result itself."""
    return float(rounded_fraction(truth, element_type))


def _rounding_errors(
    name: str, pairs: list[tuple[float, float]], element_type: ElementType
) -> tuple[float, list[Judgement]]:
    """Return the largest error, and the operands whose results round wrongly."""
    error, wrong = 0.0, []
    for operand, result in pairs:
        truth = true_value(name, operand) if np.isfinite(operand) else result
        got = float(_rounded(np.asarray(result), element_type))
        if isinstance(truth, float):
            correct = truth
        else:
            correct = _nudged(truth, element_type)
            if truth and np.isfinite(result):
                error = max(error, float(abs(Fraction(result) / truth - 1)))
        if got != correct and not (np.isnan(got) and np.isnan(correct)):
            wrong.append(Judgement(operand, result, correct))
    return error, wrong


def prove(name: str) -> Proof:
    """Judge the function ``name`` at all f32 inputs."""
    function = FUNCTIONS[name]
    listed = [operand for operand, _ in MISROUNDED.get(name, ())]
    bare = [(x, float(function.sequence(np.float64(x), NumpyMachine()))) for x in listed]
    repaired_error, repaired = _rounding_errors(name, bare, F32)
    pairs = sorted(_undecided(name))
    error, left = _rounding_errors(name, [pair for pair in pairs if pair[0] not in listed], F32)
    left += _rounding_errors(name, [pair for pair in pairs if pair[0] in listed], F32)[1]
    inputs = 2**31 if function.parity else 2**32
    return Proof(inputs, len(pairs), max(error, repaired_error), repaired, left)


def narrow_mistakes(name: str) -> dict[str, list[Judgement]]:
    """Find, for each type below f32, the operands whose result, exceptions applied, rounds
    wrongly."""
    found = {}
    for element_type in ELEMENT_TYPES.values():
        if not element_type.is_float or element_type in (F32, F64):
            continue
        operands = _all_values(element_type)
        results = evaluated(name, operands)
        low = _rounded(results * (1 - UNDECIDED), element_type)
        high = _rounded(results * (1 + UNDECIDED), element_type)
        close = (low != high) & ~(np.isnan(low) & np.isnan(high))
        pairs = list(zip(operands[close].tolist(), results[close].tolist(), strict=True))
        found[element_type.name] = _rounding_errors(name, pairs, element_type)[1]
    return found


def _rounded(values: Array, element_type: ElementType) -> Array:
    with np.errstate(over="ignore"):
        return rounded(values, element_type).astype(np.float64)


def _all_values(element_type: ElementType) -> Array:
    """Return every value of a type of at most 16 bits, as float64."""
    unsigned = np.uint16 if element_type.numpy.itemsize == 2 else np.uint8
    words = np.arange(2**element_type.bits).astype(unsigned)
    with np.errstate(invalid="ignore"):
        return np.unique(words.view(element_type.numpy).astype(np.float64))


def one_operand_functions() -> list[str]:
    """List the functions that this module proves."""
    return list(_REFERENCES)


def main(names: list[str]) -> int:
    """Prove ``names`` (all if none are given); print a row of docs/proofs.md for each."""
    failed = False
    for name in names or one_operand_functions():
        started = time.monotonic()
        proof = prove(name)
        seconds = time.monotonic() - started
        misrounded = len({judgement.operand for judgement in (*proof.repaired, *proof.left)})
        listed = len(MISROUNDED.get(name, ()))
        print(
            f"| {name} | {proof.inputs:,} | {proof.undecided} | {proof.error:.1e} |"
            f" {misrounded} | {listed} | {len(proof.left)} | {seconds:.0f} |",
            flush=True,
        )
        for judgement in proof.left:
            print(f"    ({judgement.operand.hex()}, {judgement.correct.hex()}),")
        for type_name, mistakes in narrow_mistakes(name).items():
            for judgement in mistakes:
                print(f"    {type_name}: {judgement}")
                failed = True
        failed |= bool(proof.left)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

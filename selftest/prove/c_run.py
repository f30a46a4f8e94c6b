"""Runs sequences as C on arrays."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hlo.elementary import FUNCTIONS, evaluate
from selftest.prove.c_machine import FLAGS, PROLOGUE, CValue, function_text

Array = np.ndarray[Any, Any]

_MAIN = """
int main(int count, char **arguments) {
    const long size = atol(arguments[1]);
    double *x = malloc(2 * sizeof(double) * (size_t)size), *y = x + size;
    (void)count;
    if (fread(x, sizeof(double), 2 * (size_t)size, stdin) != 2 * (size_t)size) return 1;
"""


def results_of_c(names: Sequence[str], x: Array, y: Array) -> list[Array]:
    """The functions ``names`` of ``x``, or of ``x`` and ``y``, by compiled C."""
    functions, calls = [], []
    for name in names:
        parameters = ("x", "y")[: FUNCTIONS[name].arity]

        def sequence(*operands: Any, name: str = name) -> CValue:
            *values, machine = operands
            result: CValue = evaluate(name, machine, *values)
            return result

        functions.append(function_text(f"f_{name}", parameters, sequence))
        call = f"f_{name}({', '.join(f'{p}[i]' for p in parameters)})"
        calls.append(
            f"    for (long i = 0; i < size; ++i) {{\n        const double r = {call};\n"
            "        fwrite(&r, sizeof r, 1, stdout);\n    }\n"
        )
    text = "".join([PROLOGUE, *functions, _MAIN, *calls, "    return 0;\n}\n"])
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "run.c", Path(folder) / "run"
        source.write_text(text)
        subprocess.run(["gcc", *FLAGS, "-o", program, source, "-lm"], check=True)
        data = np.concatenate([x, y]).astype(np.float64).tobytes()
        output = subprocess.run([program, str(x.size)], input=data, capture_output=True, check=True)
    return list(np.frombuffer(output.stdout).reshape(len(names), x.size))

"""Run the C of elementary functions on arrays."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hlo.elementary import FUNCTIONS
from hlo.values import Array
from selftest.prove.c_program import build, c_name

_MAIN = """
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments) {
    const long size = atol(arguments[1]);
    double *x = malloc(2 * sizeof(double) * (size_t)size), *y = x + size;
    (void)count;
    if (fread(x, sizeof(double), 2 * (size_t)size, stdin) != 2 * (size_t)size) return 1;
"""


def results_of_c(names: Sequence[str], x: Array, y: Array) -> list[Array]:
    """Compute the functions ``names`` of ``x``, or of ``x`` and ``y``, by compiled C."""
    calls = []
    for name in names:
        operands = ", ".join(f"{p}[i]" for p in "xy"[: FUNCTIONS[name].arity])
        calls.append(
            "    for (long i = 0; i < size; ++i) {\n"
            f"        const double r = {c_name(name)}({operands});\n"
            "        fwrite(&r, sizeof r, 1, stdout);\n    }\n"
        )
    text = "".join([_MAIN, *calls, "    return 0;\n}\n"])
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder), names, text)
        data = np.concatenate([x, y]).astype(np.float64).tobytes()
        output = subprocess.run([program, str(x.size)], input=data, capture_output=True, check=True)
    return list(np.frombuffer(output.stdout).reshape(len(names), x.size))

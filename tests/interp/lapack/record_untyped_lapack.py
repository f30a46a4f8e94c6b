"""Records untyped_lapack.json: programs of an old JAX that call LAPACK, and its results.

pip install "jax==0.4.20" "jaxlib==0.4.20" "numpy<2" "scipy<1.13"   # in an environment of its own
python tests/interp/lapack/record_untyped_lapack.py > tests/interp/lapack/untyped_lapack.json
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax import lax

L = lax.linalg
Made = tuple[Callable[..., Any], list[np.ndarray]]
_RANDOM = np.random.default_rng(0)


def matrix(name: str, *dims: int) -> np.ndarray:
    numbers = _RANDOM.integers(-4, 5, dims).astype(np.complex128)
    if name.startswith("c"):
        numbers += 1j * _RANDOM.integers(-4, 5, dims)
    return (numbers if name.startswith("c") else numbers.real).astype(name)


def definite(name: str, n: int) -> np.ndarray:
    square = matrix(name, n, n)
    return (square @ square.conj().T + 10 * np.eye(n)).astype(name)


def programs(t: str) -> dict[str, Made]:
    """Return the functions of one type, and their operands. Results do not depend on the signs of
    vectors."""
    indefinite = np.stack([definite(t, 3), -definite(t, 3)])
    strong = (matrix(t, 2, 3, 4) + 9 * np.eye(3, 4)).astype(t)
    return {
        "cholesky": (lambda x: L.cholesky(x, symmetrize_input=False), [indefinite]),
        "triangular_solve": (
            lambda a, b: L.triangular_solve(a, b, left_side=True, lower=True),
            [definite(t, 3), matrix(t, 3, 2)],
        ),
        "triangular_solve of the transpose": (
            lambda a, b: L.triangular_solve(
                a, b, transpose_a=True, conjugate_a=True, unit_diagonal=True
            ),
            [(matrix(t, 3, 3) / 8).astype(t), matrix(t, 2, 3)],
        ),
        "lu": (L.lu, [strong]),
        "qr": (lambda x: L.qr(x, full_matrices=True), [matrix(t, 4, 3)]),
        "qr of a batch": (lambda x: L.qr(x, full_matrices=False), [matrix(t, 2, 4, 3)]),
        "eigh": (lambda x: L.eigh(x, symmetrize_input=False)[1], [definite(t, 3)]),
        "svd, full": (lambda x: L.svd(x, full_matrices=True)[1], [matrix(t, 4, 3)]),
        "svd": (lambda x: L.svd(x, full_matrices=False), [matrix(t, 3, 4)]),
        "singular values": (lambda x: L.svd(x, compute_uv=False), [matrix(t, 2, 3, 4)]),
        "eig": (lambda x: L.eig(x, compute_left_eigenvectors=False), [matrix(t, 3, 3)]),
        "schur": (lambda x: L.schur(x)[0], [definite(t, 3)]),
        "hessenberg": (L.hessenberg, [matrix(t, 4, 4)]),
        "tridiagonal": (lambda x: L.tridiagonal(x, lower=True), [definite(t, 4)]),
    }


def numbers(array: np.ndarray) -> dict[str, Any]:
    parts = [array.real, array.imag] if array.dtype.kind == "c" else [array]
    flat = [[float(f"{n:.9g}") for n in part.reshape(-1).tolist()] for part in parts]
    return {"type": str(array.dtype), "dims": array.shape, "numbers": flat}


def recorded() -> Iterator[dict[str, Any]]:
    for name in ("float32", "complex64"):
        for title, (function, arguments) in programs(name).items():
            lowered = jax.jit(function).lower(*arguments)
            text = lowered.compiler_ir("hlo").as_hlo_text()
            results = jax.tree_util.tree_leaves(jax.jit(function)(*arguments))
            yield {
                "name": f"{title}, {name}",
                "hlo": re.sub(r", metadata=\{[^{}]*\}", "", text).strip().splitlines(),
                "arguments": [numbers(a) for a in arguments],
                "results": [numbers(np.asarray(r)) for r in results],
            }


if __name__ == "__main__":
    rows = [json.dumps(row) for row in recorded()]
    sys.stdout.write("[\n" + ",\n".join(rows) + "\n]\n")

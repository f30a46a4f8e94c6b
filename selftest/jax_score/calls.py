"""Read the tables of calls of JAX's public functions (tables/*.txt).

A line is ``types: expression``, after ``group NAME`` and, optionally, ``tolerance 1e-4 1e-10`` (of
32 bits, of 64 bits). Types are letters of :data:`TYPES`; ``-`` is a call without arrays of a type.
Names in an expression are JAX's modules and the arrays of :data:`ARRAYS`, drawn in each type and
in both sizes. A call of floats is also differentiated and vectorised (:func:`transformed`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.cluster.vq
import jax.scipy.fft
import jax.scipy.integrate
import jax.scipy.interpolate
import jax.scipy.ndimage
import jax.scipy.optimize
import jax.scipy.signal
import jax.scipy.sparse.linalg
import jax.scipy.spatial.transform
import jax.scipy.special
import jax.scipy.stats
import numpy as np
from jax import lax
from jax.experimental.ode import odeint
from jax.flatten_util import ravel_pytree

from selftest.jax_score import custom_rules

TYPES = {
    "b": "bool",
    "i": "int32",
    "s": "int8",
    "u": "uint8",
    "l": "int64",
    "h": "float16",
    "w": "bfloat16",
    "f": "float32",
    "d": "float64",
    "c": "complex64",
    "z": "complex128",
    "-": "float32",
}
_WIDE = {"int64", "float64", "complex128"}
_TABLES = Path(__file__).with_name("tables")
_MODULES = {
    "jax": jax,
    "jnp": jnp,
    "lax": lax,
    "jsp": jax.scipy,
    "nn": jax.nn,
    "odeint": odeint,
    "ravel_pytree": ravel_pytree,
    "custom_rules": custom_rules,
}
_SIZES = {"small": (3, 4), "large": (17, 33)}  # of matrices

Draw = Callable[[np.random.RandomState, int, int], Any]


def _around_zero(*shape: str) -> Draw:
    return lambda rng, n, m: rng.randn(*_dims(shape, n, m)) * 2


def _dims(shape: Sequence[str], n: int, m: int) -> list[int]:
    return [{"n": n, "m": m, "3": 3, "2": 2, "1": 1}[name] for name in shape]


# Numbers at the edges of functions, in turn.
_EDGES = (
    0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.0, -3.0, 1e30, -1e30, 1e-30, 90.0,
    -90.0, 1.5, -2.5,
)  # fmt: skip


def _edges(rng: np.random.RandomState, n: int, m: int) -> Any:
    return np.resize(_EDGES, (n, 6))


def _definite(rng: np.random.RandomState, n: int, m: int) -> Any:
    factor = rng.randn(n, n)
    return factor @ factor.T + n * np.eye(n)


# How the arrays of expressions are drawn, from n and m, the dimensions of a matrix.
ARRAYS: dict[str, Draw] = {
    "x": _around_zero("n", "m"),
    "y": _around_zero("n", "m"),
    "vector": _around_zero("m"),
    "other": _around_zero("m"),
    "short": _around_zero("3"),
    "tensor": _around_zero("2", "n", "m"),
    "square": _around_zero("n", "n"),
    "scalar": _around_zero(),
    "images": _around_zero("2", "n", "m", "3"),
    "positive": lambda rng, n, m: rng.uniform(0.5, 4, (n, m)),
    "unit": lambda rng, n, m: rng.uniform(0.05, 0.95, (n, m)),
    "definite": _definite,
    "special": _edges,
    "ascending": lambda rng, n, m: np.sort(rng.randn(m)) * 4,
}
# Those whose type is always the same.
FIXED: dict[str, Draw] = {
    "index": lambda rng, n, m: rng.randint(0, n, (3,)).astype(np.int32),
    "labels": lambda rng, n, m: rng.randint(0, 3, (m,)).astype(np.int32),
    "mask": lambda rng, n, m: rng.rand(n, m) > 0.5,
    "key": lambda rng, n, m: np.array([0, rng.randint(1 << 30)], np.uint32),
}


@dataclass(frozen=True, slots=True)
class Call:
    """An expression applied to arrays of one type and size."""

    group: str
    name: str
    expression: str
    parameters: tuple[str, ...]
    element_type: str
    size: str
    tolerance: Any
    transformation: str = ""

    def function(self) -> Callable[..., Any]:
        """Make the jitted function of its parameters."""
        source = f"lambda {', '.join(self.parameters)}: {self.expression}"
        call = eval(source, dict(_MODULES))  # of this project's own tables
        return jax.jit(_TRANSFORMATIONS[self.transformation](call))

    def arguments(self, rng: np.random.RandomState) -> list[Any]:
        """Draw the arrays."""
        drawn = [self._drawn(name, rng) for name in self.parameters]
        if self.transformation == "vmap":
            return [np.stack([one, one[..., ::-1] if np.ndim(one) else one]) for one in drawn]
        return drawn

    def _drawn(self, name: str, rng: np.random.RandomState) -> Any:
        sizes = _SIZES[self.size]
        if name in FIXED:
            return FIXED[name](rng, *sizes)
        values = np.asarray(ARRAYS[name](rng, *sizes))
        dtype = jnp.dtype(self.element_type)
        if dtype.kind == "u":
            values = np.abs(values)
        if dtype.kind == "c":
            values = values + 1j * np.asarray(ARRAYS[name](rng, *sizes))
        return (values > 0 if dtype.kind == "b" else values).astype(dtype)


def calls() -> Iterator[Call]:
    """Yield the calls of all tables for the types that JAX has now."""
    for path in sorted(_TABLES.glob("*.txt")):
        yield from _of_table(path.read_text())


def _of_table(text: str) -> Iterator[Call]:
    group, tolerance = "", None
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "group":
            group, tolerance = rest, None
        elif word == "tolerance":
            tolerance = _tolerance(*map(float, rest.split()))
        elif line and word != "#":
            types, _, expression = line.partition(": ")
            yield from _of_line(group, types, expression, tolerance)


def _tolerance(single: float, double: float) -> dict[Any, float]:
    wide = {np.dtype(np.float64): double, np.dtype(np.complex128): double}
    return wide | {np.dtype(np.float32): single, np.dtype(np.complex64): single}


def _of_line(group: str, types: str, expression: str, tolerance: Any) -> Iterator[Call]:
    tree = ast.parse(expression, mode="eval")
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    parameters = tuple(name for name in (*ARRAYS, *FIXED) if name in used - bound)
    for letter in types:
        if TYPES[letter] in _WIDE and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            continue
        for size in _SIZES if parameters and letter != "-" else ("small",):
            name = f"{expression} {TYPES[letter]} {size}" if letter != "-" else expression
            given = name, expression, parameters, TYPES[letter], size, tolerance
            yield Call(group, *given)
            if letter == "f" and size == "small" and set(parameters) & set(ARRAYS):
                for how in list(_TRANSFORMATIONS)[1:]:
                    given = f"{how} of {name}", *given[1:]
                    yield Call(group, *given, transformation=how)


def _jvp(call: Callable[..., Any]) -> Callable[..., Any]:
    def transformed(*arrays: Any) -> Any:
        numbers, rebuilt = _floats(call, arrays)
        return jax.jvp(rebuilt, numbers, numbers)

    return transformed


def _grad(call: Callable[..., Any]) -> Callable[..., Any]:
    def transformed(*arrays: Any) -> Any:
        numbers, rebuilt = _floats(call, arrays)
        results, pulled = jax.vjp(rebuilt, *numbers)
        return pulled(jax.tree.map(jnp.ones_like, results))

    return transformed


def _floats(call: Callable[..., Any], arrays: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
    """Return the float arguments, and the function of these alone."""
    which = [n for n, array in enumerate(arrays) if jnp.issubdtype(array.dtype, jnp.floating)]

    def rebuilt(*numbers: Any) -> Any:
        all_ = list(arrays)
        for n, number in zip(which, numbers, strict=True):
            all_[n] = number
        return [y for y in jax.tree.leaves(call(*all_)) if jnp.issubdtype(y.dtype, jnp.inexact)]

    return tuple(arrays[n] for n in which), rebuilt


_TRANSFORMATIONS: dict[str, Callable[..., Any]] = {
    "": lambda call: call,
    "jvp": _jvp,
    "grad": _grad,
    "vmap": jax.vmap,
}

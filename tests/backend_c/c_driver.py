"""Small C programs around the runtime headers, called on NumPy arrays."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import cffi
import numpy as np

from backend_c.native.cache import default_directory, open_cache
from backend_c.native.libraries import build
from backend_c.native.toolchain import Compiler, find_compiler

# As the backend compiles, but for the time that vectors of 400 loops take (14 s, not 4): programs
# of each opcode have those; and as a microcontroller's compiler may: the portable fallbacks in
# strict C99, stopping at anything undefined.
FAST = "fast"
STRICT = "strict"
BUILDS = (FAST, STRICT)
_STRICT_FLAGS = (
    *("-std=c99", "-O1", "-ffp-contract=off", "-fPIC", "-DHLO_PORTABLE"),
    *("-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"),
    *("-fsanitize=undefined", "-fno-sanitize-recover=all"),
)


def compiler_for(kind: str) -> Compiler:
    compiler = find_compiler(os.environ)
    usual = tuple("-O1" if flag == "-O3" else flag for flag in compiler.flags)
    return replace(compiler, flags=usual if kind == FAST else _STRICT_FLAGS)


class Driver:
    """The functions of a C source; ``call`` passes arrays as pointers and numbers as they are.

    ``compiler`` is one, or one of BUILDS.
    """

    def __init__(self, source: str, prototypes: str, compiler: str | Compiler) -> None:
        declared = source.replace("PROTOTYPES", prototypes)
        compiler = compiler_for(compiler) if isinstance(compiler, str) else compiler
        path = build({"unit_0.c": declared}, compiler, open_cache(default_directory(os.environ)))
        self._ffi = cffi.FFI()
        self._ffi.cdef(prototypes)
        self._library = self._ffi.dlopen(str(path), self._ffi.RTLD_NOW | self._ffi.RTLD_NODELETE)

    def call(self, name: str, *arguments: Any) -> Any:
        return getattr(self._library, name)(*map(self._argument, arguments))

    def _argument(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self._ffi.cast("void *", value.__array_interface__["data"][0])
        return value


class Maps:
    """Loops that apply expressions in ``a[i]``, ``b[i]``, ``c[i]`` to arrays.

    ``expressions`` maps a name to (the result's C type, the operands', the expression).
    """

    def __init__(
        self,
        headers: str,
        expressions: Mapping[str, tuple[str, str, str]],
        kind: str,
    ) -> None:
        includes = "".join(f'#include "{header}"\n' for header in headers.split())
        prototypes, bodies = [], []
        for name, (result, operands, expression) in expressions.items():
            arrays = zip(operands.split(), "abc")
            formals = "".join(f", const {c_type} *{array}" for c_type, array in arrays)
            head = f"void {name}(int64_t n, {result} *r{formals})"
            prototypes.append(head + ";\n")
            loop = f"for (int64_t i = 0; i < n; ++i) r[i] = {expression};"
            bodies.append(f"{head} {{ {loop} }}\n")
        declared = "".join(prototypes)
        source = f"{includes}{declared}{''.join(bodies)}"
        self._driver = Driver(source, declared, kind)
        self._expressions = expressions

    def __call__(self, name: str, *arrays: np.ndarray) -> np.ndarray:
        contiguous = [np.ascontiguousarray(array) for array in arrays]
        result = np.empty(contiguous[0].size, _DTYPES[self._expressions[name][0]])
        self._driver.call(name, result.size, result, *contiguous)
        return result


_DTYPES = {
    f"{sign}int{bits}_t": np.dtype(f"{sign}int{bits}")
    for sign, bits in itertools.product(("", "u"), (8, 16, 32, 64))
} | {"float": np.dtype(np.float32), "double": np.dtype(np.float64), "int": np.dtype(np.intc)}


def same(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where two arrays of floats have equal bits, any NaN being equal to any NaN."""
    assert one.dtype == other.dtype
    bits = np.dtype(f"u{one.dtype.itemsize}")
    nans = _is_nan(one) & _is_nan(other)
    return (one.view(bits) == other.view(bits)) | nans


def _is_nan(array: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return np.isnan(array.astype(np.float64))


def edge_floats(dtype: type[np.floating[Any]], count: int) -> np.ndarray:
    """Zeros, infinities, NaN, the ends of every range, and random bits."""
    info = np.finfo(dtype)
    ends = [0, 0.5, 1, 1.5, 2, 2.5, 3, 100.5, 127.5, 128, 255.5, 2.0**23, 2.0**24, 2.0**31]
    ends += [2.0**32, 2.0**52, 2.0**53, 2.0**63, 2.0**64, np.inf, np.nan, info.max, info.tiny]
    ends += [info.smallest_subnormal, np.pi, 1e30, 1e-30]
    with np.errstate(over="ignore"):
        near = np.array(ends, dtype)
        near = np.concatenate(
            [near, np.nextafter(near, dtype(0)), np.nextafter(near, dtype(np.inf))]
        )
    random = np.random.default_rng(7).integers(0, 2 ** (8 * info.dtype.itemsize), count, np.uint64)
    bits = np.dtype(f"u{info.dtype.itemsize}")
    return np.concatenate([near, -near, random.astype(bits).view(dtype)])


def pairs(values: np.ndarray) -> Iterator[np.ndarray]:
    """All pairs of values, as two arrays."""
    for grid in np.meshgrid(values, values):
        yield grid.ravel()

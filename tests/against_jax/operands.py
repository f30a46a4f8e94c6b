"""Arguments from a text: ``f32[2,3]:unit`` is an array of this shape, filled from [-1, 1].

The same text gives the same array.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

import numpy as np

from hlo.types import ELEMENT_TYPES, ElementType

_SPEC = re.compile(r"(\w+)\[([\d,]*)\](?::(\w+))?")
_REAL = {"c64": "f32", "c128": "f64"}
Dims = tuple[int, ...]


def array(spec: str, type_name: str) -> np.ndarray:
    """The argument that ``spec`` describes; T in it is ``type_name``, R the type of its parts, U
    the unsigned type of its width."""
    match = _SPEC.fullmatch(spec)
    assert match, f"no operand: {spec}"
    name, sizes, fill = match.groups()
    dims = tuple(map(int, sizes.split(","))) if sizes else ()
    if name == "U":
        name = f"u{ELEMENT_TYPES[type_name].bits}"
    name = {"T": type_name, "R": _REAL.get(type_name, type_name)}.get(name, name)
    element_type = ELEMENT_TYPES[name]
    random = np.random.default_rng(zlib.crc32(f"{spec} {name}".encode()))
    with np.errstate(all="ignore"):
        if element_type.is_complex:
            real, imaginary = (
                _real(fill or "any", random, dims, ELEMENT_TYPES[_REAL[name]]) for _ in range(2)
            )
            return _joined(fill or "any", real, imaginary)
        return _real(fill or "any", random, dims, element_type).astype(element_type.numpy)


def _real(fill: str, random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    return np.asarray(_FILLS[fill](random, dims, kind)).astype(kind.numpy)


def _joined(fill: str, real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """All pairs of parts if these are edges."""
    if fill == "rows":
        imaginary = np.roll(imaginary, 7, 0)
    if fill == "columns":
        imaginary = np.roll(imaginary, 7, 1)
    if fill == "edges":
        n = min(len(real), 20)
        real, imaginary = real[:n].repeat(n), np.tile(imaginary[:n], n)
    if fill == "positive_definite":
        above = np.triu(imaginary, 1)
        imaginary = above - np.swapaxes(above, -1, -2)
    result = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    result.real, result.imag = real, imaginary
    return result


def _any(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    """Numbers of moderate size; integers over their whole range."""
    if kind.is_integer:
        low, high = _limits(kind)
        return random.integers(low, high, dims, np.uint64 if low == 0 else np.int64, endpoint=True)
    if kind.kind == "pred":
        return random.integers(0, 2, dims)
    return random.standard_normal(dims) * 2


def _limits(kind: ElementType) -> tuple[int, int]:
    if kind.kind == "unsigned":
        return 0, 2**kind.bits - 1
    return -(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1


def _edge_list(kind: ElementType) -> np.ndarray:
    """List numbers at which functions change their nature: no subnormals of the wide types, which
    XLA flushes, but those of the narrow ones (they are normal in f32)."""
    if kind.kind == "pred":
        return np.array([False, True])
    if kind.is_integer:
        low, high = _limits(kind)
        numbers = {low, low + 1, -1, 0, 1, 2, 3, 7, high // 2, high - 1, high}
        return np.array([n for n in sorted(numbers) if low <= n <= high], dtype=object).astype(
            np.uint64 if low == 0 else np.int64
        )
    numbers = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 1.5, -2.5, 3.5, np.inf, -np.inf, np.nan]
    numbers += [2.0**-126, -(2.0**-10), 2.0**-24, 10.25, -10.25, 100, -100]
    if kind.bits >= 16:
        largest = float(np.finfo(np.float64).max) if kind.bits == 64 else 3.3e38
        numbers += [65504.0, -65504.0, largest, -largest, 1e10, -1e10, 1e-30]
    return np.array(numbers)


def _edges(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    """A vector: the edges, then others. Its size is its own."""
    edges = _edge_list(kind)
    return np.concatenate([edges.astype(kind.numpy), _any(random, (37,), kind).astype(kind.numpy)])


def _pairs(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    edges = _edge_list(kind)
    return np.concatenate([edges.astype(kind.numpy), _any(random, (5,), kind).astype(kind.numpy)])


def _rows(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    """Repeat the edges along rows; with ``columns`` these are all pairs of edges."""
    edges = _pairs(np.random.default_rng(1), dims, kind)
    return np.repeat(edges[:, None], len(edges), 1)


def _columns(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    edges = _pairs(np.random.default_rng(1), dims, kind)
    return np.repeat(edges[None, :], len(edges), 0)


def _small(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    low, high = _limits(kind) if kind.is_integer else (-3, 3)
    return random.integers(max(low, -3), min(high, 3), dims, endpoint=True)


def _between(low: float, high: float) -> Callable[..., np.ndarray]:
    def fill(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
        return random.uniform(low, high, dims)

    return fill


def _index(bound: int) -> Callable[..., np.ndarray]:
    def fill(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
        return random.integers(0, bound, dims)

    return fill


def _wild(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    """Indices, some of them out of bounds."""
    return random.integers(0 if kind.kind == "unsigned" else -4, 9, dims)


def _distinct(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    size = int(np.prod(dims))
    return random.permutation(size).reshape(dims) - (0 if kind.kind == "unsigned" else size // 2)


def _permutation(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    return random.permutation(int(np.prod(dims))).reshape(dims)


def _ascending(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    return np.sort(_any(random, dims, kind).astype(kind.numpy).astype(np.float64))


def _positive_definite(random: np.random.Generator, dims: Dims, kind: ElementType) -> np.ndarray:
    square = random.uniform(-0.5, 0.5, dims)
    return square + np.swapaxes(square, -1, -2) + 2 * dims[-1] * np.eye(dims[-1])


_FILLS: dict[str, Callable[..., np.ndarray]] = {
    "any": _any,
    "edges": _edges,
    "rows": _rows,
    "columns": _columns,
    "small": _small,
    "unit": _between(-1, 1),
    "fraction": _between(0.05, 0.95),
    "positive": _between(0.1, 4),
    "wild": _wild,
    "index2": _index(2),
    "index3": _index(3),
    "index4": _index(4),
    "index8": _index(8),
    "distinct": _distinct,
    "permutation": _permutation,
    "ascending": _ascending,
    "positive_definite": _positive_definite,
    "zero": lambda random, dims, kind: np.zeros(dims),
    "one": lambda random, dims, kind: np.ones(dims),
}

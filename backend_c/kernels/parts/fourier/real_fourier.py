"""Relate the transform of a real signal of even length n to one of h = n / 2 complex numbers.

With z[j] = x[2 j] + i x[2 j + 1], Z its transform, Z[h] = Z[0] and w = exp(-2 pi i / n), the
transform of x is (Sorensen et al., "Real-valued fast Fourier transform algorithms", 1987)

    X[k] = (Z[k] + conj(Z[h - k])) / 2 + w^k (Z[k] - conj(Z[h - k])) / 2i    for k = 0 … h
    2 Z[k] = X[k] + conj(X[h - k]) + i w^-k (X[k] - conj(X[h - k]))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Array, Constant, Expr
from backend_c.ir.scope import Scope, apply
from hlo.types import PRED


class Parts(NamedTuple):
    """Hold the real and the imaginary part of a number."""

    real: Expr
    imag: Expr


Load = Callable[[Expr], Parts]
Store = Callable[[Expr, Parts], None]


def is_real(length: int, k: Expr) -> Expr:
    """Return whether coefficient k of a real signal's spectrum counts as real.

    These are the constant and, for even lengths, the middle one: their own mirror images.
    """
    ends = [0, length // 2] if length % 2 == 0 else [0]
    is_end = [apply("compare-EQ", k, ix.constant(end), type=PRED) for end in ends]
    return is_end[0] if len(is_end) == 1 else apply("or", *is_end)


def spectrum_of_signal(scope: Scope, load: Load, roots: Array, half: int, k: Expr) -> Parts:
    """Return X[k] from the transform Z of h = ``half`` numbers."""
    one = load(ix.modulo(k, half))
    other = load(ix.modulo(ix.subtract(half, k), half))
    halved = Constant(one.real.type, 0.5)

    def mean(operation: str, a: Expr, b: Expr) -> Expr:
        return scope.bind(apply("multiply", apply(operation, a, b), halved))

    even = Parts(mean("add", one.real, other.real), mean("subtract", one.imag, other.imag))
    odd = Parts(mean("add", one.imag, other.imag), mean("subtract", other.real, one.real))
    turned = _product(odd, _root(scope, roots, k))
    return Parts(apply("add", even.real, turned.real), apply("add", even.imag, turned.imag))


def halve_spectrum(
    scope: Scope, access: tuple[Load, Store], roots: Array, half: int, k: Expr
) -> None:
    """Write 2 Z[k] and 2 Z[h - k] over X[k] and X[h - k]; X[0] and X[h] count as real."""
    # The factor 2 stays: the result is then divided by n, not by h.
    load, store = access
    mirror = ix.subtract(half, k)
    one, other = load(k), load(mirror)
    even = Parts(
        scope.bind(apply("add", one.real, other.real)),
        scope.bind(apply("subtract", one.imag, other.imag)),
    )
    odd = Parts(
        scope.bind(apply("subtract", one.real, other.real)),
        scope.bind(apply("add", one.imag, other.imag)),
    )
    root = _root(scope, roots, k)
    turned = _product(odd, Parts(root.real, apply("negate", root.imag)))
    turned = Parts(scope.bind(turned.real), scope.bind(turned.imag))
    # i turned, and for h - k the conjugates of both, with -turned for turned.
    store(
        mirror,
        Parts(
            apply("add", even.real, turned.imag),
            apply("subtract", turned.real, even.imag),
        ),
    )
    store(
        k,
        Parts(
            apply("subtract", even.real, turned.imag),
            apply("add", even.imag, turned.real),
        ),
    )


def _root(scope: Scope, roots: Array, k: Expr) -> Parts:
    """Return w^k."""
    place = ix.multiply(k, 2)
    return Parts(
        scope.bind(scope.load(roots, place)), scope.bind(scope.load(roots, ix.add(place, 1)))
    )


def _product(one: Parts, other: Parts) -> Parts:
    """Return the product of two numbers."""
    (a, b), (c, d) = one, other
    real = apply("subtract", apply("multiply", a, c), apply("multiply", b, d))
    return Parts(real, apply("add", apply("multiply", a, d), apply("multiply", b, c)))

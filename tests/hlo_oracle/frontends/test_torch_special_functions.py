"""ATen's special functions on JAX's arrays, against SciPy.

JAX computes them here, element by element; that C gives the same is other tests' matter. Nothing
here needs PyTorch.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
special = pytest.importorskip("scipy.special")

from hlo_oracle.frontends.jax_internals import with_x64  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch.aten.table import operation_of  # noqa: E402 (after the skip)

F64 = np.dtype("float64")
INF, NAN = np.inf, np.nan


def of(name: str, *arguments: Any, result: Any = F64) -> Any:
    operation = operation_of(name, "default")
    assert operation is not None
    with with_x64(True):
        return np.asarray(jax.jit(lambda: operation(result, *arguments))())


def numbers(low: float, high: float) -> Any:
    return np.random.default_rng(0).uniform(low, high, 400)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("airy_ai", lambda x: special.airy(x)[0]),
        ("bessel_j0", special.j0),
        ("bessel_j1", special.j1),
        ("bessel_y0", special.y0),
        ("bessel_y1", special.y1),
        ("modified_bessel_i0", special.i0),
        ("modified_bessel_i1", special.i1),
        ("modified_bessel_k0", special.k0),
        ("modified_bessel_k1", special.k1),
        ("scaled_modified_bessel_k0", special.k0e),
        ("scaled_modified_bessel_k1", special.k1e),
        ("spherical_bessel_j0", lambda x: special.spherical_jn(0, x)),
        ("erfcx", special.erfcx),
    ],
)
def test_special_functions_near_zero_and_far_from_it(
    name: str, function: Callable[[Any], Any]
) -> None:
    has_negative = not any(kind in name for kind in ("_y", "_k"))
    near, far = numbers(-9 if has_negative else 1e-3, 9), numbers(9, 60)
    for x in (near, far, -far if has_negative and name != "erfcx" else far):
        assert np.allclose(of(f"special_{name}", x), function(x), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "at_zero", "below"),
    [("bessel_y0", -INF, NAN), ("modified_bessel_k1", INF, NAN), ("bessel_j0", 1, special.j0(-2))],
)
def test_values_at_the_edge(name: str, at_zero: float, below: float) -> None:
    found = of(f"special_{name}", np.array([0.0, -2, NAN]))
    assert np.allclose(found, [at_zero, below, NAN], equal_nan=True)


def test_scaled_complements_of_the_error_function_do_not_underflow() -> None:
    x = np.array([1e-3, 2.9, 3.1, 26.5, 1e9, INF, -5, -INF, NAN])
    expected = special.erfcx(x)
    assert np.allclose(of("special_erfcx", x), expected, rtol=1e-14, atol=0, equal_nan=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("chebyshev_polynomial_t", special.eval_chebyt),
        ("chebyshev_polynomial_u", special.eval_chebyu),
        ("hermite_polynomial_h", special.eval_hermite),
        ("hermite_polynomial_he", special.eval_hermitenorm),
        ("laguerre_polynomial_l", special.eval_laguerre),
        ("legendre_polynomial_p", special.eval_legendre),
        ("shifted_chebyshev_polynomial_t", special.eval_sh_chebyt),
        ("shifted_chebyshev_polynomial_u", special.eval_sh_chebyu),
        # Their weights are those of Jacobi's polynomials with halves.
        ("chebyshev_polynomial_v", lambda n, x: _third_kind(n, x)),
        ("chebyshev_polynomial_w", lambda n, x: (-1.0) ** n * _third_kind(n, -x)),
        ("shifted_chebyshev_polynomial_v", lambda n, x: _third_kind(n, 2 * x - 1)),
        ("shifted_chebyshev_polynomial_w", lambda n, x: (-1.0) ** n * _third_kind(n, 1 - 2 * x)),
    ],
)
def test_orthogonal_polynomials(name: str, function: Callable[[Any, Any], Any]) -> None:
    x = np.concatenate([numbers(-2, 2), [1.0, -1, 0, 0.5]])
    degree = np.random.default_rng(1).integers(0, 13, x.size)
    expected = function(degree, x)
    found = of(f"special_{name}", x, degree)
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert of(f"special_{name}", x, -1).max() == 0


def _third_kind(n: Any, x: Any) -> Any:
    return special.eval_chebyu(n, x) - np.where(n > 0, special.eval_chebyu(n - 1, x), 0)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
def test_derivatives_of_the_gamma_function_at_negative_numbers(order: int) -> None:
    x = np.array([0.3, 2, 40, -0.3, -7.7, -20.4, -100.5])
    sines = np.pi / np.tan(np.pi * x)  # of the reflection
    expected = special.digamma(x)
    if order:
        t, s = sines / np.pi, 1 / np.sin(np.pi * x) ** 2
        derivative = {
            1: -(np.pi**2) * s,
            2: 2 * np.pi**3 * t * s,
            3: -2 * np.pi**4 * s * (s + 2 * t**2),
            4: 8 * np.pi**5 * t * s * (2 * s + t**2),
        }[order]
        reflected = (-1) ** order * special.polygamma(order, 1 - x) - derivative
        expected = np.where(x > 0, special.polygamma(order, np.abs(x)), reflected)
    assert np.allclose(of("polygamma", order, x), expected, rtol=1e-9)


def test_zeta_at_its_poles_and_beyond() -> None:
    x = np.array([2.0, 3, 1.5, 1, 0.5, 4, 1.5, 30])
    q = np.array([0.25, -1, -0.0, 3, 3, -20.25, -0.5, 2])
    expected = [special.zeta(2, 0.25), INF, INF, INF, NAN, NAN, NAN, special.zeta(30, 2)]
    expected[5] = np.sum((-20.25 + np.arange(21)) ** -4) + special.zeta(4, 0.75)
    found = of("special_zeta", x, q)
    assert np.allclose(found, expected, rtol=1e-12, equal_nan=True)

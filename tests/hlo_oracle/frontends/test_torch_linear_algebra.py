"""ATen's factors of matrices on JAX's arrays: products of the factors give the matrix again.

Nothing here needs PyTorch.
"""

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from hlo_oracle.frontends.jax_internals import with_x64  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch.aten.table import operation_of  # noqa: E402 (after the skip)


def of(name: str, *arguments: Any, **named: Any) -> Any:
    operation = operation_of(name, "default")
    assert operation is not None
    with with_x64(True):
        given = [jax.numpy.asarray(x) if hasattr(x, "shape") else x for x in arguments]
        return jax.tree.map(np.asarray, jax.jit(lambda: operation(None, *given, **named))())


def numbers(*dims: int, dtype: str = "float64") -> Any:
    values = np.random.default_rng(0).standard_normal((2, *dims))
    return (values[0] + 1j * values[1] if dtype == "complex128" else values[0]).astype(dtype)


def adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


def product(*factors: Any) -> Any:
    value = factors[0]
    for factor in factors[1:]:
        value = value @ factor
    return value


TYPES = pytest.mark.parametrize("dtype", ["float64", "complex128"])


@pytest.mark.sampled(5)
@TYPES
@pytest.mark.parametrize("dims", [(4, 4), (2, 5, 3), (3, 5), (0, 3), (2, 0, 0)])
def test_factors_of_a_matrix(dtype: str, dims: tuple[int, ...]) -> None:
    x = numbers(*dims, dtype=dtype)
    assert np.allclose(product(*of("linalg_lu", x)), x)
    lu, pivots, info = of("linalg_lu_factor_ex", x)
    assert np.allclose(product(*of("lu_unpack", lu, pivots)), x)
    assert info.shape == x.shape[:-2]
    assert not info.any()
    for mode in ("reduced", "complete"):
        assert np.allclose(product(*of("linalg_qr", x, mode)), x)


def test_the_first_zero_pivot_is_counted_from_1() -> None:
    x = np.diag([2.0, 0.0, 3.0, 0.0])
    assert of("linalg_lu_factor_ex", x)[2] == 2


@pytest.mark.sampled(4)
@TYPES
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("is_adjoint", [False, True])
def test_systems_are_solved_by_factors(dtype: str, left: bool, is_adjoint: bool) -> None:
    a = numbers(3, 4, 4, dtype=dtype)
    b = numbers(4, 2, dtype=dtype) if left else numbers(2, 4, dtype=dtype)
    lu, pivots, _ = of("linalg_lu_factor_ex", a)
    x = of("linalg_lu_solve", lu, pivots, b, left=left, adjoint=is_adjoint)
    a = adjoint(a) if is_adjoint else a
    assert np.allclose(a @ x if left else x @ a, np.broadcast_to(b, x.shape))


@TYPES
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_factors(dtype: str, upper: bool) -> None:
    x = numbers(2, 4, 4, dtype=dtype)
    x = x @ adjoint(x) + np.eye(4)
    read = np.triu(x) if upper else np.tril(x)  # the other triangle is not read
    factor, info = of("linalg_cholesky_ex", read, upper=upper)
    assert np.allclose(adjoint(factor) @ factor if upper else factor @ adjoint(factor), x)
    assert not info.any()
    b = numbers(4, 3, dtype=dtype)
    assert np.allclose(x @ of("cholesky_solve", b, factor, upper), np.broadcast_to(b, (2, 4, 3)))
    assert np.allclose(of("cholesky_inverse", factor, upper), np.linalg.inv(x))


def test_a_matrix_without_a_cholesky_factor_is_reported() -> None:
    assert of("linalg_cholesky_ex", np.diag([1.0, -1.0]))[1] == 2


@TYPES
@pytest.mark.parametrize("transpose", [False, True])
def test_triangular_systems(dtype: str, transpose: bool) -> None:
    a, b = numbers(4, 4, dtype=dtype), numbers(4, 2, dtype=dtype)
    x, _ = of("triangular_solve", b, a, False, transpose, True)
    lower = np.tril(a, -1) + np.eye(4)
    assert np.allclose((lower.T if transpose else lower) @ x, b)
    y = of("linalg_solve_triangular", a, b.T, upper=True, left=False)
    assert np.allclose(y @ np.triu(a), b.T)


@TYPES
def test_eigenvalues_and_singular_values(dtype: str) -> None:
    x = numbers(5, 3, dtype=dtype)
    u, s, v = of("_linalg_svd", x, False)
    assert np.allclose(u * s @ v, x)
    assert np.allclose(of("_linalg_svd", x, False, False)[1], s)
    assert np.allclose(of("linalg_pinv", x), np.linalg.pinv(x))
    square = adjoint(x) @ x
    values, vectors = of("_linalg_eigh", np.triu(square), "U")
    assert np.allclose(vectors * values @ adjoint(vectors), square)
    assert np.allclose(of("_linalg_eigh", square, "L", False)[0], values)
    values, vectors = of("linalg_eig", square)
    assert np.allclose(square @ vectors, vectors * values)


def test_small_singular_values_count_as_zero() -> None:
    x = np.diag([1.0, 1e-3])
    assert np.allclose(of("linalg_pinv", x, rtol=np.float64(0.01)), np.diag([1.0, 0.0]))


def test_the_exponential_of_a_matrix() -> None:
    turned = of("linalg_matrix_exp", np.array([[0.0, -1.0], [1.0, 0.0]]))
    assert np.allclose(turned, [[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]])

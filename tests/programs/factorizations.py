"""Factors of matrices: QR, least squares, eigenvalues, singular values, Cholesky, triangles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jax import Array

from programs.function import of


@of("f32[12,6]")
def factors_qr(a: Array) -> tuple[Array, Array]:
    return tuple(jnp.linalg.qr(a))


@of("f32[5,5]", "f32[5,8]")
def square_and_flat_qr(a: Array, b: Array) -> tuple[Array, Array]:
    return jnp.linalg.qr(a)[0], jnp.linalg.qr(b, mode="r")


@of("f32[20,4]", "f32[20]")
def least_squares(a: Array, b: Array) -> Array:
    return jnp.linalg.lstsq(a, b)[0]


@of("f32[20,4]", "f32[20]")
def least_squares_by_qr(a: Array, b: Array) -> Array:
    q, r = jnp.linalg.qr(a)
    return jsl.solve_triangular(r, q.T @ b)


@of("f32[8,5]")
def pseudoinverse(a: Array) -> Array:
    return jnp.linalg.pinv(a)


@of("f32[8,8]:definite")
def eigenvalues_of_symmetric(a: Array) -> Array:
    return jnp.linalg.eigvalsh(a)


@of("f32[6,6]")
def symmetric_from_eigenvectors(a: Array) -> Array:
    values, vectors = jnp.linalg.eigh(a + a.T)
    return (vectors * values) @ vectors.T


@of("f32[6,6]")
def eigenvectors(a: Array) -> tuple[Array, Array]:
    return tuple(jnp.linalg.eigh(a + a.T))


@of("f32[6,6]:definite")
def root_of_a_covariance(a: Array) -> Array:
    values, vectors = jnp.linalg.eigh(a)
    return (vectors * jnp.sqrt(values)) @ vectors.T


@of("f32[6,6]")
def general_eigenvalues(a: Array) -> Array:
    return jnp.linalg.eigvals(a)


@of("f64[5,5]")
def general_eigenvectors(a: Array) -> tuple[Array, Array]:
    return tuple(jnp.linalg.eig(a))


@of("f32[7,4]")
def singular_values(a: Array) -> Array:
    return jnp.linalg.svd(a, compute_uv=False)


@of("f32[10,8]")
def low_rank_approximation(a: Array) -> Array:
    u, s, v = jnp.linalg.svd(a, full_matrices=False)
    return (u[:, :3] * s[:3]) @ v[:3]


@of("f32[7,4]")
def norms_and_condition(a: Array) -> tuple[Array, ...]:
    return jnp.linalg.norm(a, 2), jnp.linalg.norm(a, "nuc"), jnp.linalg.cond(a)


@of("f32[7,4]")
def rank_of_a_matrix(a: Array) -> Array:
    return jnp.linalg.matrix_rank(a)


@of("f32[16,16]:definite")
def factor_cholesky(a: Array) -> Array:
    return jnp.linalg.cholesky(a)


@of("f64[3,8,8]:definite")
def cholesky_of_a_batch(a: Array) -> Array:
    return jnp.linalg.cholesky(a)


@of("f32[10,10]:definite", "f32[10]")
def solve_by_cholesky(a: Array, b: Array) -> Array:
    return jsl.cho_solve(jsl.cho_factor(a), b)


@of("f32[6,6]:definite")
def gradient_of_cholesky(a: Array) -> Array:
    return jax.grad(lambda a: jnp.linalg.cholesky(a).sum())(a)


@of("f32[8]", "f32[8,8]:definite", "f32[8]")
def log_density_of_a_gaussian(x: Array, covariance: Array, mean: Array) -> Array:
    factor = jnp.linalg.cholesky(covariance)
    z = jsl.solve_triangular(factor, x - mean, lower=True)
    return -0.5 * z @ z - jnp.log(jnp.diagonal(factor)).sum() - 4 * jnp.log(2 * jnp.pi)


@of("f32[20,1]", "f32[20]", "f32[5,1]")
def gaussian_process(x: Array, y: Array, points: Array) -> tuple[Array, Array]:
    def kernel(a: Array, b: Array) -> Array:
        return jnp.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1))

    factor = jnp.linalg.cholesky(kernel(x, x) + 0.1 * jnp.eye(20))
    v = jsl.solve_triangular(factor, kernel(x, points), lower=True)
    mean = v.T @ jsl.solve_triangular(factor, y, lower=True)
    return mean, 1 - (v * v).sum(0)


@of("f32[8,8]", "f32[8,3]")
def triangular_solves(a: Array, b: Array) -> tuple[Array, ...]:
    lower = jnp.tril(a) + 3 * jnp.eye(8)
    upper = jnp.triu(a) + 3 * jnp.eye(8)
    return (
        jsl.solve_triangular(lower, b, lower=True),
        jsl.solve_triangular(upper, b),
        jsl.solve_triangular(lower, b, lower=True, trans=1),
        jsl.solve_triangular(lower, b, lower=True, unit_diagonal=True),
    )


@of("f32[8,8]", "f32[8]")
def gradient_of_a_triangular_solve(a: Array, b: Array) -> Array:
    lower = jnp.tril(a) + 3 * jnp.eye(8)
    return jax.grad(lambda a: jsl.solve_triangular(a, b, lower=True).sum())(lower)


@of("f32[30,6]")
def principal_components(x: Array) -> Array:
    centred = x - x.mean(0)
    values, vectors = jnp.linalg.eigh(centred.T @ centred / 29)
    return jnp.abs(centred @ vectors[:, -2:])


@of("f32[5,5]:definite")
def polar_and_square_root(a: Array) -> tuple[Array, Array]:
    return jsl.polar(a)[0], jnp.real(jsl.sqrtm(a))


@of("f32[3,3]", "f32[10,3]", "f32[10,3]")
def kabsch_rotation(bias: Array, x: Array, y: Array) -> Array:
    u, _, v = jnp.linalg.svd(x.T @ y + bias)
    sign = jnp.sign(jnp.linalg.det(u @ v))
    return (u * jnp.array([1.0, 1.0, 0.0]) + u * jnp.array([0.0, 0.0, 1.0]) * sign) @ v


@of("f32[6,6]")
def gradient_of_eigenvalues(a: Array) -> Array:
    return jax.grad(lambda a: jnp.linalg.eigvalsh(a + a.T)[-1])(a)


@of("f32[6,4]")
def gradient_of_singular_values(a: Array) -> Array:
    return jax.grad(lambda a: jnp.linalg.svd(a, compute_uv=False).sum())(a)

"""Matrices that are singular, nearly so, or have equal eigenvalues."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jax import Array

from programs.function import of


def low_rank(a: Array) -> Array:
    return a @ a.T


def matrix_function(matrix: Array, power: float) -> Array:
    w, v = jnp.linalg.eigh(matrix)
    return (v * jnp.power(jnp.maximum(w, 1e-6), power)) @ v.T


def preconditioned(w: Array, g: Array) -> Array:
    left = matrix_function(g @ g.T + 1e-4 * jnp.eye(len(g)), -0.25)
    right = matrix_function(g.T @ g + 1e-4 * jnp.eye(g.shape[1]), -0.25)
    return w - 0.1 * left @ g @ right


@of("f32[8,6]", "f32[8,6]")
def shampoo_step(w: Array, g: Array) -> Array:
    return preconditioned(w, g)


@of("f32[8,6]", "f32[8,6]")
def gradient_through_shampoo(w: Array, g: Array) -> tuple[Array, Array]:
    return jax.grad(lambda w, g: jnp.sum(jnp.tanh(preconditioned(w, g))), (0, 1))(w, g)


@of("f32[7,4]")
def gradient_of_an_inverse_root(a: Array) -> Array:
    return jax.grad(lambda a: matrix_function(low_rank(a) + 1e-4 * jnp.eye(7), -0.5).sum())(a)


@of("f32[7,3]")
def gradient_of_a_log_determinant(a: Array) -> Array:
    return jax.grad(lambda a: jnp.linalg.slogdet(low_rank(a) + 1e-3 * jnp.eye(7))[1])(a)


@of("f32[6,3]")
def gradient_of_a_zero_determinant(a: Array) -> Array:
    return jax.grad(jnp.linalg.det)(low_rank(a))


@of("f32[6,3]", "f32[6,2]")
def ridge_by_cholesky(a: Array, b: Array) -> Array:
    return jsl.cho_solve(jsl.cho_factor(low_rank(a) + 1e-4 * jnp.eye(6)), b)


@of("f32[6,3]", "f32[6,2]")
def whitened_by_cholesky(a: Array, b: Array) -> Array:
    factor = jnp.linalg.cholesky(low_rank(a) + 1e-5 * jnp.eye(6))
    return jsl.solve_triangular(factor, b, lower=True)


@of("f32[6,6]", "f32[6,2]")
def triangle_with_a_small_pivot(a: Array, b: Array) -> Array:
    return jsl.solve_triangular(jnp.tril(a).at[1, 1].set(1e-12), b, lower=True)


@of("f32[6,6]", "f32[6]")
def transposed_triangle_with_a_small_pivot(a: Array, b: Array) -> Array:
    return jsl.solve_triangular(jnp.triu(a).at[4, 4].set(1e-9), b, trans=1)


@of("f32[40]", "f32[40]")
def gaussian_process_of_close_points(x: Array, y: Array) -> Array:
    kernel = jnp.exp(-((x[:, None] - x[None]) ** 2) / 8) + 1e-5 * jnp.eye(40)
    factor = jnp.linalg.cholesky(kernel)
    alpha = jsl.cho_solve((factor, True), y)
    return -0.5 * y @ alpha - jnp.log(jnp.diag(factor)).sum()


@of("f32[12]", "f32[12]")
def gradient_of_a_marginal_likelihood(x: Array, y: Array) -> Array:
    def likelihood(scale: Array) -> Array:
        kernel = jnp.exp(-((x[:, None] - x[None]) ** 2) * scale) + 1e-4 * jnp.eye(12)
        factor = jnp.linalg.cholesky(kernel)
        return y @ jsl.cho_solve((factor, True), y) + 2 * jnp.log(jnp.diag(factor)).sum()

    return jax.grad(likelihood)(jnp.float32(0.1))


@of("f32[6,3]")
def pseudoinverse_of_low_rank(a: Array) -> Array:
    return jnp.linalg.pinv(low_rank(a))


@of("f32[5,3]")
def gradient_of_a_pseudoinverse(a: Array) -> Array:
    return jax.grad(lambda a: jnp.linalg.pinv(a).sum())(a)


@of("f32[8,3]", "f32[8]")
def least_squares_of_low_rank(a: Array, b: Array) -> Array:
    return jnp.linalg.lstsq(low_rank(a), b)[0]


@of("f32[6,3]", "f32[6,2]")
def solve_of_low_rank(a: Array, b: Array) -> Array:
    return jnp.linalg.solve(low_rank(a) + 1e-6 * jnp.eye(6), b)


@of("f32[6,3]")
def square_root_of_low_rank(a: Array) -> Array:
    return matrix_function(low_rank(a), 0.5)


@of("f32[6,3]")
def projector_of_low_rank(a: Array) -> Array:
    u, s, vt = jnp.linalg.svd(low_rank(a))
    return (u * (s > 1e-3)) @ vt


@of("f32[6,6]")
def vectors_of_a_multiple_of_one(a: Array) -> Array:
    w, v = jnp.linalg.eigh(jnp.eye(6) * a[0, 0])
    return (v * w) @ v.T


@of("f32[6,4]")
def gradient_of_a_nuclear_norm(a: Array) -> Array:
    return jax.grad(lambda a: jnp.linalg.svd(low_rank(a) + jnp.eye(6))[1].sum())(a)


@of("f32[6,2]")
def gradient_of_orthogonal_factors(a: Array) -> Array:
    return jax.grad(lambda a: jnp.tanh(jnp.linalg.qr(a * jnp.array([1.0, 1e-3]))[0]).sum())(a)


@of("f32[8,8]")
def spectral_clusters_of_two_parts(a: Array) -> Array:
    weights = jnp.kron(jnp.eye(2), jnp.exp(-jnp.abs(a[:4, :4] + a[:4, :4].T)))
    laplacian = jnp.diag(weights.sum(0)) - weights
    v = jnp.linalg.eigh(laplacian)[1][:, :2]
    return v @ v.T


@of("f32[5,5]")
def exponential_of_a_nilpotent(a: Array) -> Array:
    return jsl.expm(jnp.triu(a, 1))


@of("f32[6,3]")
def condition_and_rank(a: Array) -> tuple[Array, Array]:
    matrix = low_rank(a) + jnp.eye(6) * 1e-3
    return jnp.linalg.cond(matrix), jnp.linalg.matrix_rank(matrix, rtol=1e-2)

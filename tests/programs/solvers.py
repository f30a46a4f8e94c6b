"""Systems of equations by LU: solve, inverse, determinants, matrix exponentials, filters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jax import Array

from programs.function import of


@of("f32[16,16]", "f32[16]")
def solve(a: Array, b: Array) -> Array:
    return jnp.linalg.solve(a, b)


@of("f32[8,6,6]", "f32[8,6,2]")
def solve_a_batch(a: Array, b: Array) -> Array:
    return jnp.linalg.solve(a, b)


@of("f64[12,12]", "f64[12,3]")
def solve_in_f64(a: Array, b: Array) -> Array:
    return jnp.linalg.solve(a, b)


@of("c64[6,6]", "c64[6]")
def solve_complex(a: Array, b: Array) -> Array:
    return jnp.linalg.solve(a, b)


@of("f32[10,10]")
def inverse(a: Array) -> Array:
    return jnp.linalg.inv(a)


@of("f32[10,10]:definite")
def inverse_of_a_covariance(a: Array) -> Array:
    return jnp.linalg.inv(a)


@of("f32[8,8]")
def determinant(a: Array) -> Array:
    return jnp.linalg.det(a)


@of("f32[5,3,3]", "f32[5,2,2]")
def small_determinants(a: Array, b: Array) -> tuple[Array, Array]:
    return jnp.linalg.det(a), jnp.linalg.det(b)


@of("f32[12,12]")
def sign_and_log_of_determinant(a: Array) -> tuple[Array, Array]:
    return tuple(jnp.linalg.slogdet(a))


@of("f32[6,6]")
def gradient_of_log_determinant(a: Array) -> Array:
    return jax.grad(lambda a: jnp.linalg.slogdet(a)[1])(a)


@of("f32[6,6]")
def gradient_of_determinant(a: Array) -> Array:
    return jax.grad(jnp.linalg.det)(a)


@of("f32[6,6]:unit")
def matrix_exponential(a: Array) -> Array:
    return jsl.expm(a)


@of("f64[4,4]")
def matrix_exponential_in_f64(a: Array) -> Array:
    return jsl.expm(a)


@of("f32[9,9]", "f32[9]")
def factor_once_solve_twice(a: Array, b: Array) -> tuple[Array, Array]:
    factors = jsl.lu_factor(a)
    first = jsl.lu_solve(factors, b)
    return first, jsl.lu_solve(factors, b - a @ first)


@of("f32[7,7]")
def factors_lu(a: Array) -> tuple[Array, ...]:
    return jsl.lu(a)


@of("f32[4]", "f32[4,4]:definite", "f32[4,4]", "f32[2,4]", "f32[2]")
def kalman_step(x: Array, p: Array, f: Array, h: Array, z: Array) -> tuple[Array, Array]:
    x, p = f @ x, f @ p @ f.T + 0.01 * jnp.eye(4)
    s = h @ p @ h.T + 0.1 * jnp.eye(2)
    gain = p @ h.T @ jnp.linalg.inv(s)
    return x + gain @ (z - h @ x), (jnp.eye(4) - gain @ h) @ p


@of("f32[30,5]", "f32[30]")
def ridge_regression(x: Array, y: Array) -> Array:
    return jnp.linalg.solve(x.T @ x + 0.1 * jnp.eye(5), x.T @ y)


@of("f32[30,5]", "f32[30]")
def gradient_through_ridge(x: Array, y: Array) -> Array:
    def loss(penalty: Array) -> Array:
        w = jnp.linalg.solve(x.T @ x + penalty * jnp.eye(5), x.T @ y)
        return ((x @ w - y) ** 2).mean()

    return jax.grad(loss)(0.1)


@of("f32[5,5]")
def power_of_a_matrix(a: Array) -> tuple[Array, Array]:
    return jnp.linalg.matrix_power(a, 5), jnp.linalg.matrix_power(a, -1)


@of("f32[20]", "f32[20]:positive", "f32[20]", "f32[20]")
def tridiagonal_solve(lower: Array, diagonal: Array, upper: Array, b: Array) -> Array:
    return jax.lax.linalg.tridiagonal_solve(lower, diagonal + 4, upper, b[:, None])

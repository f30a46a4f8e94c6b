"""Linear algebra of batches of matrices, with gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.linalg import block_diag, cho_factor, cho_solve, expm, solve_triangular

from programs.function import of


@of("f32[4,3,3]", "f32[4,3]")
def batch_solved_with_gradients(a: Array, b: Array) -> object:
    def loss(a: Array, b: Array) -> Array:
        return (jnp.linalg.solve(a, b[..., None])[..., 0] ** 2).mean()

    a = a + 3 * jnp.eye(3)
    return jax.value_and_grad(loss, (0, 1))(a, b)


@of("f32[3,4,4]:definite")
def batch_of_cholesky_with_gradients(a: Array) -> object:
    def loss(a: Array) -> Array:
        factor = jnp.linalg.cholesky(a)
        return jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum() + (factor**2).mean()

    return jnp.linalg.cholesky(a), jax.grad(loss)(a)


@of("f32[3,4,4]:definite")
def batch_of_eigenvalues_with_gradients(a: Array) -> object:
    def loss(a: Array) -> Array:
        w, v = jnp.linalg.eigh(a)
        return (jnp.log(w) * jnp.arange(4)).sum() + (v[..., -1] ** 2)[..., 0].sum()

    return jnp.linalg.eigvalsh(a), jax.grad(loss)(a)


@of("f32[3,5,3]")
def batch_of_singular_values_with_gradients(a: Array) -> object:
    s = jnp.linalg.svd(a, compute_uv=False)
    nuclear = jax.grad(lambda a: jnp.linalg.svd(a, compute_uv=False).sum())(a)
    return s, nuclear, jnp.linalg.cond(a), jnp.linalg.norm(a, 2, (-2, -1))


@of("f32[3,5,3]", "f32[3,5]")
def least_squares_by_qr_of_a_batch(a: Array, b: Array) -> object:
    q, r = jnp.linalg.qr(a)
    x = solve_triangular(r, jnp.einsum("bij,bi->bj", q, b)[..., None])[..., 0]
    return x, b - jnp.einsum("bij,bj->bi", a, x)


@of("f32[4,3,3]")
def determinants_and_inverses_of_a_batch(a: Array) -> object:
    sign, log = jnp.linalg.slogdet(a)
    grad = jax.grad(lambda a: jnp.linalg.det(a).sum())(a)
    return jnp.linalg.det(a), sign, log, jnp.linalg.inv(a), grad


@of("f32[3,3,3]")
def exponentials_and_powers_of_a_batch(a: Array) -> object:
    a = a / 3
    return (
        jax.vmap(expm)(a),
        jnp.linalg.matrix_power(a, 5),
        jnp.linalg.matrix_power(a + jnp.eye(3), -2),
    )


@of("f32[5,2,2]:definite", "f32[5,2]", "f32[5,2]")
def densities_with_covariances(c: Array, x: Array, m: Array) -> object:
    def logpdf(c: Array, x: Array, m: Array) -> Array:
        factor = jnp.linalg.cholesky(c)
        z = solve_triangular(factor, x - m, lower=True)
        return -0.5 * z @ z - jnp.log(jnp.diag(factor)).sum() - jnp.log(2 * jnp.pi)

    return jax.vmap(jax.value_and_grad(logpdf, (0, 2)))(c, x, m)


@of("f32[6,4]", "f32[6]", "f32[3]:positive")
def ridge_paths_by_a_batch_of_penalties(x: Array, y: Array, penalty: Array) -> object:
    def fit(p: Array) -> tuple[Array, Array]:
        w = cho_solve(cho_factor(x.T @ x + p * jnp.eye(4)), x.T @ y)
        return w, ((x @ w - y) ** 2).sum()

    return jax.vmap(fit)(penalty)


@of("f32[2,6,3]", "f32[2,6,3]")
def rotations_by_procrustes(a: Array, b: Array) -> object:
    a, b = a - a.mean(1, keepdims=True), b - b.mean(1, keepdims=True)
    u, _, vt = jnp.linalg.svd(jnp.einsum("bni,bnj->bij", a, b))
    d = jnp.linalg.det(u @ vt)
    fix = jnp.ones((2, 3)).at[:, -1].set(d)
    return (u * fix[:, None]) @ vt


@of("f32[4,5,5]")
def symmetric_parts_and_products(a: Array) -> object:
    s = (a + a.mT) / 2
    return s, jnp.trace(a, axis1=1, axis2=2), jnp.triu(a @ a.mT), jnp.linalg.multi_dot(list(a))


@of("f32[3,4]", "f32[2,5]", "f32[4,5]")
def kronecker_and_blocks(a: Array, b: Array, x: Array) -> object:
    return (
        jnp.kron(a, b) @ x.reshape(-1),
        block_diag(a, b),
        jnp.tensordot(a, x, 1),
        jnp.outer(a[0], b[1]),
    )


@of("f32[10,4]")
def principal_components(x: Array) -> object:
    centred = x - x.mean(0)
    w, v = jnp.linalg.eigh(centred.T @ centred / 9)
    top = v[:, ::-1][:, :2]
    top = top * jnp.sign(top[0])
    return w[::-1], centred @ top, w[::-1] / w.sum()


@of("f32[5,3]", "f32[5]", "f32[5]")
def weighted_fit_with_hat_values(x: Array, y: Array, w: Array) -> object:
    w = jax.nn.softplus(w)
    g = jnp.linalg.inv(x.T * w @ x)
    beta = g @ (x.T * w @ y)
    hat = jnp.einsum("ij,jk,ik->i", x, g, x) * w
    return beta, hat, (y - x @ beta) / jnp.sqrt(1 - hat + 1e-3)


@of("f32[3,4,4]", "f32[3,4,2]")
def triangular_systems_of_each_kind(a: Array, b: Array) -> object:
    a = a + 4 * jnp.eye(4)
    options = [{}, {"lower": True}, {"trans": 1}, {"lower": True, "unit_diagonal": True}]
    return [solve_triangular(a, b, **o) for o in options]


@of("f32[6,6]:definite", "f32[6,2]")
def orthogonal_iteration(a: Array, q: Array) -> object:
    def step(q: Array, _: None) -> tuple[Array, Array]:
        q, r = jnp.linalg.qr(a @ q)
        return q, jnp.abs(jnp.diag(r))

    return lax.scan(step, q, None, 4)[1]


@of("f32[5,3]", "f32[5,3]")
def pseudo_inverse_and_lstsq(a: Array, b: Array) -> object:
    return jnp.linalg.pinv(a), jnp.linalg.lstsq(a, b)[0], jnp.linalg.matrix_rank(a)


@of("f32[4,4]", "f32[4]")
def gradient_of_an_exponential(a: Array, x: Array) -> object:
    return jax.value_and_grad(lambda a: (expm(a / 4) @ x).sum())(a)

"""Random numbers from threefry keys."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, random

from programs.function import of


def _key(data: Array) -> Array:
    return random.wrap_key_data(data, impl="threefry2x32")


@of("u32[2]")
def bits(key: Array) -> Array:
    return random.bits(_key(key), (1000,))


@of("u32[2]")
def uniform_numbers(key: Array) -> Array:
    return random.uniform(_key(key), (1000,), minval=-2, maxval=5)


@of("u32[2]")
def normal_numbers(key: Array) -> Array:
    return random.normal(_key(key), (1000,))


@of("u32[2]")
def normal_numbers_bf16(key: Array) -> Array:
    return random.normal(_key(key), (500,), jnp.bfloat16)


@of("u32[2]")
def truncated_normal_numbers(key: Array) -> Array:
    return random.truncated_normal(_key(key), -2, 2, (500,))


@of("u32[2]")
def exponential_and_laplace(key: Array) -> tuple[Array, Array]:
    first, second = random.split(_key(key))
    return random.exponential(first, (500,)), random.laplace(second, (500,))


@of("u32[2]", "f32[40]:positive")
def gamma_numbers(key: Array, shape: Array) -> Array:
    return random.gamma(_key(key), shape)


@of("u32[2]")
def beta_and_dirichlet(key: Array) -> tuple[Array, Array]:
    first, second = random.split(_key(key))
    return random.beta(first, 2.0, 3.0, (10,)), random.dirichlet(second, jnp.ones(4), (5,))


@of("u32[2]", "f32[30,10]")
def categories(key: Array, logits: Array) -> Array:
    return random.categorical(_key(key), logits)


@of("u32[2]", "f32[30]:fraction")
def coins(key: Array, p: Array) -> Array:
    return random.bernoulli(_key(key), p)


@of("u32[2]")
def integers_below_a_bound(key: Array) -> Array:
    return random.randint(_key(key), (500,), 0, 77)


@of("u32[2]", "f32[40]")
def shuffled(key: Array, x: Array) -> tuple[Array, Array]:
    return random.permutation(_key(key), x), random.choice(_key(key), x, (10,))


@of("u32[2]", "f32[64,32]")
def dropout(key: Array, x: Array) -> Array:
    keep = random.bernoulli(_key(key), 0.9, x.shape)
    return jnp.where(keep, x / 0.9, 0)


@of("u32[2]")
def poisson_numbers(key: Array) -> Array:
    return random.poisson(_key(key), 3.5, (100,))


@of("u32[2]", "f32[4]", "f32[4,4]:definite")
def multivariate_normal_numbers(key: Array, mean: Array, covariance: Array) -> Array:
    return random.multivariate_normal(_key(key), mean, covariance, (20,))


@of("u32[2]")
def cauchy_and_gumbel(key: Array) -> tuple[Array, Array]:
    return random.cauchy(_key(key), (200,)), random.gumbel(_key(key), (200,))


@of("u32[2]")
def orthogonal_matrix(key: Array) -> Array:
    return random.orthogonal(_key(key), 5)


@of("u32[2]")
def estimate_of_pi(key: Array) -> Array:
    points = random.uniform(_key(key), (4000, 2))
    return 4 * ((points**2).sum(1) < 1).mean()


@of("u32[2]")
def random_walk(key: Array) -> Array:
    keys = random.split(_key(key), 30)
    return jnp.cumsum(jax.vmap(lambda k: random.normal(k, (3,)))(keys), axis=0)


@of("u32[2]", "f32[8]")
def metropolis_steps(key: Array, x: Array) -> Array:
    def step(x: Array, key: Array) -> tuple[Array, Array]:
        first, second = random.split(key)
        proposal = x + 0.3 * random.normal(first, x.shape)
        ratio = jnp.exp(0.5 * (x * x - proposal * proposal))
        x = jnp.where(random.uniform(second, x.shape) < ratio, proposal, x)
        return x, x

    return jax.lax.scan(step, x, random.split(_key(key), 10))[1]

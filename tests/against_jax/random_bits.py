"""Random numbers: the bits of every generator, and what jax.random makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from against_jax.case import COMPOSITE, ELEMENTARY, EXACT, ONE, UNSTABLE, WIDE, Bound, Case, row

UNSIGNED = ("u8", "u16", "u32", "u64")
_KEYS = {"threefry2x32": "u32[2]", "rbg": "u32[4]", "unsafe_rbg": "u32[4]"}
_SHAPES = ((), (1,), (5,), (4, 6), (3, 5), (2, 0), (7, 3, 2))
# name: (the distribution of a key, its bound)
_DISTRIBUTIONS: dict[str, tuple[Callable[..., Any], Bound]] = {
    "ball": (lambda k: jax.random.ball(k, 3, shape=(4,)), UNSTABLE),
    "bernoulli": (lambda k: jax.random.bernoulli(k, 0.3, (20,)), EXACT),
    "beta": (lambda k: jax.random.beta(k, 2.0, 3.0, (5,)), UNSTABLE),
    "binomial": (lambda k: jax.random.binomial(k, 10.0, 0.4, (5,)), EXACT),
    "bits": (lambda k: jax.random.bits(k, (9,)), EXACT),
    "categorical": (lambda k: jax.random.categorical(k, jnp.arange(4.0), shape=(9,)), EXACT),
    "cauchy": (lambda k: jax.random.cauchy(k, (9,)), UNSTABLE),
    "chisquare": (lambda k: jax.random.chisquare(k, 3.0, shape=(4,)), UNSTABLE),
    "choice": (lambda k: jax.random.choice(k, 9, (4,), replace=False), EXACT),
    "dirichlet": (lambda k: jax.random.dirichlet(k, jnp.ones(3)), UNSTABLE),
    "double_sided_maxwell": (lambda k: jax.random.double_sided_maxwell(
        k, 1.0, 2.0, (4,)), UNSTABLE),
    "exponential": (lambda k: jax.random.exponential(k, (9,)), COMPOSITE),
    "f": (lambda k: jax.random.f(k, 3.0, 4.0, shape=(4,)), UNSTABLE),
    "fold_in": (lambda k: jax.random.key_data(jax.random.fold_in(k, 7)), EXACT),
    "gamma": (lambda k: jax.random.gamma(k, 1.5, (4,)), UNSTABLE),
    "generalized_normal": (lambda k: jax.random.generalized_normal(k, 2.0, (4,)), UNSTABLE),
    "geometric": (lambda k: jax.random.geometric(k, 0.3, (9,)), EXACT),
    "gumbel": (lambda k: jax.random.gumbel(k, (9,)), COMPOSITE),
    "laplace": (lambda k: jax.random.laplace(k, (9,)), COMPOSITE),
    "loggamma": (lambda k: jax.random.loggamma(k, 1.5, (4,)), UNSTABLE),
    "logistic": (lambda k: jax.random.logistic(k, (9,)), COMPOSITE),
    "lognormal": (lambda k: jax.random.lognormal(k, 1.0, (9,)), COMPOSITE),
    "maxwell": (lambda k: jax.random.maxwell(k, (4,)), COMPOSITE),
    "multinomial": (lambda k: jax.random.multinomial(k, 10.0, jnp.full(3, 1 / 3)), EXACT),
    "multivariate_normal": (lambda k: jax.random.multivariate_normal(
        k, jnp.zeros(2), jnp.eye(2), (3,)), COMPOSITE),
    "normal": (lambda k: jax.random.normal(k, (20,)), COMPOSITE),
    "normal/f64": (lambda k: jax.random.normal(k, (20,), jnp.float64), COMPOSITE),
    "normal/bf16": (lambda k: jax.random.normal(k, (20,), jnp.bfloat16), COMPOSITE),
    "normal/f16": (lambda k: jax.random.normal(k, (20,), jnp.float16), COMPOSITE),
    "normal/c64": (lambda k: jax.random.normal(k, (20,), jnp.complex64), COMPOSITE),
    "orthogonal": (lambda k: jax.random.orthogonal(k, 3), UNSTABLE),
    "pareto": (lambda k: jax.random.pareto(k, 2.0, (4,)), COMPOSITE),
    "permutation": (lambda k: jax.random.permutation(k, 20), EXACT),
    "poisson": (lambda k: jax.random.poisson(k, 4.0, (5,)), EXACT),
    "rademacher": (lambda k: jax.random.rademacher(k, (9,)), EXACT),
    "randint": (lambda k: jax.random.randint(k, (20,), -5, 100), EXACT),
    "randint/u8": (lambda k: jax.random.randint(k, (20,), 0, 255, jnp.uint8), EXACT),
    "randint/s64": (lambda k: jax.random.randint(k, (20,), -5, 10**12, jnp.int64), EXACT),
    "rayleigh": (lambda k: jax.random.rayleigh(k, 2.0, (4,)), COMPOSITE),
    "split": (lambda k: jax.random.key_data(jax.random.split(k, 3)), EXACT),
    "t": (lambda k: jax.random.t(k, 3.0, (4,)), UNSTABLE),
    "triangular": (lambda k: jax.random.triangular(k, 0.0, 0.3, 1.0, (4,)), COMPOSITE),
    "truncated_normal": (lambda k: jax.random.truncated_normal(k, -1.0, 2.0, (9,)), COMPOSITE),
    "uniform": (lambda k: jax.random.uniform(k, (20,)), EXACT),
    "uniform/range": (lambda k: jax.random.uniform(k, (20,), minval=-3.0, maxval=5.0), ELEMENTARY),
    "uniform/f64": (lambda k: jax.random.uniform(k, (20,), jnp.float64), EXACT),
    "uniform/bf16": (lambda k: jax.random.uniform(k, (20,), jnp.bfloat16), EXACT),
    "wald": (lambda k: jax.random.wald(k, 2.0, (4,)), UNSTABLE),
    "weibull_min": (lambda k: jax.random.weibull_min(k, 2.0, 1.5, (4,)), COMPOSITE),
}  # fmt: skip


def _wrapped(function: Callable[..., Any], implementation: str) -> Callable[..., Any]:
    return lambda data: function(jax.random.wrap_key_data(data, impl=implementation))


def _distributions() -> list[Case]:
    return [
        row(f"random.{name}" + ("" if implementation == "threefry2x32" else f" {implementation}"),
            _wrapped(function, implementation), data, types=("u32",), bound=bound)
        for name, (function, bound) in _DISTRIBUTIONS.items()
        for implementation, data in _KEYS.items()
        if implementation != "unsafe_rbg" or name in ("bits", "split", "fold_in", "permutation")
        if name != "poisson" or implementation == "threefry2x32"  # JAX has no other
    ]  # fmt: skip


def _bits() -> list[Case]:
    """rng-bit-generator: each algorithm, state, type and some shapes."""
    algorithms = (("RNG_THREE_FRY", 2), ("RNG_PHILOX", 2), ("RNG_DEFAULT", 2))
    rows = []
    for name, words in algorithms:
        for dims in _SHAPES:
            rows.append(
                row(
                    f"lax.rng_bit_generator/{name} {words} {dims}",
                    lambda key, like, name=name, dims=dims: lax.rng_bit_generator(
                        key, dims, like.dtype, getattr(lax.RandomAlgorithm, name)
                    ),
                    f"u64[{words}]",
                    "T[]",
                    types=UNSIGNED,
                )
            )
    return rows


CASES = (
    *_bits(),
    *_distributions(),
    row(
        "lax.rng_bit_generator/u32 key",
        lambda key: lax.rng_bit_generator(key, (5,)),
        "u32[4]",
        types=ONE,
    ),
    row(
        "vmap random.uniform",
        jax.vmap(_wrapped(lambda k: jax.random.uniform(k, (3,)), "threefry2x32")),
        "u32[4,2]",
        types=ONE,
    ),
    row(
        "vmap random.uniform/rbg",
        jax.vmap(_wrapped(lambda k: jax.random.uniform(k, (3,)), "rbg")),
        "u32[4,4]",
        types=ONE,
    ),
    row("random.key", lambda s: jax.random.key_data(jax.random.key(s)), "s64[]", types=ONE),
    row("random.PRNGKey", jax.random.PRNGKey, "s32[]", types=ONE),
    row(
        "random.clone",
        _wrapped(lambda k: jax.random.key_data(jax.random.clone(k)), "threefry2x32"),
        "u32[2]",
        types=ONE,
    ),
    row("random.key_data", _wrapped(jax.random.key_data, "rbg"), "u32[4]", types=ONE),
    row("random.wrap_key_data", _wrapped(jax.random.key_data, "threefry2x32"), "u32[2]", types=ONE),
    row(
        "grad random.gamma",
        jax.grad(lambda a: jax.random.gamma(jax.random.key(3), a, (4,), a.dtype).sum()),
        "T[]:positive",
        types=WIDE,
        bound=UNSTABLE,
    ),
)

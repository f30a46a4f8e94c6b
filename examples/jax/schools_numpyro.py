"""Sample the posterior of the eight schools with NUTS (numpyro): 50 draws a step, their means."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

STEPS = 6
EFFECTS = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def model():
    mean = numpyro.sample("mean", dist.Normal(0, 5))
    scale = numpyro.sample("scale", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        standard = numpyro.sample("standard", dist.Normal(0, 1))
        numpyro.sample("effects", dist.Normal(mean + scale * standard, ERRORS), obs=EFFECTS)


CHAIN = MCMC(NUTS(model), num_warmup=200, num_samples=50, progress_bar=False)


def start():
    CHAIN.warmup(jax.random.key(0))
    return CHAIN.post_warmup_state


def step(state, number):
    CHAIN.post_warmup_state = state
    CHAIN.run(state.rng_key)
    draws = CHAIN.get_samples()
    return CHAIN.last_state, (draws["mean"].mean(), draws["scale"].mean())


if __name__ == "__main__":
    state = start()
    for number in range(STEPS):
        state, seen = step(state, number)
        print(number, *seen)

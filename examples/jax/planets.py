"""Move 64 bodies that attract each other: 20 leapfrog steps in a fori_loop, then their energy."""

import jax
import jax.numpy as jnp

STEPS = 20
BODIES, SOFTENING = 64, 0.05


def distances(places):
    apart = places[None] - places[:, None]
    return apart, jnp.sqrt((apart**2).sum(-1) + SOFTENING**2)


def forces(places, masses):
    apart, far = distances(places)
    return (masses[None, :, None] * apart / far[..., None] ** 3).sum(1)


def start():
    keys = jax.random.split(jax.random.key(0), 3)
    places = jax.random.normal(keys[0], (BODIES, 3))
    speeds = 0.3 * jax.random.normal(keys[1], (BODIES, 3))
    return places, speeds, jax.random.uniform(keys[2], (BODIES,)) / BODIES


@jax.jit
def step(state, number):
    places, speeds, masses = state

    def leapfrog(_, moving):
        places, speeds = moving
        speeds = speeds + 0.005 * forces(places, masses)
        places = places + 0.01 * speeds
        return places, speeds + 0.005 * forces(places, masses)

    places, speeds = jax.lax.fori_loop(0, 20, leapfrog, (places, speeds))
    _, far = distances(places)
    pairs = jnp.triu(masses[:, None] * masses / far, 1)
    energy = 0.5 * (masses * (speeds**2).sum(-1)).sum() - pairs.sum()
    return (places, speeds, masses), energy


if __name__ == "__main__":
    state = start()
    for number in range(STEPS):
        state, seen = step(state, number)
        print(number, seen)

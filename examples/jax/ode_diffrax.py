"""Fit an ODE solved with adaptive steps (diffrax): the oscillator of van der Pol.

Each step prints the loss, the parameter, and how many steps the solver took.
"""

import diffrax
import jax
import jax.numpy as jnp
import optax

STEPS = 25
TIMES = jnp.linspace(0.0, 6.0, 25)
OPTIMIZER = optax.adam(0.1)


def field(t, y, damping):
    return jnp.stack([y[1], damping * (1 - y[0] ** 2) * y[1] - y[0]])


def solved(damping):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        t0=TIMES[0],
        t1=TIMES[-1],
        dt0=0.1,
        y0=jnp.array([2.0, 0.0]),
        args=damping,
        saveat=diffrax.SaveAt(ts=TIMES),
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
        max_steps=512,
    )


def start():
    damping = jnp.float32(0.4)
    return damping, OPTIMIZER.init(damping), jax.jit(solved)(jnp.float32(1.5)).ys


@jax.jit
def step(state, number):
    damping, optimizer, wanted = state

    def loss(damping):
        solution = solved(damping)
        return jnp.mean((solution.ys - wanted) ** 2), solution.stats["num_steps"]

    (value, taken), gradient = jax.value_and_grad(loss, has_aux=True)(damping)
    update, optimizer = OPTIMIZER.update(gradient, optimizer)
    return (damping + update, optimizer, wanted), (value, damping, taken)


if __name__ == "__main__":
    state = start()
    for number in range(STEPS):
        state, (value, damping, taken) = step(state, number)
        print(number, value, damping, taken)

"""Tell spirals that turn left from those that turn right: a GRU of equinox; loss and accuracy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

STEPS = 40
BATCH, LENGTH = 32, 16
OPTIMIZER = optax.adam(1e-2)


class Recurrent(eqx.Module):
    cell: eqx.nn.GRUCell
    read: eqx.nn.Linear

    def __init__(self, key):
        one, other = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(2, 16, key=one)
        self.read = eqx.nn.Linear(16, 1, key=other)

    def __call__(self, points):
        hidden = jnp.zeros(self.cell.hidden_size)
        last, _ = jax.lax.scan(lambda h, point: (self.cell(point, h), None), hidden, points)
        return self.read(last)[0]


def spirals(key):
    turns, starts = jax.random.split(key)
    is_left = jax.random.bernoulli(turns, shape=(BATCH,))
    angle = jax.random.uniform(starts, (BATCH, 1), maxval=2 * jnp.pi)
    t = jnp.linspace(0.0, 2 * jnp.pi, LENGTH)
    angle = angle + jnp.where(is_left, 1.0, -1.0)[:, None] * t
    return jnp.stack([t * jnp.cos(angle), t * jnp.sin(angle)], axis=-1) / 6, is_left


@eqx.filter_value_and_grad(has_aux=True)
def loss(model, points, is_left):
    logits = jax.vmap(model)(points)
    value = optax.sigmoid_binary_cross_entropy(logits, is_left.astype(logits.dtype)).mean()
    return value, jnp.mean((logits > 0) == is_left)


def start():
    model = Recurrent(jax.random.key(0))
    return model, OPTIMIZER.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def step(state, number):
    model, optimizer = state
    points, is_left = spirals(jax.random.fold_in(jax.random.key(1), number))
    seen, gradients = loss(model, points, is_left)
    updates, optimizer = OPTIMIZER.update(gradients, optimizer)
    return (eqx.apply_updates(model, updates), optimizer), seen


if __name__ == "__main__":
    state = start()
    for number in range(STEPS):
        state, seen = step(state, jnp.int32(number))
        print(number, *seen)

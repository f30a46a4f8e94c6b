"""Train an MLP of MNIST's shape with optax, on noisy pictures of ten digits; each loss."""

import jax
import jax.numpy as jnp
import optax

STEPS = 40
BATCH, SIZES = 64, (784, 128, 64, 10)
OPTIMIZER = optax.adamw(optax.cosine_decay_schedule(3e-3, STEPS), weight_decay=1e-4)


def start():
    keys = jax.random.split(jax.random.key(0), len(SIZES))
    initial = jax.nn.initializers.he_normal()
    weights = [initial(key, pair) for key, pair in zip(keys, zip(SIZES, SIZES[1:]), strict=False)]
    params = [{"w": w, "b": jnp.zeros(w.shape[1])} for w in weights]
    digits = jax.random.uniform(keys[-1], (SIZES[-1], SIZES[0]))
    return params, OPTIMIZER.init(params), digits


def logits(params, images):
    *hidden, last = params
    for layer in hidden:
        images = jax.nn.relu(images @ layer["w"] + layer["b"])
    return images @ last["w"] + last["b"]


def loss(params, images, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits(params, images), labels).mean()


@jax.jit
def step(state, number):
    params, optimizer, digits = state
    which, noise = jax.random.split(jax.random.fold_in(jax.random.key(1), number))
    labels = jax.random.randint(which, (BATCH,), 0, SIZES[-1])
    images = digits[labels] + 2 * jax.random.normal(noise, (BATCH, SIZES[0]))
    value, gradients = jax.value_and_grad(loss)(params, images, labels)
    updates, optimizer = OPTIMIZER.update(gradients, optimizer, params)
    return (optax.apply_updates(params, updates), optimizer, digits), value


if __name__ == "__main__":
    state = start()
    for number in range(STEPS):
        state, seen = step(state, number)
        print(number, seen)

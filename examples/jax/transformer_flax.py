"""Train a transformer of flax to continue a text, letter by letter; the loss of each step."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS = 30
TEXT = "the quick brown fox jumps over the lazy dog and runs away from the lazy quick brown cat. "
LETTERS = sorted(set(TEXT))
LENGTH, BATCH = 32, 8


class Block(nn.Module):
    decode: bool = False

    @nn.compact
    def __call__(self, x):
        mask = None if self.decode else nn.make_causal_mask(jnp.zeros(x.shape[:2]))
        attention = nn.MultiHeadDotProductAttention(num_heads=4, decode=self.decode)
        x = x + attention(nn.LayerNorm()(x), mask=mask)
        y = nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x)))
        return x + nn.Dense(x.shape[-1])(y)


class Transformer(nn.Module):
    """Letters to logits of the next ones; with ``decode`` one letter at a time, the keys and values
    of those before it in a cache."""

    features: int = 64
    decode: bool = False

    @nn.compact
    def __call__(self, letters, positions):
        x = nn.Embed(len(LETTERS), self.features)(letters)
        x = x + nn.Embed(LENGTH, self.features, name="positions")(positions)
        for _ in range(2):
            x = Block(self.decode)(x)
        return nn.Dense(len(LETTERS))(nn.LayerNorm()(x))


MODEL = Transformer()
OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))
POSITIONS = jnp.arange(LENGTH)[None]


def encoded(text):
    return np.array([LETTERS.index(letter) for letter in text], np.int32)


def start():
    letters = jnp.zeros((1, LENGTH), jnp.int32)
    params = MODEL.init(jax.random.key(0), letters, POSITIONS)["params"]
    return params, OPTIMIZER.init(params)


@jax.jit
def step(state, number):
    params, optimizer = state
    text = jnp.asarray(encoded(2 * TEXT))
    first = jax.random.randint(jax.random.fold_in(jax.random.key(1), number), (BATCH, 1), 0, 80)
    batch = text[first + jnp.arange(LENGTH + 1)]

    def loss(params):
        logits = MODEL.apply({"params": params}, batch[:, :-1], POSITIONS)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:]).mean()

    value, gradients = jax.value_and_grad(loss)(params)
    updates, optimizer = OPTIMIZER.update(gradients, optimizer)
    return (optax.apply_updates(params, updates), optimizer), value


if __name__ == "__main__":
    state = start()
    for number in range(STEPS):
        state, seen = step(state, number)
        print(number, seen)

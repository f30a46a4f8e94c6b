"""Sample from a transformer of flax with a cache of keys and values; one letter a step."""

import jax
import jax.numpy as jnp
from transformer_flax import LENGTH, LETTERS, Transformer, encoded
from transformer_flax import start as started
from transformer_flax import step as trained

STEPS = LENGTH
PROMPT = "the quick "
MODEL = Transformer(decode=True)


def start():
    state = started()
    for number in range(20):
        state, _ = trained(state, number)
    letters = jnp.zeros((1, LENGTH), jnp.int32)
    cache = MODEL.init(jax.random.key(0), letters, jnp.arange(LENGTH)[None])["cache"]
    return state[0], cache, jnp.int32(0)


@jax.jit
def step(state, number):
    """Give the logits' values after the letter that was sampled last, or the prompt's."""
    params, cache, last = state
    prompt = jnp.asarray(encoded(PROMPT))
    letter = jnp.where(number < len(PROMPT), prompt[jnp.minimum(number, len(PROMPT) - 1)], last)
    variables = {"params": params, "cache": cache}
    logits, changed = MODEL.apply(
        variables, letter[None, None], number[None, None], mutable=["cache"]
    )
    key = jax.random.fold_in(jax.random.key(2), number)
    top, which = jax.lax.top_k(logits[0, 0], 5)
    last = which[jax.random.categorical(key, top / 0.7)]
    return (params, changed["cache"], last), (letter, last, top)


if __name__ == "__main__":
    state = start()
    for number in range(STEPS):
        state, (letter, _, _) = step(state, jnp.int32(number))
        print(LETTERS[letter], end="", flush=True)
    print()

"""Write blocks that concatenate and slice as HLO, in f32, from functions of JAX.

    python examples/tiny/blocks.py DIR

A block of DenseNet, one of Inception, a U-Net of two levels, attention of four heads, and an LSTM
over sixteen steps. Weights are drawn from a seed, and arrays that the functions close over.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import hlo
import hlo_oracle as ho

_LAYOUT = ("NHWC", "HWIO", "NHWC")


class Weights:
    """Draw weights of layers one after the other."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)

    def __call__(self, *dims: int) -> np.ndarray:
        spread = np.sqrt(2 / max(np.prod(dims[:-1]), 1))
        return (self._draw.standard_normal(dims) * spread).astype(np.float32)


def _convolution(x: jax.Array, weights: np.ndarray, bias: np.ndarray) -> jax.Array:
    """Return the ReLU of a convolution with padding SAME."""
    return jax.nn.relu(
        jax.lax.conv_general_dilated(x, weights, (1, 1), "SAME", dimension_numbers=_LAYOUT) + bias
    )


def _layer(draw: Weights, size: int, inputs: int, features: int) -> Callable[..., jax.Array]:
    weights, bias = draw(size, size, inputs, features), draw(features)
    return lambda x: _convolution(x, weights, bias)


def densenet(draw: Weights) -> tuple[Callable[..., jax.Array], tuple[int, ...]]:
    """Return a block of four layers, each of which sees all that came before."""
    growth, first = 8, _layer(draw, 3, 3, 16)
    layers = [_layer(draw, 3, 16 + 8 * n, growth) for n in range(4)]

    def block(x: jax.Array) -> jax.Array:
        x = first(x)
        for layer in layers:
            x = jnp.concatenate([x, layer(x)], axis=-1)
        return jnp.mean(x, axis=(1, 2))

    return block, (1, 16, 16, 3)


def inception(draw: Weights) -> tuple[Callable[..., jax.Array], tuple[int, ...]]:
    """Return two blocks of four branches each."""

    def block_of(inputs: int) -> Callable[..., jax.Array]:
        one, three, five = _layer(draw, 1, inputs, 8), _layer(draw, 3, 8, 16), _layer(draw, 5, 4, 4)
        before = _layer(draw, 1, inputs, 8), _layer(draw, 1, inputs, 4), _layer(draw, 1, inputs, 4)

        def block(x: jax.Array) -> jax.Array:
            pooled = jax.lax.reduce_window(
                x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"
            )
            branches = [one(x), three(before[0](x)), five(before[1](x)), before[2](pooled)]
            return jnp.concatenate(branches, axis=-1)

        return block

    blocks = block_of(16), block_of(32)
    return lambda x: jnp.mean(blocks[1](blocks[0](x)), axis=(1, 2)), (1, 16, 16, 16)


def unet(draw: Weights) -> tuple[Callable[..., jax.Array], tuple[int, ...]]:
    """Return a U-Net of two levels, whose skips are concatenated with what was upsampled."""
    down = _layer(draw, 3, 1, 8), _layer(draw, 3, 8, 16)
    middle = _layer(draw, 3, 16, 32)
    reduce = _layer(draw, 1, 32, 16), _layer(draw, 1, 16, 8)
    up = _layer(draw, 3, 32, 16), _layer(draw, 3, 16, 8)
    last = _layer(draw, 1, 8, 2)

    def halved(x: jax.Array) -> jax.Array:
        window = (1, 2, 2, 1)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")

    def doubled(x: jax.Array) -> jax.Array:
        return jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)

    def network(x: jax.Array) -> jax.Array:
        wide = down[0](x)
        deep = down[1](halved(wide))
        x = middle(halved(deep))
        x = up[0](jnp.concatenate([doubled(reduce[0](x)), deep], axis=-1))
        x = up[1](jnp.concatenate([doubled(reduce[1](x)), wide], axis=-1))
        return last(x)

    return network, (1, 24, 24, 1)


def attention(draw: Weights) -> tuple[Callable[..., jax.Array], tuple[int, ...]]:
    """Return attention of four heads, which are slices of one product, and a residual."""
    width, heads = 32, 4
    joint, out = draw(width, 3 * width), draw(width, width)

    def layer(x: jax.Array) -> jax.Array:
        query, key, value = jnp.split(x @ joint, 3, axis=-1)
        results = []
        for one in range(heads):
            part = slice(one * width // heads, (one + 1) * width // heads)
            scores = query[:, part] @ key[:, part].T / np.float32(np.sqrt(width // heads))
            results.append(jax.nn.softmax(scores, axis=-1) @ value[:, part])
        return x + jnp.concatenate(results, axis=-1) @ out

    return layer, (32, width)


def lstm(draw: Weights) -> tuple[Callable[..., jax.Array], tuple[int, ...]]:
    """Return the last state of an LSTM, whose gates are slices of one product."""
    inputs, units, steps = 8, 32, 16
    weights, bias = draw(inputs + units, 4 * units), draw(4 * units)

    def step(
        state: tuple[jax.Array, jax.Array], x: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], None]:
        hidden, cell = state
        gates = jnp.concatenate([x, hidden], axis=-1) @ weights + bias
        take, forget, update, give = jnp.split(gates, 4, axis=-1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(take) * jnp.tanh(update)
        return (jax.nn.sigmoid(give) * jnp.tanh(cell), cell), None

    def network(x: jax.Array) -> jax.Array:
        zeros = jnp.zeros((units,), jnp.float32)
        return jax.lax.scan(step, (zeros, zeros), x)[0][0]

    return network, (steps, inputs)


BLOCKS = (densenet, inception, unet, attention, lstm)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    directory: Path = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    for seed, block in enumerate(BLOCKS):
        function, dims = block(Weights(seed))
        module = ho.load(function, np.zeros(dims, np.float32))
        (directory / f"{block.__name__}.hlo").write_text(hlo.format(module), "utf-8")


if __name__ == "__main__":
    main()

"""Write the programs of this directory: functions of JAX, lowered to HLO text.

    python -m bench.programs.make

They are what no other program of the corpus is: loops that update rows, recurrences, small batched
products, narrow floats. The last six were 2 to 8 times slower than XLA when they were written: they
show if that comes back, as do those of :mod:`bench.programs.user_functions`. ``arguments.json`` has
the recipes of all.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from bench.programs import user_functions
from bench.programs.recipes import Program, integers, normal

_HERE = Path(__file__).parent
_SEED = 20240


def lstm(xs: Any, w: Any, u: Any, b: Any) -> Any:
    """Run an LSTM over a sequence: the states of all steps."""

    def step(state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(x @ w + h @ u + b, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((xs.shape[1], u.shape[0]), xs.dtype)
    return lax.scan(step, (zeros, zeros), xs)


def gru(xs: Any, w: Any, u: Any) -> Any:
    """Run a GRU over a sequence: the states of all steps."""

    def step(h: Any, x: Any) -> Any:
        r, z, n = jnp.split(x @ w, 3, axis=-1)
        hr, hz, hn = jnp.split(h @ u, 3, axis=-1)
        r, z = jax.nn.sigmoid(r + hr), jax.nn.sigmoid(z + hz)
        h = (1 - z) * jnp.tanh(n + r * hn) + z * h
        return h, h

    return lax.scan(step, jnp.zeros((xs.shape[1], u.shape[0]), xs.dtype), xs)


def scan_rows(x: Any, start: Any) -> Any:
    """Write a row of a large array in each trip: an exponential moving average."""

    def step(mean: Any, row: Any) -> Any:
        mean = 0.9 * mean + 0.1 * row
        return mean, mean

    return lax.scan(step, start, x)[1]


def lorenz(start: Any) -> Any:
    """Integrate the Lorenz system by Euler's method: rows of three numbers."""

    def step(state: Any, _: Any) -> Any:
        x, y, z = state
        slope = jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])
        state = state + 0.005 * slope
        return state, state

    return lax.scan(step, start, None, length=2000)[1]


def windows(x: Any) -> Any:
    """Average each window of an array with the next one, in place."""

    def body(i: Any, x: Any) -> Any:
        window = lax.dynamic_slice(x, (i * 64,), (64,))
        following = lax.dynamic_slice(x, (i * 64 + 64,), (64,))
        return lax.dynamic_update_slice(x, 0.5 * (window + following), (i * 64,))

    return lax.fori_loop(0, 1000, body, x)


def residual_block(x: Any, w1: Any, w2: Any, scale: Any, shift: Any) -> Any:
    """Apply two 3×3 convolutions with normalisation, and add the input."""

    def convolved(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    y = jax.nn.relu(convolved(x, w1) * scale[0] + shift[0])
    return jax.nn.relu(x + convolved(y, w2) * scale[1] + shift[1])


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    """Normalise the rows of an array, in f32 whatever its type."""
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    variance = ((wide - mean) ** 2).mean(-1, keepdims=True)
    return ((wide - mean) * lax.rsqrt(variance + 1e-5)).astype(x.dtype) * scale + shift


def attention(x: Any, qkv: Any, out: Any) -> Any:
    """Apply causal attention of 12 heads and the projection after it."""
    batch, length, width = x.shape
    q, k, v = jnp.split((x @ qkv).reshape(batch, length, 12, -1), 3, axis=-1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(jnp.array(q.shape[-1], x.dtype))
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(x.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width) @ out


def depthwise(x: Any, w: Any) -> Any:
    """Apply a 3×3 convolution to each channel by itself."""
    return lax.conv_general_dilated(
        *(x, w, (1, 1), "SAME"),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=x.shape[-1],
    )


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Compute the mean cross entropy of rows and its gradient."""

    def loss(logits: Any) -> Any:
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
        return -chosen.mean()

    return jax.value_and_grad(loss)(logits)


def fourier(real: Any, imaginary: Any) -> Any:
    """Transform a length that is no power of two: squared magnitudes."""
    transformed = jnp.fft.fft(lax.complex(real, imaginary))
    return transformed.real**2 + transformed.imag**2


def cholesky(x: Any) -> Any:
    """Factor small positive definite matrices."""
    return jnp.linalg.cholesky(jnp.einsum("bij,bkj->bik", x, x) + 8 * jnp.eye(x.shape[-1]))


def stencil(x: Any) -> Any:
    """Take a hundred steps of the heat equation, with a border that stays."""

    def step(_: Any, x: Any) -> Any:
        neighbours = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return x.at[1:-1, 1:-1].add(0.1 * (neighbours - 4 * x[1:-1, 1:-1]))

    return lax.fori_loop(0, 100, step, x)


def mlp_dropout(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, key: Any) -> Any:
    """Apply a perceptron with bias, GELU and dropout of a tenth."""
    h = jax.nn.gelu(x @ w1 + b1)
    kept = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, h.shape)
    return jnp.where(kept, h / 0.9, 0) @ w2 + b2


def dilation(x: Any) -> Any:
    """Compute the maximum of each 3×3 neighbourhood."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3), (1, 1, 1), "SAME")


def response_norm(x: Any) -> Any:
    """Divide by a power of the mean square of five neighbouring channels."""
    squares = lax.reduce_window(x * x, 0.0, lax.add, (1, 1, 1, 5), (1, 1, 1, 1), "SAME")
    return x / (1 + 1e-4 * squares) ** 0.75


def sliding_max(x: Any) -> Any:
    """Compute the maximum of each 16 neighbours, gathered by computed indices."""
    return x[jnp.arange(x.size - 15)[:, None] + jnp.arange(16)].max(1)


def tridiagonal(below: Any, diagonal: Any, above: Any, right: Any) -> Any:
    """Solve a system of 4 + diagonal and what is beside it by two recurrences, the first of which
    has two results."""

    def eliminate(before: Any, row: Any) -> Any:
        a, b, c, d = row
        pivot = 4 + b - a * before[0]
        after = c / pivot, (d - a * before[1]) / pivot
        return after, after

    def substitute(x: Any, row: Any) -> Any:
        x = row[1] - row[0] * x
        return x, x

    zero = jnp.zeros((), right.dtype)
    rows = lax.scan(eliminate, (zero, zero), (below, diagonal, above, right))[1]
    return lax.scan(substitute, zero, rows, reverse=True)[1]


def gradient_noise(x: Any, gradients: Any) -> Any:
    """Compute Perlin's noise in one dimension: a table looked up modulo its length."""
    cell = jnp.floor(x)
    place, t = cell.astype(jnp.int32), x - cell
    weight = t**3 * (t * (6 * t - 15) + 10)
    left, right = (gradients[(place + k) % gradients.size] * (t - k) for k in (0, 1))
    return (1 - weight) * left + weight * right


def red_black(x: Any) -> Any:
    """Take ten half steps of relaxation on the two colours of a chessboard, with periodic edges."""
    colours = jnp.add.outer(jnp.arange(x.shape[0]), jnp.arange(x.shape[1]))

    def step(i: Any, x: Any) -> Any:
        neighbours = sum(jnp.roll(x, shift, axis) for shift in (1, -1) for axis in (0, 1))
        return jnp.where((colours + i) % 2 == 0, 0.25 * neighbours, x)

    return lax.fori_loop(0, 10, step, x)


PROGRAMS = {
    **user_functions.PROGRAMS,
    "lstm_256": Program(
        lstm,
        [
            normal(256, 16, 128),
            normal(128, 512, scale=0.1),
            normal(128, 512, scale=0.1),
            normal(512, scale=0.1),
        ],
    ),
    "gru_256": Program(
        gru, [normal(256, 16, 128), normal(128, 384, scale=0.1), normal(128, 384, scale=0.1)]
    ),
    "scan_rows_4096": Program(scan_rows, [normal(4096, 256), normal(256)]),
    "scan_lorenz_2000": Program(lorenz, [normal(3)]),
    "loop_of_slices": Program(windows, [normal(64 * 1001)]),
    "top_k": Program(lambda x: lax.top_k(x, 32), [normal(512, 4096)]),
    "residual_block": Program(
        residual_block,
        [
            normal(8, 28, 28, 128),
            normal(3, 3, 128, 128, scale=0.03),
            normal(3, 3, 128, 128, scale=0.03),
            normal(2, 128),
            normal(2, 128),
        ],
    ),
    "layer_norm_bf16": Program(
        layer_norm,
        [
            normal(1, 4096, 768, dtype="bfloat16"),
            normal(768, dtype="bfloat16"),
            normal(768, dtype="bfloat16"),
        ],
    ),
    "layer_norm_f32": Program(layer_norm, [normal(1, 4096, 768), normal(768), normal(768)]),
    "mean_bf16": Program(lambda x: x.mean(1), [normal(16, 512, 768, dtype="bfloat16")]),
    "attention_bf16": Program(
        attention,
        [
            normal(2, 128, 768, dtype="bfloat16"),
            normal(768, 2304, dtype="bfloat16", scale=0.03),
            normal(768, 768, dtype="bfloat16", scale=0.03),
        ],
    ),
    "depthwise_3x3": Program(depthwise, [normal(8, 56, 56, 128), normal(3, 3, 1, 128)]),
    "cross_entropy": Program(cross_entropy, [normal(1024, 4096), integers(1024, below=4096)]),
    "argsort": Program(jnp.argsort, [normal(64, 4096)]),
    "cumsum_axis0": Program(lambda x: jnp.cumsum(x, axis=0), [normal(2048, 512)]),
    "max_axis0": Program(lambda x: x.max(0), [normal(2048, 2048)]),
    "segment_sum": Program(
        lambda x, ids: jax.ops.segment_sum(x, ids, 1000),
        [normal(50000, 64), integers(50000, below=1000)],
    ),
    "matmul_8x8": Program(
        lambda x, y: jnp.einsum("bij,bjk->bik", x, y), [normal(4096, 8, 8), normal(4096, 8, 8)]
    ),
    "fft_1000": Program(fourier, [normal(512, 1000), normal(512, 1000)]),
    "cholesky_64x8x8": Program(cholesky, [normal(64, 8, 8)]),
    "stencil_100": Program(stencil, [normal(512, 512)]),
    "mlp_dropout": Program(
        mlp_dropout,
        [
            normal(256, 768),
            normal(768, 3072, scale=0.03),
            normal(3072),
            normal(3072, 768, scale=0.03),
            normal(768),
            integers(2, below=1 << 31, dtype="uint32"),
        ],
    ),
    "dilation_3x3": Program(dilation, [normal(8, 128, 128)]),
    "response_norm": Program(response_norm, [normal(4, 27, 27, 96)]),
    "sliding_max": Program(sliding_max, [normal(10000)]),
    "tridiagonal_2000": Program(
        tridiagonal, [normal(2000, scale=0.1), normal(2000), normal(2000, scale=0.1), normal(2000)]
    ),
    "gradient_noise": Program(gradient_noise, [normal(100000, scale=100.0), normal(256)]),
    "red_black": Program(red_black, [normal(128, 128)]),
}


def text(program: Program) -> str:
    """Lower a program to HLO text, with all constants."""
    specs = [jnp.zeros(dims, dtype) for _, dims, dtype, *_ in program.arguments]
    lowered: Any = jax.jit(program.function).lower(*specs).compiler_ir("hlo")
    options: Any = import_module("jaxlib._hlo").HloPrintOptions.short_parsable()
    options.print_large_constants = True
    written: str = lowered.as_hlo_module().to_string(options)
    return written


def main() -> None:
    for name, program in PROGRAMS.items():
        (_HERE / f"{name}.hlo").write_text(text(program).rstrip() + "\n")
    recipes = {
        name: {"seed": _SEED, "arguments": program.arguments} for name, program in PROGRAMS.items()
    }
    lines = [f" {json.dumps(name)}: {json.dumps(recipe)}" for name, recipe in recipes.items()]
    (_HERE / "arguments.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()

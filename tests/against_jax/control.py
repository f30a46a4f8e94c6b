"""Loops, branches, derivatives through them, and collectives of one device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from against_jax.case import (
    COMPOSITE,
    EXACT,
    FLOATS,
    NUMBERS,
    ONE,
    REAL,
    SUM,
    UNSTABLE,
    WIDE,
    Case,
    row,
)

_NUMBERS = NUMBERS
_BRANCHES = (lambda x: x + 1, lambda x: x * x, lambda x: -x)


def _collatz(n):
    """Steps of the 3n + 1 iteration."""

    def body(state):
        value, steps = state
        return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), steps + 1

    return lax.while_loop(lambda state: state[0] != 1, body, (n, 0))[1]


def _powers(x):
    return lax.fori_loop(0, 5, lambda i, y: y * x + i.astype(x.dtype), x)


def _running(x, reverse=False):
    return lax.scan(lambda c, y: (c + y, (c, c * y)), jnp.zeros_like(x[0]), x, reverse=reverse)


def _lstm(x, w):
    """A recurrent cell."""

    def cell(state, step):
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate((step, h)) @ w, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros(3, x.dtype)
    return lax.scan(cell, (zero, zero), x)


def _root(x):
    """sqrt by Newton's method."""

    def solve(f, guess):
        step = lambda _, y: y - f(y) / (2 * y)  # noqa: E731
        return lax.fori_loop(0, 6, step, guess)

    return lax.custom_root(lambda y: y * y - x, x, solve, lambda g, y: y / g(jnp.ones_like(y)))


def _linear_solve(a, b):
    solve = lambda matvec, y: jnp.linalg.solve(a, y)  # noqa: E731
    return lax.custom_linear_solve(lambda y: a @ y, b, solve, solve)


def _on_one_device(function: Callable[..., Any]) -> Callable[..., Any]:
    mesh = Mesh(np.array(jax.devices()[:1]), ("i",))
    spec = PartitionSpec()
    return jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)


def _collectives() -> list[Case]:
    functions: dict[str, Callable[..., Any]] = {
        "psum": lambda x: lax.psum(x, "i"),
        "pmax": lambda x: lax.pmax(x, "i"),
        "pmin": lambda x: lax.pmin(x, "i"),
        "pmean": lambda x: lax.pmean(x, "i"),
        "ppermute": lambda x: lax.ppermute(x, "i", [(0, 0)]),
        "pshuffle": lambda x: lax.pshuffle(x, "i", [0]),
        "all_gather": lambda x: lax.all_gather(x, "i"),
        "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
        "psum_scatter": lambda x: lax.psum_scatter(x, "i", tiled=True),
        "pswapaxes": lambda x: lax.pswapaxes(x[None], "i", 0),
        "axis_index": lambda x: x + lax.axis_index("i").astype(x.dtype),
        "axis_size": lambda x: x + lax.axis_size("i"),
        "pcast": lambda x: lax.psum(lax.pcast(x, "i", to="varying"), "i"),
    }
    return [
        row(f"lax.{name}", _on_one_device(f), "T[3,4]", types=REAL, bound=SUM)
        for name, f in functions.items()
    ]


def _ragged_all_to_all(x, out, offset, size):
    return lax.ragged_all_to_all(x, out, offset, size, offset, size, axis_name="i")


def _constrained(x):
    mesh = Mesh(np.array(jax.devices()[:1]), ("i",))
    sharding = jax.sharding.NamedSharding(mesh, PartitionSpec("i"))
    return lax.with_sharding_constraint(x, sharding) * 2


def _with_token(x):
    token = lax.after_all(lax.create_token())
    del token
    return x


CASES = (
    *_collectives(),
    row(
        "lax.ragged_all_to_all",
        _on_one_device(_ragged_all_to_all),
        "T[6,2]",
        "T[8,2]",
        "s32[1]:one",
        "s32[1]:one",
        types=REAL,
    ),
    row("lax.with_sharding_constraint", _constrained, "T[3,4]", types=_NUMBERS),
    row("lax.after_all", _with_token, "T[3]"),
    row("lax.create_token", _with_token, "T[3]"),
    row(
        "lax.cond",
        lambda p, x: lax.cond(p, *_BRANCHES[:2], x),
        "pred[]",
        "T[3]",
        types=_NUMBERS,
        bound=SUM,
    ),
    row(
        "lax.cond/tuple",
        lambda x, y: lax.cond(
            x[0] < y[0], lambda a, b: (a, {"b": b}), lambda a, b: (b, {"b": a}), x, y
        ),
        "T[3]",
        "T[3]",
        types=_NUMBERS,
    ),
    row(
        "lax.switch",
        lambda i, x: lax.switch(i, _BRANCHES, x),
        "s32[]:index3",
        "T[3]",
        types=_NUMBERS,
        bound=SUM,
    ),
    row(
        "lax.switch/clamped",
        lambda x: [lax.switch(i + jnp.int32(x.size - 3), _BRANCHES, x) for i in (-5, 0, 1, 7)],
        "T[3]",
        types=_NUMBERS,
        bound=SUM,
    ),
    row("lax.while_loop", lambda n: _collatz(n + 6), "s32[]:one", types=ONE),
    row("lax.while_loop/many", lambda i: jax.vmap(_collatz)(i + 5), "s32[6]:index8", types=ONE),
    row(
        "lax.while_loop/float",
        lambda x: lax.while_loop(lambda y: jnp.sum(y * y) < 1000, lambda y: y * 2, x),
        "T[4]",
        types=WIDE,
    ),
    row("lax.fori_loop", _powers, "T[4]:unit", types=_NUMBERS, bound=COMPOSITE),
    row(
        "lax.fori_loop/dynamic",
        lambda n, x: lax.fori_loop(0, n, lambda i, y: y * 2 + x, x),
        "s32[]:index8",
        "T[4]",
        types=_NUMBERS,
        bound=COMPOSITE,
    ),
    row("lax.scan", _running, "T[6,3]", types=_NUMBERS, bound=SUM),
    row("lax.scan/reverse", partial(_running, reverse=True), "T[6,3]", types=_NUMBERS, bound=SUM),
    row(
        "lax.scan/length",
        lambda x: lax.scan(lambda c, _: (c + c, c), x, None, 4),
        "T[3]",
        types=_NUMBERS,
        bound=SUM,
    ),
    row(
        "lax.scan/unroll",
        lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x, unroll=2),
        "T[7,3]",
        types=_NUMBERS,
        bound=SUM,
    ),
    row("lax.scan/lstm", _lstm, "T[4,2]:unit", "T[5,12]:unit", types=FLOATS, bound=COMPOSITE),
    row("lax.map/sort", lambda x: lax.map(lambda y: jnp.sort(y), x), "T[4,5]"),
    row(
        "lax.map/batch",
        lambda x: lax.map(lambda y: y.sum(), x, batch_size=2),
        "T[5,3]",
        types=_NUMBERS,
        bound=SUM,
    ),
    row("lax.custom_root", _root, "T[3]:positive", types=WIDE, bound=COMPOSITE),
    row(
        "lax.custom_linear_solve",
        _linear_solve,
        "T[3,3]:positive_definite",
        "T[3]",
        types=WIDE,
        bound=COMPOSITE,
    ),
    row(
        "grad lax.scan",
        jax.grad(lambda x: _running(x)[1][1].sum()),
        "T[5,2]",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row(
        "grad lax.scan/lstm",
        jax.grad(lambda x, w: _lstm(x, w)[1].sum(), (0, 1)),
        "T[4,2]:unit",
        "T[5,12]:unit",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row(
        "grad checkpoint",
        jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x).sum()),
        "T[5]",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row(
        "jvp lax.while_loop",
        lambda x, t: jax.jvp(
            lambda y: lax.while_loop(lambda z: z[0] < 100, lambda z: z * 2 + 1, jnp.abs(y)),
            (x,),
            (t,),
        ),
        "T[3]",
        "T[3]",
        types=WIDE,
    ),
    row(
        "grad lax.fori_loop",
        jax.grad(lambda x: _powers(x).sum()),
        "T[4]:unit",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row(
        "grad lax.cond",
        jax.grad(lambda x: lax.cond(x[0] > 0, *_BRANCHES[:2], x).sum()),
        "T[3]",
        types=FLOATS,
        bound=SUM,
    ),
    row(
        "grad lax.custom_root",
        jax.grad(lambda x: _root(x).sum()),
        "T[3]:positive",
        types=WIDE,
        bound=COMPOSITE,
    ),
    row(
        "vmap lax.cond",
        jax.vmap(lambda p, x: lax.cond(p, *_BRANCHES[:2], x)),
        "pred[4]",
        "T[4,2]",
        types=_NUMBERS,
        bound=SUM,
    ),
    row(
        "vmap lax.switch",
        jax.vmap(lambda i, x: lax.switch(i, _BRANCHES, x)),
        "s32[5]:index3",
        "T[5]",
        types=_NUMBERS,
        bound=SUM,
    ),
    row(
        "vmap lax.while_loop",
        jax.vmap(lambda x: lax.while_loop(lambda y: y < 100, lambda y: y * 2 + 1, jnp.abs(x))),
        "T[5]",
        types=("f32", "s32"),
    ),
    row("vmap lax.scan", jax.vmap(_running), "T[2,6,3]", types=_NUMBERS, bound=SUM),
    row(
        "hessian", jax.hessian(lambda x: jnp.prod(jnp.sin(x))), "T[3]", types=WIDE, bound=COMPOSITE
    ),
    row("jacfwd", jax.jacfwd(lambda x: jnp.cumsum(x * x)), "T[4]", types=FLOATS, bound=SUM),
    row("jacrev", jax.jacrev(lambda x: jnp.cumsum(x * x)), "T[4]", types=FLOATS, bound=SUM),
    row(
        "linearize",
        lambda x: jax.linearize(jnp.tanh, x)[1](x),
        "T[4]",
        types=FLOATS,
        bound=UNSTABLE,
    ),
    row("custom_jvp", jax.grad(lambda x: jax.nn.relu(x).sum()), "T[4]", types=FLOATS, bound=EXACT),
)

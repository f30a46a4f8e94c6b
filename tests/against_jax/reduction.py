"""Reductions, windows and cumulative functions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from against_jax.case import (
    COMPOSITE,
    ELEMENTARY,
    EXACT,
    FLOATS,
    INTEGERS,
    NUMBERS,
    PRED,
    PRODUCT,
    REAL,
    SUM,
    UNSTABLE,
    USUAL,
    Case,
    row,
)

_CUBE = "T[3,4,5]"
_WINDOWS = {
    "plain": {"window_dimensions": (2, 3)},
    "same": {"window_dimensions": (3, 3), "window_strides": (2, 1), "padding": "SAME"},
    "padded": {"window_dimensions": (2, 2), "padding": ((0, 3), (1, 0))},
    "cropped": {"window_dimensions": (2, 2), "padding": ((-1, 1), (0, -2))},
    "dilated": {
        "window_dimensions": (2, 2),
        "padding": ((1, 2), (2, 1)),
        "base_dilation": (2, 1),
        "window_dilation": (1, 3),
    },
    "all": {
        "window_dimensions": (3, 2),
        "window_strides": (2, 3),
        "padding": ((2, 1), (0, 3)),
        "base_dilation": (3, 2),
        "window_dilation": (2, 1),
    },
}
_MONOIDS = {
    "add": (0, lax.add, SUM),
    "mul": (1, lax.mul, PRODUCT),
    "max": (None, lax.max, EXACT),
    "min": (None, lax.min, EXACT),
}


def _limit(dtype: object, name: str) -> object:
    if jnp.issubdtype(dtype, jnp.bool_):
        return name == "min"
    info = jnp.iinfo(dtype) if jnp.issubdtype(dtype, jnp.integer) else None
    if info is not None:
        return info.min if name == "max" else info.max
    return -jnp.inf if name == "max" else jnp.inf


def _windows() -> list[Case]:
    rows = []
    for name, (init, combine, bound) in _MONOIDS.items():
        for variant, options in _WINDOWS.items():

            def function(x, name=name, init=init, combine=combine, options=options):
                start = _limit(x.dtype, name) if init is None else init
                return lax.reduce_window(x, x.dtype.type(start), combine, **options)

            rows.append(row(f"lax.reduce_window/{name} {variant}", function, "T[6,7]", bound=bound))
    return rows


def _reductions() -> list[Case]:
    bounds = {"reduce_sum": SUM, "reduce_prod": PRODUCT}
    names = "sum prod max min and or xor"
    return [
        row(
            f"lax.reduce_{name}/{axes}",
            lambda x, name=name, axes=axes: getattr(lax, f"reduce_{name}")(x, axes),
            _CUBE,
            bound=bounds.get(f"reduce_{name}", EXACT),
        )
        for name in names.split()
        for axes in ((0,), (1, 2), (0, 1, 2), ())
    ]


def _cumulative() -> list[Case]:
    bounds = {"cumsum": SUM, "cumprod": PRODUCT, "cumlogsumexp": COMPOSITE}
    return [
        row(
            f"lax.{name}/{axis} {reverse}",
            lambda x, name=name, a=axis, r=reverse: getattr(lax, name)(x, a, r),
            "T[9,4]",
            bound=bounds.get(name, EXACT),
        )
        for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
        for axis, reverse in ((0, False), (1, True))
    ]


def _first_largest(left, right):
    """The pair with the larger first part, as argmax has it."""
    take = (left[0] > right[0]) | ((left[0] == right[0]) & (left[1] < right[1]))
    return jnp.where(take, left[0], right[0]), jnp.where(take, left[1], right[1])


def _pooled(x, kind):
    """Max and average pooling, as networks have them."""
    init = _limit(x.dtype, "max") if kind == "max" else 0
    combine = lax.max if kind == "max" else lax.add
    pool = lax.reduce_window(x, x.dtype.type(init), combine, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    return (pool * pool).sum()


def _window_argmax(x, i):
    inits = x.dtype.type(_limit(x.dtype, "max")), i.dtype.type(99)
    return lax.reduce_window((x, i), inits, _first_largest, (2, 3), (1, 2), ((1, 0), (0, 1)))


CASES = (
    *_reductions(),
    *_windows(),
    *_cumulative(),
    row(
        "lax.reduce",
        lambda x: lax.reduce(x, x.dtype.type(1), lax.add, (1,)),
        _CUBE,
        bound=SUM,
        types=NUMBERS,
    ),
    row(
        "lax.reduce/pair",
        lambda x, i: lax.reduce(
            (x, i), (x.dtype.type(0), i.dtype.type(99)), _first_largest, (0, 2)
        ),
        "T[3,4,5]:small",
        "s32[3,4,5]:distinct",
        types=REAL,
    ),
    row(
        "lax.reduce/general",
        lambda x: lax.reduce(
            x, x.dtype.type(1), lambda a, b: lax.max(a, b) + x.dtype.type(0), (1,)
        ),
        _CUBE,
        types=INTEGERS,
    ),
    row("lax.reduce/empty", lambda x: lax.reduce(x, x.dtype.type(1), lax.add, (1,)), "T[3,0]"),
    row(
        "lax.reduce_sum/large",
        lambda x: lax.reduce_sum(x, (1,)),
        "T[3,1000]",
        bound=SUM,
        types=(*FLOATS, "c64", "s32"),
    ),
    row(
        "lax.reduce_max/edges",
        lambda x: lax.reduce_max(x[:, None] + 0 * x, (1,)),
        "T[]:edges",
        types=FLOATS,
    ),
    row("lax.reduce_and/all", lambda x: lax.reduce_and(x > 0, (0,)), "T[4,5]", types=("f32",)),
    row(
        "lax.reduce_window/pairs",
        _window_argmax,
        "T[5,6]:small",
        "s32[5,6]:distinct",
        types=USUAL[:5],
    ),
    row(
        "lax.reduce_window/minus",
        lambda x: lax.reduce_window(x, x.dtype.type(3), lambda a, b: a - b, (2, 3)),
        "T[4,5]",
        types=INTEGERS,
    ),
    row(
        "grad reduce_window/max",
        jax.grad(lambda x: _pooled(x, "max")),
        "T[1,7,7,2]",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row(
        "grad reduce_window/add",
        jax.grad(lambda x: _pooled(x, "add")),
        "T[1,7,7,2]",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row(
        "jvp reduce_window/max",
        lambda x, t: jax.jvp(lambda y: _pooled(y, "max"), (x,), (t,)),
        "T[1,6,6,1]",
        "T[1,6,6,1]",
        types=("f32", "f64"),
        bound=COMPOSITE,
    ),
    row(
        "vmap reduce_window/max",
        jax.vmap(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID")),
        "T[3,8]",
        types=("f32",),
    ),
    row(
        "grad lax.cumsum",
        jax.grad(lambda x: (lax.cumsum(x) ** 2).sum()),
        "T[9]",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row(
        "grad lax.cumprod",
        jax.grad(lambda x: lax.cumprod(x).sum()),
        "T[9]",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row("grad lax.cummax", jax.grad(lambda x: lax.cummax(x).sum()), "T[9]", types=FLOATS),
    row(
        "grad lax.reduce_prod", jax.grad(lambda x: x.prod()), "T[6]", types=FLOATS, bound=COMPOSITE
    ),
    row("grad lax.reduce_max", jax.grad(lambda x: x.max()), "T[6]:small", types=FLOATS),
    row(
        "grad lax.cumlogsumexp",
        jax.grad(lambda x: lax.cumlogsumexp(x).sum()),
        "T[6]",
        types=FLOATS,
        bound=UNSTABLE,
    ),
    row("lax.associative_scan", lambda x: lax.associative_scan(lax.add, x), "T[11,2]", bound=SUM),
    row(
        "lax.associative_scan/reverse",
        lambda x: lax.associative_scan(lax.max, x, reverse=True, axis=1),
        "T[3,9]",
    ),
    row(
        "lax.associative_scan/matrices",
        lambda x: lax.associative_scan(lambda a, b: a @ b, x),
        "T[5,2,2]:unit",
        types=("f32", "c64"),
        bound=SUM,
    ),
    row(
        "logsumexp", lambda x: jax.nn.logsumexp(x, axis=1), "T[4,9]", types=FLOATS, bound=ELEMENTARY
    ),
    row("any", lambda x: jnp.any(x, 0), "pred[4,5]", types=PRED),
)

"""Functions that move elements and leave them as they are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from against_jax.case import ALL, COMPOSITE, FLOATS, INTEGERS, ONE, REAL, USUAL, Case, row
from hlo.types import ELEMENT_TYPES


def _bitcasts() -> list[Case]:
    """List bitcasts to each type, of the same width or another; the operand's last dimension takes
    up 4."""
    rows = []
    for name, kind in ELEMENT_TYPES.items():
        if not kind.is_array or name in ("s1", "u1", "f6e2m3fn", "f6e3m2fn"):
            continue
        for dims in ("3,8", "3,2", "2,4", "2,16"):
            rows.append(
                row(
                    f"lax.bitcast_convert_type/{name} {dims}",
                    lambda x, to=kind.numpy: lax.bitcast_convert_type(x, to),
                    f"T[{dims}]",
                )
            )
    return rows


def _iotas() -> list[Case]:
    return [
        row("lax.iota", lambda x: lax.iota(x.dtype, 5), "T[]"),
        row("lax.iota/200", lambda x: lax.iota(x.dtype, 200), "T[]"),
        row("lax.broadcasted_iota", lambda x: lax.broadcasted_iota(x.dtype, (2, 3, 2), 1), "T[]"),
    ]


_MATRIX = "T[4,6]"
_PADDINGS = {
    "positive": ((1, 2, 0), (0, 1, 2)),
    "negative": ((-1, -2, 0), (-3, 1, 0)),
    "interior": ((-1, 0, 3), (2, -4, 1)),
    "to nothing": ((-2, -2, 0), (0, 0, 0)),
}

CASES = (
    *_iotas(),
    *_bitcasts(),
    row("lax.broadcast", lambda x: lax.broadcast(x, (2, 3)), "T[4]"),
    row("lax.broadcast/scalar", lambda x: lax.broadcast(x, (2, 0, 3)), "T[]"),
    row("lax.broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (4, 2, 6), (0, 2)), _MATRIX),
    row(
        "lax.broadcast_in_dim/ones", lambda x: lax.broadcast_in_dim(x, (5, 2, 3), (0, 2)), "T[1,3]"
    ),
    row("lax.broadcast_like", lax.broadcast_like, "T[1,6]", _MATRIX),
    row("lax.broadcast_to_rank", lambda x: lax.broadcast_to_rank(x, 4), _MATRIX),
    row("lax.collapse", lambda x: lax.collapse(x, 1, 3), "T[2,3,4,5]"),
    row(
        "lax.concatenate",
        lambda x, y, z: lax.concatenate((x, y, z), 1),
        "T[2,3]",
        "T[2,1]",
        "T[2,0]",
    ),
    row("lax.empty", lambda x: lax.empty((2, 3), x.dtype).shape[0] * x, "T[2]"),
    row("lax.expand_dims", lambda x: lax.expand_dims(x, (0, 2)), _MATRIX),
    row("lax.full", lambda x: lax.full((2, 3), 1, x.dtype), "T[]"),
    row("lax.full_like", lambda x: lax.full_like(x, 1), _MATRIX),
    row(
        "lax.optimization_barrier", lambda x, y: lax.optimization_barrier((x, y)), _MATRIX, "f32[]"
    ),
    *(
        row(f"lax.pad/{name}", lambda x, v, c=config: lax.pad(x, v, c), _MATRIX, "T[]")
        for name, config in _PADDINGS.items()
    ),
    row("lax.reshape", lambda x: lax.reshape(x, (3, 8)), _MATRIX),
    row("lax.reshape/dimensions", lambda x: lax.reshape(x, (3, 8), (1, 0)), _MATRIX),
    row("lax.reshape/scalar", lambda x: lax.reshape(x, ()), "T[1,1]"),
    row("lax.rev", lambda x: lax.rev(x, (0, 2)), "T[3,2,4]"),
    row("lax.slice", lambda x: lax.slice(x, (1, 2), (4, 6), (2, 3)), _MATRIX),
    row("lax.slice/empty", lambda x: lax.slice(x, (1, 2), (1, 6)), _MATRIX),
    row("lax.slice_in_dim", lambda x: lax.slice_in_dim(x, -4, None, 2, axis=1), _MATRIX),
    row("lax.index_in_dim", lambda x: lax.index_in_dim(x, -2, axis=1), _MATRIX),
    row("lax.split", lambda x: lax.split(x, (1, 2, 3), 1), _MATRIX),
    row("lax.squeeze", lambda x: lax.squeeze(x, (0, 2)), "T[1,3,1]"),
    row("lax.stack", lambda x, y: lax.stack((x, y), 1), _MATRIX, _MATRIX),
    row("lax.unstack", lambda x: lax.unstack(x, 1), _MATRIX),
    row("lax.stage", lax.stage, _MATRIX),
    row("lax.tile", lambda x: lax.tile(x, (2, 3)), _MATRIX),
    row("lax.transpose", lambda x: lax.transpose(x, (2, 0, 1)), "T[2,3,4]"),
    row("lax.transpose/five", lambda x: lax.transpose(x, (3, 1, 4, 0, 2)), "T[2,1,3,2,4]"),
    row("lax.shape_as_value", lambda x: lax.shape_as_value(x.shape), _MATRIX, types=ONE),
    row("lax.dce_sink", lambda x: (lax.dce_sink(x), x)[1], _MATRIX),
    row("lax.sort", lambda x: lax.sort(x), "T[3,40]"),
    row("lax.sort/edges", lambda x: lax.sort(x), "T[]:edges"),
    row("lax.sort/columns", lambda x: lax.sort(x, dimension=0), "T[11,3]"),
    row("lax.sort/descending", lambda x: -jnp.sort(-x, descending=True), "T[17]"),
    row(
        "lax.sort/two keys",
        lambda x, y: lax.sort((x, y), num_keys=2),
        "T[20]:small",
        "T[20]:small",
        types=tuple(t for t in ALL if t != "pred"),
    ),
    row("lax.sort/not stable", lambda x: lax.sort(x, is_stable=False), "T[20]"),
    row(
        "lax.sort_key_val",
        lambda x, y: lax.sort_key_val(x, y),
        "T[20]:small",
        "s32[20]",
        types=REAL,
    ),
    row("lax.top_k", lambda x: lax.top_k(x, 3), "T[4,9]"),
    row("lax.top_k/edges", lambda x: lax.top_k(x, 30), "T[]:edges"),
    row("lax.top_k/axis", lambda x: lax.top_k(x, 2, axis=0), "T[5,3]"),
    row("lax.approx_max_k", lambda x: lax.approx_max_k(x, 3), "T[2,20]:distinct", types=FLOATS),
    row(
        "lax.approx_min_k",
        lambda x: lax.approx_min_k(x, 3, reduction_dimension=0),
        "T[20,2]:distinct",
        types=FLOATS,
    ),
    row("lax.argmax", lambda x: lax.argmax(x, 1, jnp.int32), "T[5,7]:small", types=REAL),
    row("lax.argmax/edges", lambda x: lax.argmax(x, 0, jnp.int8), "T[]:edges"),
    row("lax.argmin", lambda x: lax.argmin(x, 0, jnp.int64), "T[5,7]"),
    row("lax.argmin/edges", lambda x: lax.argmin(x, 0, jnp.uint32), "T[]:edges"),
    row(
        "lax.platform_dependent",
        lambda x: lax.platform_dependent(x, cpu=lambda y: y, default=lambda y: jnp.zeros_like(y)),
        _MATRIX,
    ),
    row("lax.composite", lax.composite(lambda x: x + x, "test.double"), _MATRIX),
    row("vmap lax.rev", jax.vmap(lambda x: lax.rev(x, (0,)), 1), _MATRIX, types=USUAL),
    row("vmap lax.pad", jax.vmap(lambda x, v: lax.pad(x, v, ((1, 1, 1),))), "T[3,4]", "T[3]"),
    row("vmap lax.sort", jax.vmap(lambda x: lax.sort(x)), _MATRIX, types=USUAL),
    row(
        "grad lax.sort",
        jax.grad(lambda x: (lax.sort(x) * lax.iota(x.dtype, 9)).sum()),
        "T[9]",
        types=("f32", "bf16", "f64"),
        bound=COMPOSITE,
    ),
    row("lax.iota/vmap", jax.vmap(lambda x: x + lax.iota(x.dtype, 3)), "T[4]", types=INTEGERS),
)

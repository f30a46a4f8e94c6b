"""Slices at computed places, gather and scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from against_jax.case import COMPOSITE, FLOATS, INTEGERS, NUMBERS, SUM, USUAL, Case, row

_MODES = ("clip", "fill", "promise_in_bounds")
_MATRIX = "T[5,6]"
# Indices of all widths, from any of these types.
_INDEX_TYPES = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
_SCATTERS = {
    "scatter": lax.scatter,
    "scatter_add": lax.scatter_add,
    "scatter_sub": lax.scatter_sub,
    "scatter_mul": lax.scatter_mul,
    "scatter_min": lax.scatter_min,
    "scatter_max": lax.scatter_max,
}
_SUMS = ("scatter_add", "scatter_sub", "scatter_mul")


def _gather_numbers(*numbers: tuple[int, ...]) -> lax.GatherDimensionNumbers:
    return lax.GatherDimensionNumbers(*numbers)


def _gathers() -> list[Case]:
    variants: dict[str, tuple[lax.GatherDimensionNumbers, tuple[int, ...], tuple[str, str]]] = {
        "rows": (_gather_numbers((1,), (0,), (0,)), (1, 6), (_MATRIX, "s32[4,1]:wild")),
        "windows": (_gather_numbers((1, 2), (), (0, 1)), (2, 3), (_MATRIX, "s32[4,2]:wild")),
        "swapped": (_gather_numbers((0, 2), (), (1, 0)), (2, 3), (_MATRIX, "s32[4,2]:wild")),
        "points": (_gather_numbers((), (0, 1), (0, 1)), (1, 1), (_MATRIX, "s32[2,3,2]:wild")),
        "batch": (
            _gather_numbers((2,), (1,), (1,), (0,), (0,)),
            (1, 1, 4),
            ("T[3,5,4]", "s32[3,2,1]:wild"),
        ),
    }
    return [
        row(
            f"lax.gather/{name} {mode}",
            lambda x, i, n=numbers, s=sizes, m=mode: lax.gather(x, i, n, s, mode=m),
            *(spec.replace("wild", "index2") if mode.startswith("promise") else spec
              for spec in operands),
        )
        for name, (numbers, sizes, operands) in variants.items()
        for mode in _MODES
    ]  # fmt: skip


def _scatters() -> list[Case]:
    numbers = lax.ScatterDimensionNumbers
    variants = {
        "rows": (numbers((1,), (0,), (0,)), "s32[4,1]:wild", "T[4,6]"),
        "windows": (numbers((1, 2), (), (0, 1)), "s32[3,2]:wild", "T[3,2,3]"),
        "swapped": (numbers((0, 2), (), (1, 0)), "s32[3,2]:wild", "T[2,3,3]"),
        "points": (numbers((), (0, 1), (0, 1)), "s32[7,2]:index3", "T[7]"),
    }
    rows = []
    for name, scatter in _SCATTERS.items():
        for variant, (dimension_numbers, indices, updates) in variants.items():
            # Equal indices leave it open which update a plain scatter keeps.
            if name == "scatter" and variant != "rows":
                continue
            for mode in ("clip", "fill"):
                rows.append(
                    row(
                        f"lax.{name}/{variant} {mode}",
                        lambda x, i, u, f=scatter, n=dimension_numbers, m=mode: f(
                            x, i, u, n, mode=m
                        ),
                        "T[9,6]" if name == "scatter" else _MATRIX,
                        indices.replace("4,1]:wild", "4,1]:permutation")
                        if name == "scatter"
                        else indices,
                        updates,
                        bound=SUM if name in _SUMS else COMPOSITE,
                    )
                )
    return rows


def _dynamic() -> list[Case]:
    """Start indices of each type, also out of bounds: they are clamped."""
    rows = []
    for index in _INDEX_TYPES:
        rows.append(
            row(
                f"lax.dynamic_slice/{index}",
                lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)),
                _MATRIX,
                f"{index}[]:wild",
                f"{index}[]:wild",
            )
        )
        rows.append(
            row(
                f"lax.dynamic_update_slice/{index}",
                lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
                _MATRIX,
                "T[3,2]",
                f"{index}[]:wild",
                f"{index}[]:wild",
            )
        )
    return rows


def _indexed() -> list[Case]:
    """NumPy's indexing."""
    variants: dict[str, Callable[..., Any]] = {
        "rows": lambda x, i: x[i],
        "columns": lambda x, i: x[:, i],
        "pairs": lambda x, i: x[i, i[::-1]],
        "mixed": lambda x, i: x[1:4, None, i],
        "negative": lambda x, i: x[-i],
        "take": lambda x, i: jnp.take(x, i, axis=1),
        "take fill": lambda x, i: jnp.take(x, i + 3, axis=0, mode="fill"),
        "take wrap": lambda x, i: jnp.take(x, i + 9, axis=0, mode="wrap"),
        "take_along_axis": lambda x, i: jnp.take_along_axis(x, i[:, None] % 5, 0),
        "set": lambda x, i: x.at[i[0]].set(x[0]),
        "add": lambda x, i: x.at[i].add(x[i]),
        "mul": lambda x, i: x.at[:, i].mul(2),
        "max": lambda x, i: x.at[i, 1].max(x[0, 0]),
        "drop": lambda x, i: x.at[i + 3].set(x[0, 0], mode="drop"),
    }
    return [
        row(f"index/{name}", function, _MATRIX, "s32[4]:index3", bound=SUM, types=USUAL)
        for name, function in variants.items()
    ]


_ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
_SCATTER_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))

CASES = (
    *_gathers(),
    *_scatters(),
    *_dynamic(),
    *_indexed(),
    row(
        "lax.dynamic_slice",
        lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)),
        _MATRIX,
        "s32[]:wild",
        "s32[]:wild",
    ),
    row(
        "lax.dynamic_update_slice",
        lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
        _MATRIX,
        "T[3,2]",
        "s32[]:wild",
        "s32[]:wild",
    ),
    row(
        "lax.dynamic_slice/raw",
        lambda x, i: lax.dynamic_slice(x, (i, jnp.int32(0)), (2, 3), allow_negative_indices=False),
        _MATRIX,
        "s32[]:wild",
    ),
    row(
        "lax.dynamic_slice_in_dim",
        lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 1),
        _MATRIX,
        "s32[]:wild",
    ),
    row(
        "lax.dynamic_index_in_dim",
        lambda x, i: lax.dynamic_index_in_dim(x, i, 1, False),
        _MATRIX,
        "s32[]:wild",
    ),
    row(
        "lax.dynamic_update_index_in_dim",
        lambda x, u, i: lax.dynamic_update_index_in_dim(x, u, i, 0),
        _MATRIX,
        "T[6]",
        "s32[]:wild",
    ),
    row(
        "lax.dynamic_update_slice_in_dim",
        lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 1),
        _MATRIX,
        "T[5,2]",
        "s32[]:wild",
    ),
    row("lax.index_take", lambda x, i: lax.index_take(x, (i,), (0,)), _MATRIX, "s32[4]:index4"),
    row(
        "lax.scatter_apply",
        lambda x, i: lax.scatter_apply(
            x, i, lambda y: y * y, _SCATTER_ROWS, update_shape=(4, 6), unique_indices=True
        ),
        "T[9,6]",
        "s32[4,1]:permutation",
        types=NUMBERS,
        complex_bound=SUM,
    ),
    row(
        "lax.gather/fill value",
        lambda x, i: lax.gather(x, i, _ROWS, (1, 6), mode="fill", fill_value=1),
        _MATRIX,
        "s32[4,1]:wild",
    ),
    row(
        "lax.gather/sorted",
        lambda x, i: lax.gather(
            x, jnp.sort(i, 0), _ROWS, (1, 6), indices_are_sorted=True, mode="clip"
        ),
        _MATRIX,
        "s32[4,1]:wild",
    ),
    row(
        "lax.scatter_add/one hot",
        lambda i, u: jnp.zeros((8,), u.dtype).at[i].add(u),
        "s32[50]:index8",
        "T[50]:small",
        types=(*FLOATS, *INTEGERS, "c64"),
        bound=SUM,
    ),
    row(
        "lax.scatter_add/unsorted",
        lambda x, i, u: lax.scatter_add(x, i, u, _SCATTER_ROWS, unique_indices=True),
        "T[9,6]",
        "s32[4,1]:permutation",
        "T[4,6]",
        bound=SUM,
    ),
    row(
        "lax.gather/s8 indices",
        lambda x, i: lax.gather(x, i, _ROWS, (1, 6), mode="clip"),
        _MATRIX,
        "s8[4,1]:wild",
    ),
    row(
        "lax.gather/u8 indices",
        lambda x, i: lax.gather(x, i, _ROWS, (1, 6), mode="clip"),
        _MATRIX,
        "u8[4,1]",
    ),
    row(
        "lax.gather/u64 indices",
        lambda x, i: lax.gather(x, i, _ROWS, (1, 6), mode="clip"),
        _MATRIX,
        "u64[4,1]",
    ),
    row(
        "grad lax.gather",
        jax.grad(lambda x, i: (lax.gather(x, i, _ROWS, (1, 6), mode="clip") ** 2).sum()),
        _MATRIX,
        "s32[4,1]:wild",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row(
        "grad lax.scatter_add",
        jax.grad(lambda x, i, u: (lax.scatter_add(x, i, u, _SCATTER_ROWS) ** 2).sum(), (0, 2)),
        _MATRIX,
        "s32[4,1]:wild",
        "T[4,6]",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row(
        "grad lax.dynamic_slice",
        jax.grad(lambda x, i: (lax.dynamic_slice(x, (i, jnp.int32(0)), (2, 3)) ** 2).sum()),
        _MATRIX,
        "s32[]:wild",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row(
        "vmap lax.dynamic_slice",
        jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (3,))),
        _MATRIX,
        "s32[5]:wild",
        types=USUAL,
    ),
    row(
        "vmap lax.dynamic_update_slice",
        jax.vmap(lambda x, u, i: lax.dynamic_update_slice(x, u, (i,))),
        _MATRIX,
        "T[5,2]",
        "s32[5]:wild",
        types=USUAL,
    ),
    row("vmap lax.gather", jax.vmap(lambda x, i: x[i]), _MATRIX, "s32[5,3]:index4", types=USUAL),
    row(
        "vmap lax.scatter_add",
        jax.vmap(lambda x, i, u: x.at[i].add(u)),
        _MATRIX,
        "s32[5,3]:index4",
        "T[5,3]",
        types=USUAL,
        bound=SUM,
    ),
)

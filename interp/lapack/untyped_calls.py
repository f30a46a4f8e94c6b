"""Evaluate LAPACK custom calls as older JAX made them, with sizes and flags as leading operands.

Their results include scratch memory, which is zeros here (jaxlib/lapack.py of jaxlib 0.4.20). Each
call is translated to the typed one of :mod:`interp.lapack.routines`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.custom_calls import require_fitting
from hlo.errors import Unsupported
from hlo.types import ArrayShape, Shape, TupleShape, element_type_of, leaves
from hlo.values import Array
from interp.lapack import routines


@dataclass(frozen=True, slots=True)
class _Form:
    """An older call's form. ``settings`` turns the first ``count`` operands into a backend_config;
    ``results`` has, for each result, its number in the typed call, None for scratch memory."""

    count: int
    settings: Callable[..., dict[str, int]]
    results: tuple[int | None, ...]


def _upper_or_lower(is_lower: int) -> int:
    return ord("L" if is_lower else "U")


def _potrf(lower: int, batch: int, n: int) -> dict[str, int]:
    return {"uplo": _upper_or_lower(lower)}


def _syevd(lower: int, batch: int, n: int) -> dict[str, int]:
    return {"mode": ord("V"), "uplo": _upper_or_lower(lower)}


def _sytrd(n: int, lower: int, stride: int, batch: int, scratch: int) -> dict[str, int]:
    return {"uplo": _upper_or_lower(lower)}


def _gesdd(full: int, vectors: int, *sizes: int) -> dict[str, int]:
    if not vectors:
        return {"mode": ord("N")}
    return {"mode": ord("A" if full else "S")}


def _geev(batch: int, n: int, left: int, right: int) -> dict[str, int]:
    return {"compute_left": left, "compute_right": right}


def _gees(batch: int, n: int, mode: int, sort: int) -> dict[str, int]:
    return {"mode": mode, "sort": sort}


def _gehrd(n: int, low: int, high: int, *sizes: int) -> dict[str, int]:
    return {"low": low, "high": high}


def _none(*sizes: int) -> dict[str, int]:
    return {}


_REAL, _COMPLEX, _ANY = "sd", "cz", "sdcz"
_FORMS: dict[tuple[str, str], _Form] = {
    ("potrf", _ANY): _Form(3, _potrf, (0, 1)),
    ("getrf", _ANY): _Form(3, _none, (0, 1, 2)),
    ("geqrf", _ANY): _Form(4, _none, (0, 1, 2)),
    ("orgqr", _REAL): _Form(5, _none, (0, 1)),
    ("ungqr", _COMPLEX): _Form(5, _none, (0, 1)),
    ("syevd", _REAL): _Form(3, _syevd, (0, 1, 2)),
    ("heevd", _COMPLEX): _Form(3, _syevd, (0, 1, 2)),
    ("gesdd", _ANY): _Form(6, _gesdd, (0, 1, 2, 3, 4)),
    ("geev", _REAL): _Form(4, _geev, (None, None, None, 0, 1, 2, 3, 4)),
    ("geev", _COMPLEX): _Form(4, _geev, (None, None, 0, 1, 2, 3)),
    ("gees", _REAL): _Form(4, _gees, (0, 2, 3, 1, 4, 5)),
    ("gees", _COMPLEX): _Form(4, _gees, (0, None, 2, 1, 3, 4)),
    ("gehrd", _ANY): _Form(6, _gehrd, (0, 1, 2)),
    ("sytrd", _REAL): _Form(5, _sytrd, (0, 1, 2, 3, 4)),
    ("hetrd", _COMPLEX): _Form(5, _sytrd, (0, 1, 2, 3, 4)),
}


def _untyped(name: str, form: _Form) -> routines.Target:
    def target(operands: tuple[Array, ...], shape: Shape, config: str) -> tuple[Array, ...]:
        del config
        sizes = _integers(name, operands[: form.count])
        declared = leaves(shape)
        _require(name, len(operands) > form.count == len(sizes))
        are_arrays = all(leaf.element_type.is_array for leaf in declared)
        _require(name, are_arrays and len(declared) >= len(form.results))
        places = [*form.results, *([None] * (len(declared) - len(form.results)))]
        order = dict(zip(places, declared, strict=True))
        typed = TupleShape(tuple(order[n] for n in range(len(order) - (None in order))))
        config = ", ".join(f"{k} = {v}" for k, v in form.settings(*sizes).items())
        results = _by_typed(f"lapack_{name}_ffi", operands[form.count :], typed, config)
        return tuple(
            np.zeros(leaf.dims, leaf.element_type.numpy) if place is None else results[place]
            for place, leaf in zip(places, declared, strict=True)
        )

    return target


def _trsm(kind: str, operands: tuple[Array, ...], shape: Shape) -> Array:
    """Solve op(a) x = alpha b, or x op(a) = alpha b. Operands are (left_side, lower, 0 | 1
    transposed | 2 its conjugate, unit_diagonal, m, n, batch, alpha, a, b)."""
    left, lower, transposed, unit = map(int, operands[:4])
    alpha, a, b = operands[7:]
    _require("trsm", 0 <= transposed <= 2)
    letters = {
        "side": "L" if left else "R",
        "uplo": "L" if lower else "U",
        "trans_x": "NTC"[transposed],
        "diag": "U" if unit else "N",
    }
    text = ", ".join(f"{name} = {ord(letter)}" for name, letter in letters.items())
    right = b if alpha == 1 else np.multiply(alpha, b, dtype=b.dtype)
    result: Array = _by_typed(f"lapack_{kind}trsm_ffi", (a, right), shape, text)
    return result


def _by_typed(target: str, operands: tuple[Array, ...], shape: Shape, config: str) -> Any:
    """Apply the routine of a typed call, which the operands and results must fit."""
    shapes = []
    for operand in operands:
        _require(target, isinstance(operand, np.ndarray))
        element_type = element_type_of(operand.dtype)
        assert element_type is not None
        shapes.append(ArrayShape(element_type, operand.shape))
    require_fitting(target, shapes, shape, config)
    return routines.TARGETS[target](operands, shape, config)


def _integers(name: str, operands: tuple[Array, ...]) -> list[int]:
    """Read scalars of integers."""
    for operand in operands:
        is_scalar = isinstance(operand, np.ndarray) and not operand.ndim
        _require(name, is_scalar and operand.dtype.kind in "iub")
    return [int(operand) for operand in operands]


def _blas(kind: str) -> routines.Target:
    return lambda operands, shape, config: _trsm(kind, operands, shape)


def _require(name: str, is_so: bool) -> None:
    if not is_so:
        raise Unsupported(f"the custom call of {name} has other operands than JAX 0.4's")


TARGETS: dict[str, routines.Target] = {
    **{f"blas_{kind}trsm": _blas(kind) for kind in _ANY},
    **{
        f"lapack_{kind}{routine}": _untyped(f"{kind}{routine}", form)
        for (routine, kinds), form in _FORMS.items()
        for kind in kinds
    },
}

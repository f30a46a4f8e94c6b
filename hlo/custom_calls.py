"""Check the operands and results of custom calls that both interp and backend_c implement."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hlo.errors import Unsupported

Dims = tuple[int, ...]

_ROUTINE = re.compile(r"lapack_[sdcz](potrf|trsm|getrf|geqrf|orgqr|ungqr)_ffi")


def require_fitting(target: str, operands: Sequence[Dims], results: Sequence[Dims]) -> None:
    """Raise Unsupported if a target is known, but not with operands and results of these dims."""
    routine = _ROUTINE.fullmatch(target)
    fits = _FITS.get(routine[1] if routine is not None else target)
    if fits is not None and not fits(operands, results):
        shown = ", ".join(str(list(dims)) for dims in operands)
        gives = ", ".join(str(list(dims)) for dims in results)
        raise Unsupported(f"the custom call target {target!r} of {shown} does not give {gives}")


def _topk(operands: Sequence[Dims], results: Sequence[Dims]) -> bool:
    ranks = {len(dims) for dims in (*operands, *results)}
    if len(operands) != 1 or len(results) != 2 or len(ranks) != 1 or 0 in ranks:
        return False
    return results[0] == results[1]


def _pad_to_static(operands: Sequence[Dims], results: Sequence[Dims]) -> bool:
    if len(operands) != 1 or not results or len(results[0]) != len(operands[0]):
        return False
    sizes = results[1:]
    is_within = all(n <= m for n, m in zip(operands[0], results[0], strict=True))
    # Sizes are scalars, whose dims () are false.
    return is_within and len(sizes) == len(operands[0]) and not any(sizes)


def _slice_to_dynamic(operands: Sequence[Dims], results: Sequence[Dims]) -> bool:
    return len(operands) == 1 + len(operands[0]) and not any(operands[1:])


def _potrf(operands: Sequence[Dims], results: Sequence[Dims]) -> bool:
    return len(operands) == 1 and _is_square(operands[0])


def _trsm(operands: Sequence[Dims], results: Sequence[Dims]) -> bool:
    if len(operands) != 2 or not _is_square(operands[0]) or len({*map(len, operands)}) != 1:
        return False
    a, b = operands
    # Whether ``a`` stands left or right of the unknown is an attribute of the call, not seen here.
    return a[:-2] == b[:-2] and a[-1] in b[-2:]


def _getrf(operands: Sequence[Dims], results: Sequence[Dims]) -> bool:
    return _geqrf(operands, results[:2]) and all(dims == operands[0][:-2] for dims in results[2:])


def _geqrf(operands: Sequence[Dims], results: Sequence[Dims]) -> bool:
    if len(operands) != 1 or len(operands[0]) < 2 or not results:
        return False
    *batch, rows, columns = operands[0]
    return list(results[:2]) == [operands[0], (*batch, min(rows, columns))][: len(results)]


def _orgqr(operands: Sequence[Dims], results: Sequence[Dims]) -> bool:
    if len(operands) != 2 or len(operands[0]) < 2 or not results or results[0] != operands[0]:
        return False
    *batch, rows, columns = operands[0]
    *same, count = operands[1] or (0,)
    return same == batch and count <= columns <= rows


def _is_square(dims: Dims) -> bool:
    return len(dims) > 1 and dims[-1] == dims[-2]


_FITS: dict[str, Callable[[Sequence[Dims], Sequence[Dims]], bool]] = {
    "PadToStatic": _pad_to_static,
    "SliceToDynamic": _slice_to_dynamic,
    "TopK": _topk,
    "potrf": _potrf,
    "trsm": _trsm,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "ungqr": _orgqr,
}

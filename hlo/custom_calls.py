"""Check custom calls of the targets that several columns implement, and read their settings.

A target's meaning fixes its results, but the verifier takes any: a text may name any target, and
the caller of an evaluation may give it another function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hlo.errors import Unsupported
from hlo.ops.constraints import Violation
from hlo.ops.indexing import topk
from hlo.types import (
    C64,
    C128,
    F32,
    F64,
    S32,
    ArrayShape,
    ElementType,
    Shape,
    TupleShape,
    compatible,
    same_bounds,
)

# Their value is their operand: they only mark it.
MARKERS = (
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "Pin",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "ShardBarrierFrom",
    "ShardBarrierTo",
    "Sharding",
    "Unpin",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
)
# Of these the value is the operand only before partitioning, and of one partition.
_OF_PARTITIONS = ("SPMDFullToShardShape", "SPMDShardToFullShape")
_SHARDED = (
    ": the program is sharded, and not yet partitioned. What jax.jit(f).lower(x).compile() gives is"
    " so, for N partitions: interp.evaluate(ho.load(it), (x0,), (x1,), …, partitions=N), or hlo"
    " run FILE --partitions N"
)
# What ``trans_x`` says, as triangular-solve does.
TRANSPOSES = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}
_ROUTINE = re.compile(r"lapack_([sdcz])(potrf|trsm|getrf|geqrf|orgqr|ungqr)_ffi")
_BLAS = re.compile(r"blas_([sdcz])trsm")
_TYPES = {"s": F32, "d": F64, "c": C64, "z": C128}


class _Call(NamedTuple):
    """A call of a target of arrays, as declared; ``config`` is its backend_config."""

    operands: tuple[ArrayShape, ...]
    result: Shape
    config: str


def require_fitting(target: str, operands: Sequence[Shape], result: Shape, config: str) -> None:
    """Raise Unsupported if a target is known, but not with operands and a result of these shapes.

    What passes is in bounds: the C backend writes without looking again.
    """
    routine, blas = _ROUTINE.fullmatch(target), _BLAS.fullmatch(target)
    arrays = tuple(x for x in operands if isinstance(x, ArrayShape) and x.element_type.is_array)
    call = _Call(arrays, result, config)
    if target in MARKERS:
        marked = operands[0] if len(operands) == 1 else TupleShape(tuple(operands))
        fits = same_bounds(marked, result)
    elif routine is not None:
        fits = _is_of(routine[1], operands) and _ROUTINES[routine[2]](call)
    elif blas is not None:
        fits = len(arrays) == len(operands) == 10 and _blas_trsm(_TYPES[blas[1]], call)
    else:
        rule = _FITS.get(target)
        fits = rule is None or (len(arrays) == len(operands) and rule(call))
    if not fits:
        shown = ", ".join(map(str, operands)) or "no operands"
        raise Unsupported(
            f"the custom call target {target!r} of {shown} does not give {result}{sharded(target)}"
        )


def sharded(target: str) -> str:
    """Return what to do about a program that is not yet partitioned, for the message about a custom
    call of sharding that cannot be evaluated; empty for other targets."""
    return _SHARDED if target.startswith("xla.sdy.") or target in _OF_PARTITIONS else ""


def letter(config: str, name: str, letters: str) -> str:
    """Read the character, one of ``letters``, in ``{uplo = 76 : ui8}`` or in JSON's ``"uplo": 76``
    of a backend_config; raise Unsupported for another."""
    code = number(config, name)
    for one in letters:
        if ord(one) == code:
            return one
    raise Unsupported(f"{name} = {code} in a backend_config is none of {', '.join(letters)}")


def number(config: str, name: str) -> int:
    """Read a number of at most nine digits of a backend_config."""
    return int(setting(config, name, r"\d{1,9}+(?!\d)"))


def setting(config: str, name: str, pattern: str) -> str:
    """Read the setting of a name in a backend_config; raise Unsupported if none has the pattern."""
    # Possessive quantifiers: the text is hostile, and these cannot backtrack.
    found = re.search(rf'\b{name}"?\s*+[=:]\s*+"?({pattern})', config)
    if found is None:
        raise Unsupported(f"no {name} in the backend_config {config[:60]!r}")
    return found[1]


def _topk(call: _Call) -> bool:
    operands, (values, *_) = call.operands, _elements(call.result) or (call.result,)
    if len(operands) != 1 or not isinstance(values, ArrayShape) or not values.rank:
        return False
    try:
        inferred = topk(operands[0], k=values.dims[-1])
    except Violation:
        return False
    return same_bounds(inferred, call.result)


def _pad_to_static(call: _Call) -> bool:
    if len(call.operands) != 1:
        return False
    (data,) = call.operands
    sizes = (ArrayShape(S32),) * data.rank
    return compatible(call.result, TupleShape((_static(data), *sizes)))


def _slice_to_dynamic(call: _Call) -> bool:
    if not call.operands:
        return False
    data, *sizes = call.operands
    are_sizes = all(size.is_integer and not size.rank for size in sizes)
    return are_sizes and len(sizes) == data.rank and same_bounds(call.result, data)


def _is_of(kind: str, operands: Sequence[Shape]) -> bool:
    """Test for operands of a LAPACK routine: of its type, static, the first one of matrices, the
    second one of at least vectors."""
    return bool(operands) and all(
        isinstance(x, ArrayShape)
        and x.element_type is _TYPES[kind]
        and not x.is_dynamic
        and x.rank > 1 - number
        for number, x in enumerate(operands)
    )


def _potrf(call: _Call) -> bool:
    if len(call.operands) != 1 or not _is_square(call.operands[0]):
        return False
    (a,) = call.operands
    return compatible(call.result, TupleShape((a, ArrayShape(S32, a.dims[:-2]))))


def _trsm(call: _Call) -> bool:
    """Test a solve of a and b; JAX up to 0.4 gives alpha, a scalar, too."""
    if len(call.operands) not in (2, 3):
        return False
    a, b, *alpha = call.operands
    if any(x.rank or x.element_type is not b.element_type for x in alpha):
        return False
    if not _is_square(a) or a.dims[:-2] != b.dims[:-2] or a.rank != b.rank:
        return False
    if a.dims[-1] not in b.dims[-2:] or not compatible(call.result, b):
        return False
    return a.dims[-1] == b.dims[-2 if letter(call.config, "side", "LR") == "L" else -1]


def _blas_trsm(element_type: ElementType, call: _Call) -> bool:
    """Test a solve as older JAX called it, after seven integers and alpha: which of these is the
    side is not declared."""
    *numbers, alpha, a, b = call.operands
    scalars = not any(x.rank for x in (*numbers, alpha)) and all(x.is_integer for x in numbers)
    typed = {x.element_type for x in (alpha, a, b)} == {element_type}
    are_matrices = _is_square(a) and a.dims[:-2] == b.dims[:-2] and a.rank == b.rank
    is_static = not (a.is_dynamic or b.is_dynamic)
    return scalars and typed and are_matrices and is_static and compatible(call.result, b)


def _getrf(call: _Call) -> bool:
    if len(call.operands) != 1:
        return False
    (a,) = call.operands
    *batch, rows, columns = a.dims
    pivots = ArrayShape(S32, (*batch, min(rows, columns)))
    return _begins(call.result, a, pivots, ArrayShape(S32, tuple(batch)))


def _geqrf(call: _Call) -> bool:
    if len(call.operands) != 1:
        return False
    (a,) = call.operands
    *batch, rows, columns = a.dims
    taus = ArrayShape(a.element_type, (*batch, min(rows, columns)))
    return _begins(call.result, a, taus, ArrayShape(S32, tuple(batch)))


def _orgqr(call: _Call) -> bool:
    if len(call.operands) != 2:
        return False
    a, taus = call.operands
    *batch, rows, columns = a.dims
    *same, count = taus.dims
    is_product = same == batch and count <= columns <= rows
    return is_product and _begins(call.result, a, ArrayShape(S32, tuple(batch)))


def _begins(declared: Shape, *results: ArrayShape) -> bool:
    """Test whether the first results are declared, some or all: a single one perhaps alone."""
    elements = (declared,) if isinstance(declared, ArrayShape) else declared.elements
    return 0 < len(elements) <= len(results) and all(map(compatible, elements, results))


def _is_square(shape: ArrayShape) -> bool:
    return shape.rank > 1 and shape.dims[-1] == shape.dims[-2]


def _elements(shape: Shape) -> tuple[Shape, ...]:
    return shape.elements if isinstance(shape, TupleShape) else ()


def _static(shape: ArrayShape) -> ArrayShape:
    return ArrayShape(shape.element_type, shape.dims)


_FITS: dict[str, Callable[[_Call], bool]] = {
    "PadToStatic": _pad_to_static,
    "SliceToDynamic": _slice_to_dynamic,
    "TopK": _topk,
}
_ROUTINES: dict[str, Callable[[_Call], bool]] = {
    "potrf": _potrf,
    "trsm": _trsm,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "ungqr": _orgqr,
}

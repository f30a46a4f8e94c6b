"""Elementary functions on values: the sequences of ``hlo.elementary``, then one rounding."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from hlo.types import F64
from hlo.values import Array
from interp.exact.conversion import type_of
from interp.exact.elementary_machine import evaluated, evaluated_complex
from interp.exact.rounding import rounded

_Given = tuple["np.dtype[Any]", tuple[int, ...], bytes]  # an array: type, sizes, elements


def elementary(name: str, *operands: Array) -> Array:
    """Evaluate elementary function ``name`` on ``operands``, rounded to their type. Results of the
    last operands are kept (memoisation)."""
    size = max(operand.nbytes for operand in operands)
    if size > _MOST_BYTES:
        return _elementary(name, *operands)
    keeping = _kept_of_few if size <= _FEW_BYTES else _kept_of_many
    return keeping(name, *((x.dtype, x.shape, x.tobytes()) for x in operands)).copy()


def _from_bytes(name: str, *operands: _Given) -> Array:
    arrays = (np.frombuffer(data, dtype).reshape(shape) for dtype, shape, data in operands)
    return np.asarray(_elementary(name, *arrays))


# A sequence is some hundred operations of NumPy, of complex numbers a thousand. Evaluations of one
# program, by the interpreter and over enclosures under each budget, ask for the same numbers again:
# of 50 drawn programs four times of five. To look 64 KiB up takes a hundredth of what complex
# numbers take, a tenth of what real ones do.
_FEW_BYTES, _MOST_BYTES = 1 << 10, 1 << 16  # of an operand
_kept_of_few = lru_cache(1 << 12)(_from_bytes)  # at most 12 MiB
_kept_of_many = lru_cache(1 << 7)(_from_bytes)  # at most 24 MiB


def _elementary(name: str, *operands: Array) -> Array:
    element_type = type_of(operands[0])
    if element_type.is_complex:
        return _of_complex(f"{name}_{element_type}", *operands)
    wide = np.broadcast_arrays(*(operand.astype(np.float64) for operand in operands))
    if element_type is F64:
        return evaluated(f"{name}_f64", *wide)
    return rounded(evaluated(name, *wide), element_type)


def _of_complex(name: str, *operands: Array) -> Array:
    """Make the function ``name`` of complex arrays; that of a magnitude has a real result."""
    same = np.broadcast_arrays(*operands)
    components = [
        part.astype(np.float64) for operand in same for part in (operand.real, operand.imag)
    ]
    parts = evaluated_complex(name, *components)
    part_type = same[0].real.dtype
    with np.errstate(over="ignore"):
        rounded_parts = [part.astype(part_type) for part in parts]
    if len(parts) == 1:
        return rounded_parts[0]
    result = np.empty(same[0].shape, same[0].dtype)
    result.real, result.imag = rounded_parts
    return result

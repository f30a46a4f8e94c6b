"""Number element types as PJRT_Buffer_Type does."""

from __future__ import annotations

from hlo.errors import Unsupported
from hlo.types import ELEMENT_TYPES, ElementType

# In the order of the enumeration in pjrt_c_api.h.
_NAMES = (
    *("invalid", "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"),
    *("f16", "f32", "f64", "bf16", "c64", "c128"),
    *("f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz"),
    *("s4", "u4", "token", "s2", "u2"),
    *("f8e4m3", "f8e3m4", "f8e8m0fnu", "f4e2m1fn", "s1", "u1", "f6e2m3fn", "f6e3m2fn"),
)
_NUMBERS = {name: number for number, name in enumerate(_NAMES)}


def element_type(number: int) -> ElementType:
    """Return the element type of a PJRT_Buffer_Type; Unsupported if there is none."""
    if not 0 < number < len(_NAMES):
        raise Unsupported(f"PJRT_Buffer_Type {number}: the types 1 to {len(_NAMES) - 1} are known")
    return ELEMENT_TYPES[_NAMES[number]]


def number_of(element: ElementType) -> int:
    """Return the PJRT_Buffer_Type of an element type."""
    return _NUMBERS[element.name]

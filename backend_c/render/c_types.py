"""Map element types to C types, of variables and of arrays in memory.

Variables hold floats narrower than f32 as an exact ``float``.
"""

from __future__ import annotations

from backend_c.ir.loop_ir import INDEX, Array
from hlo.types import PRED, ElementType

# The C type in a register, and in memory.
_REGISTER = {
    "index": "int64_t",
    "pred": "hlo_pred",
    "f32": "float",
    "f64": "double",
    "c64": "hlo_c64",
    "c128": "hlo_c128",
    "accumulator": "hlo_accumulator",
    "accumulator_f64": "hlo_accumulator_f64",
}
_MEMORY = _REGISTER | {"pred": "uint8_t", "f16": "uint16_t", "bf16": "uint16_t"}


def is_narrow(element_type: ElementType) -> bool:
    """Return whether registers hold a float type as a wider one."""
    return element_type.is_float and element_type.bits < 32


def integer_type(element_type: ElementType) -> str:
    """Return the C integer type; sub-byte integers take a byte."""
    width = max(8, element_type.bits)
    return f"{'u' if element_type.kind == 'unsigned' else ''}int{width}_t"


def register_type(element_type: ElementType) -> str:
    """Return the C type of a value in a variable."""
    if element_type.is_integer and element_type is not INDEX:
        return integer_type(element_type)
    return _REGISTER.get(element_type.name, "float")


def memory_type(element_type: ElementType) -> str:
    """Return the C type of a value in memory."""
    if element_type.is_integer and element_type is not INDEX:
        return integer_type(element_type)
    return _MEMORY.get(element_type.name, "uint8_t")


def is_converted(array: Array) -> bool:
    """Return whether loading an element of an array widens it, and storing rounds it."""
    return is_narrow(array.element_type) and not array.is_wide


def array_type(array: Array) -> str:
    """Return the C type of the elements of an array."""
    is_held = is_narrow(array.element_type) and array.is_wide
    return register_type(array.element_type) if is_held else memory_type(array.element_type)


def loaded(array: Array, text: str) -> str:
    """Return the text that converts an array element to its register value."""
    if is_converted(array):
        return f"hlo_load_{array.element_type}({text})"
    return f"({text} != 0)" if array.element_type is PRED else text


def to_store(array: Array, text: str) -> str:
    """Return the text that converts a register value to its array element."""
    return f"hlo_store_{array.element_type}({text})" if is_converted(array) else text

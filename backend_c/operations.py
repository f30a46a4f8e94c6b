"""What each operation of the loop IR is in C, by the kind of its operands: one table.

Registers hold floats narrower than f32 as an exact ``float``; every operation on them rounds once.
Integer operations whose C meaning is undefined somewhere are functions of ``hlo_integer.h``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend_c.loop_ir import INDEX
from hlo.types import F32, F64, PRED, U64, ElementType

_Texts = Sequence[str]

# The C type in a register, and in memory.
_REGISTER = {
    "index": "int64_t",
    "pred": "hlo_pred",
    "f32": "float",
    "f64": "double",
    "c64": "hlo_c64",
    "c128": "hlo_c128",
    "accumulator": "hlo_accumulator",
}
_MEMORY = _REGISTER | {"pred": "uint8_t", "f16": "uint16_t", "bf16": "uint16_t"}

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "compare-EQ": "==",
    "compare-NE": "!=",
    "compare-LT": "<",
    "compare-LE": "<=",
    "compare-GT": ">",
    "compare-GE": ">=",
}
_PRED = {
    "add": "or",
    "maximum": "or",
    "multiply": "and",
    "minimum": "and",
}
# Infix on floats and complex; on integers only what cannot overflow.
_FLOAT_INFIX = frozenset(("add", "subtract", "multiply", "divide"))
_INTEGER_INFIX = frozenset(("and", "or", "xor"))


def is_narrow(element_type: ElementType) -> bool:
    """A float that registers hold as a wider one."""
    return element_type.is_float and element_type.bits < 32


def _integer(element_type: ElementType) -> str:
    width = max(8, element_type.bits)
    return f"{'u' if element_type.kind == 'unsigned' else ''}int{width}_t"


def register_type(element_type: ElementType) -> str:
    """The C type of a value in a variable."""
    if element_type.is_integer and element_type is not INDEX:
        return _integer(element_type)
    return _REGISTER.get(element_type.name, "float")


def memory_type(element_type: ElementType) -> str:
    """The C type of a value in an array."""
    if element_type.is_integer and element_type is not INDEX:
        return _integer(element_type)
    return _MEMORY.get(element_type.name, "uint8_t")


def loaded(element_type: ElementType, text: str) -> str:
    """The register value of an array element."""
    if is_narrow(element_type):
        return f"hlo_load_{element_type}({text})"
    return f"({text} != 0)" if element_type is PRED else text


def to_store(element_type: ElementType, text: str) -> str:
    """The array element of a register value."""
    return f"hlo_store_{element_type}({text})" if is_narrow(element_type) else text


def applied(
    operation: str, texts: _Texts, types: Sequence[ElementType], result: ElementType
) -> tuple[str, bool]:
    """The C text of an operation, and whether it is infix (and needs parentheses inside others)."""
    special = _SPECIAL.get(operation)
    if special is not None:
        return special(texts, types, result)
    operand = types[0]
    if operation.startswith("compare-"):
        return _compared(operation, texts, operand)
    if operand is PRED:
        symbol = _INFIX[_PRED.get(operation, operation)]
        return f"{texts[0]} {symbol} {texts[1]}", True
    if operand is INDEX and operation in _INFIX:
        return f"{texts[0]} {_INFIX[operation]} {texts[1]}", True
    if operand.is_float and operation in _FLOAT_INFIX:
        text = f"{texts[0]} {_INFIX[operation]} {texts[1]}"
        return (f"hlo_round_{operand}({text})", False) if is_narrow(operand) else (text, True)
    if operand.is_integer and operation in _INTEGER_INFIX:
        text = f"{texts[0]} {_INFIX[operation]} {texts[1]}"
        return (f"({_integer(operand)})({text})", False) if operand.bits < 32 else (text, True)
    if operand.is_float and operation in NARROW_BY_F64:
        return rounded_from_f64(f"hlo_{_c(operation)}({_doubles(texts)})", operand), False
    return f"hlo_{_c(operation)}_{operand}({', '.join(texts)})", False


def _c(operation: str) -> str:
    return operation.replace("-", "_").lower()


def _doubles(texts: _Texts) -> str:
    return ", ".join(f"(double){text}" for text in texts)


def rounded_from_f64(text: str, element_type: ElementType) -> str:
    """A double rounded once to a float type."""
    if element_type is F64:
        return text
    return f"(float){text}" if element_type is F32 else f"hlo_round_{element_type}_from_f64({text})"


def _compared(operation: str, texts: _Texts, operand: ElementType) -> tuple[str, bool]:
    if operand.is_complex:
        return f"hlo_{_c(operation)}_{operand}({', '.join(texts)})", False
    return f"{texts[0]} {_INFIX[operation]} {texts[1]}", True


def _select(texts: _Texts, types: Sequence[ElementType], result: ElementType) -> tuple[str, bool]:
    return f"{texts[0]} ? {texts[1]} : {texts[2]}", True


def _clamp_index(
    texts: _Texts, types: Sequence[ElementType], result: ElementType
) -> tuple[str, bool]:
    return f"hlo_clamp_index({', '.join(texts)})", False


def _within(texts: _Texts, types: Sequence[ElementType], result: ElementType) -> tuple[str, bool]:
    """``low <= value <= high`` as one comparison of unsigned differences."""
    value, low, high = texts
    shifted = value if low == "0" else f"({value} - {low})"
    return f"(uint64_t){shifted} <= (uint64_t)({high} - {low})", True


def _converted(texts: _Texts, types: Sequence[ElementType], result: ElementType) -> tuple[str, bool]:
    (text,), (source,) = texts, types
    if source is INDEX:
        return _from_index(text, result)
    if result is INDEX:
        return (f"hlo_index_u64({text})" if source is U64 else f"(int64_t){text}"), False
    if result is PRED:
        zero = "0.0f" if source.is_float else "0"
        return f"{text} != {zero}", True
    if source.is_complex or result.is_complex:
        return f"hlo_convert_{source}_{result}({text})", False
    if result.is_integer:
        return f"hlo_convert_{_held(source)}_{result}({text})", False
    return _to_float(text, source, result)


def _held(element_type: ElementType) -> ElementType:
    """The type in whose register format a value is."""
    return F32 if is_narrow(element_type) else element_type


def _from_index(text: str, result: ElementType) -> tuple[str, bool]:
    if is_narrow(result):
        return f"hlo_round_{result}_from_f64((double){text})", False
    if result.is_complex:
        part = "float" if result.bits == 64 else "double"
        return f"hlo_make_{result}(({part}){text}, 0)", False
    if result is PRED:
        return f"{text} != 0", True
    if result.is_integer and result.bits < 8:
        return f"hlo_convert_s64_{result}({text})", False
    return f"({register_type(result)}){text}", False


def _to_float(text: str, source: ElementType, result: ElementType) -> tuple[str, bool]:
    """To a float type, rounded once: 64-bit integers do not fit a double."""
    if not is_narrow(result) or source is result:
        return f"({register_type(result)}){text}", False
    if source.is_integer and source.bits == 64:
        return f"hlo_convert_{source}_{result}({text})", False
    if source is F64 or (source.is_integer and source.bits == 32):
        return f"hlo_round_{result}_from_f64((double){text})", False
    return f"hlo_round_{result}((float){text})", False


def _bitcast(texts: _Texts, types: Sequence[ElementType], result: ElementType) -> tuple[str, bool]:
    (text,), (source,) = texts, types
    bits = text
    if source.is_float:
        bits = f"hlo_store_{source}({text})" if is_narrow(source) else f"hlo_bits_{source}({text})"
    if result.is_float:
        unsigned = f"(uint{max(8, result.bits)}_t){bits}"
        if is_narrow(result):
            return f"hlo_load_{result}({unsigned})", False
        return f"hlo_{result}_from_bits({unsigned})", False
    if result.bits < 8:
        return f"hlo_convert_u8_{result}((uint8_t){bits})", False
    return f"({_integer(result)}){bits}", False


def _as_double(
    texts: _Texts, types: Sequence[ElementType], result: ElementType
) -> tuple[str, bool]:
    return f"(double){texts[0]}", False


def _from_double(
    texts: _Texts, types: Sequence[ElementType], result: ElementType
) -> tuple[str, bool]:
    """An f64 value rounded once to the result type."""
    return rounded_from_f64(texts[0], result), False


# Operations whose text depends on more than the first operand's type.
_SPECIAL: dict[str, Callable[[_Texts, Sequence[ElementType], ElementType], tuple[str, bool]]] = {
    "select": _select,
    "clamp": _clamp_index,
    "within": _within,
    "convert": _converted,
    "bitcast": _bitcast,
    "widen": _as_double,
    "round": _from_double,
}

# Elementary functions: computed in f64 by the sequences of hlo.elementary, then rounded once.
NARROW_BY_F64 = frozenset(
    "acos acosh asin asinh atan2 atanh cbrt cosine cosh erf exponential exponential-minus-one log"
    " log-plus-one logistic power rsqrt sine sinh sqrt tan tanh".split()
)

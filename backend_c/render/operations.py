"""Render each operation of the loop IR in C, by the kind of its operands: one table.

Registers hold floats narrower than f32 as an exact ``float``; every operation on them rounds once.
In ``fast`` f16 and bf16 keep the precision of f32 there: only what is stored is rounded.
Integer operations whose C meaning is undefined somewhere (overflow, shift, division) are functions
of ``hlo_integer.h``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend_c.ir.loop_ir import BOOLEAN, INDICES, NARROW_INDEX
from backend_c.ir.settings import Numerics
from backend_c.render import bit_patterns, conversions
from backend_c.render.binding import ATOM, OTHER, PRODUCT, SUM, UNARY
from backend_c.render.c_types import integer_type, is_narrow, register_type
from hlo import elementary
from hlo.elementary.fast import BOUNDED_F64, FAST_FUNCTIONS, FAST_FUNCTIONS_F64
from hlo.errors import Unsupported
from hlo.opcodes import BITWISE, ELEMENTARY, MONOID, having
from hlo.types import BF16, C64, C128, F16, F32, F64, PRED, ElementType

_Texts = Sequence[str]
_BINDS = {"*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "+": SUM, "-": SUM}
_Render = Callable[[_Texts, Sequence[ElementType], ElementType], tuple[str, int]]

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
# Infix on floats and complex; on integers only what cannot overflow.
_FLOAT_INFIX = frozenset(("add", "subtract", "multiply", "divide"))
_ROUNDED = _FLOAT_INFIX | {"negate", "sqrt", "remainder"}
# Results that are operands, or 1 and -1, so that narrow floats need no rounding.
_EXACT = frozenset(("maximum", "minimum", "abs", "sign"))
# What ``fast`` computes without pairs of floats (runtime/hlo_complex.h).
_FAST_COMPLEX = {(name, one) for name in ("multiply", "divide", "abs") for one in (C64, C128)}
# Types that `fast` computes in f32 (excess precision); of 8 bits and fewer each step is rounded.
_KEPT_WIDE = frozenset((F16, BF16))
_INTEGER_INFIX = having(BITWISE | MONOID)
_ELEMENTARY = having(ELEMENTARY)  # computed in f64 by the sequences of hlo.elementary, rounded once
# Those of ``fast``, for all operands of f32 or for some (:mod:`backend_c.ir.value_ranges`).
_FAST_SEQUENCES = frozenset(name.replace("_", "-") for name in FAST_FUNCTIONS)
_FAST_SEQUENCES_F64 = frozenset(name.replace("_", "-") for name in FAST_FUNCTIONS_F64)
# Those with a fast sequence for small operands of f64, and the exact one for the others.
_IN_TWO_PASSES = frozenset(one.of.replace("_", "-") for one in BOUNDED_F64)


def render_operation(
    operation: str,
    texts: _Texts,
    types: Sequence[ElementType],
    result: ElementType,
    numerics: Numerics = Numerics.EXACT,
) -> tuple[str, int]:
    """Render an operation; return its text and its precedence (:mod:`backend_c.render.binding`).

    ``texts`` are the operands, in parentheses unless they bind as tightly as a unary operator, or
    as :func:`operand_binding` allows. ``numerics`` chooses the sequence of an elementary function.
    """
    operand = types[0] if types else result  # a thread's number has no operands
    if numerics is Numerics.FAST and result in _KEPT_WIDE and _fits_f32(operation, operand):
        return render_operation(operation, texts, [_widened(t) for t in types], F32, numerics)
    special = _SPECIAL.get(operation)
    if special is not None:
        return special(texts, types, result)
    if numerics is Numerics.FAST and _has_fast_sequence(operation, operand):
        return _fast(operation, texts, operand)
    if numerics is Numerics.FAST and (operation, operand) in _FAST_COMPLEX:
        return f"hlo_{operation}_{operand}_fast({', '.join(texts)})", ATOM
    if operation.startswith("compare-"):
        return _compared(operation, texts, operand)
    if operand is PRED:
        symbol = _INFIX[BOOLEAN.get(operation, operation)]
        return f"{texts[0]} {symbol} {texts[1]}", OTHER
    if operand in INDICES and operation in _INFIX:
        symbol = _INFIX[operation]
        return f"{texts[0]} {symbol} {texts[1]}", _BINDS.get(symbol, OTHER)
    if operand.is_float:
        return _on_floats(operation, texts, operand)
    if operand.is_integer and operation in _INTEGER_INFIX:
        text = f"{texts[0]} {_INFIX[operation]} {texts[1]}"
        # C promotes narrow integers to int: the cast brings the result back to its type.
        return (f"({integer_type(operand)})({text})", ATOM) if operand.bits < 32 else (text, OTHER)
    return f"hlo_{_identifier(operation)}_{operand}({', '.join(texts)})", ATOM


def _fits_f32(operation: str, operand: ElementType) -> bool:
    """Return whether ``fast`` computes an operation on f16 and bf16 in f32, without rounding."""
    if operation == "convert":
        return operand is F32 or operand in _KEPT_WIDE
    return operand in _KEPT_WIDE and (operation in _ROUNDED or operation in _FAST_SEQUENCES)


def _widened(element_type: ElementType) -> ElementType:
    """Return the type that ``fast`` computes a value in: f32 for f16 and bf16."""
    return F32 if element_type in _KEPT_WIDE else element_type


def _on_floats(operation: str, texts: _Texts, operand: ElementType) -> tuple[str, int]:
    """Render an operation on floats; narrow results are rounded to their type.

    Infix where C has an operator, an elementary function in f64, or a function of the runtime.
    """
    if operation in _FLOAT_INFIX:
        text = f"{texts[0]} {_INFIX[operation]} {texts[1]}"
        # f8e8m0fnu has no zero: 2^-127 * 2^-127, which is 0 in f32 and then NaN, rounds to 2^-127.
        if operand.name == "f8e8m0fnu":
            text = f"(double){texts[0]} {_INFIX[operation]} (double){texts[1]}"
            return conversions.rounded_from_f64(text, operand), ATOM
        if is_narrow(operand):
            return f"hlo_round_{operand}({text})", ATOM
        return text, _BINDS[_INFIX[operation]]
    if operation in _ELEMENTARY:
        _require_sequence(operation, operand)
        if operand is not F64:
            text = f"hlo_{_identifier(operation)}({_doubles(texts)})"
            return conversions.rounded_from_f64(text, operand), ATOM
    if not is_narrow(operand):
        return f"hlo_{_identifier(operation)}_{operand}({', '.join(texts)})", ATOM
    text = f"hlo_{_identifier(operation)}_f32({', '.join(texts)})"
    return (text if operation in _EXACT else f"hlo_round_{operand}({text})"), ATOM


def f64_function(operation: str, operand: ElementType, numerics: Numerics) -> str | None:
    """Return the name of the f64 function that computes an operation; None if none does.

    In ``fast``, operations with a short sequence of their own have none.
    """
    if operation not in _ELEMENTARY or not operand.is_float:
        return None
    if numerics is Numerics.FAST and operand is F64 and operation in _IN_TWO_PASSES:
        return f"{_identifier(operation)}_f64_fast"
    if numerics is Numerics.FAST and _has_fast_sequence(operation, operand):
        return None
    name = _identifier(operation) + ("_f64" if operand is F64 else "")
    return name if name in elementary.FUNCTIONS else None


def _has_fast_sequence(operation: str, operand: ElementType) -> bool:
    """Return whether ``fast`` has a sequence of its own for an operation."""
    if operand is F64:
        return operation in _FAST_SEQUENCES_F64 | _IN_TWO_PASSES
    return operand.is_float and operation in _FAST_SEQUENCES


def _fast(operation: str, texts: _Texts, operand: ElementType) -> tuple[str, int]:
    """Render an elementary function in f32, or in f64; narrow results are rounded to their type."""
    kind = "_f64" if operand is F64 else ""
    text = f"hlo_{_identifier(operation)}{kind}_fast({', '.join(texts)})"
    return (f"hlo_round_{operand}({text})" if is_narrow(operand) else text), ATOM


def operand_binding(operation: str, position: int, operand: ElementType) -> int:
    """Return the loosest binding at which an operand needs no parentheses.

    Floats are never reassociated: a right operand of the same precedence keeps its parentheses.
    """
    arithmetic = operand in INDICES or (operand.is_float and operation in _FLOAT_INFIX)
    if operation == "select" or operation.startswith("compare-"):
        return SUM
    if not arithmetic or operation not in _INFIX:
        return UNARY
    own = _BINDS.get(_INFIX[operation], UNARY)
    return own if position == 0 else own - 1


def _require_sequence(operation: str, operand: ElementType) -> None:
    """Raise Unsupported for an elementary function without a sequence for the type."""
    name = _identifier(operation) + ("_f64" if operand is F64 else "")
    if name not in elementary.FUNCTIONS:
        raise Unsupported(f"{operation} of {operand} has no proven sequence yet")


def _identifier(operation: str) -> str:
    """Return an operation's name as part of a C identifier."""
    return operation.replace("-", "_").lower()


def _doubles(texts: _Texts) -> str:
    """Render operands widened to double."""
    return ", ".join(f"(double){text}" for text in texts)


def _compared(operation: str, texts: _Texts, operand: ElementType) -> tuple[str, int]:
    """Render a comparison."""
    if operand.is_complex:
        return f"hlo_{_identifier(operation)}_{operand}({', '.join(texts)})", ATOM
    symbol = _INFIX[operation]
    return f"{texts[0]} {symbol} {texts[1]}", OTHER


def _select(texts: _Texts, types: Sequence[ElementType], result: ElementType) -> tuple[str, int]:
    if result.is_complex:
        return f"hlo_select_{result}({', '.join(texts)})", ATOM
    text = f"{texts[0]} ? {texts[1]} : {texts[2]}"
    # Loads of pred are int: gcc takes the least or the greatest of two for no pred.
    return (f"(hlo_pred)({text})", ATOM) if result is PRED else (text, OTHER)


def _clamp_index(
    texts: _Texts, types: Sequence[ElementType], result: ElementType
) -> tuple[str, int]:
    if result is NARROW_INDEX:
        low, value, high = texts
        return f"hlo_minimum_s32(hlo_maximum_s32({low}, {value}), {high})", ATOM
    return f"hlo_clamp_index({', '.join(texts)})", ATOM


def _within(texts: _Texts, types: Sequence[ElementType], result: ElementType) -> tuple[str, int]:
    """Render ``low <= value <= high`` as one comparison of unsigned differences."""
    value, low, high = texts
    # Values below `low` wrap to huge unsigned numbers, so that one comparison does for both ends.
    shifted = value if low == "0" else f"({value} - {low})"
    unsigned = "uint32_t" if types[0] is NARROW_INDEX else "uint64_t"
    return f"({unsigned}){shifted} <= ({unsigned})({high} - {low})", OTHER


def _decided(texts: _Texts, types: Sequence[ElementType], result: ElementType) -> tuple[str, int]:
    """Render ``hlo_sum_decided_T(…, &result)``: T is the type of the result that it sets."""
    return f"hlo_sum_decided_{types[-1]}({', '.join(texts)})", ATOM


def _function(name: str) -> _Render:
    """Return the renderer of a runtime function of one name for all types."""
    return lambda texts, types, result: (f"{name}({', '.join(texts)})", ATOM)


def _is_finite(texts: _Texts, types: Sequence[ElementType], result: ElementType) -> tuple[str, int]:
    held = "f32" if is_narrow(types[0]) else types[0]
    return f"hlo_is_finite_{held}({texts[0]})", ATOM


def _total_order(
    texts: _Texts, types: Sequence[ElementType], result: ElementType
) -> tuple[str, int]:
    """Render the key of TOTALORDER: a register-wide integer in the order of the values."""
    held = "f32" if is_narrow(types[0]) else types[0]
    return f"hlo_total_order_{held}({texts[0]})", ATOM


def _from_total_order(
    texts: _Texts, types: Sequence[ElementType], result: ElementType
) -> tuple[str, int]:
    """Render the value whose key is an integer of TOTALORDER."""
    held = "f32" if is_narrow(result) else result
    return f"hlo_from_total_order_{held}({texts[0]})", ATOM


def _not(texts: _Texts, types: Sequence[ElementType], result: ElementType) -> tuple[str, int]:
    """Render logical or bitwise negation."""
    if result is PRED:
        return f"!{texts[0]}", OTHER  # !a & f(b): gcc asks for parentheses
    return f"hlo_not_{types[0]}({texts[0]})", ATOM


def _reduced_precision(
    texts: _Texts, types: Sequence[ElementType], result: ElementType
) -> tuple[str, int]:
    """Render reduce-precision; of types below 16 bits the value in f32 is reduced, as XLA does."""
    if result.bits >= 16:
        return f"hlo_reduce_precision_{result}({', '.join(texts)})", ATOM
    return f"hlo_round_{result}(hlo_reduce_precision_f32({', '.join(texts)}))", ATOM


def _negated(texts: _Texts, types: Sequence[ElementType], result: ElementType) -> tuple[str, int]:
    operand = types[0]
    if not operand.is_float:
        return f"hlo_negate_{operand}({texts[0]})", ATOM
    # fnuz types have no -0, and f8e8m0fnu has no sign: rounding gives what they have instead.
    return (
        (f"hlo_round_{operand}(-{texts[0]})", ATOM)
        if is_narrow(operand) and operand not in _KEPT_WIDE
        else (f"-{texts[0]}", OTHER)
    )


# Renderers of operations whose text depends on more than the first operand's type.
_SPECIAL: dict[str, _Render] = {
    "accumulated": conversions.accumulated,
    "accumulated-so-far": conversions.accumulated_so_far,
    "decided": _decided,
    "dot-decided": _function("hlo_dot_decided_f64"),
    "is-finite": _is_finite,
    "negate": _negated,
    "not": _not,
    "reduce-precision": _reduced_precision,
    "reduced-word-bf16": _function("hlo_reduce_word_bf16"),
    "reduced-word-f16": _function("hlo_reduce_word_f16"),
    "total-order": _total_order,
    "from-total-order": _from_total_order,
    "multiply-add": lambda texts, types, result: (
        f"hlo_fused_{result}({', '.join(texts)})",
        ATOM,
    ),
    "philox-u32": _function("hlo_philox_u32"),
    "philox-u64": _function("hlo_philox_u64"),
    "threefry": _function("hlo_threefry"),
    "unit": _function("hlo_unit_f32"),
    "upper-half": _function("hlo_upper_half"),
    "sum-magnitude": _function("hlo_norm_magnitude"),
    "select": _select,
    "clamp": _clamp_index,
    "within": _within,
    "thread": lambda texts, types, result: ("threadIdx.x", ATOM),
    "threads": lambda texts, types, result: (f"({register_type(result)})blockDim.x", UNARY),
    "workers": _function("hlo_workers"),
    "convert": conversions.converted,
    "bitcast": lambda texts, types, result: (bit_patterns.cast(texts, types, result), ATOM),
    "bitcast-part": lambda texts, types, result: (bit_patterns.part(texts, types, result), ATOM),
    "bitcast-join": lambda texts, types, result: (bit_patterns.joined(texts, types, result), ATOM),
    "widen": conversions.as_double,
    "round": conversions.from_double,
}

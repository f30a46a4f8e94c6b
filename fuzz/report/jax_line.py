"""Write a program as a line of Python that builds it in JAX, if each instruction has a function
there.

Only numbers of the program reach the line: opcodes, types and attributes are looked up in tables,
and a program with any other has no line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hlo.literal import Literal
from hlo.module import Instruction, Module
from hlo.types import PRED, ArrayShape, ElementType, leaves
from hlo.values import Array, arrays_of
from interp.values import Value

# What the line needs: types of 64 bits stay as they are.
SETUP = 'import jax, jax.numpy as jnp; jax.config.update("jax_enable_x64", True)'

_MOST = 8  # elements of an array that is written down
_LONGEST = 400  # characters

# Of others (acos, sinh, logistic, …) JAX makes several instructions.
_ALIKE = "abs atan2 cbrt ceil clamp complex erf floor imag log real rsqrt sign sqrt tan tanh"
# Functions of jax.lax on operands of one shape, by opcode.
_SAME = {
    **{name: name for name in _ALIKE.split()},
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "remainder": "rem",
    "maximum": "max",
    "minimum": "min",
    "negate": "neg",
    "cosine": "cos",
    "sine": "sin",
    "exponential": "exp",
    "exponential-minus-one": "expm1",
    "log-plus-one": "log1p",
    "is-finite": "is_finite",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "not": "bitwise_not",
    "popcnt": "population_count",
    "count-leading-zeros": "clz",
    "shift-left": "shift_left",
    "shift-right-logical": "shift_right_logical",
    "shift-right-arithmetic": "shift_right_arithmetic",
}
_COMPARISONS = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


def line(module: Module, arrays: Sequence[Value]) -> str | None:
    """Return the line, which calls the program on its arguments; None if there is none, or only a
    long one."""
    if len(module.computations) > 1 or any(not isinstance(x, np.ndarray) for x in arrays):
        return None
    try:
        texts = dict[str, str]()
        for instruction in module.entry.instructions:
            text = _expression(instruction, module, texts)
            # At each: values with several users are written at each use, which doubles a text as
            # often as they are used by each other.
            if len(text) > _LONGEST:
                raise _NoLineError
            texts[instruction.name] = text
        names = [f"p{n}" for n in range(len(arrays))]
        given = ", ".join(map(_array, arrays_of(tuple(arrays))))
    except _NoLineError:
        return None
    body = f"lambda {', '.join(names)}: " if names else "lambda: "
    text = f"jax.jit({body}{texts[module.entry.root]})({given})"
    return text if len(text) <= _LONGEST else None


class _NoLineError(Exception):
    """Raised for an instruction without a known JAX function."""


def _dtype(element_type: ElementType) -> str:
    if not hasattr(np, element_type.numpy.name):
        if element_type.name != "bf16":
            raise _NoLineError
        return "jnp.bfloat16"
    return f"jnp.{element_type.numpy.name}"


def _array(array: Array) -> str:
    if array.size > _MOST:
        raise _NoLineError
    dtype = array.dtype.name
    if not (hasattr(np, dtype) or dtype == "bfloat16"):
        raise _NoLineError
    kind = f"jnp.{'bool_' if dtype == 'bool' else dtype}"
    # A list without elements has one dimension, or the first ones alone.
    return (
        f"jnp.array({_listed(array)}, {kind})"
        if array.size
        else f"jnp.zeros({array.shape}, {kind})"
    )


def _listed(array: Array) -> str:
    with np.errstate(invalid="ignore"):  # signalling NaN
        wide = array.astype(np.float64) if array.dtype.kind == "V" else array
    text = str(_without_complex(wide.tolist()))
    return text.replace("nan", "jnp.nan").replace("inf", "jnp.inf")


def _without_complex(value: object) -> object:
    """Replace complex numbers by calls that make them: as a sum of its parts, 1-0j loses a sign."""
    if isinstance(value, list):
        return [*map(_without_complex, value)]
    return _Complex(value) if isinstance(value, complex) else value


class _Complex:
    def __init__(self, value: complex) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"complex({self._value.real}, {self._value.imag})"


def _power(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    # jax.lax.pow takes no integers for its base.
    if shape.element_type.is_integer:
        raise _NoLineError
    return f"jax.lax.pow({', '.join(operands)})"


def _rounded(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    is_even = instruction.opcode == "round-nearest-even"
    method = "TO_NEAREST_EVEN" if is_even else "AWAY_FROM_ZERO"
    return f"jax.lax.round({operands[0]}, jax.lax.RoundingMethod.{method})"


def _dot(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    pairs = [
        tuple(_integers(instruction, f"{side}_{what}_dims") for side in ("lhs", "rhs"))
        for what in ("contracting", "batch")
    ]
    # Without it the result has the operands' type: a dot of s8 with an s32 result would be s8.
    wanted = f"preferred_element_type={_dtype(shape.element_type)}"
    return f"jax.lax.dot_general({', '.join(operands)}, {tuple(pairs)}, {wanted})"


def _integers(instruction: Instruction, attribute: str) -> tuple[int, ...]:
    found = instruction.attributes.get(attribute, ())
    assert isinstance(found, tuple)
    return tuple(int(str(d)) for d in found)


def _expression(instruction: Instruction, module: Module, texts: dict[str, str]) -> str:
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or shape.is_dynamic:
        raise _NoLineError
    operands = [texts[name] for name in instruction.operands]
    given = ", ".join(operands)
    if not _is_taken(instruction, module) or not _is_said(instruction):
        raise _NoLineError
    if instruction.opcode in _SAME and not _is_logical(instruction, shape):
        return f"jax.lax.{_SAME[instruction.opcode]}({given})"
    special = _SPECIAL.get(instruction.opcode)
    if special is None:
        raise _NoLineError
    return special(instruction, shape, operands)


def _is_logical(instruction: Instruction, shape: ArrayShape) -> bool:
    """Return whether an instruction is a sum or product of preds, which JAX lacks."""
    return shape.element_type is PRED and instruction.opcode in ("add", "multiply")


def _is_taken(instruction: Instruction, module: Module) -> bool:
    """Return whether JAX accepts operands of these types: parts only of complex numbers, bits not
    of preds or complex numbers."""
    shapes = {i.name: i.shape for i in module.entry.instructions}
    operands = [leaf for name in instruction.operands for leaf in leaves(shapes[name])]
    if instruction.opcode in ("real", "imag"):
        return all(leaf.is_complex for leaf in operands)
    if instruction.opcode == "bitcast-convert":
        return not any(leaf.is_complex or leaf.element_type is PRED for leaf in operands)
    return True


def _is_said(instruction: Instruction) -> bool:
    """Return whether the line says all that changes what an instruction computes."""
    return (
        instruction.attributes.keys() <= _ATTRIBUTES.get(instruction.opcode, frozenset())
        and "result_accuracy" not in instruction.annotations
    )


def _compare(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    if instruction.attributes.get("type") == "TOTALORDER":
        raise _NoLineError
    name = _COMPARISONS[str(instruction.attributes["direction"])]
    return f"jax.lax.{name}({', '.join(operands)})"


def _parameter(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    return f"p{int(str(instruction.attributes['parameter_number']))}"


def _constant(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    literal = instruction.attributes["literal"]
    if not isinstance(literal, Literal) or not isinstance(literal.value, np.ndarray):
        raise _NoLineError
    return _array(literal.value)


def _converted(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    return f"jax.lax.convert_element_type({operands[0]}, {_dtype(shape.element_type)})"


def _bits(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    return f"jax.lax.bitcast_convert_type({operands[0]}, {_dtype(shape.element_type)})"


def _broadcast(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    kept = _dimensions(instruction)
    return f"jax.lax.broadcast_in_dim({operands[0]}, {shape.dims}, {kept})"


def _dimensions(instruction: Instruction) -> tuple[int, ...]:
    return _integers(instruction, "dimensions")


def _transposed(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    return f"jax.lax.transpose({operands[0]}, {_dimensions(instruction)})"


def _reversed(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    return f"jax.lax.rev({operands[0]}, {_dimensions(instruction)})"


def _reshaped(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    return f"jax.lax.reshape({operands[0]}, {shape.dims})"


def _sliced(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    window = instruction.attributes["slice"]
    assert isinstance(window, tuple)
    parts = [tuple(map(int, map(str, one))) for one in zip(*window, strict=True)]
    return f"jax.lax.slice({operands[0]}, {', '.join(map(str, parts))})" if parts else operands[0]


def _dynamic_slice(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    starts = f"({', '.join(operands[1:])},)" if operands[1:] else "()"
    return f"jax.lax.dynamic_slice({operands[0]}, {starts}, {shape.dims})"


def _update(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    starts = f"({', '.join(operands[2:])},)" if operands[2:] else "()"
    return f"jax.lax.dynamic_update_slice({operands[0]}, {operands[1]}, {starts})"


def _joined(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    (dimension,) = _dimensions(instruction)
    return f"jax.lax.concatenate([{', '.join(operands)}], {dimension})"


def _iota(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    dimension = int(str(instruction.attributes["iota_dimension"]))
    return f"jax.lax.broadcasted_iota({_dtype(shape.element_type)}, {shape.dims}, {dimension})"


def _selected(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    return f"jax.lax.select({', '.join(operands)})"


def _padded(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    padding = instruction.attributes["padding"]
    assert isinstance(padding, tuple)
    return f"jax.lax.pad({', '.join(operands)}, {list(padding)})"


def _reduced_precision(instruction: Instruction, shape: ArrayShape, operands: Sequence[str]) -> str:
    bits = [int(str(instruction.attributes[f"{name}_bits"])) for name in ("exponent", "mantissa")]
    return f"jax.lax.reduce_precision({operands[0]}, {bits[0]}, {bits[1]})"


# Those that the line has.
_ATTRIBUTES = {
    opcode: frozenset(names.split())
    for opcode, names in {
        "broadcast": "dimensions",
        "compare": "direction type",
        "concatenate": "dimensions",
        "constant": "literal",
        "dot": "lhs_batch_dims lhs_contracting_dims rhs_batch_dims rhs_contracting_dims",
        "dynamic-slice": "dynamic_slice_sizes",
        "iota": "iota_dimension",
        "pad": "padding",
        "parameter": "parameter_number",
        "reduce-precision": "exponent_bits mantissa_bits",
        "reverse": "dimensions",
        "slice": "slice",
        "transpose": "dimensions",
    }.items()
}
_SPECIAL: dict[str, Callable[[Instruction, ArrayShape, Sequence[str]], str]] = {
    "bitcast-convert": _bits,
    "broadcast": _broadcast,
    "compare": _compare,
    "concatenate": _joined,
    "constant": _constant,
    "convert": _converted,
    "dot": _dot,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _update,
    "iota": _iota,
    "pad": _padded,
    "parameter": _parameter,
    "power": _power,
    "round-nearest-afz": _rounded,
    "round-nearest-even": _rounded,
    "reduce-precision": _reduced_precision,
    "reshape": _reshaped,
    "reverse": _reversed,
    "select": _selected,
    "slice": _sliced,
    "transpose": _transposed,
}

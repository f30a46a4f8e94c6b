"""Replace functions of complex numbers by functions of their components.

``fast`` numerics bound the error of a complex function relative to the whole number
(docs/numerics.md), so that formulas of f64 do; exact ones round each component once, and keep the
instruction. Those of c64 are computed in f64, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from hlo.module import Instruction, Module
from hlo.passes.complex_functions import angles, formulas
from hlo.passes.complex_functions.formulas import Parts
from hlo.passes.complex_functions.reals import Writer
from hlo.passes.rewriting import Rebuilt, each_of
from hlo.types import C64, C128, PARTS, ArrayShape, ElementType

_Formula = Callable[..., Parts]

_OF_EITHER: Mapping[str, _Formula] = {
    "exponential": formulas.exponential,
    "log": formulas.log,
    "power": formulas.power,
    "rsqrt": formulas.rsqrt,
    "sqrt": formulas.sqrt,
    "tan": formulas.tan,
    "tanh": formulas.tanh,
}
FORMULAS: Mapping[ElementType, Mapping[str, _Formula]] = {
    C64: {
        **_OF_EITHER,
        "atan2": angles.atan2_of_c64,
        "cosh": partial(formulas.cosh, hyperbolic=formulas.of_c64),
        "cosine": partial(formulas.cosine, hyperbolic=formulas.of_c64),
        "exponential-minus-one": formulas.exponential_minus_one,
        "log-plus-one": formulas.log_plus_one,
        "logistic": formulas.logistic,
        "sign": formulas.sign_of_c64,
        "sine": partial(formulas.sine, hyperbolic=formulas.of_c64),
        "sinh": partial(formulas.sinh, hyperbolic=formulas.of_c64),
    },
    C128: {
        **_OF_EITHER,
        "atan2": angles.atan2_of_c128,
        "cosh": formulas.cosh,
        "cosine": formulas.cosine,
        "exponential-minus-one": formulas.exponential_minus_one_of_c128,
        "log-plus-one": formulas.log_plus_one_of_c128,
        "logistic": formulas.logistic_of_c128,
        "sign": formulas.sign,
        "sine": formulas.sine,
        "sinh": formulas.sinh,
    },
}
_OPCODES = frozenset[str]().union(*FORMULAS.values())


def has_complex_numbers(module: Module) -> bool:
    """Test whether a module computes any, which most do not."""
    return any(
        isinstance(instruction.shape, ArrayShape) and instruction.shape.is_complex
        for computation in module.computations
        for instruction in computation.instructions
    )


def complex_functions(module: Module) -> Module:
    """Replace the complex functions that have formulas; those of bounded arrays stay."""
    return each_of(module, _OPCODES, _expanded) if has_complex_numbers(module) else module


def _expanded(rebuilt: Rebuilt, instruction: Instruction) -> Instruction | None:
    """Return the result put together of its components, which are added before it."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or shape.is_dynamic:
        return None
    formula = FORMULAS.get(shape.element_type, {}).get(instruction.opcode)
    if formula is None:
        return None
    part = PARTS[shape.element_type]
    writer = Writer(rebuilt, instruction)
    operands = [
        Parts(*(writer.part(opcode, name, part) for opcode in ("real", "imag")))
        for name in instruction.operands
    ]
    names = tuple(writer.rounded(value, part) for value in formula(*operands))
    return instruction._replace(opcode="complex", operands=names, attributes={})

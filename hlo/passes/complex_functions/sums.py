"""Sum complex numbers by components: reduce(z) is reduce(real(z)) + reduce(imag(z)) i.

``fast`` numerics sum floats in any order, in lanes; a complex sum would take exact accumulators.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from hlo.attributes import Window
from hlo.module import Instruction, Module
from hlo.passes.complex_functions.expansion import has_complex_numbers
from hlo.passes.complex_functions.products import adder
from hlo.passes.rewriting import Names, Rebuilt, array, each_of
from hlo.types import PARTS, ArrayShape, ElementType
from hlo.walk import monoid

_FEW = 16


def complex_sums(module: Module) -> Module:
    """Replace the reductions and window sums of one array of complex numbers by addition; those of
    bounded arrays stay."""
    if not has_complex_numbers(module):
        return module
    names = Names(computation.name for computation in module.computations)
    adders = {part: adder(names.fresh(f"sum.{part}"), part) for part in PARTS.values()}
    called = {part: computation.name for part, computation in adders.items()}
    changed = each_of(module, ("reduce", "reduce-window"), partial(_parts, module, called))
    if changed == module:
        return module
    return replace(changed, computations=(*adders.values(), *changed.computations))


def _is_short(instruction: Instruction) -> bool:
    """Test for windows of few elements: their sums are quicker in one loop than in two."""
    window = instruction.attributes.get("window")
    if not isinstance(window, Window):
        return False
    return math.prod(dimension.size for dimension in window.dimensions) <= _FEW


def _parts(
    module: Module, called: Mapping[ElementType, str], rebuilt: Rebuilt, reduce: Instruction
) -> Instruction | None:
    """Return the complex number of two sums, which are added before it; None for other
    reductions."""
    shape = reduce.shape
    if len(reduce.operands) != 2 or not isinstance(shape, ArrayShape):
        return None
    operand, init = (array(rebuilt.definitions[name].shape) for name in reduce.operands)
    part = PARTS.get(shape.element_type)
    types = {operand.element_type, init.element_type, shape.element_type}
    added = monoid(module.computation(str(reduce.attributes["to_apply"]))) == "add"
    if part is None or len(types) > 1 or operand.is_dynamic or not added or _is_short(reduce):
        return None
    attributes = {**reduce.attributes, "to_apply": called[part]}

    def total(component: str) -> str:
        names = tuple(
            rebuilt.add_part(reduce, component, ArrayShape(part, source.dims), component, (name,))
            for name, source in zip(reduce.operands, (operand, init), strict=True)
        )
        sums = ArrayShape(part, shape.dims)
        return rebuilt.add_part(reduce, "sum", sums, reduce.opcode, names, **attributes)

    return reduce._replace(opcode="complex", operands=(total("real"), total("imag")), attributes={})

"""Write products of complex matrices and vectors as sums of elementwise products.

    dot(A, x)   is   reduce(multiply(A, broadcast(x)), add)

A product that reads each element of a matrix once is as fast as memory so; packing the matrix for
the microkernels takes several times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hlo.attributes import Attribute
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.passes.complex_functions.expansion import has_complex_numbers
from hlo.passes.dot_dimensions import KINDS, SIDES, free
from hlo.passes.rewriting import Names, Rebuilt, array, each_of, integers
from hlo.types import PARTS, ArrayShape, ElementType


def complex_products(module: Module) -> Module:
    """Replace each dot of complex numbers one operand of which has no free dimension."""
    if not has_complex_numbers(module):
        return module
    names = Names(computation.name for computation in module.computations)
    adders = {t: adder(names.fresh(f"sum.{t}"), t) for t in PARTS}
    called = {t: computation.name for t, computation in adders.items()}
    changed = each_of(module, ("dot",), partial(_summed, adders=called))
    if changed == module:
        return module
    return replace(changed, computations=(*adders.values(), *changed.computations))


def adder(name: str, element_type: ElementType) -> Computation:
    """Return the computation that adds two numbers."""
    shape = ArrayShape(element_type, ())
    operands = [
        Instruction(f"x.{k}", shape, "parameter", (), {"parameter_number": k}) for k in range(2)
    ]
    total = Instruction("sum", shape, "add", tuple(one.name for one in operands))
    return Computation(name, (*operands, total), total.name)


def _summed(
    rebuilt: Rebuilt, dot: Instruction, adders: Mapping[ElementType, str]
) -> Instruction | None:
    """Return the sum of a dot's products, which are added before it; None for other dots."""
    shape = dot.shape
    if len(dot.operands) != 2 or not isinstance(shape, ArrayShape):
        return None
    shapes = [array(rebuilt.definitions[name].shape) for name in dot.operands]
    types = {s.element_type for s in (*shapes, shape)}
    if len(types) > 1 or shape.element_type not in adders or any(s.is_dynamic for s in shapes):
        return None
    frees = [free(dot, number, s.rank) for number, s in enumerate(shapes)]
    whole = 1 if frees[1] else 0  # the operand that has all dimensions
    if frees[1 - whole] or not _is_in_order(dot, whole):
        return None
    add, factors = partial(rebuilt.add_part, dot), list(dot.operands)
    factors[1 - whole] = _spread(rebuilt, dot, 1 - whole, shapes)
    products = add("products", shapes[whole], "multiply", tuple(factors))
    scalar = ArrayShape(shape.element_type, ())
    zero = Literal(scalar, np.zeros((), shape.element_type.numpy))
    init = add("init", scalar, "constant", (), literal=zero)
    contracting = tuple(sorted(integers(dot, f"{SIDES[whole]}_contracting_dims")))
    attributes: dict[str, Attribute] = {
        "dimensions": contracting,
        "to_apply": adders[shape.element_type],
    }
    return dot._replace(opcode="reduce", operands=(products, init), attributes=attributes)


def _is_in_order(dot: Instruction, number: int) -> bool:
    """Test whether the result's dimensions are those that an operand keeps, in its order: batch
    dimensions first."""
    batch = integers(dot, f"{SIDES[number]}_batch_dims")
    return batch == tuple(range(len(batch)))


def _spread(rebuilt: Rebuilt, dot: Instruction, number: int, shapes: Sequence[ArrayShape]) -> str:
    """Add an operand without free dimensions, broadcast to the other one's shape."""
    few, many = shapes[number], shapes[1 - number]
    place = dict[int, int]()  # in the other operand, of each dimension
    for kind in KINDS:
        sides = (integers(dot, f"{SIDES[n]}_{kind}_dims") for n in (number, 1 - number))
        place.update(zip(*sides, strict=True))
    order = tuple(sorted(place, key=place.__getitem__))
    name, add = dot.operands[number], partial(rebuilt.add_part, dot)
    if order != tuple(range(few.rank)):
        turned = ArrayShape(few.element_type, tuple(few.dims[d] for d in order))
        name = add("turned", turned, "transpose", (name,), dimensions=order)
    places = tuple(place[d] for d in order)
    return add("spread", many, "broadcast", (name,), dimensions=places)

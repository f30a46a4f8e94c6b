"""Infer the shapes of random numbers."""

from __future__ import annotations

from hlo.ops.constraints import array, arrays, require
from hlo.ops.element_types import require_element_type
from hlo.summary import counted
from hlo.types import U64, ArrayShape, Shape, TupleShape

__all__ = ["rng", "rng_bit_generator", "rng_get_and_update_state"]

_WORDS = {"rng_default": (2, 3), "rng_three_fry": (2,), "rng_philox": (2, 3)}


def rng(*operands: ArrayShape, distribution: str, shape: ArrayShape) -> ArrayShape:
    """C1: a known distribution; C2: two scalars of the result's type; C3: rng_normal gives floats,
    rng_uniform no complex numbers."""
    result = array("C2", shape, "result")
    known = distribution in ("rng_uniform", "rng_normal")
    require("C1", known, f"distribution={distribution}: rng_uniform or rng_normal")
    require("C2", len(operands) == 2, f"{counted(len(operands), 'operand')}, two are needed")
    for operand in arrays("C2", operands):
        fits = not operand.rank and operand.element_type is result.element_type
        require("C2", fits, f"{operand} is no scalar of the type of {result}")
    require_element_type("C3", "rng", result)
    normal = distribution == "rng_normal"
    require("C3", result.is_float or not normal, f"rng_normal cannot give {result}")
    return ArrayShape(result.element_type, result.dims, result.dynamic)


def rng_bit_generator(state: ArrayShape, *, algorithm: str, shape: Shape) -> Shape:
    """C1: a known algorithm; C2: a state of u64 words, as many as it has; C3: integers or floats'
    bits of 8 bits and more, with the new state before them."""
    known = algorithm in _WORDS
    require("C1", known, f"algorithm={algorithm}: one of {', '.join(_WORDS)}")
    given = array("C2", state, "state")
    sizes = _WORDS[algorithm]
    fits = given.element_type is U64 and given.rank == 1 and given.dims[0] in sizes
    require("C2", fits, f"state {given} is not u64[{' or '.join(map(str, sizes))}]")
    bits = shape
    if isinstance(shape, TupleShape):
        require("C3", len(shape.elements) == 2, f"result {shape} is not (state, bits)")
        new = array("C3", shape.elements[0], "new state")
        same = new.element_type is U64 and new.dims == given.dims
        require("C3", same, f"the new state is {new}, the state {given}")
        bits = shape.elements[1]
    result = array("C3", bits, "bits")
    require_element_type("C3", "rng-bit-generator", result)
    return shape


def rng_get_and_update_state(*, delta: int, shape: ArrayShape) -> ArrayShape:
    """C1: the state is u64[2]."""
    result = array("C1", shape, "result")
    require_element_type("C1", "rng-get-and-update-state", result)
    fits = result.dims == (2,)
    require("C1", fits, f"result {result} is not u64[2]")
    return ArrayShape(U64, (2,))

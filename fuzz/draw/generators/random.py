"""Generate random numbers, determined by the program's states and the run's seed."""

from __future__ import annotations

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.shapes import Accepts
from hlo.types import U64, ArrayShape, TupleShape

_ALGORITHMS = {"rng_default": (2, 3), "rng_three_fry": (2,), "rng_philox": (2, 3)}


def rng(builder: Builder, shape: ArrayShape) -> str:
    scalar = ArrayShape(shape.element_type)
    names = ("rng_uniform", "rng_normal") if shape.is_float else ("rng_uniform",)
    distribution = builder.choice(names)
    one, other = builder.value(scalar), builder.value(scalar)
    return builder.emit("rng", shape, one, other, distribution=distribution)


def rng_bit_generator(builder: Builder, shape: ArrayShape) -> str:
    algorithm = builder.choice(tuple(_ALGORITHMS))
    state = ArrayShape(U64, (builder.choice(_ALGORITHMS[algorithm]),))
    operand = builder.value(state)
    if builder.boolean():
        return builder.emit("rng-bit-generator", shape, operand, algorithm=algorithm)
    both = TupleShape((state, shape))
    made = builder.emit("rng-bit-generator", both, operand, algorithm=algorithm)
    return builder.emit("get-tuple-element", shape, made, index=1)


def rng_get_and_update_state(builder: Builder, shape: ArrayShape) -> str:
    delta = builder.choice((0, 1, 7, 2**31, 2**63 - 1))
    return builder.emit("rng-get-and-update-state", shape, delta=delta)


def _is_word(shape: ArrayShape) -> bool:
    return shape.element_type.bits >= 8 and (shape.is_integer or shape.is_float)


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "rng": (rng, lambda shape: shape.is_integer or shape.is_float),
    "rng-bit-generator": (rng_bit_generator, _is_word),
    "rng-get-and-update-state": (
        rng_get_and_update_state,
        lambda shape: shape == ArrayShape(U64, (2,)),
    ),
}

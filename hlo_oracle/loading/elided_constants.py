"""Fill in constants that a text elides.

XLA prints a constant of more than ten elements as ``{...}`` unless it is asked for all of it, so
most dumps have some. The values filled in are not the program's: results that depend on them are
those of another program, the same for the interpreter and every compiler.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace

import numpy as np

from hlo.errors import Error
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.types import ArrayShape
from hlo_oracle.arguments import drawn_array

_WAYS = re.compile(r"zeros|random(?::(?P<seed>[0-9]{1,18}))?")
HELP = "fill in the constants that the text leaves out ({...}): random:SEED or zeros"


def way(text: str) -> str:
    """Validate an option value that names how constants are filled in."""
    if _WAYS.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is neither zeros nor random:SEED")
    return text


def has_elided(module: Module) -> bool:
    """Test for a constant that the text elides."""
    return any(
        _elided(instruction) is not None
        for computation in module.computations
        for instruction in computation.instructions
    )


def _elided(instruction: Instruction) -> Literal | None:
    """Return the literal of an instruction if the text elides it."""
    literal = instruction.attributes.get("literal")
    return literal if isinstance(literal, Literal) and literal.is_elided else None


def filled(module: Module, text: str) -> tuple[Module, int]:
    """Fill in elided constants; return the module, and how many there were.

    ``text`` is ``zeros``, ``random`` or ``random:SEED``: random floats are normal, as drawn
    arguments are, random integers 0 and 1. Raises Error for any other text.
    """
    match = _WAYS.fullmatch(text)
    if match is None:
        raise Error(f"elided={text!r}: zeros or random:SEED")
    rng = None if text == "zeros" else np.random.default_rng(int(match["seed"] or 0))
    count = 0

    def of(literal: Literal) -> Literal:
        nonlocal count
        if isinstance(literal.value, tuple):
            return replace(literal, value=tuple(map(of, literal.value)))
        if literal.value is not None:
            return literal
        assert isinstance(literal.shape, ArrayShape)
        count += 1
        shape = literal.shape
        array = (
            np.zeros(shape.dims, shape.element_type.numpy)
            if rng is None
            else drawn_array(rng, shape)
        )
        array.flags.writeable = False
        return replace(literal, value=array)

    def instruction(one: Instruction) -> Instruction:
        literal = _elided(one)
        if literal is None:
            return one
        return one._replace(attributes={**one.attributes, "literal": of(literal)})

    def computation(one: Computation) -> Computation:
        return replace(one, instructions=tuple(map(instruction, one.instructions)))

    made = replace(module, computations=tuple(map(computation, module.computations)))
    return (made, count) if count else (module, 0)

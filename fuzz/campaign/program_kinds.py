"""Draw the programs of a campaign: of every kind, each as often as its findings are worth the time.

A program costs another compiler about 20 ms for each kernel, whatever is in it. So most programs
are small, and opcodes are drawn alone by how much there is to get wrong in them. Of processor time
a single instruction takes XLA:CPU, with both oracles, 105 ms, one inside of a computation 100, ten
on constants 80, patterns 360.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from fuzz.draw.choices import Choices, OftenEmpty, OftenLong
from fuzz.draw.generators.custom_call import TARGETS
from fuzz.draw.loosening import OF_OPERANDS, loosened
from fuzz.draw.programs import (
    GENERATORS,
    conversions,
    elementwise_alone,
    folds,
    identities,
    moving_alone,
    nested_op,
    patterned,
    program,
    rows,
    single_op,
    unusual,
)
from fuzz.draw.shapes import ALL_TYPES, MOST_ELEMENTS, TYPES, UNUSUAL_KINDS, admitted
from fuzz.near_misses.idioms import idioms
from fuzz.near_misses.programs import near_miss
from hlo.module import Module
from hlo.opcodes import (
    COLLECTIVE,
    CONTRACTION,
    CONTROL,
    DATA_MOVEMENT,
    ELEMENTWISE,
    INDEXING,
    LINEAR_ALGEBRA,
    OPCODES,
    RANDOM,
    REDUCTION,
)
from hlo.types import BF16, C64, F16, F32, F64, S8, S32, U8, U32

Kind = Callable[[Choices], Module]

# How often an opcode of a family is a program alone. Elementwise ops are in most other programs;
# folds, contractions and indexing have most attributes, and a kernel of their own in compilers.
_ALONE = {
    ELEMENTWISE: 1,
    CONTROL: 2,
    COLLECTIVE: 4,
    DATA_MOVEMENT: 4,
    LINEAR_ALGEBRA: 4,
    RANDOM: 4,
    CONTRACTION: 8,
    INDEXING: 8,
    REDUCTION: 8,
}
# The same for operands with bounded dimensions: what a size changes are windows and indices.
_BOUNDED = {
    ELEMENTWISE: 1,
    CONTROL: 2,
    COLLECTIVE: 1,
    DATA_MOVEMENT: 6,
    LINEAR_ALGEBRA: 4,
    RANDOM: 1,
    CONTRACTION: 12,
    INDEXING: 16,
    REDUCTION: 12,
}


# What is cut off, and where windows lie, depends on sizes as nothing else does.
_BOUNDED_MOST = {"pad": 16, "slice": 16, "convolution": 24, "reduce-window": 24}
# The same inside of a computation, where elementwise ops are in other programs.
_NESTED = {**_ALONE, ELEMENTWISE: 0, RANDOM: 2, CONTRACTION: 4, INDEXING: 4, REDUCTION: 4}


def _weighted(weights: Mapping[str, int], others: Mapping[str, int] | None = None) -> Sequence[str]:
    """List each opcode as often as it is drawn, by its family or, of ``others``, by its name;
    ``custom-call`` twice for each target."""
    special = {"custom-call": 2 * TARGETS, **(others or {})}
    return [
        opcode
        for opcode in GENERATORS
        for _ in range(special.get(opcode, weights[OPCODES[opcode].family]))
    ]


_OPCODES_ALONE, _OPCODES_NESTED = _weighted(_ALONE), _weighted(_NESTED)
_OPCODES_BOUNDED = _weighted(_BOUNDED, _BOUNDED_MOST)
_MOST_LONG = 1 << 14  # elements of the result of a long instruction
_FLOATS = (F32, BF16, F16, F64, C64)
_INTEGERS = (S32, U8, S8, U32)


def _single(
    choices: Choices, opcodes: Sequence[str] = _OPCODES_ALONE, most: int = MOST_ELEMENTS
) -> Module:
    """Draw an instruction, half of the time of ordinary types, for which compilers have faster
    kernels than for others, else with a result of any kind of unusual ones, if it can be."""
    opcode, types, operand_types = choices.choice(opcodes), TYPES, TYPES
    if choices.boolean():
        operand_types = ALL_TYPES
        kinds = [admitted(kind, GENERATORS[opcode][1]) for kind in UNUSUAL_KINDS]
        types = tuple(choices.choice([kind for kind in kinds if kind] or [TYPES]))
    return single_op(
        choices,
        opcode,
        element_types=types,
        operand_types=operand_types,
        constants=choices.boolean(),
        max_elements=most,
    )


def _single_long(choices: Choices) -> Module:
    return _single(OftenLong(choices), most=_MOST_LONG)


def _single_without_elements(choices: Choices) -> Module:
    return _single(OftenEmpty(choices))


def _single_bounded(choices: Choices) -> Module:
    return loosened(choices, _single(choices, _OPCODES_BOUNDED), OF_OPERANDS)


def _nested(choices: Choices) -> Module:
    module = nested_op(choices, choices.choice(_OPCODES_NESTED))
    return loosened(choices, module, OF_OPERANDS) if choices.chance(3) else module


def _few(choices: Choices) -> Module:
    return program(choices, max_instructions=3)


def _program_bounded(choices: Choices) -> Module:
    return loosened(choices, program(choices))


def _near_miss(choices: Choices) -> Module:
    return near_miss(choices, idioms())


_LARGE: tuple[Kind, ...] = (
    program,
    partial(program, max_instructions=20, element_types=_FLOATS),
    partial(program, element_types=_INTEGERS),
    _program_bounded,
)
_SMALL: tuple[Kind, ...] = (
    *(
        *(7 * (_single,)),
        *(2 * (_single_long,)),
        *(2 * (_single_without_elements,)),
        *(7 * (_single_bounded,)),
        _few,
    ),
    *(*(11 * (patterned,)), *(3 * (_nested,)), rows, *(2 * (folds,)), identities),
    *(*(2 * (conversions,)), unusual, *(2 * (elementwise_alone,)), *(2 * (moving_alone,))),
    *(2 * (_near_miss,)),
)
# A large one takes as long as six small ones, and what it shows small ones mostly show, too: so
# large ones get a fifth of the time. Equal kinds lie side by side: what is drawn next is then
# spread as evenly over each (:mod:`fuzz.draw.even_choices`).
_KINDS = (*_LARGE, *(kind for kind in _SMALL for _ in _LARGE))


def any_program(choices: Choices) -> Module:
    """Draw a program of a campaign, of any kind."""
    return choices.choice(_KINDS)(choices)

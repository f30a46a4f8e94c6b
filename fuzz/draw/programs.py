"""Draw whole programs, computations, and programs of a single instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from fuzz.draw.builder import Builder, Generator, Menu
from fuzz.draw.choices import Choices
from fuzz.draw.generators import (
    asynchronous,
    batch_norm,
    collective,
    contraction,
    control,
    custom_call,
    data_movement,
    dynamic,
    elementwise,
    grouped,
    indexing,
    linear_algebra,
    random,
    reduction,
    scan,
    sort,
    window,
)
from fuzz.draw.patterns import PATTERNS
from fuzz.draw.patterns.algebra import PATTERNS as ALGEBRA
from fuzz.draw.patterns.conversions import FOLDED
from fuzz.draw.patterns.pattern import changed
from fuzz.draw.shapes import (
    ALL_TYPES,
    MOST_ELEMENTS,
    TYPES,
    VECTOR_TYPES,
    Accepts,
    admitted,
    by_kind,
    row,
    shape,
    unusual_type,
    vector_type,
)
from hlo.errors import ArgumentError
from hlo.module import Computation, Module
from hlo.types import PRED, ArrayShape, ElementType, Shape

# The first eight are those that patterns are drawn among (_ORDINARY).
_FAMILIES = (
    *(elementwise, data_movement, control, reduction, window, contraction, indexing, sort),
    *(linear_algebra, random, collective, asynchronous, dynamic),
    *(batch_norm, grouped, scan, custom_call),
)

GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    opcode: entry for family in _FAMILIES for opcode, entry in family.GENERATORS.items()
}


# Elements of a program's results, at most: of large ones all that is elementwise takes long.
_SIZES = (1 << 9, 1 << 9, 1 << 9, MOST_ELEMENTS)


@cache
def menu(opcodes: tuple[str, ...] = tuple(GENERATORS)) -> Menu:
    """Collect the generators of these opcodes, and the patterns that use no others."""
    return _menu(opcodes)


def _menu(opcodes: tuple[str, ...]) -> Menu:
    fitting = {n: p for n, p in PATTERNS.items() if set(opcodes).issuperset(p.opcodes)}
    patterns = {name: (pattern.generator, pattern.accepts) for name, pattern in fitting.items()}
    return Menu({opcode: _generator(opcode) for opcode in opcodes}, patterns)


def _generator(opcode: str) -> tuple[Generator, Accepts]:
    if opcode not in GENERATORS:
        raise ArgumentError(f"no {opcode} can be drawn: give one of {', '.join(GENERATORS)}")
    return GENERATORS[opcode]


def _of_computations(*opcodes: str) -> Menu:
    """Collect the generators of these opcodes, and of what the computations that they call
    compute."""
    return menu((*opcodes, *elementwise.GENERATORS))


def program(
    choices: Choices,
    *,
    max_instructions: int = 12,
    element_types: Sequence[ElementType] = TYPES,
    opcodes: Sequence[str] = tuple(GENERATORS),
) -> Module:
    """Draw a valid program of at most about ``max_instructions``, parameters and constants not
    counted."""
    if not element_types:
        raise ArgumentError("no type of elements is given: give one or more")
    budget = choices.integer(1, max_instructions)
    builder = Builder(choices, menu(tuple(opcodes)), element_types, budget)
    most = choices.choice(_SIZES)
    results = builder.several(lambda: builder.value(shape(choices, element_types, most=most)), 1, 3)
    return builder.module(results)


# How kernels read memory in vector lanes: at another index than they write, or in another width.
READS = (
    *("bitcast-convert", "broadcast", "concatenate", "dynamic-slice", "gather"),
    *("pad", "reshape", "reverse", "slice", "transpose"),
)
# What vector units do with it, or compilers make of several instructions.
_IN_LANES = (
    "abs add and clamp compare convert divide floor is-finite maximum minimum multiply negate not"
    " or popcnt round-nearest-even select shift-left shift-right-arithmetic shift-right-logical"
    " sqrt subtract xor"
)


def rows(choices: Choices) -> Module:
    """Draw a program for vectorisation: rows about as long as vectors, for which compilers generate
    other code per processor.

    Each result loads memory in some way, perhaps converts it, and computes a little with it; with
    few opcodes (swarm testing: Groce and others, ISSTA 2012), as combinations of these are rare in
    a program of all opcodes.
    """
    few = dict.fromkeys(choices.several(lambda: choices.choice(_IN_LANES.split()), 1, 4))
    # Not menu(): its cache would keep a menu for each set of opcodes, and few sets come twice.
    builder = Builder(choices, _menu((*READS, *few)), VECTOR_TYPES, choices.integer(0, 5))
    return builder.module(builder.several(lambda: _row(builder), 2, 6))


# What patterns are drawn among: compilers do not refuse these for reasons of their own, as XLA:CPU
# does collectives, asynchronous computations, and what StableHLO has no words for.
_ORDINARY = tuple(
    opcode
    for family in _FAMILIES[:8]
    for opcode in family.GENERATORS
    if opcode
    not in (
        *("add-dependency", "after-all", "copy-done", "copy-start", "domain", "fusion", "mulhi"),
        *("stochastic-convert", "topk"),
    )
)


def patterned(choices: Choices) -> Module:
    """Draw a program of two to six patterns, each as likely as another, among ordinary
    instructions."""
    builder = Builder(choices, menu(_ORDINARY), TYPES, choices.integer(0, 6))
    return builder.module(builder.several(lambda: _pattern(builder), 2, 6))


def folds(choices: Choices) -> Module:
    """Draw a program of single instructions on constants, of ordinary types or all of one other.
    What a compiler folds needs no kernel, so that many cost as much as one."""
    types = (unusual_type(choices),) if choices.boolean() else TYPES
    builder = Builder(choices, menu(_ORDINARY), types, 0)
    return builder.module(builder.several(lambda: _fold(builder), 3, 10))


def _fold(builder: Builder) -> str:
    wanted = shape(builder, builder.types, most=_FEW)
    able = [name for name in FOLDED if GENERATORS[name][1](wanted)]
    return builder.folded(builder.choice(able), wanted)


def identities(choices: Choices) -> Module:
    """Draw a program of several templates of algebra on a few elements, of ordinary types or all of
    one other."""
    types = (unusual_type(choices), PRED) if choices.chance(4) else TYPES
    builder = Builder(choices, menu(_ORDINARY), types, 0)
    scalars = [*map(ArrayShape, types)]
    names = [name for name in ALGEBRA if any(map(ALGEBRA[name].accepts, scalars))]
    return builder.module(
        builder.several(lambda: _named(builder, builder.choice(names), _FEW, types), 2, 6)
    )


def unusual(choices: Choices) -> Module:
    """Draw a program of one to three ordinary instructions on arrays of an unusual type: narrow
    integers, f8 and narrower floats."""
    types = (unusual_type(choices),)
    return program(choices, max_instructions=3, element_types=types, opcodes=_ORDINARY)


_FEW, _SOME = 8, 32  # elements
_ASKING = ("compare", "is-finite")  # their results are preds, whatever they are asked of


def elementwise_alone(choices: Choices) -> Module:
    """Draw a program of three to five elementwise instructions, each on arguments of its own, all
    of one unusual type. A compiler has other code for each pair of opcode and type, of which there
    are a thousand; in one program several cost little more than one."""
    return _of_one_type(choices, elementwise.GENERATORS)


def moving_alone(choices: Choices) -> Module:
    """Draw the same of instructions that move elements or read them at indices: what is narrower
    than a byte lies in memory as nothing else does."""
    return _of_one_type(choices, _MOVING)


_MOVING = {**data_movement.GENERATORS, **indexing.GENERATORS}


def _of_one_type(choices: Choices, generators: Mapping[str, tuple[Generator, Accepts]]) -> Module:
    types = (unusual_type(choices),)
    builder = Builder(choices, _of_computations(*generators), types, 0, constants=False)
    results = {
        opcode: able
        for opcode, (_, accepts) in generators.items()
        if (able := admitted(types, accepts) or [PRED] * (opcode in _ASKING))
    }

    def one() -> str:
        opcode = builder.choice([*results])
        generator, accepts = generators[opcode]
        return generator(builder, shape(builder, results[opcode], accepts, _SOME))

    return builder.module(builder.several(one, 3, 5))


def conversions(choices: Choices) -> Module:
    """Draw a program that converts arrays between types, each pair of kinds as likely as another; a
    third of the programs between ordinary types."""
    types = TYPES if choices.chance(3) else ALL_TYPES
    builder = Builder(choices, menu(_CONVERTING), types, 0, constants=False)
    return builder.module(builder.several(lambda: _conversion(builder), 1, 5))


# What numbers of one type become in another, or in itself.
_CONVERTING = ("convert", "bitcast-convert", "reduce-precision", "stochastic-convert")


def _conversion(builder: Builder) -> str:
    wanted = shape(builder, (by_kind(builder, builder.types),), most=_FEW)
    other = builder.choice(_CONVERTING)
    generator, accepts = GENERATORS[other]
    if builder.boolean() and accepts(wanted):
        return generator(builder, wanted)
    source = builder.leaf(ArrayShape(by_kind(builder, builder.types), wanted.dims))
    return builder.emit("convert", wanted, source)


# What runs computations, so that they hold any instruction.
_CALLING = ("call", "conditional", "fusion", "map", "while")


def nested_op(choices: Choices, opcode: str) -> Module:
    """Draw a program of one instruction inside of a called computation, a branch or a loop."""
    accepts = GENERATORS[opcode][1]
    types = ALL_TYPES if choices.boolean() else TYPES
    element_type = by_kind(choices, admitted(types, accepts))
    is_of_scalars = accepts(ArrayShape(element_type))
    outer = choices.choice([name for name in _CALLING if is_of_scalars or name != "map"])
    wanted = shape(choices, (element_type,), accepts, _SIZES[0])
    builder = Builder(choices, _of_computations(outer, opcode), types, 0)
    return builder.module([builder.calling(outer, opcode, wanted)])


def _named(builder: Builder, name: str, most: int, types: Sequence[ElementType]) -> str:
    wanted = shape(builder, types, PATTERNS[name].accepts, most)
    builder.drew(name)
    return PATTERNS[name].generator(builder, wanted)


def _pattern(builder: Builder) -> str:
    return _named(builder, builder.choice([*PATTERNS]), _SIZES[0], TYPES)


def _row(builder: Builder) -> str:
    shape = row(builder)
    element_type = vector_type(builder) if builder.boolean() else shape.element_type
    read = ArrayShape(element_type, shape.dims)
    parts = PATTERNS["interleaved"]  # as likely as three others: the indices are divided
    ways = [(parts.generator, parts.accepts)] * 3
    ways += [GENERATORS[opcode] for opcode in READS]
    name = builder.choice([make for make, accepts in ways if accepts(read)])(builder, read)
    if element_type is not shape.element_type:
        name = builder.emit("convert", shape, name)
    return changed(builder, shape, name)


def computations(
    choices: Choices,
    parameters: Sequence[Shape],
    result: ArrayShape,
    *,
    max_instructions: int = 6,
    element_types: Sequence[ElementType] = TYPES,
    opcodes: Sequence[str] = tuple(GENERATORS),
) -> tuple[Computation, ...]:
    """Draw a computation from ``parameters`` to ``result``, as for ``to_apply`` or ``body``; it
    comes last, after those that it calls."""
    budget = 2 * choices.integer(0, max_instructions)  # of which the computation gets half
    builder = Builder(choices, menu(tuple(opcodes)), element_types, budget)
    return tuple(builder.computations(parameters, lambda inner, names: inner.value(result)))


def single_op(
    choices: Choices,
    opcode: str,
    *,
    element_types: Sequence[ElementType] = ALL_TYPES,
    operand_types: Sequence[ElementType] = ALL_TYPES,
    constants: bool = False,
    max_elements: int = MOST_ELEMENTS,
) -> Module:
    """Draw a program of one instruction. Its operands are parameters (or, with ``constants``, small
    constants at times), its result, of one of ``element_types``, is the program's. All that the
    verifier accepts may be drawn: element types, ranks 0 to 5, dimensions without elements,
    attribute values. Operands whose type the result leaves open are of ``operand_types``, if any
    of these will do."""
    generator, accepts = _generator(opcode)
    if not admitted(element_types, accepts):
        given = ", ".join(t.name for t in element_types)
        others = ", ".join(t.name for t in admitted(ALL_TYPES, accepts))
        raise ArgumentError(f"{opcode} has no result of {given or 'no type'}: give {others}")
    wanted = shape(choices, element_types, accepts, max_elements)
    builder = Builder(choices, _of_computations(opcode), operand_types, 0, constants=constants)
    result = generator(builder, wanted)
    if opcode.endswith(("-start", "-update")):  # what is started must be done
        return builder.module([result])
    return builder.module_of(opcode)

"""Measure what drawn programs reach: opcode × element type × kind of attribute value.

``python -m selftest.generator_coverage --draws N --seed S`` draws instructions of one opcode after
the other, of one result type after the other, and as many programs as campaigns draw them; verifies
all of them, and prints what was never drawn. Exit status: 0 if everything was and the verifier
accepted all of it; 1 otherwise.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count, islice
from typing import NamedTuple

import hlo
from fuzz.campaign.program_kinds import any_program
from fuzz.draw.choices import Seeded
from fuzz.draw.even_choices import EvenlySpread
from fuzz.draw.programs import GENERATORS, single_op
from fuzz.draw.shapes import ALL_TYPES, MOST_RANK
from hlo.attributes import Attribute
from hlo.errors import VerifyError
from hlo.module import Computation, Instruction, Module
from hlo.ops.element_types import TAKES
from hlo.types import ELEMENT_TYPES, PRED, ArrayShape, ElementType, leaves
from hlo.walk import column, function_name
from selftest import attribute_kinds


class Cell(NamedTuple):
    """An opcode, an element type, and perhaps a kind of attribute value. ``element_type`` is that
    of the data: mostly of the first operand, of the result if there is none."""

    opcode: str
    element_type: str
    attribute: str = ""
    kind: str = ""


# The verifier takes these, as XLA's does; but there is no random pred, and there are no random bits
# (u6) for a type of six.
_WITHOUT_MEANING = {
    "rng": frozenset([PRED]),
    "stochastic-convert": frozenset([ELEMENT_TYPES["f6e2m3fn"], ELEMENT_TYPES["f6e3m2fn"]]),
}
# Which operand's type is meant where it is not the first one's; -1: the result's.
_DATA = {"select": 1, "conditional": -1, "rng-bit-generator": -1, "clamp": 1}


@dataclass(slots=True)
class Coverage:
    """The number of draws per cell, and the programs that the verifier refused."""

    counts: Counter[Cell] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)

    def empty(self) -> list[Cell]:
        return [cell for cell in cells() if not self.counts[cell]]


@cache
def _attributes(opcode: str) -> dict[str, inspect.Parameter]:
    """List the attributes of an op."""
    op = column("hlo.ops")[function_name(opcode)]
    parameters = inspect.signature(op.function).parameters
    return {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in op.given
    }


@cache
def cells() -> tuple[Cell, ...]:
    """List all cells that can be drawn."""
    return tuple(cell for opcode in GENERATORS for cell in _cells(opcode))


def _cells(opcode: str) -> Iterator[Cell]:
    for element_type in _types(opcode):
        yield Cell(opcode, element_type.name)
        for name, parameter in _attributes(opcode).items():
            for kind in attribute_kinds.kinds_of(name, parameter)[0]:
                if attribute_kinds.possible(opcode, name, kind, element_type):
                    yield Cell(opcode, element_type.name, name, kind)


def _types(opcode: str) -> Iterable[ElementType]:
    taken = TAKES[opcode].types - _WITHOUT_MEANING.get(opcode, frozenset())
    return [t for t in ELEMENT_TYPES.values() if t in taken and t.is_array]


def covered(computation: Computation, instruction: Instruction) -> Iterator[Cell]:
    """Yield the cells of an instruction."""
    opcode = instruction.opcode
    shapes = {i.name: i.shape for i in computation.instructions}
    among = [*(shapes[name] for name in instruction.operands), instruction.shape]
    for name in {leaf.element_type.name for leaf in leaves(among[_DATA.get(opcode, 0)])}:
        yield Cell(opcode, name)
        for attribute, parameter in _attributes(opcode).items():
            value: Attribute = instruction.attributes.get(attribute, parameter.default)
            for kind in attribute_kinds.kinds_of(attribute, parameter)[1](value):
                yield Cell(opcode, name, attribute, kind)


def measured(draws: int, seed: int, opcodes: Sequence[str] = tuple(GENERATORS)) -> Coverage:
    """Draw ``draws`` instructions, in rounds over opcodes and result types; pairs whose cells were
    all drawn take part in every tenth round only."""
    found = Coverage()
    wanted = {opcode: set(_cells(opcode)) for opcode in opcodes}
    for number, (opcode, element_type) in enumerate(islice(_rounds(opcodes, wanted), draws)):
        choices = Seeded(f"{seed} {number}")
        constants = choices.boolean()
        module = single_op(choices, opcode, element_types=(element_type,), constants=constants)
        refusal = _refusal(module)
        if refusal is not None:
            found.refused.append(refusal)
            continue
        for instruction in module.entry.instructions:
            if instruction.opcode in wanted:
                drawn = [*covered(module.entry, instruction)]
                found.counts.update(drawn)
                wanted[instruction.opcode].difference_update(drawn)
    return found


def refused(programs: int, seed: int) -> Iterator[str]:
    """Draw a campaign's programs; yield the verifier's message on each one that it refuses."""
    drawn = (any_program(EvenlySpread(str(seed), number)) for number in range(programs))
    yield from filter(None, map(_refusal, drawn))


def _refusal(module: Module) -> str | None:
    try:
        hlo.verify(module)
    except VerifyError as error:
        return f"{error}\n{hlo.format(module)}"
    return None


def _rounds(
    opcodes: Sequence[str], wanted: Mapping[str, Collection[Cell]]
) -> Iterator[tuple[str, ElementType]]:
    given = {o: [t for t in ALL_TYPES if _gives(o, t)] for o in opcodes}
    for number in count():
        for opcode, types in given.items():
            if wanted[opcode] or not number % 10:
                yield opcode, types[number % len(types)]


def _gives(opcode: str, element_type: ElementType) -> bool:
    accepts = GENERATORS[opcode][1]
    return any(accepts(ArrayShape(element_type, (2,) * rank)) for rank in range(MOST_RANK + 1))


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.generator_coverage", description=__doc__
    )
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opcode", action="append", choices=sorted(GENERATORS))
    given = parser.parse_args(words)
    found = measured(given.draws, given.seed, given.opcode or tuple(GENERATORS))
    wrong = [*found.refused, *refused(given.draws, given.seed)]
    for text in wrong:
        print(text)
    empty = [c for c in found.empty() if not given.opcode or c.opcode in given.opcode]
    for cell in empty:
        print("never drawn:", *cell)
    print(
        f"{given.draws} instructions and as many programs, {len(wrong)} refused by the verifier;"
        f" {len(cells())} cells of opcode, type and kind of attribute, {len(empty)} never drawn"
    )
    return 1 if empty or wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

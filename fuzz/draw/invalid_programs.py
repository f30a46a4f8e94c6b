"""Draw invalid programs: change one instruction until the verifier refuses it.

An instruction of a valid program becomes a program of its own whose parameters are its operands.
Its numbers, types, operands, attributes or opcode are changed until ``hlo.verify`` names a violated
constraint.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import hlo
from hlo.errors import Error, VerifyError
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import DONE, OPCODES, PENDING, STRUCTURAL, having
from hlo.passes.rewriting import reachable, with_entry
from hlo.types import ELEMENT_TYPES, leaves

_MOST = 4  # instructions of a program
_TRIALS = 30  # changes of one until one is refused: of 561 drawn instructions each had one
# An asynchronous operation means nothing without the instructions it is chained to.
_CHAINED = having(PENDING) | having(DONE)
_ALONE = having(STRUCTURAL)
_TYPES = sorted(name for name, t in ELEMENT_TYPES.items() if t.is_array)

_ROOT = re.compile(r"  ROOT r = (?:\S++|\(.*?\)) (?P<opcode>[a-z0-9-]++)\((?P<operands>[^)]*+)\)")
_TYPE = re.compile(r"\b(?:pred|[bcsuf]+\d+\w*)(?=\[)")
# Not in names (p0, r.1), types (f32) and decimals (0.5). An x may precede: size=3x2 has two.
_NUMBER = re.compile(r"(?<![a-wyzA-Z.\d])-?\d++(?![.\d])")
_WRONG = re.compile(r"\d+: %\S+ = ([a-z0-9-]+), ([\w-]+): (.*)")


@dataclass(frozen=True, slots=True)
class Mutant:
    """Hold an invalid program, as text and as a module; it violates constraint ``label`` of
    ``opcode``."""

    text: str
    module: Module
    opcode: str
    label: str
    message: str


def mutants(module: Module) -> Iterator[Mutant]:
    """Yield one mutant each for a few instructions of a module. The same instruction gives the same
    mutant in another program."""
    found = {hlo.format(one): one for one in _singles(module)}
    by_digest = sorted(found, key=lambda text: hashlib.sha256(text.encode()).digest())
    for text in by_digest[:_MOST]:
        mutant = _mutant(text, random.Random(hashlib.sha256(text.encode()).digest()))
        if mutant is not None:
            yield mutant


def _singles(module: Module) -> Iterator[Module]:
    entry = module.entry
    shapes = {i.name: i.shape for i in entry.instructions}
    for instruction in entry.instructions:
        if instruction.opcode in _ALONE or instruction.opcode in _CHAINED:
            continue
        operands = dict.fromkeys(instruction.operands)
        given = [leaf for name in operands for leaf in leaves(shapes[name])]
        if not all(leaf.element_type.is_array for leaf in given):
            continue
        names = {name: f"p{n}" for n, name in enumerate(operands)}
        parameters = tuple(
            Instruction(names[name], shapes[name], "parameter", (), {"parameter_number": n})
            for n, name in enumerate(operands)
        )
        renamed = tuple(names[name] for name in instruction.operands)
        root = instruction._replace(name="r", operands=renamed, annotations={})
        alone = Computation(entry.name, (*parameters, root), "r")
        whole = with_entry(module, alone)
        yield replace(whole, name="m", computations=tuple(reachable(whole, lambda _: True)))


def _mutant(text: str, rng: random.Random) -> Mutant | None:
    for _ in range(_TRIALS):
        changed = rng.choice(_CHANGES)(text, rng)
        try:
            module = hlo.parse(changed)
            hlo.verify(module)
        except VerifyError as error:
            told = _WRONG.match(str(error))
            # A parameter or tuple that is wrong would say nothing of the instruction.
            if told is not None and told[1] not in _ALONE:
                return Mutant(changed, module, told[1], told[2], told[3])
        except Error:
            continue
    return None


def _at_one_place(
    pattern: re.Pattern[str], text: str, rng: random.Random, new: Callable[[str], str]
) -> str:
    """Replace one match of the pattern, drawn at random, after the called computations."""
    places = list(pattern.finditer(text, text.index("ENTRY")))
    if not places:
        return text
    place = rng.choice(places)
    return text[: place.start()] + new(place[0]) + text[place.end() :]


def _renumbered(text: str, rng: random.Random) -> str:
    def other(number: str) -> str:
        return str(int(number) + rng.choice((-1, 1, 1, 2, int(number))))

    return _at_one_place(_NUMBER, text, rng, other)


def _retyped(text: str, rng: random.Random) -> str:
    return _at_one_place(_TYPE, text, rng, lambda _: rng.choice(_TYPES))


def _entry_root(text: str) -> re.Match[str] | None:
    """Find the root of the entry: those of called computations come before, and may look alike."""
    return _ROOT.search(text, text.index("ENTRY"))


def _root(text: str, part: str, new: Callable[[str], str]) -> str:
    """Change the shape, the opcode or the operands of the root."""
    found = _entry_root(text)
    if found is None:
        return text
    return text[: found.start(part)] + new(found[part]) + text[found.end(part) :]


def _renamed(text: str, rng: random.Random) -> str:
    return _root(text, "opcode", lambda _: rng.choice(sorted(OPCODES)))


def _fewer_operands(text: str, rng: random.Random) -> str:
    def fewer(operands: str) -> str:
        names = operands.split(", ")
        names.pop(rng.randrange(len(names)))
        return ", ".join(names)

    return _root(text, "operands", fewer)


def _more_operands(text: str, rng: random.Random) -> str:
    def more(operands: str) -> str:
        names = operands.split(", ") if operands else []
        names.insert(rng.randint(0, len(names)), rng.choice(names or ["p0"]))
        return ", ".join(names)

    return _root(text, "operands", more)


def _shuffled_operands(text: str, rng: random.Random) -> str:
    def shuffled(operands: str) -> str:
        names = operands.split(", ")
        rng.shuffle(names)
        return ", ".join(names)

    return _root(text, "operands", shuffled)


def _without_attribute(text: str, rng: random.Random) -> str:
    found = _entry_root(text)
    if found is None:
        return text
    end = text.index("\n", found.end())
    line = text[found.end() : end]
    attributes = re.split(r", (?=[a-z_]+=)", line)[1:]
    if not attributes:
        return text
    line = line.replace(f", {rng.choice(attributes)}", "", 1)
    return text[: found.end()] + line + text[end:]


def _with_other_numbers(text: str, rng: random.Random) -> str:
    """Replace one number of an attribute by another."""
    numbers = [m[0] for m in _NUMBER.finditer(text, text.index("ENTRY"))]
    return _at_one_place(_NUMBER, text, rng, lambda _: rng.choice(numbers))


_CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    *(_renumbered, _renumbered, _renumbered, _with_other_numbers, _retyped, _retyped),
    *(_renamed, _fewer_operands, _more_operands, _shuffled_operands, _without_attribute),
)

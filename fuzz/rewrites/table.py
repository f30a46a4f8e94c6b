"""List all rewrites by name, and rewrite programs by one of them."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import replace

from fuzz.rewrites import arithmetic, identities, structure
from fuzz.rewrites.site import Place
from hlo.module import Instruction, Module
from hlo.passes.rewriting import Names
from hlo.ranks import COUNTS

REWRITES = {**identities.REWRITES, **arithmetic.REWRITES, **structure.rewrites(identities.ANYWHERE)}


def fitting(module: Module, rng: random.Random, without: Collection[str] = ()) -> str | None:
    """Draw the name of a rewrite that fits somewhere in a program, not in ``without``; half of the
    time one of those that do not fit everywhere. None if there is none."""
    places = _candidate_places(module, rng)
    kinds: list[list[str]] = [[], []]
    for name, one in REWRITES.items():
        if name not in without and any(map(one.fits, places)):
            kinds[name in identities.ANYWHERE].append(name)
    found = [*filter(None, kinds)]
    return rng.choice(rng.choice(found)) if found else None


def rewritten(module: Module, name: str, rng: random.Random) -> Module | None:
    """Apply a rewrite to one instruction, drawn at random; None if it fits nowhere, or leaves the
    program as it is."""
    rewrite = REWRITES[name]
    places = [place for place in _candidate_places(module, rng) if rewrite.fits(place)]
    if not places:
        return None
    place = rng.choice(places)
    last = rewrite.rewritten(place)
    entry = module.entry
    root = last if entry.root == place.value.name and not place.is_shared else entry.root
    whole = replace(entry, instructions=tuple(_instructions(place, last)), root=root)
    others = (c for c in module.computations if c is not entry)
    computations = (*others, *place.computations, whole)
    # What else the header says is of the program as it was: its schedule, layouts, aliases.
    attributes = {name: v for name, v in module.attributes.items() if name in COUNTS}
    made = replace(module, computations=computations, attributes=attributes, text="", preamble="")
    return None if made == module else made


def _candidate_places(module: Module, rng: random.Random) -> list[Place]:
    entry = module.entry
    defined = {i.name: i for i in entry.instructions}
    names = Names({*defined, *(c.name for c in module.computations)})
    return [Place(module, defined, value, rng, names) for value in entry.instructions]


def _instructions(place: Place, last: str) -> Iterator[Instruction]:
    """Merge the entry's instructions with those of the site, whose last has the value."""
    for instruction in place.module.entry.instructions:
        if instruction is place.value:
            yield place.instead or instruction
            yield from place.instructions
        elif place.is_shared and place.rng.random() < 0.5:
            yield instruction
        else:
            operands = tuple(last if o == place.value.name else o for o in instruction.operands)
            yield instruction._replace(operands=operands)

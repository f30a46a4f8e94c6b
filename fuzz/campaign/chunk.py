"""One chunk of a campaign: its programs asked of every oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fuzz.oracles import Difference, LeftOut
from fuzz.oracles.oracle import Property
from fuzz.reducer.search import Case
from hlo.types import leaves


@dataclass(frozen=True, slots=True)
class Suspect:
    """A program of a chunk without a property."""

    oracle: str
    program: int
    found: Difference


@dataclass(slots=True)
class Examined:
    """``counts`` are of outcomes by oracle, ``coverage`` of instructions by opcode and type."""

    counts: Counter[str] = field(default_factory=Counter)
    coverage: Counter[str] = field(default_factory=Counter)
    suspects: list[Suspect] = field(default_factory=list)


def examined(drawn: Sequence[Case], properties: Mapping[str, Property]) -> Examined:
    """What becomes of the programs of a chunk, each asked for every property."""
    found = Examined(counts=Counter(programs=len(drawn)))
    for case in drawn:
        found.coverage.update(covered(case))
    for oracle, of in properties.items():
        for program, outcome in enumerate(of(drawn)):
            match outcome:
                case None:
                    found.counts[f"{oracle}: holds"] += 1
                case LeftOut(reason):
                    found.counts[f"{oracle}: left out, {reason}"] += 1
                case Difference():
                    found.counts[f"{oracle}: violated"] += 1
                    found.suspects.append(Suspect(oracle, program, outcome))
    return found


def covered(case: Case) -> Counter[str]:
    """The pairs of opcode and element type in a program."""
    found: Counter[str] = Counter()
    for computation in case.module.computations:
        for instruction in computation.instructions:
            for leaf in leaves(instruction.shape):
                found[f"{instruction.opcode} {leaf.element_type}"] += 1
    return found

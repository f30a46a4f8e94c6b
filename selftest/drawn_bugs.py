"""Measure how often drawn programs have what the known bugs of XLA:CPU need.

``python -m selftest.drawn_bugs --programs N --seed S`` draws programs as campaigns do and counts,
for each bug of docs/found, in how many programs (with arguments, or with constants for them) the
opcodes, the program and an instruction to blame are as one of its signatures says
(:mod:`selftest.bug_signatures`), and prints how many that are of ten thousand, the rarest first.
This is an upper bound: whether the numbers show the bug is not asked. Bugs with a signature that
tells them by the place of a crash alone are left out. Exit status: 1 if what a bug needs was never
drawn.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from fuzz.campaign.program_kinds import any_program
from fuzz.draw.even_choices import EvenlySpread
from fuzz.draw.values import arguments
from fuzz.judge.blame import described
from fuzz.judge.failure import opcodes
from fuzz.oracles.equivalent import baked
from fuzz.reducer.search import Case
from hlo.module import Module
from selftest.bug_signatures import Signature, Signatures, expressions, read

_OF = 10_000  # programs


def rates(signatures: Signatures, programs: int, seed: int) -> dict[str, float]:
    """Count, of 10,000 programs, how many could show each bug."""
    some = told_by_programs(signatures)
    found = Counter({signature.bug: 0 for signature in some})
    for number in range(programs):
        choices = EvenlySpread(str(seed), number)
        module = any_program(choices)
        found.update(_shown(some, Case(module, arguments(choices, module))))
    return {bug: _OF * count / programs for bug, count in found.items()}


def told_by_programs(signatures: Signatures) -> Sequence[Signature]:
    """List the signatures of bugs all of whose signatures say something of the program."""
    some = [signature for signature in signatures.all if not signature.is_part]
    others = {signature.bug for signature in some if not _asks_programs(signature)}
    return [signature for signature in some if signature.bug not in others]


def _asks_programs(signature: Signature) -> bool:
    return bool(signature.opcodes) or any(f in ("blamed", "program") for f, _ in signature.patterns)


def _shown(signatures: Sequence[Signature], case: Case) -> set[str]:
    """Return the bugs that a program could show, as it is or with constants for its arguments."""
    return {bug for one in (case, baked(case)) for bug in _could_show(signatures, one.module)}


def _could_show(signatures: Sequence[Signature], module: Module) -> Iterator[str]:
    there, text, blamed = opcodes(module), expressions(module), [*_described(module)]
    for signature in signatures:
        if signature.opcodes <= there and all(
            pattern.search(text) is not None
            if field == "program"
            else any(map(pattern.fullmatch, blamed))
            for field, pattern in signature.patterns
            if field in ("blamed", "program")
        ):
            yield signature.bug


def _described(module: Module) -> Iterator[str]:
    """Yield each instruction as it would be blamed."""
    for computation in module.computations:
        there = {instruction.name: instruction for instruction in computation.instructions}
        yield from {described(one, there): None for one in computation.instructions}


def lines(of: dict[str, float], first: Sequence[str]) -> Iterator[str]:
    """Format the rates, the rarest first."""
    for bug, rate in sorted(of.items(), key=lambda one: (one[1], one[0])):
        yield f"{rate:9.1f}  {bug}{' (found first)' if bug in first else ''}"


def main(words: Sequence[str]) -> int:
    """Print how many of ten thousand drawn programs could show each bug."""
    parser = argparse.ArgumentParser(prog="python -m selftest.drawn_bugs", description=__doc__)
    parser.add_argument("--programs", type=int, default=_OF)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    signatures = read()
    found = rates(signatures, given.programs, given.seed)
    print("\n".join(lines(found, signatures.first)))
    return int(not all(found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

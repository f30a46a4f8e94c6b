"""Measure how many programs a second `hlo fuzz --oracle same-bits` does on one core, by stage.

    python -m bench.same_bits [--programs N] [--seed N] [--pickle FILE] [--json]

Programs are drawn as campaigns draw them: mixed, whole ones, of few instructions, of one. Of each,
50 at a time go through what the oracle does: *interp* evaluates, *lower* is from the module to C
text, *compile* starts the quick compiler, *run* loads the library and calls it, *compare* is of
bits; *thorough* is what the compiler with all flags takes instead, of which the oracle asks for
one of 64 lists. Seconds are of the processor, those of compilers included. ``--pickle`` keeps the
programs, or takes them from there, so that two versions can be compared on the same.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from backend_c.native.toolchain import Compiler
from fuzz.campaign.program_kinds import any_program
from fuzz.compilers import quick_compilers
from fuzz.compilers.combined_programs import Batch, lowered_together
from fuzz.draw.choices import Choices, examples
from fuzz.draw.programs import GENERATORS, program, single_op
from fuzz.draw.values import arguments
from fuzz.oracles.oracle import NoResult, compared, right
from fuzz.reducer.search import Case
from hlo.module import Module
from interp.values import Value

T = TypeVar("T")
_AT_ONCE = 50  # as a chunk of a campaign
KINDS: dict[str, Callable[[Choices], Module]] = {
    "as in a campaign": any_program,
    "modules()": program,
    "modules(max_instructions=4)": lambda choices: program(choices, max_instructions=4),
    "single_op(…)": lambda choices: single_op(choices, choices.choice(sorted(GENERATORS))),
}
_ASIDE = "thorough"


def drawn(kind: str, count: int, seed: int) -> list[Case]:
    """Draw ``count`` programs of a kind, with arguments."""

    def case(choices: Choices) -> Case:
        module = KINDS[kind](choices)
        return Case(module, arguments(choices, module))

    return examples(case, count, seed)


class Stages:
    """Processor seconds by stage."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def timed(self, stage: str, work: Callable[[], T]) -> T:
        """Call ``work``, add its seconds to the stage, and return its result."""
        start = _processor()
        try:
            return work()
        finally:
            self.seconds[stage] += _processor() - start  # type: ignore[assignment]


def _processor() -> float:
    """Return the processor seconds of this process and its finished children."""
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def gone_through(cases: Sequence[Case], stages: Stages) -> int:
    """Run the oracle over programs and count those that differ."""
    quick, thorough = quick_compilers.quick(os.environ), quick_compilers.thorough(os.environ)
    differing = 0
    for start in range(0, len(cases), _AT_ONCE):
        chunk = cases[start : start + _AT_ONCE]
        known = stages.timed("interp", lambda: _expected(chunk))  # noqa: B023
        batch = stages.timed("lower", lambda: lowered_together([c.module for c, _ in known]))  # noqa: B023
        differing += _through_c(batch, known, quick, stages)
        stages.timed(_ASIDE, lambda: batch.executables(thorough))  # noqa: B023
    return differing


def _expected(cases: Sequence[Case]) -> list[tuple[Case, Value]]:
    found = []
    for case in cases:
        try:
            found.append((case, right(case)))
        except NoResult:
            continue
    return found


def _through_c(
    batch: Batch, known: Sequence[tuple[Case, Value]], compiler: Compiler, stages: Stages
) -> int:
    executables = stages.timed("compile", lambda: batch.executables(compiler))
    differing = 0
    for (case, expected), executable in zip(known, executables, strict=True):
        if callable(executable):
            actual = stages.timed("run", lambda: executable(*case.arrays))  # noqa: B023
            found = stages.timed("compare", lambda: compared(expected, actual))  # noqa: B023
            differing += found is not None
    return differing


def measured(kind: str, count: int, seed: int, kept: Path | None) -> dict[str, Any]:
    """Measure a row of the table: milliseconds of a program by stage."""
    stages = Stages()
    path = kept.with_name(f"{kept.name}.{len(kind)}") if kept else None
    if path and path.exists():
        cases = pickle.loads(path.read_bytes())
    else:
        cases = stages.timed("draw", lambda: drawn(kind, count, seed))
        if path:
            path.write_bytes(pickle.dumps(cases))
    differing = gone_through(cases, stages)
    each = {name: 1000 * spent / len(cases) for name, spent in stages.seconds.items()}
    whole = sum(spent for name, spent in each.items() if name != _ASIDE)
    instructions = sum(case.module.instruction_count for case in cases) / len(cases)
    return {
        "kind": kind,
        "programs": len(cases),
        "instructions": round(instructions, 1),
        "milliseconds": {name: round(spent, 3) for name, spent in each.items()},
        "programs_per_second": round(1000 / whole),
        "differing": differing,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    options.add_argument("--programs", type=int, default=400, help="of each kind")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--pickle", type=Path, metavar="FILE")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    rows = [measured(kind, given.programs, given.seed, given.pickle) for kind in KINDS]
    print(json.dumps(rows) if given.json else _table(rows))


_Raw = argparse.RawDescriptionHelpFormatter


def _table(rows: Sequence[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row["milliseconds"]))
    titles = "".join(f"{name:>9}" for name in names)
    lines = [f"{'milliseconds of a program':30}{'instructions':>13}{titles}{'programs/s':>12}"]
    for row in rows:
        spent = "".join(f"{row['milliseconds'].get(name, 0):9.2f}" for name in names)
        whole = f"{row['instructions']:13.1f}{spent}{row['programs_per_second']:12}"
        lines.append(f"{row['kind']:30}{whole}")
        if row["differing"]:
            lines.append(f"  {row['differing']} differ, or depend on the bits of a NaN")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

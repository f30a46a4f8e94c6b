"""``python -m selftest.triage_examples DIR``: programs to triage, as StableHLO, some of which fail.

Every fourth program is one that XLA:CPU gets wrong (docs/found), the others are drawn; each has its
arguments. ``hlo triage DIR`` has to sort them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import hlo
from fuzz.draw.seeded_programs import programs
from fuzz.reducer.search import Case
from fuzz.worker_pool import Result, WorkerPool
from hlo import archive
from hlo.values import arrays_of
from hlo_oracle.arguments import from_archive

_FOUND = Path(__file__).resolve().parents[1] / "docs" / "found"


def examples(count: int, seed: int) -> Iterator[tuple[str, Case]]:
    """Yield ``count`` programs with names: three drawn ones, then one that fails, and so on."""
    failing = cycle(sorted(_FOUND.glob("*/reduced.hlo")))
    drawn = programs(seed)
    for number in range(count):
        if number % 4 < 3:
            module, values = next(drawn)
            yield f"{number:04}.drawn", Case(module, values)
        else:
            path = next(failing)
            module = hlo.parse(path.read_text())
            (values,) = from_archive(module, path.with_name("arguments.npz"))
            yield f"{number:04}.{path.parent.name}", Case(module, values)


@contextmanager
def converter() -> Iterator[Callable[[str], str | None]]:
    """Yield a function that converts HLO text to StableHLO by jaxlib, in a process that may
    crash."""
    from fuzz.peers.jaxlib_modules import of_hlo, of_mlir

    def converted(text: str) -> str | None:
        """Convert a text; None if StableHLO cannot express it."""
        try:
            return made(text)
        except (RuntimeError, ValueError):
            return None

    def made(text: str) -> str:
        module = of_hlo().hlo_module_from_text(text)
        computation = of_hlo().XlaComputation(module.as_serialized_hlo_module_proto())
        return str(of_mlir().mlir.xla_computation_to_mlir_module(computation))

    yield converted


def write(programs: Iterable[tuple[str, Case]], directory: Path) -> None:
    """Write programs with their arguments; those that StableHLO cannot express as HLO."""
    directory.mkdir(parents=True, exist_ok=True)
    with WorkerPool(converter, seconds=20.0) as convert:
        for name, case in programs:
            text = hlo.format(case.module)
            outcome = convert(text)
            mlir = outcome.value if isinstance(outcome, Result) else None
            file = directory / f"{name}{'.hlo' if mlir is None else '.mlir'}"
            file.write_text(text if mlir is None else mlir)
            numbered = archive.numbered(tuple(arrays_of(case.arrays)))
            archive.write(directory / f"{name}.npz", numbered)


def main() -> int:
    """Write the examples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--count", type=int, default=300, metavar="N", help="programs (300)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of what is drawn (0)")
    given = parser.parse_args()
    write(examples(given.count, given.seed), given.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Run every op, and programs of files, as CUDA on emulated threads: against the interpreter's bits.

    python -m selftest.cuda_emulated                      large ops, ops on every type, the files
    python -m selftest.cuda_emulated --no-ops FILE|DIR …  given files

Files are those of tests/regressions and tests/corpus unless others are given. Each program runs in
blocks of 1, 32, 96, 128 and 1,024 threads, in two orders each, as the oracle cuda-emulated has it;
drawn programs are asked by ``hlo fuzz --oracle cuda-emulated``. Programs whose values have more
than --most elements are left out: each access to memory is checked. Exit status 1 if bits differ or
a kernel does what a GPU has not to bear.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import hlo
from fuzz.oracles.cuda_emulated import cuda_emulated, fast_is_sound
from fuzz.oracles.oracle import Difference, LeftOut, Property
from fuzz.reducer.search import Case
from hlo.module import Module
from hlo.opcodes import OPCODES
from hlo.types import leaves
from hlo_oracle.arguments import from_seed
from selftest.large_ops import large_ops
from selftest.op_tables.op_types import by_generator, by_interpreter, cells, module

_TESTS = Path(__file__).parents[1] / "tests"
_PATHS = (_TESTS / "regressions", _TESTS / "corpus")
_TOGETHER = 60  # programs in one unit
_MOST = 4_000_000

Named = tuple[str, Case]


def of_ops() -> Iterator[Named]:
    """Yield the smallest program of each op on each type that interpreter and backend support."""
    for opcode in OPCODES:
        for cell in cells(opcode):
            if not by_interpreter(cell) and not by_generator(cell):
                made = module(cell)
                yield f"{opcode} of {cell.element_type}", Case(made, from_seed(made, 0))


def of_large_ops() -> Iterator[Named]:
    """Yield programs of single ops, large enough for several blocks."""
    for name, made in large_ops():
        yield name, Case(made, from_seed(made, 0))


def of_files(paths: Sequence[Path], most: int) -> Iterator[Named]:
    """Yield the programs of files whose values have at most ``most`` elements."""
    for path in paths:
        names = ("*.hlo", "*.before_optimizations.txt")
        files = [f for name in names for f in path.rglob(name)] if path.is_dir() else [path]
        for file in sorted(files):
            made = hlo.parse(file.read_text("utf-8"))
            if _elements(made) <= most:
                yield file.name, Case(made, from_seed(made, 0))


def _elements(made: Module) -> int:
    instructions = (i for c in made.computations for i in c.instructions)
    return sum(leaf.elements for i in instructions for leaf in leaves(i.shape))


def asked(
    named: Iterator[Named], oracle: Property = cuda_emulated
) -> tuple[Counter[str], list[str]]:
    """Run programs through the oracle; return the counts, and the faults."""
    counts, wrong = Counter[str](), []
    while some := list(islice(named, _TOGETHER)):
        outcomes = oracle([case for _, case in some])
        for (name, _), outcome in zip(some, outcomes, strict=True):
            counts["programs"] += 1
            # A program whose constants were left out of the text has no value.
            if isinstance(outcome, LeftOut) or (outcome and outcome.kind == "ArgumentError"):
                counts["left out"] += 1
            elif isinstance(outcome, Difference):
                is_bits = outcome.kind == "other bits"
                counts["other bits" if is_bits else "findings"] += 1
                wrong.append(f"{name}: {outcome.kind}: {outcome.detail}")
    return counts, wrong


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.cuda_emulated",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="*", type=Path, help="HLO files, directories of them")
    parser.add_argument("--most", type=int, default=_MOST, help="elements of a program's values")
    parser.add_argument("--no-ops", action="store_true", help="the files alone")
    given = parser.parse_args(words)
    parts: list[tuple[str, Iterator[Named], Property]] = []
    if not given.no_ops:
        parts.append(("large ops", of_large_ops(), cuda_emulated))
        parts.append(("large ops, fast", of_large_ops(), fast_is_sound))
        parts.append(("ops", of_ops(), cuda_emulated))
    parts.append(("files", of_files(given.paths or _PATHS, given.most), cuda_emulated))
    found = list[str]()
    for name, named, oracle in parts:
        start = time.perf_counter()
        counts, wrong = asked(named, oracle)
        found += wrong
        columns = ("programs", "left out", "other bits", "findings")
        told = ", ".join(f"{counts[column]:,} {column}" for column in columns)
        print(f"{name}: {told} ({time.perf_counter() - start:.0f} s)", flush=True)
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

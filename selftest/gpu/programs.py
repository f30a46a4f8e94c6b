"""List the programs that are run on a GPU, by piece and unit: always the same ones.

Programs of a unit are compiled together: as many as take a compiler a minute at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

from fuzz.draw.seeded_programs import programs
from fuzz.reducer.search import Case
from hlo.opcodes import OPCODES
from hlo_oracle.arguments import from_seed
from selftest.cuda_emulated import Named, of_files, of_large_ops
from selftest.op_tables.op_types import by_generator, by_interpreter, cells, module

_TESTS = Path(__file__).parents[2] / "tests"
_MOST = 4_000_000  # elements of all values: the interpreter has to evaluate them
_LARGE, _OPS, _FILES, _DRAWN = 6, 60, 6, 60  # programs of a unit
_UNITS_DRAWN, _SEED = 20, 15


def _large_ops(number: int) -> list[Named]:
    return list(islice(of_large_ops(), number * _LARGE, (number + 1) * _LARGE))


def _ops(number: int) -> list[Named] | None:
    """Make the programs of ops on types, except those that interpreter or backend do not
    support."""
    every = [cell for opcode in OPCODES for cell in cells(opcode)]
    some = every[number * _OPS : (number + 1) * _OPS]
    taken = [cell for cell in some if not by_interpreter(cell) and not by_generator(cell)]
    made = [(f"{cell.opcode} of {cell.element_type}", module(cell)) for cell in taken]
    return [(name, Case(one, from_seed(one, 0))) for name, one in made] if some else None


def _files(number: int) -> list[Named]:
    """Read programs of tests/regressions and tests/corpus."""
    named = of_files((_TESTS / "regressions", _TESTS / "corpus"), _MOST)
    return list(islice(named, number * _FILES, (number + 1) * _FILES))


def _drawn(number: int) -> list[Named] | None:
    if number >= _UNITS_DRAWN:
        return None
    some = islice(programs(_SEED, number * _DRAWN), _DRAWN)
    return [(f"drawn {number * _DRAWN + n}", Case(*one)) for n, one in enumerate(some)]


PIECES: Mapping[str, Callable[[int], list[Named] | None]] = {
    "large ops": _large_ops,
    "ops": _ops,
    "files": _files,
    "drawn": _drawn,
}


def unit(piece: str, number: int) -> list[Named] | None:
    """Return the programs of a unit; None if there is no such unit."""
    found = PIECES[piece](number)
    return found if found or piece == "ops" else None

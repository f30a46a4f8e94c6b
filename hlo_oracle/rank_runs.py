"""Run programs on several ranks, and name their outputs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

import interp
from hlo.bit_equality import Difference, differences
from hlo.errors import Unsupported
from hlo.module import Module
from hlo.ranks import declared, knows_ranks
from hlo.values import Value, placed_arrays
from hlo_oracle import option_types
from interp.ranks import MOST_RANKS

if TYPE_CHECKING:
    from backend_c.native.executable import Executable

_ranks = option_types.up_to(MOST_RANKS)


class Ranks(NamedTuple):
    """The numbers of replicas and partitions; rank ``replica * partitions + partition``."""

    replicas: int
    partitions: int

    @property
    def size(self) -> int:
        return self.replicas * self.partitions


class Options(Protocol):
    """Parsed options of :func:`add_options`."""

    @property
    def replicas(self) -> int | None: ...
    @property
    def partitions(self) -> int | None: ...


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --replicas and --partitions."""
    told = "to simulate (default: the header's if ranks make a difference, else 1)"
    parser.add_argument("--replicas", type=_ranks, metavar="R", help=told)
    parser.add_argument(
        "--partitions", type=_ranks, metavar="P", help="of each replica (default: likewise)"
    )


def ranks_of(module: Module, options: Options) -> Ranks:
    """Choose the numbers of replicas and partitions: those of the options, else those that the
    module declares. Unsupported for more than are simulated."""
    replicas, partitions = declared(module) if knows_ranks(module) else (1, 1)
    ranks = Ranks(options.replicas or replicas, options.partitions or partitions)
    if ranks.size > MOST_RANKS:  # told before the arguments of each are drawn
        raise Unsupported(f"{ranks.size} ranks: at most {MOST_RANKS} are simulated")
    return ranks


def interpreted(
    module: Module,
    ranks: Ranks,
    values: tuple[tuple[Value, ...], ...],
    seed: int,
    fuel: int | None = None,
    watch: Callable[[interp.Seen], object] | None = None,
) -> tuple[Value, ...]:
    """Evaluate a module on each rank's arguments with the interpreter."""
    if ranks.size == 1:
        return (interp.evaluate(module, *values[0], seed=seed, fuel=fuel, watch=watch),)
    found: tuple[Value, ...] = interp.evaluate(
        module,
        *values,
        seed=seed,
        fuel=fuel,
        replicas=ranks.replicas,
        partitions=ranks.partitions,
        watch=watch,
    )
    return found


def is_for_c(module: Module, ranks: Ranks) -> bool:
    """Test whether compiled C, which runs one rank, can compute the results of all of these
    ranks."""
    return ranks.size == 1 or not knows_ranks(module)


def require_for_c(module: Module, ranks: Ranks) -> None:
    """Raise Unsupported if C cannot run on these ranks."""
    if not is_for_c(module, ranks):
        raise Unsupported(f"generated C is one rank, not {ranks.size}: use --on interp")


def compiled(
    executable: Executable, values: tuple[tuple[Value, ...], ...], seed: int
) -> tuple[Value, ...]:
    """Run compiled C on each rank's arguments."""
    return tuple(executable(*mine, seed=seed) for mine in values)


def outputs_of(results: tuple[Value, ...]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of all ranks with names, without tokens; those of rank 3 of several are
    ``result@3`` or ``{1}@3``."""
    for rank, result in enumerate(results):
        for name, array in placed_arrays(result):
            yield _name(name, rank, len(results)), np.asarray(array)


def values_of(watched: Sequence[Mapping[str, list[Value]]]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of watched instructions with names: ``add.2``, its third value in a loop
    ``add.2#2``, of rank 3 of several ``add.2@3``, and the second of a tuple ``tuple.1{1}``."""
    for rank, values in enumerate(watched):
        for name, each in values.items():
            plain = "%result" if name == "result" else name  # the program's has this name
            for number, value in enumerate(each):
                trip = f"#{number}" if len(each) > 1 else ""
                for place, array in placed_arrays(value):
                    yield _name(f"{plain}{trip}{place}", rank, len(watched)), np.asarray(array)


def differences_of(expected: tuple[Value, ...], actual: tuple[Value, ...]) -> Iterator[Difference]:
    """List the differences between expected and actual outputs, of all ranks."""
    for rank, (one, other) in enumerate(zip(expected, actual, strict=True)):
        for difference in differences(one, other):
            yield replace(difference, output=_name(difference.output, rank, len(expected)))


def _name(output: str, rank: int, size: int) -> str:
    return output if size == 1 else f"{output or 'result'}@{rank}"

"""Reduce with progress shown, for the subcommands that reduce."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from hlo.module import Module
from hlo.operating_system import processors
from hlo.values import Value
from hlo_oracle import option_types
from hlo_oracle.peer_verdicts import Peer
from hlo_oracle.progress_line import ProgressLine, length

if TYPE_CHECKING:
    from fuzz.judge.failure import Kept, Run
    from fuzz.reducer.cutting import Evaluate
    from fuzz.reducer.search import IsInteresting


T = TypeVar("T")


class Options(Protocol):
    """Parsed options of :func:`add_options`, and the seed of the program's random bits."""

    @property
    def workers(self) -> int: ...
    @property
    def seed(self) -> int | None: ...


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --seconds, the time limit of a reduction, and --workers, its number of processes."""
    parser.add_argument(
        "--seconds",
        type=option_types.duration,
        metavar="N",
        default=300.0,
        help="stop reducing after so long (default: 300)",
    )
    parser.add_argument(
        "--workers",
        type=option_types.count,
        default=processors(),
        metavar="N",
        help="programs tried at once (default: one for each core); the result is the same",
    )


@contextmanager
def several(start: Callable[[], AbstractContextManager[T]], options: Options) -> Iterator[list[T]]:
    """Open a resource for each worker; none for a single worker, which uses the one already
    open."""
    with ExitStack() as stack:
        count = options.workers if options.workers > 1 else 0
        yield [stack.enter_context(start()) for _ in range(count)]


@contextmanager
def peers_at_once(
    kept: Kept, peer: Peer, timeout: float, options: Options
) -> Iterator[dict[str, Any]]:
    """Yield the options of :func:`reduced` that give each worker a process of the compiler."""
    from fuzz.judge.failure import Against

    def started() -> AbstractContextManager[Run]:
        return peer.start(timeout)

    with several(started, options) as runs:
        others = [Against(run, peer.budget, options.seed or 0) for run in runs]
        yield {"at_once": [kept.by(other) for other in others], "taken": kept.take}


def reduced(
    module: Module,
    arrays: Sequence[Value],
    is_interesting: IsInteresting,
    values: Sequence[Evaluate],
    seconds: float,
    *,
    line: ProgressLine,
    **more: Any,
) -> tuple[Module, tuple[Value, ...]]:
    """Reduce as :func:`fuzz.reduce` does, and show progress."""
    from fuzz import reduce

    begin = time.monotonic()

    def progress(what: str, smaller: Module, tried: int) -> None:
        left = max(0.0, begin + seconds - time.monotonic())
        count = smaller.instruction_count
        line.show(
            f"reducing: {count} instructions, {tried} programs tried, {what}, at most"
            f" {length(left)} left"
        )

    shown = progress if line.is_shown else None
    more |= {"seconds": seconds, "values": values, "progress": shown}
    with line.phase(f"reducing {module.instruction_count} instructions"):
        return reduce(module, arrays, is_interesting, **more)

"""Reduce with progress on a terminal, for the subcommands that reduce."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from hlo.module import Module
from hlo.values import Value
from hlo_oracle.peer_verdicts import Peer

if TYPE_CHECKING:
    from fuzz.judge.failure import Kept, Run
    from fuzz.reducer.cutting import Evaluate
    from fuzz.reducer.search import IsInteresting


T = TypeVar("T")


def add_options(parser: argparse.ArgumentParser) -> None:
    """--seconds: how long to reduce; --workers: with how many processes."""
    parser.add_argument(
        "--seconds", type=_seconds, default=300.0, help="stop reducing after so long (default 300)"
    )
    parser.add_argument(
        "--workers",
        type=_workers,
        default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
        metavar="N",
        help="programs tried at once; default: one for each core. The result is the same",
    )


def _workers(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)


@contextmanager
def several(
    opened: Callable[[], AbstractContextManager[T]], options: argparse.Namespace
) -> Iterator[list[T]]:
    """Open a resource for each worker; nothing for a single worker, which uses what is open."""
    with ExitStack() as stack:
        count = options.workers if options.workers > 1 else 0
        yield [stack.enter_context(opened()) for _ in range(count)]


@contextmanager
def peers_at_once(
    kept: Kept, peer: Peer, timeout: float, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Options of :func:`reduced` that ask a process of the compiler for each worker."""
    from fuzz.judge.failure import Against

    def started() -> AbstractContextManager[Run]:
        return peer.start(timeout)

    with several(started, options) as runs:
        others = [Against(run, peer.budget, options.seed or 0) for run in runs]
        yield {"at_once": [kept.by(other) for other in others], "taken": kept.take}


def _seconds(text: str) -> float:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return float(text)


def reduced(
    module: Module,
    arrays: Sequence[Value],
    is_interesting: IsInteresting,
    values: Sequence[Evaluate],
    seconds: float,
    **more: Any,
) -> tuple[Module, tuple[Value, ...]]:
    """Reduce as :func:`fuzz.reduce` does, showing progress."""
    from fuzz import reduce

    def progress(what: str, smaller: Module, tried: int) -> None:
        text = f"{smaller.instruction_count} instructions, {tried} programs tried, {what}"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    shown = progress if sys.stderr.isatty() else None
    more |= {"seconds": seconds, "values": values, "progress": shown}
    result = reduce(module, arrays, is_interesting, **more)
    if shown is not None:
        sys.stderr.write("\r\x1b[K")
    return result

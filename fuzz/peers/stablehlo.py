"""Convert HLO text to StableHLO by jaxlib, in a process: its conversion crashes on some
programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from fuzz.peers.crash import described
from fuzz.peers.isolated import Isolated
from fuzz.peers.jaxlib_modules import PRELOADED, of_mlir
from fuzz.peers.literal_import import imported
from fuzz.worker_pool import Result, WorkerPool

Version = tuple[int, ...]  # major, minor, patch

_PRELOAD = (__name__, *PRELOADED, "jaxlib.mlir.dialects.stablehlo")


@dataclass(frozen=True, slots=True)
class Converted:
    """Hold a ``program`` in StableHLO, or the ``error`` of the conversion."""

    program: bytes = b""
    error: str | None = None


@contextmanager
def converter(newest: Version | None) -> Iterator[Callable[[str], Converted]]:
    """Open the conversion to a StableHLO version: the ``newest`` that the plugin reads, or, if
    unknown, that of twelve weeks ago, as JAX does."""
    from jaxlib.mlir.dialects import stablehlo

    ours = _version(stablehlo.get_current_version())
    weeks = stablehlo.StablehloCompatibilityRequirement.WEEK_12
    old = _version(stablehlo.get_version_from_compatibility_requirement(weeks))
    target = ".".join(map(str, old if newest is None else min(ours, newest)))

    def converted(text: str) -> Converted:
        try:
            program = imported(text)
        except (RuntimeError, ValueError) as error:  # jaxlib's own are RuntimeErrors
            return Converted(error=str(error))
        try:
            return Converted(of_mlir().mlir.serialize_portable_artifact(program, target))
        except (RuntimeError, ValueError):  # operations of other dialects have no portable form
            return Converted(program.encode())

    yield converted


def _version(text: str) -> Version:
    return tuple(map(int, text.split(".")))


class Conversion:
    """Convert programs in a worker process; ``timeout`` in seconds is for one program."""

    def __init__(self, newest: Version | None, timeout: float) -> None:
        made = partial(converter, newest)
        self._process = Isolated(WorkerPool(made, seconds=timeout, preload=_PRELOAD, stacks=True))

    def __call__(self, text: str) -> Converted:
        """Convert one program."""
        outcome = self._process(text)
        if isinstance(outcome, Result):
            return outcome.value
        return Converted(error=f"jaxlib, asked for it as StableHLO: {described(outcome)}")

    def close(self) -> None:
        """End the process."""
        self._process.close()

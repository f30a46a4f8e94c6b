"""Run XLA's CPU compiler through jaxlib: from HLO text to results."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from types import TracebackType
from typing import Any, Self

import numpy as np

from fuzz.peers.crash import described
from fuzz.peers.isolated import Isolated
from fuzz.peers.jaxlib_modules import PRELOADED, compiled, of_hlo
from fuzz.peers.layouts import LOST, loses_layouts
from fuzz.peers.literal_import import imported
from fuzz.peers.unwritten_memory import fill_unwritten_memory
from fuzz.worker_pool import Result, WorkerPool
from hlo.values import Array

# With SciPy's, in which LAPACK is: half of the time that a process takes to begin.
_PRELOAD = (
    *(__name__, "jax", "jax.extend.backend", *PRELOADED, "jaxlib.lapack"),
    *("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"),
)

Options = tuple[tuple[str, str | int | bool], ...]  # of XLA_FLAGS, for one compilation

_KEPT = 128  # executables, in a process
# An executable that is run again goes on with the state of its random numbers.
_HAS_STATE = re.compile(r"\brng")


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold a peer's answer: ``outputs`` (arrays in order, tuples flattened), ``error`` (it
    refuses), ``crash``, or ``optimised`` (text instead of results). Times are in seconds."""

    outputs: tuple[Array, ...] | None = None
    error: str | None = None
    crash: str | None = None
    compile: float = 0.0
    run: float = 0.0
    optimised: str | None = None


@contextmanager
def client_runner(flags: str | None) -> Iterator[Callable[..., Answer]]:
    """Open the function of one worker process, which makes the client once, and keeps what it
    compiled last. ``flags`` replace XLA_FLAGS: the server that forks workers may have been started
    with others."""
    fill_unwritten_memory()
    os.environ.pop("XLA_FLAGS", None)
    if flags is not None:
        os.environ["XLA_FLAGS"] = flags
    import jax
    import jax.extend.backend
    from jaxlib import lapack, xla_client

    # JAX_PLATFORMS is for the user's own programs: it may leave out the CPU.
    jax.config.update("jax_platforms", "cpu")  # type: ignore[no-untyped-call]
    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]  # f64 arguments stay f64
    lapack._lapack.initialize()  # type: ignore[attr-defined]  # or LAPACK's custom calls crash
    client = jax.extend.backend.get_backend("cpu")
    style = of_hlo().HloPrintOptions()
    style.print_large_constants = True
    devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))

    def compiled_of(text: str, options: Options) -> Any:
        program = imported(text)
        settings = xla_client.CompileOptions()
        settings.env_option_overrides = list(options)
        return compiled(client, program, devices, settings)

    kept = lru_cache(_KEPT)(compiled_of)

    def answer(
        text: str, arrays: Sequence[Array] | None, options: Options = (), parse_only: bool = False
    ) -> Answer:
        begin = time.perf_counter()
        try:
            if parse_only:
                of_hlo().hlo_module_from_text(text)
                return Answer(compile=time.perf_counter() - begin, optimised="")
            executable = (compiled_of if _HAS_STATE.search(text) else kept)(text, options)
            ready = time.perf_counter()
            if arrays is None:
                (optimised,) = executable.hlo_modules()
                return Answer(compile=ready - begin, optimised=optimised.to_string(style))
            buffers = [jax.device_put(array, devices[0]) for array in arrays]
            results = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
            outputs = tuple(np.array(shards[0]) for shards in results)
        except (RuntimeError, ValueError, TypeError) as error:  # jaxlib's own are RuntimeErrors
            return Answer(error=str(error))
        return Answer(outputs, None, None, ready - begin, time.perf_counter() - ready)

    yield answer


class XLA:
    """Compile and run programs with XLA in worker processes; use it in ``with``.

    Tuple parameters and results are passed as their elements. ``memory`` limits a process, in
    bytes.
    """

    name = "XLA:CPU"

    def __init__(self, timeout: float = 60.0, memory: int = 16 << 30) -> None:
        made = partial(client_runner, os.environ.get("XLA_FLAGS"))
        pool = WorkerPool(made, seconds=timeout, memory=memory, preload=_PRELOAD, stacks=True)
        self._process = Isolated(pool)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.close()

    def optimised(self, text: str) -> Answer:
        """Compile one program; the answer has its text after all passes."""
        return self._asked(text, None)

    def __call__(self, text: str, arrays: Sequence[Array]) -> Answer:
        """Compile and run one program."""
        return self._asked(text, arrays)

    def without(self, hlo_pass: str) -> Callable[[str, Sequence[Array]], Answer]:
        """Return a peer like this one that leaves out the pass with this name."""
        return self.by((("xla_disable_hlo_passes", hlo_pass),))

    def by(self, options: Options) -> Callable[[str, Sequence[Array]], Answer]:
        """Return a peer like this one with further options in XLA_FLAGS."""
        return lambda text, arrays: self._asked(text, arrays, options)

    def parsed(self, text: str) -> Answer:
        """Parse a text: the answer has neither an error nor a crash if it is a module."""
        return self._asked(text, None, (), True)

    def _asked(
        self,
        text: str,
        arrays: Sequence[Array] | None,
        options: Options = (),
        parse_only: bool = False,
    ) -> Answer:
        if not parse_only and loses_layouts(text):
            return Answer(error=LOST)
        outcome = self._process(text, arrays, options, parse_only)
        if isinstance(outcome, Result):
            return outcome.value
        return Answer(crash=described(outcome))

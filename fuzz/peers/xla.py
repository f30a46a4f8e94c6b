"""Run XLA's CPU compiler through jaxlib: from HLO text to results."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

import numpy as np

from fuzz.peers.crash import failed_check
from fuzz.worker_pool import Death, Outcome, Result, WorkerPool, stack
from hlo.values import Array

# With SciPy's, in which LAPACK is: half of the time that a process takes to begin.
_PRELOAD = (
    *(__name__, "jax", "jax.extend.backend", "jaxlib._hlo", "jaxlib._jax", "jaxlib.lapack"),
    *("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"),
)

_FATAL = re.compile(r"F\d{4} ")  # as XLA's log marks what ended the process

Options = tuple[tuple[str, str | int | bool], ...]  # of XLA_FLAGS, for one compilation

# Functions to blame for a crash: the compiler's own, but for those that only look at what they get,
# and those of no class, which hand it on. Of what a rewriting pattern calls, that.
_LOOK = (
    "Shape|ShapeUtil|ShapeInference|XlaBuilder|IntegerAttr|DenseElementsAttr|primitive_util|detail"
)
_OWN = re.compile(
    rf"(xla|mlir)::(?!({_LOOK})::|\w+(\(\w+\))?\Z)([\w:]+?Pattern(?=::)|.+)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A peer's answer to a program. One of ``outputs`` (its arrays, in order, tuples opened),
    ``error`` (it refuses) and ``crash`` is there; or ``optimised``, its text instead of results.
    Times are in seconds."""

    outputs: tuple[Array, ...] | None = None
    error: str | None = None
    crash: str | None = None
    compile: float = 0.0
    run: float = 0.0
    optimised: str | None = None


@contextmanager
def opened(flags: str | None) -> Iterator[Callable[..., Answer]]:
    """The function of one process: its client is made once, with ``flags`` as XLA_FLAGS, which the
    server of all processes was begun with others of."""
    os.environ.pop("XLA_FLAGS", None)
    if flags is not None:
        os.environ["XLA_FLAGS"] = flags
    import jax
    import jax.extend.backend
    from jaxlib import _hlo, _jax, lapack, xla_client  # type: ignore[attr-defined]

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]  # f64 arguments stay f64
    lapack._lapack.initialize()  # type: ignore[attr-defined]  # or LAPACK's custom calls crash
    client = jax.extend.backend.get_backend("cpu")
    style = _hlo.HloPrintOptions()
    style.print_large_constants = True
    devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))

    def answer(
        text: str, arrays: Sequence[Array] | None, options: Options = (), parse_only: bool = False
    ) -> Answer:
        begin = time.perf_counter()
        try:
            module = _hlo.hlo_module_from_text(text)
            if parse_only:
                return Answer(compile=time.perf_counter() - begin, optimised="")
            proto = module.as_serialized_hlo_module_proto()
            program = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
            settings = xla_client.CompileOptions()
            settings.env_option_overrides = list(options)
            executable = client.compile_and_load(program, devices, settings)
            compiled = time.perf_counter()
            if arrays is None:
                (optimised,) = executable.hlo_modules()
                return Answer(compile=compiled - begin, optimised=optimised.to_string(style))
            buffers = [jax.device_put(array, devices[0]) for array in arrays]
            results = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
            outputs = tuple(np.array(shards[0]) for shards in results)
        except (RuntimeError, ValueError, TypeError) as error:  # jaxlib's own are RuntimeErrors
            return Answer(error=str(error))
        return Answer(outputs, None, None, compiled - begin, time.perf_counter() - compiled)

    yield answer


class XLA:
    """Processes that compile and run with XLA; use it in ``with``. Parameters and results that are
    tuples are passed as their elements. ``memory`` limits a process, in bytes."""

    name = "XLA:CPU"

    def __init__(self, timeout: float = 60.0, memory: int = 16 << 30) -> None:
        self._failing: set[str] = set()  # checks that fail in new processes, too
        made = partial(opened, os.environ.get("XLA_FLAGS"))
        self._pool = WorkerPool(made, seconds=timeout, memory=memory, preload=_PRELOAD, stacks=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.close()

    def optimised(self, text: str) -> Answer:
        """Compile one program: what it is after all passes."""
        return self._asked(text, None)

    def __call__(self, text: str, arrays: Sequence[Array]) -> Answer:
        """Compile and run one program."""
        return self._asked(text, arrays)

    def without(self, hlo_pass: str) -> Callable[[str, Sequence[Array]], Answer]:
        """Return what compiles and runs one program without a pass of this name."""
        return self.by((("xla_disable_hlo_passes", hlo_pass),))

    def by(self, options: Options) -> Callable[[str, Sequence[Array]], Answer]:
        """Return what compiles and runs one program by options of XLA_FLAGS."""
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
        """A process that dies may have been damaged by the program before: what counts is what a
        new one does, unless a check failed that fails in new ones, too."""
        outcome = self._pool(text, arrays, options, parse_only)
        answer = _answer(outcome)
        if isinstance(outcome, Result) or outcome.limit is not None:
            return answer
        if failed_check(answer.crash or "") in self._failing:
            return answer
        answer = _answer(self._pool(text, arrays, options, parse_only))
        check = failed_check(answer.crash or "")
        self._failing.update(() if check is None else (check,))
        return answer


def _answer(outcome: Outcome[Answer]) -> Answer:
    return outcome.value if isinstance(outcome, Result) else Answer(crash=_described(outcome))


def _described(death: Death) -> str:
    """Describe a crash: its cause, the fatal line of XLA's log, and the function to blame."""
    fatal = [line for line in death.lines if _FATAL.match(line)] or death.lines
    crash = ": ".join((death.cause, *fatal[-1:]))
    where = stack.place(death.frames, _OWN)
    return crash if where is None else f"{crash} in {where}"

"""Run cases on the plugin and on XLA:CPU in one process, a worker of the pool."""

from __future__ import annotations

import logging
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from selftest.jax_score.outcomes import FAILED, PASSED, REFUSED, SKIPPED, Outcome

_LOGGER = "hlo_oracle.frontends.pjrt.programs"
_BETWEEN = 200  # cases, then JAX's caches are emptied
_LONGEST = 300  # characters of a reason


@contextmanager
def case_runner(mode: str, x64: bool) -> Iterator[Callable[..., Any]]:
    """Start JAX with both platforms. Yield a function that lists the cases, each as (group, name),
    or runs the case of a number in the list."""
    os.environ.update(JAX_PLATFORMS="hlo_oracle,cpu", HLO_ORACLE_MODE=mode)
    warnings.simplefilter("ignore")
    import jax

    jax.config.update("jax_enable_x64", x64)  # type: ignore[no-untyped-call]
    from selftest.jax_score.cases import cases

    examiner = Examiner(list(cases()), x64)
    logging.getLogger(_LOGGER).addHandler(examiner)
    yield examiner


class Examiner(logging.Handler):
    """Runs cases by number; as a logging handler it notes which programs are interpreted."""

    def __init__(self, cases: Sequence[Any], x64: bool) -> None:
        super().__init__()
        self._cases, self._x64 = cases, x64
        self._interpreted: list[str] = []
        self._ran = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Note why a program is interpreted, from the log record."""
        self._interpreted.append(record.getMessage())

    def __call__(self, number: int | None = None) -> Any:
        if number is None:
            return [(case.group, case.name) for case in self._cases]
        self._interpreted.clear()
        case, begin = self._cases[number], time.monotonic()
        status, why, legal = self._outcome(case)
        self._ran += 1
        if self._ran % _BETWEEN == 0:
            import jax

            jax.clear_caches()  # type: ignore[no-untyped-call]
        return Outcome(
            *(case.group, case.name, self._x64, status, _shortened(why), legal),
            interpreted=_shortened("; ".join(dict.fromkeys(self._interpreted))),
            seconds=round(time.monotonic() - begin, 2),
        )

    def _outcome(self, case: Any) -> tuple[str, str, str]:
        """Return the status, the reason, and the verdict on values that differ."""
        import jax

        from selftest.jax_score.comparison import difference, legality

        if case.skipped:
            return SKIPPED, case.skipped, ""
        ours, cpu = (jax.devices(name)[0] for name in ("hlo_oracle", "cpu"))
        call, arguments = case.function(), case.arguments(_random(case.name))
        try:
            with jax.default_device(cpu):
                wanted = _ready(call(*arguments))
        except Exception as error:  # of JAX, for what it does not take
            return SKIPPED, f"XLA:CPU: {_told(error)}", ""
        try:
            with jax.default_device(ours):
                found = _ready(call(*arguments))
        except Exception as error:
            text = _told(error)
            is_refused = isinstance(error, NotImplementedError) or "UNIMPLEMENTED" in text
            return (REFUSED if is_refused else FAILED), text, ""
        why, is_of_values = difference(found, wanted, case.tolerance)
        if not why:
            return PASSED, "", ""
        return FAILED, why, legality(call, arguments) if is_of_values else ""


def _ready(results: Any) -> Any:
    import jax

    return jax.block_until_ready(results)  # type: ignore[no-untyped-call]


def _random(name: str) -> Any:
    """Return the generator that JAX's tests know by a name."""
    import numpy as np

    return np.random.RandomState(zlib.adler32(name.encode()))


def _told(error: Exception) -> str:
    """Format an error; a defect of this project with the place where it was raised."""
    return f"{type(error).__name__}: {error}".partition('\nFile "')[0]


def _shortened(text: str) -> str:
    """Shorten a reason to one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"

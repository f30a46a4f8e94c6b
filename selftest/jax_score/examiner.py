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

from selftest.jax_score.table import SKIPPED
from selftest.scoring.outcomes import FAILED, PASSED, REFUSED, Outcome, shortened, told

_LOGGER = "hlo_oracle.frontends.pjrt.programs"
_BETWEEN = 200  # cases, then JAX's caches are emptied


@contextmanager
def case_runner(mode: str, setting: str) -> Iterator[Callable[..., Any]]:
    """Start JAX with both platforms, in the setting ``x64`` or ``x32``. Yield a function that lists
    the cases, each as (group, name), or runs the case of a name."""
    os.environ.update(JAX_PLATFORMS="hlo_oracle,cpu", HLO_ORACLE_MODE=mode)
    warnings.simplefilter("ignore")
    import jax

    jax.config.update("jax_enable_x64", setting == "x64")  # type: ignore[no-untyped-call]
    from selftest.jax_score.cases import cases

    examiner = Examiner(list(cases()), setting)
    logging.getLogger(_LOGGER).addHandler(examiner)
    yield examiner


class Examiner(logging.Handler):
    """Runs cases by name; as a logging handler it notes which programs are interpreted."""

    def __init__(self, cases: Sequence[Any], setting: str) -> None:
        super().__init__()
        self._names = [(case.group, case.name) for case in cases]
        self._cases = dict(zip(self._names, cases, strict=True))
        self._setting = setting
        self._interpreted: list[str] = []
        self._ran = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Note why a program is interpreted, from the log record."""
        self._interpreted.append(record.getMessage())

    def __call__(self, group: str = "", name: str = "") -> Any:
        if not group:
            return self._names
        self._interpreted.clear()
        case, begin = self._cases[group, name], time.monotonic()
        status, why, legal = self._outcome(case)
        self._ran += 1
        if self._ran % _BETWEEN == 0:
            import jax

            jax.clear_caches()  # type: ignore[no-untyped-call]
        return Outcome(
            *(case.group, case.name, self._setting, status, shortened(why), legal),
            interpreted=shortened("; ".join(dict.fromkeys(self._interpreted))),
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
            return SKIPPED, f"XLA:CPU: {told(error)}", ""
        try:
            with jax.default_device(ours):
                found = _ready(call(*arguments))
        except Exception as error:
            text = told(error)
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

"""Run cases as C and by eager PyTorch in one process, a worker of the pool."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from hlo.errors import Unsupported
from selftest.scoring.outcomes import FAILED, PASSED, REFUSED, Outcome, shortened, told
from selftest.torch_score import unspecified
from selftest.torch_score.table import DATA, EAGER, RANDOM, SPARSE, UNSPECIFIED

if TYPE_CHECKING:
    from selftest.torch_score.cases import Call

_IS_UNWRITTEN = "reads memory that nothing has written"
_IS_RANDOM = "reads torch's generator of random numbers"
# Raised where a trace without numbers needs one: classes by name, some of modules that PyTorch does
# not promise.
_OF_DATA = ("DataDependentOutputException", "DynamicOutputShapeException", "GuardOnDataDependent")


@contextmanager
def case_runner(mode: str, type_name: str) -> Iterator[Callable[..., Any]]:
    """Import PyTorch. Yield a function that lists the cases of an element type, each as (group,
    name), or runs the case of a name."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    yield Examiner(mode, type_name)


class Examiner:
    """Runs cases of an element type by name."""

    def __init__(self, mode: str, type_name: str) -> None:
        self._mode, self._type = mode, type_name

    def __call__(self, group: str = "", name: str = "") -> Any:
        from selftest.torch_score import cases

        if not group:
            return list(cases.names(self._type))
        begin = time.monotonic()
        status, why, legal = self._outcome(group, name)
        seconds = round(time.monotonic() - begin, 2)
        return Outcome(*(group, name, self._type, status, shortened(why), legal), seconds=seconds)

    def _outcome(self, group: str, name: str) -> tuple[str, str, str]:
        """Return the status, the reason, and the verdict on values that differ."""
        from selftest.torch_score import cases

        draw = partial(cases.drawn, group, name, self._type)
        try:
            call = draw()
            wanted = call.results(call.function)
        except Exception as error:  # of PyTorch, for what it does not take
            return EAGER, told(error), ""
        if not cases.is_dense([*call.tensors, *wanted]):
            return SPARSE, "", ""
        return self._compared(group, draw, wanted)

    def _compared(
        self, group: str, draw: Callable[[], Call], wanted: Sequence[Any]
    ) -> tuple[str, str, str]:
        import torch

        from selftest.torch_score import cases, comparison, conversions

        try:
            found, reasons = conversions.results(draw(), self._mode)
        except Exception as error:  # of PyTorch's trace, or of this project
            return _status(error), told(error), ""
        tolerance = comparison.tolerance_of(cases.operation_of(group), getattr(torch, self._type))
        why, is_of_values = comparison.difference(found, wanted, tolerance)
        if is_of_values and (open_ := unspecified.table().get(group)):
            left_out = [n for n, _ in enumerate(wanted) if open_.covers(n)]
            why, is_of_values = comparison.difference(found, wanted, tolerance, left_out)
            if not why:
                return UNSPECIFIED, open_.reason, ""
        if why:
            is_exact = self._mode == conversions.INTERPRETED
            legal = comparison.legality(draw(), found, is_exact=is_exact) if is_of_values else ""
            return FAILED, why, legal
        if any(_IS_RANDOM in reason for reason in reasons):
            return RANDOM, "", ""
        if reasons:
            return REFUSED, "; ".join(dict.fromkeys(reasons)), ""
        return PASSED, "", ""


def _status(error: Exception) -> str:
    """Return the status of a case of which there are no results: PyTorch does not trace it, or this
    project refuses it; or there is a defect."""
    text = f"{type(error).__name__}: {error}"
    if any(name in text for name in _OF_DATA):
        return DATA
    if not isinstance(error, Unsupported):
        return FAILED
    if _IS_RANDOM in text:
        return RANDOM
    return UNSPECIFIED if _IS_UNWRITTEN in text else REFUSED

"""Run cases as C and by eager PyTorch in one process, a worker of the pool."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from selftest.scoring.outcomes import FAILED, PASSED, REFUSED, Outcome, shortened
from selftest.torch_score import unspecified
from selftest.torch_score.table import DATA, EAGER, RANDOM, SPARSE, UNSPECIFIED

if TYPE_CHECKING:
    from selftest.torch_score.cases import Call

_IS_RANDOM = "reads torch's generator of random numbers"
_CHECK = "aten._linalg_check_errors"  # it raises eager's errors, and has no results
# Raised where a trace without numbers needs one: classes by name, some of modules that PyTorch does
# not promise.
_OF_DATA = frozenset(
    ("DataDependentOutputException", "DynamicOutputShapeException", "GuardOnDataDependentSymNode")
)
_SEED = 42  # which PyTorch's records set where an operation draws random numbers


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
            wanted = _results(call, call.function)
        except Exception as error:  # of PyTorch, for what it does not take
            return EAGER, _told(error), ""
        if not cases.is_dense([*call.tensors, *wanted]):
            return SPARSE, "", ""
        return self._compared(group, draw, wanted)

    def _compared(
        self, group: str, draw: Callable[[], Call], wanted: Sequence[Any]
    ) -> tuple[str, str, str]:
        import torch

        from selftest.torch_score import cases, comparison

        try:
            found, reasons = self._compiled(draw())
        except Exception as error:  # of PyTorch's trace, or of this project
            status = DATA if type(error).__name__ in _OF_DATA else FAILED
            return status, _told(error), ""
        tolerance = comparison.tolerance_of(cases.operation_of(group), getattr(torch, self._type))
        why, is_of_values = comparison.difference(found, wanted, tolerance)
        if is_of_values and (open_ := unspecified.table().get(group)):
            left_out = [n for n, _ in enumerate(wanted) if open_.covers(n)]
            why, is_of_values = comparison.difference(found, wanted, tolerance, left_out)
            if not why:
                return UNSPECIFIED, open_.reason, ""
        if why and is_of_values:
            judged = draw()
            function = partial(_results_of, judged)
            return FAILED, why, comparison.legality(function, judged.tensors, lambda: found)
        if why:
            return FAILED, why, ""
        if any(_IS_RANDOM in reason for reason in reasons):
            return RANDOM, "", ""
        if reasons:
            return REFUSED, "; ".join(dict.fromkeys(reasons)), ""
        return PASSED, "", ""

    def _compiled(self, call: Call) -> tuple[list[Any], list[str]]:
        """Return the results of a call as C, and why PyTorch runs operations of it, if it does."""
        import torch

        from hlo_oracle.frontends.torch import graph_compiler
        from hlo_oracle.frontends.torch.compiled_stages import Options
        from hlo_oracle.frontends.torch.explanation import History

        class Module(torch.nn.Module):  # type: ignore[misc]  # Any without torch
            def forward(self, *tensors: Any) -> Any:
                return call.function(*tensors)

        history = History(bound=256)
        options = Options(numerics=self._mode, threads=1)
        compiler = graph_compiler.compiler(options, history, least=0)
        compiled = compiler(Module(), call.tensors)
        results = _results(call, compiled)
        reasons = [f"{node.op}: {node.why}" for node in history.explanation().eager]
        return results, [reason for reason in reasons if _CHECK not in reason]


def _results_of(call: Call, *tensors: Any) -> list[Any]:
    from selftest.torch_score.cases import Call

    return _results(Call(call.function, tensors, call.is_gradient), call.function)


def _results(call: Call, function: Callable[..., Any]) -> list[Any]:
    """Call a function on the tensors of a call. Return its results, their gradients if these are to
    be taken, and the tensors, which it may have written."""
    import torch

    torch.manual_seed(_SEED)
    results = list(function(*call.tensors))
    gradients = _gradients(call, results) if call.is_gradient else []
    return [x.detach() for x in (*results, *gradients, *call.tensors)]


def _gradients(call: Call, results: Sequence[Any]) -> list[Any]:
    import torch

    differentiable = [x for x in results if x.requires_grad]
    cotangents = [_cotangent(x) for x in differentiable]
    sources = [x for x in call.tensors if x.requires_grad]
    found = torch.autograd.grad(differentiable, sources, cotangents, allow_unused=True)
    return [torch.zeros_like(x) if d is None else d for x, d in zip(sources, found)]


def _cotangent(x: Any) -> Any:
    """Return numbers of a tensor's shape and type, in equal steps: no random ones, which a judge
    would refuse."""
    import torch

    ends = (-1 + 1j, 2 - 3j) if x.dtype.is_complex else (-1, 2)
    return torch.linspace(*ends, x.numel(), dtype=x.dtype).reshape(x.shape)


def _told(error: Exception) -> str:
    """Format an error; a defect of this project with the place where it was raised."""
    return f"{type(error).__name__}: {error}".partition('\nFile "')[0]

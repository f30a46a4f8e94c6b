"""Compute calls by this project: as torch.compile compiles graphs, or as ``ho.check`` judges
functions."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

import hlo
import interp
from hlo_oracle.frontends.torch import functions, graph_compiler
from hlo_oracle.frontends.torch.compiled_stages import Options
from hlo_oracle.frontends.torch.explanation import History
from hlo_oracle.frontends.torch.tensors import tensor_of
from selftest.torch_score.cases import Call

INTERPRETED = "interp"
_CHECK = "aten._linalg_check_errors"  # it raises eager's errors, and has no results


def results(call: Call, mode: str) -> tuple[list[Any], list[str]]:
    """Return the results of a call in a mode: the numerics of C, or ``interp``; and why PyTorch
    runs operations of it, if it does. Raises whatever PyTorch or this project raises."""
    return _interpreted(call) if mode == INTERPRETED else _compiled(call, mode)


def _compiled(call: Call, numerics: str) -> tuple[list[Any], list[str]]:
    """Compile a call with stages of single operations, and of views, too."""

    class Module(torch.nn.Module):  # type: ignore[misc]  # Any without torch
        def forward(self, *tensors: Any) -> Any:
            return call.function(*tensors)

    history = History(bound=256)
    compiler = graph_compiler.compiler(Options(numerics=numerics, threads=1), history, least=0)
    found = call.results(compiler(Module(), call.tensors))
    reasons = [f"{node.op}: {node.why}" for node in history.explanation().eager]
    return found, [reason for reason in reasons if _CHECK not in reason]


def _interpreted(call: Call) -> tuple[list[Any], list[str]]:
    """Lower a call to a program and interpret it; one whose sizes depend on data for these data."""
    traced = functions.lower(partial(call.results_of, call.function), call.tensors, {})
    value = interp.evaluate(hlo.parse(traced.text), *traced.arrays)
    arrays = value if isinstance(value, tuple) else (value,)
    count = len(arrays) - (0 if traced.reads is None else len(traced.reads.tensors))
    return [tensor_of(x) for x in arrays[:count]], []

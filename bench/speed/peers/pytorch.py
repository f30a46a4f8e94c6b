"""PyTorch on programs written for it: eager, or compiled by ``torch.compile``."""

from __future__ import annotations

import time
from functools import cache
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from bench.speed.peers.subject import Compiled, Question, Subject
from hlo.types import ArrayShape, array_leaves
from hlo.values import Array


def ready(question: Question, compiled: bool) -> Subject:
    """Prepare the PyTorch program of the question's name; its HLO text is not used."""
    torch: Any = import_module("torch")
    program = import_module("bench.torch_programs").PROGRAMS[question.name]
    if question.threads is not None:
        torch.set_num_threads(question.threads)
    torch.set_grad_enabled(False)
    tensors = program.prepared([tensor(torch, array) for array in question.arrays()])
    function = program.function
    version = f"torch {torch.__version__}"
    times = Compiled(0.0, None, version)
    if compiled:
        function, cold, cached = _compiled(torch, question, program.function, tensors)
        times = Compiled(cold, cached, version)
    shapes = [*array_leaves(question.module().entry.root_instruction.shape)]

    def arrays(result: Any) -> list[Array]:
        results = result if isinstance(result, tuple) else (result,)
        return [_array(torch, one, shape) for one, shape in zip(results, shapes, strict=True)]

    return Subject(lambda: function(*tensors), arrays, times)


def _compiled(
    torch: Any, question: Question, function: Any, tensors: Any
) -> tuple[Any, float, float]:
    """Compile a function, and again from the cache on disk; return it with the seconds of both,
    less those of a call."""
    seconds = []
    for _ in range(question.compilations):
        torch._dynamo.reset()
        made = torch.compile(function, dynamic=False)
        begin = time.perf_counter()
        made(*tensors)
        seconds.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    made(*tensors)
    call = time.perf_counter() - begin
    return made, max(0.0, seconds[0] - call), max(0.0, seconds[-1] - call)


def tensor(torch: Any, array: Array) -> Any:
    array = np.array(array)  # writable
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(torch: Any, tensor: Any, shape: ArrayShape) -> Array:
    """Convert a result to an array; indices, which PyTorch has in 64 bits, to the program's
    type."""
    tensor = tensor.contiguous()
    if tensor.dtype == torch.bfloat16:
        found: Array = tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return found
    array: Array = tensor.numpy()
    return array.astype(shape.element_type.numpy) if array.dtype.kind == "i" else array


@cache
def eager_programs() -> frozenset[str]:
    """List the programs that are written for PyTorch."""
    return frozenset(import_module("bench.torch_programs").PROGRAMS)


@cache
def compiled_programs() -> frozenset[str]:
    """List the programs that ``torch.compile`` can compile."""
    programs = import_module("bench.torch_programs").PROGRAMS
    return frozenset(name for name, program in programs.items() if program.compiled)

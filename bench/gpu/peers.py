"""Measure other compilers on the GPU: XLA through JAX from the same HLO, PyTorch on the same
programs as its users write them."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from bench.gpu import clock, programs
from bench.speed.peers.pytorch import tensor
from bench.speed.peers.xla import jitted
from hlo.errors import Unsupported
from hlo.values import arrays_of


def xla(name: str) -> float:
    """Measure a program by JAX on its default device, in milliseconds."""
    # XLA's memory is shared with what else is measured.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax: Any = import_module("jax")
    jax.config.update("jax_enable_x64", True)  # f64 stays f64
    text = programs.text(name, emulated=False)
    function, module = jitted(text), programs.module(name, emulated=False)
    arrays = [jax.device_put(array) for array in arrays_of(programs.arguments(name, module))]
    results: list[Any] = [None]

    def enqueue() -> None:
        results[0] = function(*arrays)

    return clock.milliseconds(enqueue, lambda: jax.block_until_ready(results[0]))


def eager(name: str) -> float:
    """Measure a program by eager PyTorch, in milliseconds."""
    return _torch(name, compiled=False)


def inductor(name: str) -> float:
    """Measure a program by torch.compile, in milliseconds."""
    return _torch(name, compiled=True)


def _torch(name: str, compiled: bool) -> float:
    torch: Any = import_module("torch")
    known = import_module("bench.torch_programs").PROGRAMS
    if name not in known or (compiled and not known[name].compiled):
        raise Unsupported("not written for it")
    program, module = known[name], programs.module(name, emulated=False)
    torch.set_grad_enabled(False)
    torch.set_default_device("cuda")
    given = [
        tensor(torch, np.asarray(a)).cuda() for a in arrays_of(programs.arguments(name, module))
    ]
    tensors, function = program.prepared(given), program.function
    if compiled:
        function = torch.compile(function, dynamic=False)
    return clock.milliseconds(lambda: function(*tensors), torch.cuda.synchronize)


PEERS: dict[str, Callable[[str], float]] = {"xla": xla, "eager": eager, "inductor": inductor}

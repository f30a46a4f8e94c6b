"""The public API: load a program, check a result, run, compile and emit.

    import hlo_oracle as ho

    verdict = ho.check(f, x, y)          # a JAX function on your device: is the result legal?
    with ho.checking(every=100): ...     # so is everything that JAX computes in here
    with ho.record("calls"): ...         # to be judged on another machine: hlo check calls
    module = ho.load("module_0001.jit_f.before_optimizations.txt")
    right = ho.run(module, x, y)         # the exact result, each operation rounded once
    executable = ho.compile(module)      # fast C; executable(x, y)
    fast = ho.jit(f)                     # a JAX function as C: fast(x, y)
    fast = ho.tensorflow.jit(f)          # a function of TensorFlow as C
    print(ho.torch.explain())            # what became of torch.compile(model, backend="hlo_oracle")
    page = ho.explain(f, x, y)           # graph, kernels, C, memory: page.write("f.html")
    files = ho.emit(module, "embedded")  # C99 to take along

It holds no logic of its own; each name is imported from its module on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlo.errors import Error
    from hlo_oracle.compiled_functions import jit
    from hlo_oracle.explaining import explain
    from hlo_oracle.frontends import tensorflow, torch
    from hlo_oracle.function_check import check
    from hlo_oracle.loading.objects import load
    from hlo_oracle.recording import record
    from hlo_oracle.running import compile, emit, run
    from hlo_oracle.verdicts import Verdict
    from hlo_oracle.watching import Miscompile, MiscompileWarning, checking

_HOMES = {
    "Error": "hlo.errors",
    "Verdict": "hlo_oracle.verdicts",
    "check": "hlo_oracle.function_check",
    "checking": "hlo_oracle.watching",
    "Miscompile": "hlo_oracle.watching",
    "MiscompileWarning": "hlo_oracle.watching",
    "compile": "hlo_oracle.running",
    "emit": "hlo_oracle.running",
    "explain": "hlo_oracle.explaining",
    "jit": "hlo_oracle.compiled_functions",
    "load": "hlo_oracle.loading.objects",
    "record": "hlo_oracle.recording",
    "run": "hlo_oracle.running",
}

_MODULES = {
    "tensorflow": "hlo_oracle.frontends.tensorflow",
    "torch": "hlo_oracle.frontends.torch",
}

__all__ = [
    "Error",
    "Miscompile",
    "MiscompileWarning",
    "Verdict",
    "__version__",
    "check",
    "checking",
    "compile",
    "emit",
    "explain",
    "jit",
    "load",
    "record",
    "run",
    "tensorflow",
    "torch",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _version()
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # which takes 20 ms

    try:
        return version("hlo-oracle")
    except PackageNotFoundError:  # a checkout that is not installed
        return "0+unknown"


def __dir__() -> list[str]:
    return __all__

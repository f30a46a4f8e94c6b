"""Run PyTorch's models on this backend: ``torch.compile(model, backend="hlo_oracle")``.

    torch.compile(model, backend="hlo_oracle")   # also with options={"numerics": "exact"}
    print(ho.torch.explain())                    # what became C so far, and what did not, and why
    print(ho.torch.explain(model, x))            # the same of one call

PyTorch names the backend by an entry point, so nothing of this has to be imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hlo_oracle.required_packages import require_package, require_version

if TYPE_CHECKING:
    from hlo_oracle.frontends.torch.explanation import Explanation
    from hlo_oracle.frontends.torch.functions import TracedFunction

__all__ = ["backend", "explain", "lowered"]

_LEAST = 2, 8  # of PyTorch, as the extra says


def backend(module: Any, inputs: Sequence[Any], **named: Any) -> Callable[..., Any]:
    """Compile a graph of TorchDynamo: what the entry point ``torch_dynamo_backends`` names."""
    _require()
    from hlo_oracle.frontends.torch import graph_compiler

    return graph_compiler.compiled_module(module, inputs, **named)


def explain(
    function: Callable[..., Any] | None = None, *arguments: Any, **named: Any
) -> Explanation:
    """Report which operations of a function or a model become C, which PyTorch runs instead, and
    why.

    It is compiled anew and called once with ``arguments``; ``options`` are those of torch.compile.
    Without a function: the graphs that this process compiled last, 256 at most.
    """
    _require()
    from hlo_oracle.frontends.torch import graph_compiler

    return graph_compiler.explain(function, *arguments, **named)


def lowered(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> TracedFunction | None:
    """Lower a function and its arguments to a program if it is a module of PyTorch or takes its
    tensors; else None. PyTorch is not imported for the test: whoever has a tensor did."""
    if "torch" not in sys.modules:
        return None
    from hlo_oracle.frontends.torch import functions

    if not functions.is_torch(function, arguments, keywords):
        return None
    require_version("to judge PyTorch", "torch", "torch", _LEAST)
    return functions.lower(function, arguments, keywords)


def _require() -> None:
    what = "to compile PyTorch's graphs"
    for package in ("torch", "jax"):
        require_package(what, package, "torch")
    require_version(what, "torch", "torch", _LEAST)

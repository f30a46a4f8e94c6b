"""Decompose operations of lists of tensors (``_foreach_*``), which optimizers and the clipping of
gradients use: each is one operation for each tensor, as PyTorch runs them on CPUs, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

_SAME = (
    "abs", "acos", "add", "addcdiv", "addcmul", "asin", "atan", "ceil", "clamp_max", "clamp_min",
    "clone", "copy", "cos", "cosh", "div", "erf", "erfc", "exp", "expm1", "floor", "frac", "lerp",
    "lgamma", "log", "log10", "log1p", "log2", "maximum", "minimum", "mm", "mul", "neg", "pow",
    "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub", "tan", "tanh",
    "trunc",
)  # fmt: skip
_NAMES = {name: name for name in _SAME} | {
    "max": "amax", "norm": "linalg_vector_norm", "zero": "zeros_like",
}  # fmt: skip
# Of a tensor and a number these have other names.
_WITH_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}
_LISTS = ("List[Tensor]", "List[number]")  # types of arguments that have one element for each
# Arguments that the operations of single tensors take by name; those of two by another one.
_BY_NAME = {"alpha": "alpha", "dtype": "dtype", "memory_format": "memory_format",
            "value": "value", "scalars": "value"}  # fmt: skip


def _each(overload: Any, name: str) -> Callable[..., Any]:
    """Make the decomposition of an overload of the operation on lists of a name."""
    schema = overload._schema
    is_of_numbers = any(str(x.type) in ("number", "List[number]") for x in schema.arguments[1:])
    known = _WITH_NUMBERS if is_of_numbers else {}
    operation = getattr(torch.ops.aten, known.get(name, _NAMES[name]))
    lists = {x.name for x in schema.arguments if str(x.type) in _LISTS}
    by_name = _BY_NAME if name.startswith("addc") else {**_BY_NAME, "scalars": None}

    def decomposed(*arguments: Any, **named: Any) -> Any:
        names = (x.name for x in schema.arguments)
        given = {**dict(zip(names, arguments, strict=False)), **named}
        if isinstance(given.get("scalars"), torch.Tensor):
            return NotImplemented  # factors that are data
        results = []
        for n in range(len(next(filter(_is_tensors, given.values())))):
            own = {key: x[n] if key in lists else x for key, x in given.items()}
            keywords = {to: own[key] for key, to in by_name.items() if to and key in own}
            rest = [x for key, x in own.items() if by_name.get(key) is None]
            results.append(operation(*rest, **keywords))
        return results

    return decomposed


def _is_tensors(value: Any) -> bool:
    return isinstance(value, Sequence) and all(isinstance(x, torch.Tensor) for x in value)


def _table() -> Iterator[tuple[Any, Callable[..., Any]]]:
    for name in _NAMES:
        packet = getattr(torch.ops.aten, f"_foreach_{name}", None)
        for overload in packet.overloads() if packet else ():
            operation = getattr(packet, overload)
            if not any(x.is_out for x in operation._schema.arguments):
                yield operation, _each(operation, name)


TABLE: dict[Any, Callable[..., Any]] = dict(_table())

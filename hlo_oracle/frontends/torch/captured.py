"""Find the tensors that a function uses without having been given them, while it is traced: those
that it writes are parameters of its program, the others constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._functorch.eager_transforms import enable_inplace_requires_grad
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree


class Capturing(TorchFunctionMode):  # type: ignore[misc]  # Any without torch
    """Have operations take others in place of tensors that are not traced: the given ones, by
    identity, and copies of the rest, so that a trace never writes what is the user's. ``traced``
    are the tensors that a trace begins with, which may be plain ones."""

    def __init__(self, replacements: Sequence[tuple[Any, Any]], traced: Sequence[Any] = ()) -> None:
        super().__init__()
        # Both sides are kept alive, so that no identity is used again.
        self._given = {id(x): (x, y) for x, y in replacements}
        self._copies: dict[int, tuple[Any, Any]] = {}
        self._originals = {id(y): x for x, y in replacements}
        self._made: dict[int, Any] = {id(x): x for x in traced}
        self._used: set[int] = set()  # of the replacements

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (),
        keywords: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Call an operation on the replacements of its arguments."""
        if torch.compiler.is_dynamo_compiling():
            # The branches of a torch.cond are read here, and run afterwards.
            return function(*arguments, **(keywords or {}))
        found = self.replaced((arguments, dict(keywords or {})))
        result = function(*found[0], **found[1])
        # ``x += 1`` binds a name to the result: it must stay the user's tensor.
        if id(result) in self._originals:
            return self._originals[id(result)]
        self._made.update((id(x), x) for x in _pytree.tree_leaves(result))
        return result

    def replaced(self, values: Any) -> Any:
        """Replace tensors among values, which may be nested."""
        return _pytree.tree_map(self._replaced, values)

    def _replaced(self, x: Any) -> Any:
        pair = self._given.get(id(x)) or self._copies.get(id(x))
        if pair is not None:
            self._used.add(id(x))
            return pair[1]
        if id(x) in self._made or not _is_plain(x):
            return x
        # Inside of torch.func.grad, too, the copy is one of the user's level.
        with torch._C._DisableFuncTorch(), enable_inplace_requires_grad(True):
            copy = x.detach().clone().requires_grad_(x.requires_grad)
        self._copies[id(x)] = x, copy
        self._originals[id(copy)] = x
        return copy

    def uses_given(self) -> bool:
        """Test whether an operation took any of the replacements."""
        return not self._used.isdisjoint(self._given)

    def captured(self) -> list[Any]:
        """List the tensors that were copied, in the order of first use."""
        return [x for x, _ in self._copies.values()]

    def written(self) -> list[Any]:
        """List the tensors whose copies were written, in the order of first use."""
        with torch._C.DisableTorchFunction():
            return [x for x, copy in self._copies.values() if copy._version]


def _is_plain(x: Any) -> bool:
    """Test for a tensor that holds numbers: traced ones, and those of torch.func, stand for
    others."""
    return type(x) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) and not (
        torch._C._functorch.is_functorch_wrapped_tensor(x)
    )

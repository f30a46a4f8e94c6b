"""Follow what a function reads of its tensors as Python numbers while it is traced: its path, and
the constants of its program, depend on them.

A trace of such a function holds for the numbers that it read. So the run that is judged must read
the same, and each number is judged like a result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from hlo.errors import Error, Unsupported
from hlo.values import Array
from hlo_oracle.frontends.torch.tensors import array_of

_NUMBER = "aten._local_scalar_dense.default"  # item, bool, int, float
_NUMBERS = frozenset(
    getattr(torch.Tensor, name)
    for name in ("item", "__bool__", "__complex__", "__float__", "__index__", "__int__")
)
# They hand out all elements at once, without an operation that a trace sees.
_ELEMENTS = frozenset(
    getattr(torch.Tensor, name)
    for name in ("tolist", "numpy", "__array__", "__dlpack__", "data_ptr", "storage")
)


class Reads(TorchDispatchMode):  # type: ignore[misc]  # Any without torch
    """Record the numbers that operations give while this mode is on, and the tensors of one element
    that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[tuple[str, bool | int | float | complex]] = []
        self.tensors: list[Any] = []
        self._versions: list[int] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Sequence[Any] = (),
        keywords: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Call an operation, and record its result if it is a number."""
        result = function(*arguments, **(keywords or {}))
        if isinstance(result, bool | int | float | complex):
            self.numbers.append((str(function), result))
            if str(function) == _NUMBER:
                self.tensors.append(arguments[0])
                self._versions.append(_version(arguments[0]))
        return result

    def require_unwritten(self) -> None:
        """Raise Unsupported if a tensor was written after it was read: it is no longer what was
        read."""
        if self._versions != list(map(_version, self.tensors)):
            raise Unsupported(
                "a number is read of a tensor that is written later: no program to judge by"
            )

    def copies(self) -> list[Array]:
        """Return the numbers of :attr:`tensors` as arrays without dimensions."""
        found = [number for name, number in self.numbers if name == _NUMBER]
        pairs = zip(found, self.tensors, strict=True)
        return [array_of(torch.tensor(x, dtype=tensor.dtype)) for x, tensor in pairs]


def _version(x: Any) -> int:
    return -1 if x.is_inference() else int(x._version)


def require_same(name: str, traced: Reads, ran: Reads) -> None:
    """Raise Error unless a function's run read the numbers that its trace read, to the bit."""
    ours, theirs = ([(op, np.array(x).tobytes()) for op, x in r.numbers] for r in (traced, ran))
    if ours != theirs:
        raise Error(
            f"{name}: its run read other numbers of its tensors than its trace did, so it may have"
            " gone another way: no program to judge by"
        )


class SingleNumbers(TorchFunctionMode):  # type: ignore[misc]  # Any without torch
    """Have numbers be read of copies, as their tensors may be written later, and refuse functions
    that hand out all elements of a tensor to Python, while this mode is on."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (),
        keywords: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Call a function of torch; raise Unsupported for one that hands out elements."""
        if function in _NUMBERS:
            return function(arguments[0].clone(), *arguments[1:], **(keywords or {}))
        if function in _ELEMENTS:
            raise Unsupported(
                f"{function.__name__} reads elements outside of PyTorch: no program to judge by"
            )
        return function(*arguments, **(keywords or {}))

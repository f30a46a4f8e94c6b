"""Write out functions of PyTorch that fill tensors where a trace does not see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

_MEAN, _SUM = 1, 2  # of ATen's reductions
_REDUCTIONS = {"none": 0, "mean": _MEAN, "sum": _SUM}
_PARAMETERS = (
    "log_probs", "targets", "input_lengths", "target_lengths", "blank", "reduction",
    "zero_infinity",
)  # fmt: skip
_DEFAULTS = {"blank": 0, "reduction": "mean", "zero_infinity": False}


class WrittenOut(TorchFunctionMode):  # type: ignore[misc]  # Any without torch
    """Have functions of torch be those written out here while this mode is on."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (),
        keywords: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Call a function, or what is written out for it."""
        return _WRITTEN_OUT.get(function, function)(*arguments, **(keywords or {}))


def _ctc_loss(*arguments: Any, **keywords: Any) -> Any:
    """Compute the loss of each row; their mean takes each by the length of its target, of whose
    list ATen makes a tensor."""
    given = {**_DEFAULTS, **dict(zip(_PARAMETERS, arguments, strict=False)), **keywords}
    log_probs, targets, *lengths = (given[name] for name in _PARAMETERS[:4])
    is_batch = log_probs.dim() == 3
    rows = log_probs if is_batch else log_probs.unsqueeze(1)
    loss = torch._ctc_loss(rows, targets, *lengths, given["blank"], given["zero_infinity"])[0]
    if given["zero_infinity"]:
        loss = torch.where(loss == torch.inf, torch.zeros_like(loss), loss)
    reduction = _REDUCTIONS.get(given["reduction"], given["reduction"])
    if reduction == _MEAN:
        return (loss / _whole(lengths[1], loss)).mean()
    if reduction == _SUM:
        return loss.sum()
    return loss if is_batch else loss.squeeze(0)


def _whole(lengths: Any, loss: Any) -> Any:
    """Return lengths of 1 at least, as numbers of the loss's type."""
    if isinstance(lengths, Sequence):
        parts = [torch.full((1,), max(1, n), dtype=loss.dtype) for n in lengths]
        return torch.cat(parts)
    return lengths.clamp(min=1).to(loss.dtype)


def _pad_packed_sequence(
    data: Any, batch_sizes: Any, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Any, Any]:
    """Lay packed sequences side by side, padded; and return their lengths, which ATen writes by
    address into an empty tensor."""
    with _disable_current_modes():  # ATen reads it by its address, too
        batch = int(batch_sizes[0])
    is_within = torch.arange(batch) < batch_sizes[:, None]
    step, number = torch.nonzero(is_within).unbind(1)
    steps = max(total_length, len(batch_sizes))
    rows = data.new_full((steps * batch, *data.shape[1:]), padding_value)
    padded = rows.index_copy(0, step * batch + number, data)
    padded = padded.reshape(steps, batch, *data.shape[1:])
    return padded.transpose(0, 1) if batch_first else padded, is_within.sum(0)


_WRITTEN_OUT: dict[Any, Callable[..., Any]] = {
    torch.ctc_loss: _ctc_loss,
    torch.nn.functional.ctc_loss: _ctc_loss,  # inside of it modes are off
    torch._VF._pad_packed_sequence: _pad_packed_sequence,
}

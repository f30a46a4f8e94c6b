"""Keep the state of optimizers that a function steps while it is traced: what they would remember
are tensors of the trace, and the next step is that of the run that is judged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook


class _Kept(NamedTuple):
    """An optimizer, its state by parameter, and its options by group of parameters."""

    optimizer: Any
    state: dict[Any, dict[str, Any]]
    groups: list[dict[str, Any]]


@contextmanager
def restored() -> Iterator[None]:
    """Give optimizers back, at the end, the state and the options that they had before their first
    step in the block."""
    kept: dict[int, _Kept] = {}

    def keep(optimizer: Optimizer, *given: Any) -> None:
        if id(optimizer) not in kept:
            state = {x: dict(own) for x, own in optimizer.state.items()}
            kept[id(optimizer)] = _Kept(optimizer, state, [dict(x) for x in optimizer.param_groups])

    handle = register_optimizer_step_pre_hook(keep)
    try:
        yield
    finally:
        handle.remove()
        for optimizer, state, groups in kept.values():
            optimizer.state.clear()
            optimizer.state.update(state)
            for group, before in zip(optimizer.param_groups, groups, strict=False):
                group.clear()
                group.update(before)

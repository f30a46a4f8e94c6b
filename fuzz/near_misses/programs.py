"""Draw a program that is nearly a given one, by a few changes that the verifier accepts."""

from __future__ import annotations

from collections.abc import Sequence

from fuzz.draw.choices import Choices
from fuzz.draw.readable import tidied
from fuzz.near_misses.changes import CHANGES
from hlo.errors import Error
from hlo.module import Module
from hlo.verification.verify import verify

_MOST_CHANGES = 3
_MOST_TRIES = 20  # for a change: half of those that are drawn have no place, or are invalid


def near_miss(choices: Choices, models: Sequence[Module]) -> Module:
    """Draw a program that differs from one of ``models`` by one to three changes; by fewer, where
    none of those that were drawn was valid."""
    module = tidied(choices.choice(models))
    for _ in range(choices.integer(1, _MOST_CHANGES)):
        module = _changed(choices, module)
    return module


def _changed(choices: Choices, module: Module) -> Module:
    for _ in range(_MOST_TRIES):
        changed = choices.choice(CHANGES)(choices, module)
        if changed is None or not _is_valid(changed):
            continue
        alive = tidied(changed)  # what is dead now may have been all that changed
        if alive != module:
            return alive
    return module


def _is_valid(module: Module) -> bool:
    try:
        verify(module)
    except Error:
        return False
    return True

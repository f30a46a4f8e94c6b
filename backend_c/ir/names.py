"""Generate names in a kernel, and record the instruction that each name belongs to.

While an element of an instruction is computed, or its loop nest is written, all names that are
generated belong to it: of values, of loops, of variables and arrays on the stack. Explanations map
lines of generated code to instructions by them; no code depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from backend_c.ir.loop_ir import Computed, Expr, Origins, Variable


class Names:
    """Generate unique names; ``given`` is their number."""

    def __init__(self) -> None:
        self.given = 0
        self._computing: tuple[Computed, ...] = ()
        self._origins: dict[str, tuple[Computed, ...]] = {}

    def fresh(self, prefix: str, *, is_copy: bool = False) -> str:
        """Return a new name of the current instruction; the name of a mere copy is of none."""
        self.given += 1
        name = f"{prefix}{self.given}"
        self._origins[name] = () if is_copy else self._computing
        return name

    def forget_after(self, given: int) -> None:
        """Roll back to a number of names; those after it are generated again."""
        self.given = given

    def claim(self, name: str) -> str:
        """Attribute a name generated elsewhere to the current instruction; return it."""
        self._origins[name] = self._computing
        return name

    def share(self, value: Expr) -> None:
        """Attribute a variable to the current instruction, beside its others."""
        if isinstance(value, Variable) and (own := self._origins.get(value.name)):
            self._origins[value.name] = tuple(dict.fromkeys((*own, *self._computing)))

    @contextmanager
    def computing(self, one: Computed) -> Iterator[None]:
        """Make ``one`` the current instruction inside.

        An instruction of a computation applied per element is current beside the one that applies
        it.
        """
        outside = self.enter(one)
        try:
            yield
        finally:
            self.leave(outside)

    @property
    def current(self) -> tuple[Computed, ...]:
        """Return the state to make the current instruction current again by :meth:`leave`."""
        return self._computing

    def enter(self, one: Computed) -> tuple[Computed, ...]:
        """Make ``one`` the current instruction; return the state to restore by :meth:`leave`."""
        outside = self._computing
        self._computing = (*outside[:1], one) if one.computation else (one,)
        return outside

    def leave(self, outside: tuple[Computed, ...]) -> None:
        """Restore the current instruction that :meth:`enter` returned."""
        self._computing = outside

    def origins(self) -> Origins:
        """Return the instructions of each name that belongs to any."""
        return {name: own for name, own in self._origins.items() if own}


def with_same(origins: Origins, same: Mapping[str, Variable]) -> Origins:
    """Move the origins of removed variables to the variables that replaced them."""
    found = dict(origins)
    for gone, kept in same.items():
        both = (*found.get(kept.name, ()), *found.pop(gone, ()))
        found[kept.name] = tuple(dict.fromkeys(both))
    return found

"""Give names to the values of a kernel, and note which instructions each is for.

While an element of an instruction is computed, or its loop nest is written, the names that are
given are for it: of values, of loops, of variables and arrays on the stack. Explanations show by
them which lines of generated code compute an instruction; no code depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from backend_c.ir.loop_ir import Computed, Expr, Origins, Variable


class Names:
    """Give fresh names; ``given`` counts them."""

    def __init__(self) -> None:
        self.given = 0
        self._computing: tuple[Computed, ...] = ()
        self._origins: dict[str, tuple[Computed, ...]] = {}

    def fresh(self, prefix: str, *, is_copy: bool = False) -> str:
        """Return a fresh name, for what is computed now; what only reads a value again, a copy of
        it, is for nobody."""
        self.given += 1
        name = f"{prefix}{self.given}"
        self._origins[name] = () if is_copy else self._computing
        return name

    def forget_after(self, given: int) -> None:
        """Give all names but so many of the first again."""
        self.given = given

    def claim(self, name: str) -> str:
        """Note that a name that is given elsewhere is for what is computed now; return it."""
        self._origins[name] = self._computing
        return name

    def share(self, value: Expr) -> None:
        """Note that a value is what is computed now, too."""
        if isinstance(value, Variable) and (own := self._origins.get(value.name)):
            self._origins[value.name] = tuple(dict.fromkeys((*own, *self._computing)))

    @contextmanager
    def computing(self, one: Computed) -> Iterator[None]:
        """Give names for an instruction meanwhile; those of one of a computation that is applied to
        elements are for the instruction that applies it, too."""
        outside = self.enter(one)
        try:
            yield
        finally:
            self.leave(outside)

    def enter(self, one: Computed) -> tuple[Computed, ...]:
        """Give names for an instruction from now on; return whom they were given for."""
        outside = self._computing
        self._computing = (*outside[:1], one) if one.computation else (one,)
        return outside

    def leave(self, outside: tuple[Computed, ...]) -> None:
        """Give names for others again: those that :meth:`enter` returned."""
        self._computing = outside

    def origins(self) -> Origins:
        """Return the instructions that names are for, of those that are for any."""
        return {name: own for name, own in self._origins.items() if own}


def with_same(origins: Origins, same: Mapping[Expr, Variable]) -> Origins:
    """Return the instructions that names are for, those of names that are gone with the names of
    the same values."""
    found = dict(origins)
    for gone, kept in same.items():
        assert isinstance(gone, Variable)
        both = (*found.get(kept.name, ()), *found.pop(gone.name, ()))
        found[kept.name] = tuple(dict.fromkeys(both))
    return found

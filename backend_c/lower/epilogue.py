"""Emit a contraction's loop nest with the elementwise instructions after it as its epilogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope
from hlo.types import ArrayShape


class InnerHero:
    """Defer the loop nest of a hero that is not the root of its fusion until the root is known.

    ``emit`` writes the loop nest with a writer. The epilogue reads the hero's elements only at the
    index being written (:mod:`hlo.passes.epilogues`), so the reader returns the current value,
    whatever the index.
    """

    def __init__(self, opcode: str, shape: ArrayShape, emit: Callable[[Writer], object]) -> None:
        self.opcode, self._shape, self._emit = opcode, shape, emit
        self._value: Expr | None = None

    def reader(self) -> Element:
        """Return the element by which the epilogue reads the value that was just computed."""

        def at(*_: Expr) -> Expr:
            assert self._value is not None, "read outside of its epilogue"
            return self._value

        return Element(self._shape, at)

    def write(self, result: Element, writer: Writer, scope: Scope) -> None:
        """Write the loop nest; it stores ``result``, the root of the fusion."""

        def epilogue(index: tuple[Expr, ...], values: tuple[Expr, ...]) -> tuple[Expr, ...]:
            self._value = scope.bind(values[0])
            return (result.at(*index),)

        self._emit(replace(writer, epilogue=epilogue))

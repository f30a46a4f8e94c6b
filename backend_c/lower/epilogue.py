"""Write a contraction around the elementwise instructions that follow it in a fusion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope
from hlo.types import ArrayShape


class InnerHero:
    """Hold a hero that is not the root of its fusion until its epilogue is known.

    ``emit`` writes its loop nest around a writer. All that is computed of its elements is at the
    index at which they are (:mod:`hlo.passes.epilogues`), so that its reader needs to know but the
    element that is being written.
    """

    def __init__(self, opcode: str, shape: ArrayShape, emit: Callable[[Writer], object]) -> None:
        self.opcode, self._shape, self._emit = opcode, shape, emit
        self._value: Expr | None = None

    def reader(self) -> Element:
        """Return the reader of the element that is being written."""

        def at(*_: Expr) -> Expr:
            assert self._value is not None, "read outside of its epilogue"
            return self._value

        return Element(self._shape, at)

    def write(self, result: Element, writer: Writer, scope: Scope) -> None:
        """Write the loop nest; ``result`` is the root of the fusion."""

        def epilogue(index: tuple[Expr, ...], values: tuple[Expr, ...]) -> tuple[Expr, ...]:
            self._value = scope.bind(values[0])
            return (result.at(*index),)

        self._emit(replace(writer, epilogue=epilogue))

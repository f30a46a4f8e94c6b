"""Render a kernel with, on each line, the names of the values that the line computes.

A value that is used once is folded into its use, so that its name is nowhere in the text. A mark at
the end of a line lists the names of all values on it, folded ones included. Explanations map
instructions to lines by these names, and strip the marks.
"""

from __future__ import annotations

from backend_c.ir.loop_ir import (
    Address,
    Assign,
    Call,
    Expr,
    If,
    Kernel,
    Let,
    Loop,
    Mutable,
    Pointer,
    Statement,
    Store,
    Variable,
    variables,
)
from backend_c.render.dialect import Dialect
from backend_c.render.statements import Body

_MARK = "  //@"


class MarkedBody(Body):
    """Render the statements of one kernel, with a mark on the first line of each."""

    def __init__(self, dialect: Dialect, kernel: Kernel) -> None:
        super().__init__(dialect, kernel)
        self._names: list[str] = []  # of what was folded into the statement being rendered
        self._folded: dict[str, list[str]] = {}  # into each variable that is folded itself

    def statement(self, statement: Statement) -> list[str]:
        """Render a statement as lines, the one on which it begins with its names."""
        outside, self._names = self._names, []
        lines = super().statement(statement)
        names = [*_named(statement), *self._names]
        if isinstance(statement, Let) and not lines:
            self._folded[statement.variable.name] = self._names
        self._names = outside
        if lines and names:
            first = 1 if lines[0].startswith("#") else 0  # after the pragma of a loop
            lines[first] += " ".join([_MARK, *dict.fromkeys(names)])
        return lines

    def rendered(self, expression: Expr) -> tuple[str, int]:
        """Render an expression; note the names that are folded into it."""
        if isinstance(expression, Variable) and expression.name in self.texts:
            self._names += [expression.name, *self._folded.get(expression.name, ())]
        return super().rendered(expression)


def _named(statement: Statement) -> list[str]:
    """Return the names that a statement binds or writes; of a branch, those in its condition."""
    match statement:
        case Let(variable, _) | Mutable(variable, _) | Assign(variable, _):
            return [variable.name]
        case Store(array, _, _):
            return [array.name]
        case Loop():
            return [statement.variable.name]
        case If(condition, _, _):
            return [*variables(condition)]
        case Call(_, arguments):
            changed = [a.variable.name for a in arguments if isinstance(a, Address)]
            return [*changed, *(a.array.name for a in arguments if isinstance(a, Pointer))]
        case _:
            return []


def unmarked(text: str) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return a text without its marks, and the names of each of its lines."""
    pairs = [line.partition(_MARK) for line in text.split("\n")]
    return "\n".join(line for line, _, _ in pairs), tuple(tuple(n.split()) for _, _, n in pairs)


def with_marks_of_both(one: str, other: str) -> str:
    """Return a text with the marks of two that are equal but for their marks: kernels of the same
    code may have folded other values into it."""
    text, names = unmarked(one)
    _, more = unmarked(other)
    lines = []
    for line, *marks in zip(text.split("\n"), names, more, strict=True):
        found = dict.fromkeys(name for some in marks for name in some)
        lines.append(" ".join([line + _MARK, *found]) if found else line)
    return "\n".join(lines)

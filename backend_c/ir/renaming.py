"""Rename what the statements of a kernel name, so that they can stand in another kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from backend_c.ir.loop_ir import (
    Address,
    Array,
    Assign,
    Call,
    Computed,
    Expr,
    Kernel,
    Let,
    Load,
    LocalArray,
    Loop,
    Mutable,
    Origins,
    Pointer,
    Statement,
    Store,
    Variable,
)
from backend_c.ir.loop_rewriting import with_blocks, with_expressions, with_operands


class Renaming:
    """Give arrays and variables other names.

    ``array`` names an array that is written or whose address is taken (None: it is neither), and
    ``load`` what stands for a load at an offset that is renamed already. A variable is what
    ``variables`` says of it, or has the same name with an ``ending``.
    """

    def __init__(
        self,
        array: Callable[[Array], Array | None],
        load: Callable[[Array, Expr], Expr],
        ending: str = "",
        variables: Mapping[Variable, Expr] | None = None,
    ) -> None:
        self._array, self._load, self._ending = array, load, ending
        self._variables = dict(variables or {})

    def expression(self, value: Expr) -> Expr:
        """Rename an expression."""
        match value:
            case Variable():
                known = self._variables.get(value)
                return self._named(value) if known is None else known
            case Load(array, offset):
                return self._load(array, self.expression(offset))
            case Address(variable):
                return Address(self._named(variable))
            case _:
                return with_operands(value, self.expression)

    def statement(self, statement: Statement) -> Statement:
        """Rename a statement and those inside it."""
        statement = with_blocks(with_expressions(statement, self.expression), self.block)
        match statement:
            case Let(variable, _) | Mutable(variable, _) | Assign(variable, _):
                return statement._replace(variable=self._named(variable))
            case Store(array, _, _) | LocalArray(array):
                return statement._replace(array=self._there(array))
            case Loop(variable, _, _, _, sums, _):
                sums = tuple(map(self._named, sums))
                return statement._replace(variable=self._named(variable), sums=sums)
            case Call(_, arguments):
                return statement._replace(arguments=tuple(map(self._argument, arguments)))
            case _:
                return statement

    def block(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rename statements."""
        return tuple(map(self.statement, statements))

    def origins(self, kernel: Kernel, before: int = 0) -> Origins:
        """Return the instructions that the renamed names of a kernel are for; ``before`` launches
        come first. An array that is not written any more has no name."""
        arrays = {a.name: self._array(a) for a in (*kernel.inputs, *kernel.outputs)}
        found: dict[str, tuple[Computed, ...]] = {}
        for name, own in kernel.origins.items():
            array = arrays.get(name)
            if name not in arrays or array is not None:
                there = name + self._ending if array is None else array.name
                found[there] = tuple(one._replace(launch=one.launch + before) for one in own)
        return found

    def _named(self, variable: Variable) -> Variable:
        """Return a variable by its other name."""
        return variable._replace(name=variable.name + self._ending)

    def _argument(self, argument: Expr | Pointer) -> Expr | Pointer:
        """Return an argument of a runtime function, the array of which is renamed."""
        if isinstance(argument, Pointer):
            return argument._replace(array=self._there(argument.array))
        return argument

    def _there(self, array: Array) -> Array:
        """Return an array that is there by its other name."""
        found = self._array(array)
        assert found is not None
        return found

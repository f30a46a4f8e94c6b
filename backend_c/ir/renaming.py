"""Rename variables and substitute arrays, to inline a kernel's statements into another kernel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

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
    """Substitute arrays and variables in statements.

    ``array`` maps an array that is written or whose address is taken to another (None: it is
    neither); ``load`` builds the load of an array at a renamed offset. Variables map to
    ``variables``, by their names: one name may have other bounds at each use. Of the others, those
    named in ``kept`` stay as they are, and the rest get the suffix ``ending``.
    """

    def __init__(
        self,
        array: Callable[[Array], Array | None],
        load: Callable[[Array, Expr], Expr],
        ending: str = "",
        variables: Mapping[Variable, Expr] | None = None,
        *,
        kept: Collection[str] = (),
    ) -> None:
        self._array, self._load, self._ending, self._kept = array, load, ending, kept
        self._variables = {variable.name: value for variable, value in (variables or {}).items()}

    def expression(self, value: Expr) -> Expr:
        """Rename an expression."""
        match value:
            case Variable():
                if value.name in self._kept:
                    return value
                known = self._variables.get(value.name)
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
        """Return a kernel's origins under the new names, with launches counted from ``before``.

        Arrays that are not written any more are left out.
        """
        arrays = {a.name: self._array(a) for a in (*kernel.inputs, *kernel.outputs)}
        found: dict[str, tuple[Computed, ...]] = {}
        for name, own in kernel.origins.items():
            array = arrays.get(name)
            if name not in arrays or array is not None:
                there = name + self._ending if array is None else array.name
                found[there] = tuple(one._replace(launch=one.launch + before) for one in own)
        return found

    def _named(self, variable: Variable) -> Variable:
        """Return a variable with the suffix."""
        return variable._replace(name=variable.name + self._ending)

    def _argument(self, argument: Expr | Pointer) -> Expr | Pointer:
        """Substitute the array in an argument of a runtime function."""
        if isinstance(argument, Pointer):
            return argument._replace(array=self._there(argument.array))
        return argument

    def _there(self, array: Array) -> Array:
        """Return an array's substitute, which must exist."""
        found = self._array(array)
        assert found is not None
        return found

"""Readers and writers: how kernels and the expressions inside them meet.

An :class:`Element` reads: ``at(*index)`` is the expression of one element; a prologue is a reader
that computes. A :class:`Writer` stores: ``writer(index, values)``; an epilogue is a writer that
computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Apply, Array, Constant, Expr, Load
from backend_c.ir.scope import Scope, apply
from hlo.types import PRED, S32, ArrayShape, ElementType, is_bounded

At = Callable[..., Expr]


@dataclass(frozen=True)
class Element:
    """One array value as a function from an index to an expression.

    ``sizes`` has, for a shape with bounded dimensions, the actual size of each as an INDEX
    expression (the elements are those of the bound; beyond the size they mean nothing). ``array``
    is set when the elements simply lie in memory in row-major order.
    """

    shape: ArrayShape
    at: At
    sizes: tuple[Expr, ...] = ()
    array: Array | None = None

    def size(self, dimension: int) -> Expr:
        """The actual size of a dimension."""
        return self.sizes[dimension] if self.sizes else ix.constant(self.shape.dims[dimension])


def zero(element_type: ElementType) -> Constant:
    kind = element_type.kind
    python: dict[str, bool | float | complex] = {"pred": False, "float": 0.0, "complex": 0j}
    return Constant(element_type, python.get(kind, 0))


Value = Element | tuple["Value", ...]


def stored(array: Array, shape: ArrayShape, sizes: tuple[Expr, ...] = ()) -> Element:
    """The reader of an array in memory."""

    def at(*index: Expr) -> Expr:
        if not array.elements:  # in a loop without turns, but the load might move out of it
            return Constant(array.element_type, 0)
        return Load(array, ix.linearize(index, shape.dims))

    return Element(shape, at, sizes, array)


def scalar(shape: ArrayShape, value: Expr) -> Element:
    """A rank-0 reader of an expression."""
    return Element(ArrayShape(shape.element_type), lambda: value)


def bound(element: Element, scope: Scope) -> Element:
    """The same reader, but every element it computes gets a name in ``scope``, once per index.

    What an index itself takes to compute (clamps, divisions) is named first, as far out as it can
    be. A load has no name: it is read where it is used.
    """
    identity = object()
    in_memory = element.array is not None

    def at(*index: Expr) -> Expr:
        if in_memory:
            return _with_atoms(element.at(*index), scope)
        named = tuple(ix.with_atoms(i, scope.bind) for i in index)
        key = (identity, named)
        found = scope.find(key)
        if found is None:
            value = element.at(*named)
            found = value if isinstance(value, Constant) else scope.bind(value)
            scope.remember(key, found)
        return found

    return Element(element.shape, at, element.sizes, element.array)


def _with_atoms(value: Expr, scope: Scope) -> Expr:
    """A load whose offset, folded to one linear form, has names for what takes computing."""
    if type(value) is not Load:
        return value
    return Load(value.array, ix.with_atoms(value.offset, scope.bind))


@dataclass(frozen=True)
class Writer:
    """Where a kernel's results go: ``arrays`` in row-major order, one per result shape, and beside
    each the s32 array of its actual sizes if dimensions of it are bounded."""

    scope: Scope
    shapes: tuple[ArrayShape, ...]
    arrays: tuple[Array, ...]
    size_arrays: tuple[Array | None, ...]
    short: list[tuple[int, tuple[Expr, ...]]] = field(default_factory=list)

    def __call__(self, index: tuple[Expr, ...], values: tuple[Expr, ...]) -> None:
        """Store one element of every result."""
        self.some(range(len(self.arrays)), index, values)

    def some(
        self, numbers: Sequence[int], index: tuple[Expr, ...], values: tuple[Expr, ...]
    ) -> None:
        """Store one element of the results ``numbers``: all values are computed first."""
        named = list(values) if len(values) == 1 else [self.scope.bind(value) for value in values]
        for number, value in zip(numbers, named, strict=True):
            offset = ix.linearize(index, self.shapes[number].dims)
            self.scope.store(self.arrays[number], offset, value)

    def sizes(self, number: int, sizes: tuple[Expr, ...]) -> None:
        """Store the actual sizes of a result: of one that is static, :meth:`fill` makes what is
        not there zero. To be called before the elements are written."""
        array, shape = self.size_arrays[number], self.shapes[number]
        pairs = enumerate(zip(sizes, shape.dims, strict=True)) if sizes else ()
        if any(not is_bounded(shape, d) and ix.value_of(size) != dim for d, (size, dim) in pairs):
            self.short.append((number, sizes))
        if array is None:
            return
        for dimension in range(shape.rank):
            size: Expr = ix.constant(shape.dims[dimension])
            if sizes and is_bounded(shape, dimension):
                size = sizes[dimension]
            value = Apply("convert", (size,), S32)
            self.scope.store(array, ix.constant(dimension), value)

    def fill(self) -> None:
        """Zeros where results are static and sizes said that less is there; when all is written."""
        for number, sizes in self.short:
            shape, array = self.shapes[number], self.arrays[number]
            with self.scope.loop(shape.elements, "lanes") as offset:
                value: Expr = self.scope.bind(self.scope.load(array, offset))
                index = ix.delinearize(offset, shape.dims)
                for d, (i, size) in enumerate(zip(index, sizes, strict=True)):
                    if not is_bounded(shape, d) and ix.value_of(size) != shape.dims[d]:
                        there = apply("compare-LT", i, size, type=PRED)
                        value = apply("select", there, value, zero(value.type), type=value.type)
                self.scope.store(array, offset, value)

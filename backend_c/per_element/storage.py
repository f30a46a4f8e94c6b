"""Store values on the stack of the thread that computes one element."""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir import index as ix
from backend_c.ir.element import Element, Value, Writer, array_reader, scalar, zero
from backend_c.ir.loop_ir import Array, Variable
from backend_c.ir.scope import Scope
from hlo.errors import Unsupported
from hlo.types import ArrayShape, Shape, TupleShape, array_leaves


class Storage:
    """Declare mutable storage for a value of a shape: variables for scalars, arrays for arrays."""

    def __init__(self, shape: Shape, scope: Scope, initial: Value | None = None) -> None:
        self._shape, self._scope = shape, scope
        self._places = [_place(leaf, scope) for leaf in array_leaves(shape)]
        if initial is not None:
            self.assign(initial)

    def value(self) -> Value:
        """Return readers of the current contents."""
        readers = [
            scalar(leaf, place) if isinstance(place, Variable) else array_reader(place, leaf)
            for leaf, place in zip(array_leaves(self._shape), self._places, strict=True)
        ]
        return as_shaped(self._shape, readers)

    def assign(self, value: Value) -> None:
        """Write the assignment of a value, which must not read this storage."""
        for place, element in zip(self._places, readers_in(value), strict=True):
            if isinstance(place, Variable):
                self._scope.assign(place, element.at())
                continue
            with self._scope.over(element.shape.dims) as index:
                offset = ix.linearize(index, element.shape.dims)
                self._scope.store(place, offset, element.at(*index))


def _place(shape: ArrayShape, scope: Scope) -> Variable | Array:
    """Declare a local variable or array; scalars start at zero, as compilers warn of unset ones."""
    if not shape.rank:
        return scope.mutable(shape.element_type, zero(shape.element_type))
    return local_array(shape, scope)


def local_array(shape: ArrayShape, scope: Scope) -> Array:
    """Declare a local array; raise Unsupported for a bounded shape."""
    if shape.is_dynamic:
        raise Unsupported(f"{shape}, of bounded size, inside a computation called per element")
    # C has no arrays without elements.
    return scope.local(shape.element_type, max(shape.elements, 1))


def local_writer(shapes: Sequence[ArrayShape], scope: Scope) -> Writer:
    """Return a writer to local arrays, for a loop nest inside another one."""
    arrays = tuple(local_array(shape, scope) for shape in shapes)
    return Writer(scope, tuple(shapes), arrays, (None,) * len(arrays))


def readers_in(value: Value) -> list[Element]:
    """List the readers in a value."""
    if isinstance(value, Element):
        return [value]
    return [element for part in value for element in readers_in(part)]


def as_shaped(shape: Shape, readers: Sequence[Element]) -> Value:
    """Nest readers in tuples, as a shape has them."""
    waiting = iter(readers)

    def shaped(part: Shape) -> Value:
        if isinstance(part, TupleShape):
            return tuple(map(shaped, part.elements))
        return next(waiting) if part.element_type.is_array else ()

    return shaped(shape)

"""Define readers and writers, the interface between loop nests and the expressions inside them.

A reader (:class:`Element`) maps an index to the expression of one element: ``at(*index)``. A reader
that computes is a fused producer (the prologue of a contraction). A :class:`Writer` stores:
``write(index, values)``; one that computes first is a fused epilogue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Apply, Array, Computed, Constant, Expr, Load
from backend_c.ir.scope import Scope, apply
from hlo.types import F64, PRED, S32, ArrayShape, ElementType, is_bounded

At = Callable[..., Expr]


@dataclass(frozen=True)
class Element:
    """Represent an array value as a function from an index to an expression.

    ``sizes``, for a shape with bounded dimensions, has the actual size of each as an INDEX
    expression: ``at`` is defined up to the bounds, and elements beyond the sizes are unspecified.
    ``array`` is set when the elements lie in memory in row-major order, ``is_window`` when they are
    a window of an array in memory. ``patch`` is set when they are an operand's with a window
    replaced (dynamic-update-slice), ``part`` when they are neighbours in an operand (slice).
    """

    shape: ArrayShape
    at: At
    sizes: tuple[Expr, ...] = ()
    array: Array | None = None
    patch: Patch | None = None
    is_window: bool = False
    part: Part | None = None

    def size(self, dimension: int) -> Expr:
        """Return the actual size of a dimension."""
        return self.sizes[dimension] if self.sizes else ix.constant(self.shape.dims[dimension])


def widened(value: Expr) -> Expr:
    """Widen a value to f64."""
    return value if value.type is F64 else apply("widen", value, type=F64)


def zero(element_type: ElementType) -> Constant:
    """Return the zero of a type."""
    kind = element_type.kind
    python: dict[str, bool | float | complex] = {"pred": False, "float": 0.0, "complex": 0j}
    return Constant(element_type, python.get(kind, 0))


@dataclass(frozen=True)
class Patch:
    """Describe a dynamic-update-slice: ``update`` replaces the window of ``operand`` at
    ``firsts``."""

    operand: Element
    update: Element
    firsts: tuple[Expr, ...]


def boxes_beside(patch: Patch) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the first indices and the dims of the boxes that a patch leaves as they are; one of the
    whole array where its place is not known, or it replaces less than half of it."""
    dims, window = patch.operand.shape.dims, patch.update.shape.dims
    whole = (0,) * len(dims)
    known = [ix.value_of(first) for first in patch.firsts]
    firsts = tuple(first for first in known if first is not None)
    is_large = 2 * math.prod(window) >= math.prod(dims)
    if len(firsts) < len(dims) or patch.update.sizes or not is_large:
        yield whole, dims
        return
    for d, (first, size, extent) in enumerate(zip(firsts, window, dims, strict=True)):
        for start, length in ((0, first), (first + size, extent - first - size)):
            if length:
                yield (*firsts[:d], start, *whole[d + 1 :]), (*window[:d], length, *dims[d + 1 :])


@dataclass(frozen=True)
class Part:
    """Describe a slice of stride 1, or a rotation: element i is the element (i + ``firsts``) modulo
    the dims of ``operand``."""

    operand: Element
    firsts: tuple[int, ...]


Value = Element | tuple["Value", ...]


def array_reader(
    array: Array,
    shape: ArrayShape,
    sizes: tuple[Expr, ...] = (),
    within: tuple[int, ...] | None = None,
) -> Element:
    """Return the reader of an array in memory, or of a window of an array of dims ``within``."""
    dims = shape.dims if within is None else within

    def at(*index: Expr) -> Expr:
        if not array.elements:  # in a loop that never runs, but the load might move out of it
            return Constant(array.element_type, 0)
        return Load(array, ix.linearize(index, dims))

    if within is not None:
        return Element(shape, at, sizes, is_window=True)
    return Element(shape, at, sizes, array)


def scalar(shape: ArrayShape, value: Expr) -> Element:
    """Return a rank-0 reader of an expression."""
    return Element(ArrayShape(shape.element_type), lambda: value)


def claimed(element: Element, scope: Scope, instruction: Computed) -> Element:
    """Return a reader whose elements are attributed to an instruction, for explanations."""

    names = scope.names

    def at(*index: Expr) -> Expr:
        # No context manager: this is called for each element that is written.
        outside = names.enter(instruction)
        try:
            return element.at(*index)
        finally:
            names.leave(outside)

    return replace(element, at=at)


def memoised(element: Element, scope: Scope, instruction: Computed | None = None) -> Element:
    """Memoise a reader: each element is bound once per index, and attributed to ``instruction``.

    What computing the index takes (clamps, divisions) is bound first, as far out as it can be. A
    load is not bound: it is read where it is used, so that no value lives longer than needed.
    """
    # Keys of different readers must differ, even at one index.
    identity = object()
    in_memory = element.array is not None or element.is_window

    def at(*index: Expr) -> Expr:
        if in_memory:
            return _with_atoms(element.at(*index), scope)
        named = tuple(ix.with_atoms(i, scope.bind) for i in index)
        key = (identity, named)
        found = scope.find(key)
        if found is None:
            value = element.at(*named)
            found = value if isinstance(value, Constant) else scope.bind(value)
            scope.names.share(found)
            scope.remember(key, found)
        return found

    made = replace(element, at=at)
    return made if instruction is None or in_memory else claimed(made, scope, instruction)


def _with_atoms(value: Expr, scope: Scope) -> Expr:
    """Bind the atoms of a load's offset, which is affine; return a load of the nearest copy."""
    if type(value) is not Load:
        return value
    value = scope.nearest(value)
    return Load(value.array, ix.with_atoms(scope.folded(value.offset), scope.bind))


@dataclass(frozen=True)
class Writer:
    """Store a kernel's results: ``arrays`` in row-major order, one per result shape.

    Beside each array whose shape is bounded is the s32 array of its actual sizes (``size_arrays``).
    ``short`` collects static results with fewer actual elements than their shape has. ``epilogue``
    maps index and values of a kernel to the values that are stored in their place. ``within``: by
    result number, the dims of the array that a result is a window of. ``firsts``: the offset added
    to each index, of a writer of a window.
    """

    scope: Scope
    shapes: tuple[ArrayShape, ...]
    arrays: tuple[Array, ...]
    size_arrays: tuple[Array | None, ...]
    short: list[tuple[int, tuple[Expr, ...]]] = field(default_factory=list)
    epilogue: Callable[[tuple[Expr, ...], tuple[Expr, ...]], tuple[Expr, ...]] | None = None
    within: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    firsts: tuple[Expr, ...] = ()

    def __call__(self, index: tuple[Expr, ...], values: tuple[Expr, ...]) -> None:
        """Store one element of every result."""
        if self.epilogue is not None:
            values = self.epilogue(index, values)
        self.some(range(len(self.arrays)), index, values)

    def some(
        self, numbers: Sequence[int], index: tuple[Expr, ...], values: tuple[Expr, ...]
    ) -> None:
        """Store one element of the results ``numbers``.

        All values are computed before the first store: a computation may read what it overwrites.
        """
        named = list(values) if len(values) == 1 else [self.scope.bind(value) for value in values]
        for number, value in zip(numbers, named, strict=True):
            offset = self.scope.folded(self.offset(number, index))
            self.scope.store(self.arrays[number], offset, value)

    def offset(self, number: int, index: tuple[Expr, ...]) -> Expr:
        """Return the offset of an element in its result's array."""
        if self.firsts:
            index = tuple(map(ix.add, self.firsts, index))
        return ix.linearize(index, self.within.get(number, self.shapes[number].dims))

    def window(self, shape: ArrayShape, firsts: tuple[Expr, ...]) -> Writer:
        """Return the writer of a window of the only result, starting at index ``firsts``."""
        (whole,) = self.shapes
        within = {0: self.within.get(0, whole.dims)}
        return replace(self, shapes=(shape,), within=within, firsts=firsts, short=[])

    def reader(self, number: int) -> Element:
        """Return the reader of a result that has been written."""
        within = self.within.get(number)
        return array_reader(self.arrays[number], self.shapes[number], within=within)

    def sizes(self, number: int, sizes: tuple[Expr, ...]) -> None:
        """Store the actual sizes of a result; to be called before its elements are written.

        Where a static result has fewer elements than its shape, :meth:`fill` makes the others zero.
        """
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
        """Zero static results beyond their actual sizes; to be called after all elements are
        written."""
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

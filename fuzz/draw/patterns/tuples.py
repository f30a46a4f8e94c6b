"""Generate calls and branches that take tuples apart and return several results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzz.draw.builder import Builder
from fuzz.draw.generators.control import unwrapped
from fuzz.draw.generators.data_movement import in_layout
from fuzz.draw.patterns.pattern import Pattern, Patterns, applied, changed
from hlo.types import PRED, S32, ArrayShape, Shape, TupleShape

_MOST_BRANCHES = 3
_MOST_RESULTS = 3

Path = tuple[int, ...]


def _parts(builder: Builder, shape: ArrayShape) -> TupleShape:
    """Draw the shape of a tuple with this shape in it, half of the time more than once, or in a
    tuple inside of it."""
    others: list[Shape] = [ArrayShape(builder.choice(builder.types)), shape]
    elements = [shape, *builder.several(lambda: builder.choice(others), 0, 2)]
    if builder.boolean():
        elements.append(TupleShape(tuple(builder.several(lambda: builder.choice(others), 1, 2))))
    return TupleShape(tuple(builder.permutation(elements)))


def _paths(shape: TupleShape, wanted: ArrayShape) -> list[Path]:
    """List the paths to the elements of a shape, whatever their layouts."""
    found: list[Path] = []
    for index, element in enumerate(shape.elements):
        if isinstance(element, TupleShape):
            found += [(index, *path) for path in _paths(element, wanted)]
        elif (element.element_type, element.dims) == (wanted.element_type, wanted.dims):
            found.append((index,))
    return found


def _laid_out(builder: Builder, shape: TupleShape) -> TupleShape:
    """Draw layouts for the arrays of a tuple."""
    return TupleShape(
        tuple(
            _laid_out(builder, element)
            if isinstance(element, TupleShape)
            else in_layout(builder, element)
            for element in shape.elements
        )
    )


def _made(builder: Builder, shape: TupleShape) -> str:
    """Draw a tuple of this shape: a parameter, in the entry, or one of values."""
    if builder.chance(3):
        return builder.argument(shape)
    names = [
        _made(builder, element) if isinstance(element, TupleShape) else builder.value(element)
        for element in shape.elements
    ]
    return builder.tuple(*names)


def _several(shape: ArrayShape, count: int) -> Callable[[Builder, list[str]], str]:
    """Return a computation of ``count`` results of a shape from parts of its tuples."""

    def result(inner: Builder, names: list[str]) -> str:
        found = list[str]()
        for name in names:
            whole = inner.shape(name)
            assert isinstance(whole, TupleShape)
            found += [unwrapped(inner, name, [*path]) for path in _paths(whole, shape)]
        results = [_result(inner, shape, found) for _ in range(count)]
        return inner.tuple(*results)

    return result


def _result(inner: Builder, shape: ArrayShape, found: Sequence[str]) -> str:
    """Draw one of several results: a part itself, or a function of some."""
    one = inner.choice(found)
    if inner.chance(3):
        return one
    operands = (one, inner.choice(found)) if inner.boolean() else (one,)
    return changed(inner, shape, applied(inner, shape, *operands))


def _joined(builder: Builder, shape: ArrayShape, several: str, count: int) -> str:
    """Draw a function of one or two of several results."""
    taken = [unwrapped(builder, several, [builder.integer(0, count - 1)]) for _ in range(2)]
    return applied(builder, shape, *taken) if builder.boolean() else taken[0]


def called_with_tuples(builder: Builder, shape: ArrayShape) -> str:
    """Draw a call of a computation of tuples, perhaps twice: once with parts of its own results."""
    operands = [_made(builder, _parts(builder, shape)) for _ in range(builder.integer(1, 2))]
    shapes = [builder.shape(name) for name in operands]
    count = builder.integer(2, _MOST_RESULTS)
    callee = builder.computation(shapes, _several(shape, count))
    result = TupleShape((shape,) * count)
    several = builder.emit("call", result, *operands, to_apply=callee)
    if builder.boolean() and result in shapes:
        operands[shapes.index(result)] = several
        several = builder.emit("call", result, *operands, to_apply=callee)
    return _joined(builder, shape, several, count)


def branches_of_several(builder: Builder, shape: ArrayShape) -> str:
    """Draw a conditional with several results, whose branches read parts of tuples: all of one,
    or each of its own."""
    by_pred = builder.boolean()
    branches = 2 if by_pred else builder.integer(1, _MOST_BRANCHES)
    count = builder.integer(2, _MOST_RESULTS)
    selector = builder.value(ArrayShape(PRED if by_pred else S32))
    operands = [_made(builder, _parts(builder, shape))]
    while len(operands) < branches:
        is_own = builder.chance(3)
        operands.append(_made(builder, _parts(builder, shape)) if is_own else operands[0])
    result = _several(shape, count)
    called = tuple(builder.computation([builder.shape(name)], result) for name in operands)
    given: dict[str, str | tuple[str, ...]] = {"branch_computations": called}
    if by_pred:
        given = {"true_computation": called[0], "false_computation": called[1]}
    whole = TupleShape((shape,) * count)
    several = builder.emit("conditional", whole, selector, *operands, **given)
    return _joined(builder, shape, several, count)


def arguments_in_tuples(builder: Builder, shape: ArrayShape) -> str:
    """Draw a function of parts of a tuple that is a parameter of the program, in any layouts; half
    of the time the tuple is made again, in another order."""
    whole = _laid_out(builder, _parts(builder, shape))
    name, paths = builder.argument(whole), _paths(whole, shape)
    if builder.boolean():
        elements = [unwrapped(builder, name, [index]) for index in range(len(whole.elements))]
        name = builder.tuple(*builder.permutation(elements))
        again = builder.shape(name)
        assert isinstance(again, TupleShape)
        paths = _paths(again, shape)
    taken = [unwrapped(builder, name, [*builder.choice(paths)]) for _ in range(2)]
    return changed(builder, shape, applied(builder, shape, *taken[: builder.integer(1, 2)]))


def parts_of_tuples(builder: Builder, shape: ArrayShape) -> str:
    """Draw a call, branches, or a parameter of the program with tuples that are taken apart."""
    ways = (called_with_tuples, branches_of_several, arguments_in_tuples)
    return builder.choice(ways)(builder, shape)


PATTERNS: Patterns = {
    "parts of tuples": Pattern(
        parts_of_tuples, ("call", "conditional", "get-tuple-element", "tuple")
    )
}

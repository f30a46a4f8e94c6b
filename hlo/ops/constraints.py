"""Provide checks for constraints of ops: each has a label, and a message for a violation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlo.summary import counted
from hlo.types import TOKEN, ArrayShape, ElementType, Shape, TupleShape, compatible
from hlo.walk import Callee


class Violation(Exception):
    """A violated constraint; the verifier adds the instruction and its place."""

    def __init__(self, label: str, message: str) -> None:
        super().__init__(message)
        self.label, self.message = label, message


def require(label: str, condition: bool, message: str) -> None:
    if not condition:
        raise Violation(label, message)


def array(label: str, shape: Shape, what: str = "operand") -> ArrayShape:
    """Return the shape as an array's; raise Violation if it is none, or of a type without data."""
    if isinstance(shape, ArrayShape) and shape.element_type.is_array:
        return shape
    raise Violation(label, f"{what} {shape} is not an array")


def arrays(label: str, shapes: Sequence[Shape], what: str = "operand") -> list[ArrayShape]:
    return [array(label, shape, f"{what} {n}") for n, shape in enumerate(shapes)]


def is_scalar(shape: Shape, element_type: ElementType) -> bool:
    return isinstance(shape, ArrayShape) and not shape.rank and shape.element_type is element_type


def is_token(shape: Shape) -> bool:
    return is_scalar(shape, TOKEN)


def same_dims(label: str, shapes: Sequence[ArrayShape]) -> tuple[bool, ...]:
    """Require equal dims; return which dimensions are bounded in any of the shapes."""
    first = shapes[0]
    for shape in shapes[1:]:
        # Not by require(): its message, of two shapes, would be formatted for each instruction.
        if shape.dims != first.dims:
            raise Violation(label, f"{shape} and {first} differ in their dimensions")
    if not any(shape.dynamic for shape in shapes):
        return (False,) * first.rank
    return tuple(
        any(shape.dynamic[d] for shape in shapes if shape.dynamic) for d in range(first.rank)
    )


def distinct_dimensions(
    label: str, dimensions: Sequence[int], rank: int, what: str = "dimensions"
) -> None:
    """Require dimension numbers in range(rank), without duplicates."""
    for dimension in dimensions:
        require(label, 0 <= dimension < rank, f"{what}: {dimension} is no dimension of rank {rank}")
    twice = len(set(dimensions)) != len(dimensions)
    require(label, not twice, f"{what}={{{','.join(map(str, dimensions))}}} has one twice")


def ascending_dimensions(label: str, dimensions: Sequence[int], what: str) -> None:
    text = ",".join(map(str, dimensions))
    require(label, list(dimensions) == sorted(dimensions), f"{what}={{{text}}} must be ascending")


def called_on(
    label: str,
    callee: Callee[Shape],
    arguments: Sequence[Shape],
    results: Sequence[Shape],
    *,
    alike: Callable[[Shape, Shape], bool] = compatible,
    folds: bool = False,
) -> None:
    """Require that the computation takes these arguments and returns these results (several as a
    tuple), compared by ``alike``. With ``folds``, a single result may also be a tuple of one."""
    name, parameters = callee.computation.name, callee.computation.parameters
    passed = f"{len(arguments)} {'is' if len(arguments) == 1 else 'are'}"
    require(
        label,
        len(parameters) == len(arguments),
        f"{name} has {counted(len(parameters), 'parameter')}, {passed} passed",
    )
    for number, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        if not alike(parameter.shape, argument):
            message = f"parameter {number} of {name} is {parameter.shape}, {argument} is passed"
            raise Violation(label, message)
    given = callee.computation.root_instruction.shape
    wanted = results[0] if len(results) == 1 else TupleShape(tuple(results))
    if not (alike(given, wanted) or (folds and alike(given, TupleShape(tuple(results))))):
        raise Violation(label, f"{name} gives {given}, {wanted} is needed")


def still_bounded(source: ArrayShape, sizes: Sequence[int]) -> tuple[bool, ...]:
    """Return which dimensions of a slice stay bounded: those that it takes completely."""
    bounds = source.dynamic or (False,) * source.rank
    whole = [size == extent for size, extent in zip(sizes, source.dims, strict=True)]
    return tuple(map(all, zip(bounds, whole, strict=True)))


def scalars(shapes: Sequence[ArrayShape]) -> list[Shape]:
    """Return the scalar shape of each array's element type."""
    return [ArrayShape(shape.element_type) for shape in shapes]


def one_or_tuple(shapes: Sequence[Shape]) -> Shape:
    return shapes[0] if len(shapes) == 1 else TupleShape(tuple(shapes))

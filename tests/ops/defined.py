"""The result of a program of one instruction by :mod:`definitions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import definitions
import numpy as np
from batch import drawn

import hlo
import interp
from fuzz.draw.choices import Choices
from fuzz.draw.programs import single_op
from hlo.bit_equality import differences
from hlo.literal import Literal
from hlo.module import Module
from hlo.types import F32, F64, ArrayShape, ElementType, leaves
from hlo.values import Array
from hlo.walk import monoid

Given = Mapping[str, Any]

_SMALL = 24  # elements


def defined(module: Module, arguments: tuple[Any, ...]) -> tuple[Array, ...]:
    """The arrays of the result of a program whose root is the instruction and whose other
    instructions are parameters and constants."""
    values: dict[str, Array] = {}
    for instruction in module.entry.instructions:
        if instruction.opcode == "parameter":
            number = instruction.attributes["parameter_number"]
            values[instruction.name] = np.asarray(arguments[int(str(number))])
        elif instruction.opcode == "constant":
            literal = instruction.attributes["literal"]
            assert isinstance(literal, Literal)
            values[instruction.name] = np.asarray(literal.value)
    root = module.entry.root_instruction
    operands = [values[name] for name in root.operands]
    result = _DEFINED[root.opcode](module, operands, dict(root.attributes))
    return (result,) if isinstance(result, np.ndarray) else tuple(result)


def _called(module: Module, name: str) -> Callable[..., tuple[Array, ...]]:
    """A computation on scalars; its own operations are the interpreter's."""
    until = [c.name for c in module.computations].index(name) + 1
    alone = Module("called", module.computations[:until], name)

    def call(*scalars: Array) -> tuple[Array, ...]:
        result = interp.evaluate(alone, *map(np.asarray, scalars))
        return result if isinstance(result, tuple) else (result,)

    return call


def _predicate(module: Module, name: str) -> Callable[..., bool]:
    call = _called(module, name)
    return lambda *scalars: bool(call(*scalars)[0])


def _fold(module: Module, name: str) -> definitions.Fold:
    """Define a fold: in order, but sums of floats are exact."""
    computation, call = module.computation(name), _called(module, name)
    shape = computation.root_instruction.shape
    is_sum = isinstance(shape, ArrayShape) and shape.is_inexact
    if is_sum and monoid(computation) == "add":
        assert isinstance(shape, ArrayShape)
        return lambda inits, elements: (_sum(inits[0], [e for (e,) in elements], shape),)

    def in_order(state: tuple[Array, ...], elements: list[tuple[Array, ...]]) -> tuple[Array, ...]:
        for element in elements:
            state = call(*state, *element)
        return state

    return in_order


def _sum(init: Array, elements: list[Array], shape: ArrayShape) -> Array:
    if not elements:
        return init
    if not shape.is_complex:
        return np.asarray(definitions.exact_sum(list(map(float, [init, *elements])), shape))
    part = ArrayShape(_PARTS[shape.element_type.bits])
    result = np.empty((), shape.element_type.numpy)
    for name in ("real", "imag"):
        addends = [float(getattr(x, name)) for x in (init, *elements)]
        setattr(result, name, definitions.exact_sum(addends, part))
    return result


_PARTS: dict[int, ElementType] = {64: F32, 128: F64}


def _reduce(module: Module, operands: list[Array], given: dict[str, Any]) -> Any:
    half = len(operands) // 2
    fold = _fold(module, given["to_apply"])
    return definitions.reduce(operands[:half], operands[half:], given["dimensions"], fold)


def _reduce_window(module: Module, operands: list[Array], given: dict[str, Any]) -> Any:
    half = len(operands) // 2
    fold = _fold(module, given["to_apply"])
    return definitions.reduce_window(operands[:half], operands[half:], given["window"], fold)


def _select_and_scatter(module: Module, operands: list[Array], given: dict[str, Any]) -> Any:
    select, scatter = _predicate(module, given["select"]), _fold(module, given["scatter"])
    return definitions.select_and_scatter(*operands, given["window"], select, scatter)


def _scatter(module: Module, operands: list[Array], given: dict[str, Any]) -> Any:
    half, fold = len(operands) // 2, _fold(module, given.pop("to_apply"))
    inputs, indices, updates = operands[:half], operands[half], operands[half + 1 :]
    return definitions.scatter(inputs, indices, updates, fold, **given)


def _sort(module: Module, operands: list[Array], given: dict[str, Any]) -> Any:
    before = _predicate(module, given["to_apply"])
    return definitions.sort(operands, given["dimensions"][0], before)


# What allows an error, or changes nothing.
_ALLOWANCES = ("algorithm", "convolution_kind", "operand_precision", "sparsity_config")


def _shaped(function: Callable[..., Array]) -> Callable[[Module, list[Array], Given], Any]:
    """Wrap a definition that needs no computation, only the shape of the result."""

    def result(module: Module, operands: list[Array], given: Given) -> Any:
        means = {name: value for name, value in given.items() if name not in _ALLOWANCES}
        return function(*operands, shape=module.entry.root_instruction.shape, **means)

    return result


_DEFINED: dict[str, Callable[[Module, list[Array], dict[str, Any]], Any]] = {
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "select-and-scatter": _select_and_scatter,
    "scatter": _scatter,
    "sort": _sort,
    "gather": _shaped(definitions.gather),
    "dot": _shaped(definitions.dot),
    "convolution": _shaped(definitions.convolution),
    "dynamic-slice": lambda _, operands, given: definitions.dynamic_slice(
        operands[0], operands[1:], given["dynamic_slice_sizes"]
    ),
    "dynamic-update-slice": lambda _, operands, __: definitions.dynamic_update_slice(
        operands[0], operands[1], operands[2:]
    ),
}


def assert_defined(opcode: str, count: int) -> None:
    """The interpreter does what the definition says, for ``count`` programs on small arrays."""

    def small(choices: Choices) -> Module:
        while True:
            module = single_op(choices, opcode, constants=True, max_elements=_SMALL)
            if _is_small(module):
                return module

    (cases,) = drawn([small], count)
    for module, arguments in cases:
        result = interp.evaluate(module, *arguments)
        actual = result if isinstance(result, tuple) else (result,)
        found = differences(defined(module, arguments), actual)
        assert not found, f"{hlo.format(module)}\n{arguments}\n{found[0]}"


def _is_small(module: Module) -> bool:
    """Whether a program has few elements, and products that are integers or that float64 holds."""
    arrays = [leaf for i in module.entry.instructions for leaf in leaves(i.shape)]
    small = all(leaf.elements <= 4 * _SMALL for leaf in arrays)
    if module.entry.root_instruction.opcode not in ("dot", "convolution"):
        return small
    return small and all(_HOLDS[arrays[-1].element_type.kind](a.element_type) for a in arrays)


def _is_short(element_type: ElementType) -> bool:
    bits = 32 if element_type.is_float else 16
    return element_type.bits <= bits and not element_type.is_complex


# Kind of a product → which factors it is defined of here.
_HOLDS: dict[str, Callable[[ElementType], bool]] = {
    "pred": lambda t: t.kind == "pred",
    "signed": lambda t: t.is_integer or t.kind == "pred",
    "unsigned": lambda t: t.is_integer or t.kind == "pred",
    "float": _is_short,
    "complex": lambda t: False,
}

"""Promote operands to the types that ATen's operations compute in.

PyTorch promotes by kind first (bool, integer, float, complex): a number or an array of no
dimensions changes the type of arrays with dimensions only where its kind is higher
(docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Operation = Callable[..., Any]  # the type of the first result, then ATen's arguments

_NUMBERS = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}


def is_array(x: object) -> bool:
    """Test for an array of NumPy or JAX, traced or not."""
    return isinstance(x, jax.Array | np.ndarray | np.generic)


def is_operand(x: object) -> bool:
    """Test for an array or a number."""
    return is_array(x) or type(x) in _NUMBERS


def _kind(dtype: Any) -> int:
    """Rank a type's kind: bool, integer, float, complex."""
    if dtype == np.bool_:
        return 0
    if jnp.issubdtype(dtype, np.integer):
        return 1
    return 3 if jnp.issubdtype(dtype, np.complexfloating) else 2


def common_type(*operands: Any) -> Any:
    """Compute the type that PyTorch promotes operands to."""
    groups: list[list[Any]] = [[], [], []]  # of arrays with dimensions, without, of numbers
    for x in operands:
        if is_array(x):
            groups[0 if x.ndim else 1].append(jnp.dtype(x.dtype))
        else:
            groups[2].append(jnp.dtype(_NUMBERS[type(x)]))
    best: Any = None
    for types in groups:
        if not types:
            continue
        found = types[0]
        for other in types[1:]:
            found = jnp.promote_types(found, other)
        if best is None:
            best = found
        elif _kind(found) > _kind(best):
            # A complex operand takes its width from the floats: f64[2] * 1j is complex128.
            best = jnp.promote_types(found, best) if _kind(found) == 3 else found
    return best


def as_type(x: Any, dtype: Any) -> Any:
    """Convert an array or a number; an integer beyond an integer type is taken modulo its range."""
    if type(x) is int and jnp.issubdtype(dtype, np.integer):
        x = np.asarray(x).astype(dtype)
    return jnp.asarray(x, dtype)


def unpromoted(function: Callable[..., Any]) -> Operation:
    """Make an operation without promotion."""

    def operation(result: Any, *arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return operation


def promoted(function: Callable[..., Any]) -> Operation:
    """Make an operation whose operands are converted to the result's type."""

    def operation(result: Any, *arguments: Any, **named: Any) -> Any:
        given = (as_type(x, result) if is_operand(x) else x for x in arguments)
        return function(*given, **named)

    return operation


def with_numbers_as_given(operation: Operation) -> Operation:
    """Make an elementwise operation that computes in f32 where its result is narrower and one of
    its numbers is none of the result's type.

    PyTorch's kernels take a number, or an array of no dimensions, as it is (in their ``opmath``
    type), and round the result alone: in bf16 3 * 1e4 is 3e4 rounded, not three times 9984.
    """

    def wide(result: Any, *arguments: Any, **named: Any) -> Any:
        given = (*arguments, *named.values())
        if not is_narrow_float(result) or not any(_is_rounded_to(result, x) for x in given):
            return operation(result, *arguments, **named)
        widened = (x.astype("float32") if is_array(x) else x for x in arguments)
        return operation(jnp.dtype("float32"), *widened, **named).astype(result)

    return wide


def is_narrow_float(dtype: Any) -> bool:
    """Test for types of floats of fewer than 32 bits."""
    return bool(jnp.issubdtype(dtype, jnp.floating)) and jnp.dtype(dtype).itemsize < 4


def in_f32(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Compute a function of one array of a narrower type in f32: its formula may overflow where
    the function itself does not."""

    def wide(x: Any) -> Any:
        return (
            function(x.astype("float32")).astype(x.dtype)
            if is_narrow_float(x.dtype)
            else function(x)
        )

    return wide


def _is_rounded_to(dtype: Any, x: Any) -> bool:
    """Test for a number that a narrow type does not have, or that may be such a one."""
    if is_array(x):
        return bool(x.ndim == 0 and x.dtype != dtype and x.dtype != np.bool_)
    with np.errstate(over="ignore"):
        return type(x) in (int, float) and x == x and float(np.asarray(x, dtype)) != x


def compared(function: Callable[..., Any]) -> Operation:
    """Make an operation whose operands are promoted to a common type other than the result's."""

    def operation(result: Any, *arguments: Any, **named: Any) -> Any:
        wanted = common_type(*(x for x in arguments if is_operand(x)))
        given = (as_type(x, wanted) if is_operand(x) else x for x in arguments)
        return function(*given, **named)

    return operation


def typed(function: Callable[..., Any]) -> Operation:
    """Make an operation whose function takes the result's type first."""
    return function

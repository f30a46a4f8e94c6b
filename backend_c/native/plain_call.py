"""Call an entry point without conversions, on a prepared fast path.

Most calls are such: each argument is an array of exactly its parameter's type and shape, row-major
and aligned. They pay for a comparison and an address of each array, and for the result's memory.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import cffi
import numpy as np

from backend_c.native.in_place import is_fixed
from backend_c.native.marshalling import Value
from backend_c.native.recycled_memory import POOL, SMALLEST
from hlo.types import ArrayShape, Shape, array_leaves
from hlo.values import unflattened

_FFI = cffi.FFI()
_TABLE = _FFI.typeof("void *[]")

Entry = Callable[..., None]  # of arguments, results, constants, workspace, seed
PlainCall = Callable[[Sequence[Value], int], Value | None]


def plain_call(
    entry: Entry,
    blocks: Sequence[Any],
    running: threading.Lock,
    parameters: Sequence[ArrayShape],
    result: Shape,
) -> PlainCall:
    """Return a function of (arguments, seed) that runs ``entry`` and returns the result.

    It returns None if one of the arguments needs a conversion. ``blocks`` are the constants and the
    workspace. The tables of addresses are made once, and filled while ``running`` is held. (A
    function: it finds its variables sooner than a method does.)
    """
    expected = [(number, p.element_type.numpy, p.dims) for number, p in enumerate(parameters)]
    leaves = [(leaf.dims, leaf.element_type.numpy) for leaf in array_leaves(result)]
    made = [(n, dims, t, math.prod(dims) * t.itemsize) for n, (dims, t) in enumerate(leaves)]
    count = len(expected)
    arguments, results = _FFI.new(_TABLE, count), _FFI.new(_TABLE, len(made))
    constants, workspace = blocks
    address, empty, array_type = _FFI.from_buffer, np.empty, np.ndarray
    is_array = isinstance(result, ArrayShape) and result.element_type.is_array  # no token

    def call(values: Sequence[Value], seed: int) -> Value | None:
        if len(values) != count:
            return None
        arrays = []
        with running:
            for value, (number, dtype, dims) in zip(values, expected):
                # NumPy has one object for each of its dtypes: an array whose equal dtype is another
                # object takes the general way.
                if type(value) is not array_type or value.dtype is not dtype or value.shape != dims:
                    return None
                flags = value.flags
                if not (flags.c_contiguous and flags.aligned):
                    return None
                arguments[number] = address(value)
            for number, dims, dtype, size in made:
                array = empty(dims, dtype) if size < SMALLEST else POOL.empty(dims, dtype, size)
                results[number] = address(array)
                arrays.append(array)
            entry(arguments, results, constants, workspace, seed)
        return arrays[0] if is_array else unflattened(result, iter(arrays))

    return call


def is_plain(parameters: Sequence[Shape], result: Shape) -> TypeGuard[Sequence[ArrayShape]]:
    """Return whether a program can take the fast path: static arrays only, no tuple parameters."""
    return all(isinstance(p, ArrayShape) and p.element_type.is_array for p in parameters) and all(
        map(is_fixed, (*parameters, result))
    )

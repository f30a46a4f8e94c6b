"""A compiled program in the process: check arguments, call it, give back arrays.

Values are NumPy arrays, tuples of values, and None for tokens, as the interpreter has them; an
array of a bounded shape has its actual size.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from backend_c.program import Program, storage_type
from hlo.errors import ArgumentError, ToolchainError, Unsupported
from hlo.types import ArrayShape, Shape, TupleShape, leaves

Value = Any  # np.ndarray, None (a token) or a tuple of values
_Array = np.ndarray[Any, np.dtype[Any]]

_ALIGNMENT = 64
_INTERFACE = """
    void hlo_entry(const void *const *arguments, void *const *results,
                   const unsigned char *constants, unsigned char *workspace, uint64_t seed);
    int omp_get_max_threads(void);
    void omp_set_num_threads(int);
"""
_FFI = cffi.FFI()
_FFI.cdef(_INTERFACE)


def load(path: Path) -> Any:
    """The library, which is never closed: unloading libgomp under its idle threads crashes."""
    try:
        return _FFI.dlopen(str(path), _FFI.RTLD_NOW | _FFI.RTLD_NODELETE)
    except OSError as error:
        raise ToolchainError(f"cannot load {path}: {error}") from None


class Executable:
    """A program ready to run on the arrays of its parameters; ``source`` is its C by file name.

    ``parameters`` are the entry's names and shapes in order, ``result`` is its root's shape.
    ``threads`` is the number of OpenMP threads of a call; None leaves it to OpenMP.
    """

    def __init__(
        self,
        path: Path,
        program: Program,
        parameters: Sequence[tuple[str, Shape]],
        result: Shape,
        threads: int | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads={threads}: at least 1")
        self._library = load(path)
        self._parameters = tuple(parameters)
        self._result = result
        self._threads = threads
        self._workspace = _aligned(program.workspace_bytes)
        self._constants = _aligned(len(program.constants))
        self._constants[:] = np.frombuffer(program.constants, np.uint8)
        self._running = threading.Lock()  # for the workspace
        self.source: Mapping[str, str] = program.sources

    def __call__(self, *arrays: Value, seed: int = 0) -> Value:
        """Run on one value for each parameter; ArgumentError names the first that does not fit."""
        inputs = list(_arguments(self._parameters, arrays))
        try:
            outputs = [_Buffer.empty(shape) for shape in _stored(self._result)]
        except MemoryError as error:
            raise Unsupported(f"the result {self._result} does not fit into memory") from error
        arguments, results = _pointers(inputs), _pointers(outputs)
        with self._running:
            self._run(arguments, results, seed)
        return _packed(self._result, iter(outputs))

    def _run(self, arguments: Any, results: Any, seed: int) -> None:
        entry = self._library.hlo_entry
        constants = _FFI.cast("unsigned char *", _address(self._constants))
        workspace = _FFI.cast("unsigned char *", _address(self._workspace))
        word = seed & 0xFFFF_FFFF_FFFF_FFFF
        if self._threads is None or not hasattr(self._library, "omp_set_num_threads"):
            entry(arguments, results, constants, workspace, word)
            return
        before = self._library.omp_get_max_threads()
        self._library.omp_set_num_threads(self._threads)
        try:
            entry(arguments, results, constants, workspace, word)
        finally:
            self._library.omp_set_num_threads(before)


class _Buffer:
    """The memory of one array as C sees it: the bound's dims, and the actual sizes if bounded."""

    __slots__ = ("data", "shape", "sizes")

    def __init__(self, shape: ArrayShape, data: _Array, sizes: tuple[int, ...]) -> None:
        self.shape, self.data = shape, data
        self.sizes = np.array(sizes, np.int32) if shape.is_dynamic else None

    @classmethod
    def empty(cls, shape: ArrayShape) -> _Buffer:
        return cls(shape, np.empty(shape.dims, storage_type(shape.element_type)), shape.dims)

    @classmethod
    def holding(cls, shape: ArrayShape, array: _Array) -> _Buffer:
        """Row-major; beyond the actual sizes of a bounded array there are zeros."""
        dtype = storage_type(shape.element_type)
        if array.shape == shape.dims:
            return cls(shape, np.ascontiguousarray(array, dtype), array.shape)
        data = np.zeros(shape.dims, dtype)
        data[tuple(map(slice, array.shape))] = array
        return cls(shape, data, array.shape)

    def value(self) -> _Array:
        actual = self.data
        if self.sizes is not None:
            actual = np.ascontiguousarray(actual[tuple(map(slice, self.sizes.tolist()))])
        return actual.astype(self.shape.element_type.numpy, copy=False)

    def addresses(self) -> Iterator[int]:
        yield _address(self.data)
        if self.sizes is not None:
            yield _address(self.sizes)


def _aligned(size: int) -> _Array:
    """Bytes that start a cache line."""
    try:
        memory = np.empty(size + _ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as error:  # NumPy's error where 64 bits do not count them
        raise Unsupported(f"{size} bytes that the program needs do not fit into memory") from error
    start = -_address(memory) % _ALIGNMENT
    return memory[start : start + size]


def _address(array: _Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _pointers(held: Sequence[_Buffer]) -> Any:
    """A C array of the addresses, each bounded array's sizes after its data."""
    addresses = list(itertools.chain.from_iterable(buffer.addresses() for buffer in held))
    return _FFI.new("void *[]", [_FFI.cast("void *", address) for address in addresses])


def _stored(shape: Shape) -> Iterator[ArrayShape]:
    """The arrays of a shape; tokens carry nothing."""
    return (leaf for leaf in leaves(shape) if leaf.element_type.is_array)


def _packed(shape: Shape, made: Iterator[_Buffer]) -> Value:
    if isinstance(shape, TupleShape):
        return tuple(_packed(element, made) for element in shape.elements)
    return next(made).value() if shape.element_type.is_array else None


# ---- arguments ----


def _arguments(
    parameters: Sequence[tuple[str, Shape]], given: Sequence[Value]
) -> Iterator[_Buffer]:
    if len(given) != len(parameters):
        raise ArgumentError(f"{len(parameters)} arguments are expected, {len(given)} were given")
    for number, ((name, shape), value) in enumerate(zip(parameters, given, strict=True)):
        try:
            yield from _buffers(shape, value)
        except _Misfit:
            raise ArgumentError(
                f"parameter {number} ({name}): expected {shape}, got {_described(value)}"
            ) from None


class _Misfit(Exception):
    """A part of an argument is not of its shape; the whole argument is then described."""


def _buffers(shape: Shape, value: Value) -> Iterator[_Buffer]:
    if isinstance(shape, TupleShape):
        if not isinstance(value, tuple) or len(value) != len(shape.elements):
            raise _Misfit
        for element, part in zip(shape.elements, value, strict=True):
            yield from _buffers(element, part)
    elif not shape.element_type.is_array:
        if value is not None:
            raise _Misfit
    else:
        array = _array(value)
        if (
            array is None
            or array.dtype != shape.element_type.numpy
            or not _fits(array.shape, shape)
        ):
            raise _Misfit
        yield _Buffer.holding(shape, array)


def _fits(dims: tuple[int, ...], shape: ArrayShape) -> bool:
    if not shape.dynamic:
        return dims == shape.dims
    return len(dims) == shape.rank and all(
        size <= bound if bounded else size == bound
        for size, bound, bounded in zip(dims, shape.dims, shape.dynamic, strict=True)
    )


def _array(value: Value) -> _Array | None:
    """Anything that NumPy takes for an array, but no tuple: that is a value of another shape."""
    if value is None or isinstance(value, tuple):
        return None
    try:
        return np.asarray(value)
    except (ValueError, TypeError):  # lists of different lengths, objects of other libraries
        return None


def _described(value: Value) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_described, value))})"
    if value is None:
        return "a token"
    array = _array(value)
    if array is None:
        return type(value).__name__
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"

"""Call a compiled program in this process: check arguments, run it, return arrays.

Values are those of :mod:`backend_c.native.marshalling`.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import cffi
import numpy as np

from backend_c.native.marshalling import Array, Memory, Value, arguments, array_leaves, assembled
from backend_c.render.translation_units import Program
from hlo.errors import ArgumentError, ToolchainError, Unsupported
from hlo.types import Shape

_ALIGNMENT = 64
_INTERFACE = """
    void hlo_entry(const void *const *arguments, void *const *results,
                   const unsigned char *constants, unsigned char *workspace, uint64_t seed);
    extern void (*const hlo_entries[])(const void *const *, void *const *,
                                       const unsigned char *, unsigned char *, uint64_t);
    int omp_get_max_threads(void);
    void omp_set_num_threads(int);
"""
_FFI = cffi.FFI()
_FFI.cdef(_INTERFACE)


def load(path: Path, *, closing: bool = False) -> Any:
    """Load a library.

    It stays in the process: unloading libgomp under its idle threads crashes. ``closing``: the
    library has no threads, and is closed when nothing refers to it any more.
    """
    flags = _FFI.RTLD_NOW | (0 if closing else _FFI.RTLD_NODELETE)
    try:
        return _FFI.dlopen(str(path), flags)
    except OSError as error:
        raise ToolchainError(f"cannot load {path}: {error}") from None


class Executable:
    """Run a compiled program on the arrays of its parameters; ``source`` is its C by file name.

    ``library`` is what :func:`load` gives. ``parameters`` are the entry's names and shapes in
    order, ``result`` is its root's shape. ``threads`` is the number of OpenMP threads of a call;
    None leaves it to OpenMP. Calls from several threads run one after the other, as they share the
    workspace.
    """

    def __init__(
        self,
        library: Any,
        program: Program,
        parameters: Sequence[tuple[str, Shape]],
        result: Shape,
        threads: int | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads={threads}: at least 1")
        self._library = library
        self._number = program.number
        self._parameters = tuple(parameters)
        self._result = result
        self._threads = threads
        self._workspace = _aligned(program.workspace_bytes)
        # Copied once, to aligned memory: bytes objects are not aligned for vectors.
        self._constants = _aligned(len(program.constants))
        self._constants[:] = np.frombuffer(program.constants, np.uint8)
        self._running = threading.Lock()  # for the workspace
        self.source: Mapping[str, str] = program.sources

    def __call__(self, *arrays: Value, seed: int = 0) -> Value:
        """Run on one value for each parameter.

        Raises ArgumentError for the first that does not fit its shape, Unsupported if memory does
        not suffice for the result.
        """
        inputs = list(arguments(self._parameters, arrays))
        try:
            outputs = [Memory.empty(shape) for shape in array_leaves(self._result)]
        except MemoryError as error:
            raise Unsupported(f"the result {self._result} does not fit into memory") from error
        with self._running:
            self._run(_pointers(inputs), _pointers(outputs), seed)
        return assembled(self._result, iter(outputs))

    def in_threads(self, threads: int) -> Self:
        """Return the same program, run by so many threads."""
        other = copy.copy(self)
        other._threads = threads
        return other

    def _run(self, arguments: Any, results: Any, seed: int) -> None:
        """Call the entry point on pointers to arguments and results."""
        library, number = self._library, self._number
        entry = library.hlo_entry if number is None else library.hlo_entries[number]
        constants = _FFI.cast("unsigned char *", _address(self._constants))
        workspace = _FFI.cast("unsigned char *", _address(self._workspace))
        seed_word = seed & 0xFFFF_FFFF_FFFF_FFFF
        if self._threads is None or not hasattr(self._library, "omp_set_num_threads"):
            entry(arguments, results, constants, workspace, seed_word)
            return
        # The number of threads is the process's: it is given back after the call.
        before = self._library.omp_get_max_threads()
        self._library.omp_set_num_threads(self._threads)
        try:
            entry(arguments, results, constants, workspace, seed_word)
        finally:
            self._library.omp_set_num_threads(before)


def _aligned(size: int) -> Array:
    """Allocate bytes that start at a cache line."""
    try:
        memory = np.empty(size + _ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as error:  # NumPy's error where 64 bits do not count them
        raise Unsupported(f"{size} bytes that the program needs do not fit into memory") from error
    start = -_address(memory) % _ALIGNMENT
    return memory[start : start + size]


def _address(array: Array) -> int:
    """Return the address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def _pointers(memories: Sequence[Memory]) -> Any:
    """Return a C array of the addresses, each bounded array's sizes after its data."""
    addresses = [_address(array) for memory in memories for array in memory.arrays()]
    return _FFI.new("void *[]", [_FFI.cast("void *", address) for address in addresses])

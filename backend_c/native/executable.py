"""Call a compiled program in this process: check arguments, run it, return arrays.

Values are those of :mod:`backend_c.native.marshalling`.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self

import cffi
import numpy as np

from backend_c.native.in_place import (
    bound_arguments,
    given_results,
    require_apart,
    require_fixed,
)
from backend_c.native.loaded_library import LoadedLibrary
from backend_c.native.marshalling import Memory, Value, arguments, assembled
from backend_c.native.plain_call import Entry, PlainCall, is_plain, plain_call
from backend_c.native.recycled_memory import aligned
from backend_c.native.thread_choice import entry_by_choice
from hlo.errors import ArgumentError, Unsupported
from hlo.operating_system import most_threads
from hlo.seeds import whole_seed
from hlo.summary import signature
from hlo.types import Shape, array_leaves
from hlo.values import Array

if TYPE_CHECKING:
    from backend_c.profiles.profile import Profile

_FFI = cffi.FFI()
_TABLE = _FFI.typeof("void *[]")
_SEED = 0xFFFF_FFFF_FFFF_FFFF  # C takes 64 bits of it


class CallableProgram(Protocol):
    """Hold what calls of a compiled program need (as
    :class:`backend_c.render.translation_units.Program` does)."""

    @property
    def sources(self) -> Mapping[str, str]:
        """Return the C by file name."""

    @property
    def constants(self) -> bytes:
        """Return the block of constants."""

    @property
    def workspace_bytes(self) -> int:
        """Return how much memory a call needs beside its arguments and results."""

    @property
    def is_parallel(self) -> bool:
        """Return whether something in it runs on several threads of OpenMP."""

    @property
    def number(self) -> int | None:
        """Return which of a library's programs it is; None if there is only one."""


class Explains(Protocol):
    """Explain and profile the module of a program."""

    def explain(self, threads: int | None = None) -> Profile:
        """Describe the kernels."""

    def profile(
        self, arrays: Sequence[Value], repeat: int, seed: int = 0, threads: int | None = None
    ) -> Profile:
        """Describe the kernels with their times."""


class Executable:
    """Run a compiled program on the arrays of its parameters; ``source`` is its C by file name.

    ``parameters`` are the entry's names and shapes in order, ``result`` is its root's shape.
    ``threads`` is the number of OpenMP threads of a call; with None calls take OpenMP's number, or
    one thread while that is faster (:mod:`backend_c.native.thread_choice`). ``profiler`` explains
    the module; None if it is unknown. Calls from several threads run one after the other, as they
    share the workspace.
    """

    def __init__(
        self,
        library: LoadedLibrary,
        program: CallableProgram,
        parameters: Sequence[tuple[str, Shape]],
        result: Shape,
        threads: int | None = None,
        profiler: Explains | None = None,
    ) -> None:
        self._library, self._number = library, program.number
        self._parameters, self._result = tuple(parameters), result
        # Copied once, to aligned memory: bytes objects are not aligned for vectors.
        constants = _aligned(len(program.constants))
        constants[:] = np.frombuffer(program.constants, np.uint8)
        self._blocks = _bytes(constants), _bytes(_aligned(program.workspace_bytes))
        self._profiler = profiler
        self._running = threading.Lock()  # for the workspace, and what plain calls prepared
        self.source: Mapping[str, str] = program.sources
        self._is_parallel = program.is_parallel
        self._choose(threads)

    def __repr__(self) -> str:
        shapes = [shape for _, shape in self._parameters]
        threads = "" if self._threads is None else f", threads={self._threads}"
        return f"Executable({signature(shapes, self._result)}{threads})"

    def __copy__(self) -> Executable:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __reduce__(self) -> NoReturn:
        raise Unsupported(
            "an executable cannot be pickled, as it is code of this process: send the program"
            " (hlo.format(module), or its text) and compile it there, which finds it in the cache"
        )

    def __call__(self, *arrays: Value, seed: int = 0, out: Value | None = None) -> Value:
        """Run on one value for each parameter; the result is written into ``out`` if that is given.

        Raises ArgumentError for the first value that does not fit its shape, and for an ``out``
        that does not or that shares memory with an argument; Unsupported if memory does not suffice
        for the result.
        """
        if type(seed) is not int:  # what it is nearly always, and calls are short
            seed = whole_seed(seed)
        try:
            if out is None and self._plain is not None:
                result = self._plain(arrays, seed & _SEED)
                if result is not None:
                    return result
            inputs = list(arguments(self._parameters, arrays))
            outputs = self._outputs(inputs, out)
        except MemoryError as error:
            raise Unsupported(f"the result {self._result} does not fit into memory") from error
        words, _kept = self._words(inputs, outputs, seed)
        with self._running:
            self._entry(*words)
        return assembled(self._result, iter(outputs)) if out is None else out

    def bind(self, *arrays: Value, out: Value | None = None, seed: int = 0) -> Bound:
        """Return a call without arguments that runs on the memory of these arrays each time.

        It reads the arrays as they are then, and writes the same result again: ``out``, or arrays
        made here. Raises ArgumentError for an array that does not fit its shape or that is not
        row-major and aligned, for an ``out`` that shares memory with an argument, and for shapes
        that are converted at each call: bounded ones, and integers of less than a byte.
        """
        inputs = bound_arguments(self._parameters, arrays)
        require_fixed("the result", self._result)
        try:
            outputs = self._outputs(inputs, out)
        except MemoryError as error:
            raise Unsupported(f"the result {self._result} does not fit into memory") from error
        result = assembled(self._result, iter(outputs)) if out is None else out
        words, kept = self._words(inputs, outputs, seed)
        return Bound(self._entry, words, self._running, (self._library, kept), result)

    def explain(self) -> Profile:
        """Describe the program kernel by kernel: what is fused and why not more, what each moves
        and computes, and what limits its time (docs/explain.md).

        It takes a second or two, as the machine is measured. Raises Unsupported for a program that
        :func:`backend_c.compile` did not make.
        """
        return self._known_profiler().explain(self._threads)

    def profile(self, *arrays: Value, repeat: int = 10, seed: int = 0) -> Profile:
        """Explain the program with the time of each kernel: the least of ``repeat`` calls.

        The program is compiled once more, with timers between the kernels. Raises as
        :meth:`explain`, and ArgumentError as calls do.
        """
        return self._known_profiler().profile(arrays, repeat, seed, self._threads)

    def _known_profiler(self) -> Explains:
        """Return the profiler; Unsupported if there is none."""
        if self._profiler is None:
            raise Unsupported("this executable does not know its module: use backend_c.compile")
        return self._profiler

    def times(self, offset: int) -> list[tuple[int, int]]:
        """Return the nanoseconds and the runs of each step in the last call of a timed program.

        ``offset`` is where they lie in the workspace (:mod:`backend_c.render.timers`).
        """
        with self._running:
            words = np.frombuffer(_FFI.buffer(self._blocks[1]), np.uint64, offset=offset).tolist()
        return list(zip(words[::2], words[1::2], strict=True))

    def in_threads(self, threads: int) -> Self:
        """Return the same program with ``threads`` OpenMP threads; raise ArgumentError for a number
        that is none of threads."""
        other = copy.copy(self)
        other._choose(threads)
        return other

    def _choose(self, threads: int | None) -> None:
        """Prepare the entry point for a number of threads; ArgumentError for one that none has."""
        if threads is not None:
            require_threads(threads)
        self._threads = threads
        self._entry = _entry(self._library, self._number, threads, self._is_parallel)
        shapes = [shape for _, shape in self._parameters]
        self._plain: PlainCall | None = None
        if is_plain(shapes, self._result):
            call = plain_call(self._entry, self._blocks, self._running, shapes, self._result)
            self._plain = call

    def _outputs(self, inputs: Sequence[Memory], out: Value | None) -> list[Memory]:
        """Return the memory of the results: that of ``out``, or new."""
        if out is None:
            return [Memory.empty(shape) for shape in array_leaves(self._result)]
        outputs = given_results(self._result, out)
        require_apart(inputs, outputs)
        return outputs

    def _words(
        self, inputs: Sequence[Memory], outputs: Sequence[Memory], seed: int
    ) -> tuple[tuple[Any, ...], object]:
        """Return the entry point's arguments, and an object that keeps their memory alive."""
        kept = _buffers(inputs), _buffers(outputs)
        tables = [_FFI.new(_TABLE, buffers) for buffers in kept]
        return (*tables, *self._blocks, seed & _SEED), kept


class Bound:
    """Run a program on the same arrays each time, and return the same ``result``, written again.

    Made by :meth:`Executable.bind`.
    """

    __slots__ = ("_entry", "_kept", "_running", "_words", "result")

    def __init__(
        self,
        entry: Entry,
        words: tuple[Any, ...],
        running: threading.Lock,
        kept: object,
        result: Value,
    ) -> None:
        self._entry, self._words, self._running = entry, words, running
        self._kept = kept  # the library, and the arrays that C has the addresses of
        self.result = result

    def __call__(self) -> Value:
        """Run again."""
        with self._running:
            self._entry(*self._words)
        return self.result


def require_threads(threads: int) -> None:
    """Raise ArgumentError for a number of threads that no program runs in."""
    if not isinstance(threads, int) or not 1 <= threads <= most_threads():
        raise ArgumentError(f"threads={threads!r}: from 1 to {most_threads()}")


def _entry(
    library: LoadedLibrary, number: int | None, threads: int | None, is_parallel: bool
) -> Entry:
    """Return a library's entry point, with OpenMP's number of threads set around each call: to
    ``threads``, or where that is None and the program ``is_parallel``, to OpenMP's own number or to
    one, whichever is faster."""
    entry: Entry = library.entry(number)
    functions = library.thread_functions()
    if functions is None:  # there is nothing to set
        return entry
    chosen, choose = functions
    if threads is None:
        # Of its environment OpenMP takes any number, and ends the process where it has no memory.
        if chosen() > most_threads():
            raise ArgumentError(f"OMP_NUM_THREADS={chosen()}: from 1 to {most_threads()}")
        return entry_by_choice(entry, chosen, choose) if is_parallel and chosen() > 1 else entry

    def entry_in_threads(*words: Any) -> None:
        # The number holds for all that this thread runs by OpenMP, other libraries included: it
        # is given back after the call.
        before = chosen()
        choose(threads)
        try:
            entry(*words)
        finally:
            choose(before)

    return entry_in_threads


def _aligned(size: int) -> Array:
    """Allocate bytes aligned to a cache line; raise Unsupported if there is no room."""
    try:
        return aligned(size)
    except (MemoryError, ValueError) as error:  # NumPy's error where 64 bits do not count them
        raise Unsupported(f"{size} bytes that the program needs do not fit into memory") from error


def _bytes(block: Array) -> Any:
    """Return a C view of a block's bytes, which keeps the block alive."""
    return _FFI.from_buffer("unsigned char[]", block)


def _buffers(memories: Sequence[Memory]) -> list[Any]:
    """Return C views of all arrays, each bounded one's sizes after its data."""
    return [_FFI.from_buffer(array) for memory in memories for array in memory.arrays()]

"""Run any plugin of PJRT, XLA's device interface: from HLO text to results.

The client is the package pypjrt. The program is passed as StableHLO, arguments and results as dense
row-major arrays, whatever layout the device has. A plugin is third-party code, which may crash and
hang: it is only loaded in processes of its own.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pypjrt
from pypjrt import Buffer, Client, Device, Event
from pypjrt.errors import PjrtError, Unknown

import hlo
from fuzz.peers.converted_types import converted_otherwise
from fuzz.peers.crash import described
from fuzz.peers.isolated import Isolated
from fuzz.peers.layouts import LOST, reads_layouts
from fuzz.peers.plugin import PREFIX, Plugin
from fuzz.peers.stablehlo import Conversion, Version
from fuzz.peers.unwritten_memory import fill_unwritten_memory
from fuzz.peers.xla import Answer
from fuzz.worker_pool import Result, WorkerPool
from hlo.errors import ArgumentError
from hlo.types import ELEMENT_TYPES, element_type_of
from hlo.values import Array

_OPENS_WITHIN = 120.0  # seconds, in which a device must be found
_PRELOAD = (__name__,)


@dataclass(frozen=True, slots=True)
class Facts:
    """Describe an opened plugin: its ``device``, and the newest StableHLO version it reads, if it
    tells; or the ``error`` if it cannot be opened."""

    device: str = ""
    stablehlo: Version | None = None
    error: str | None = None


def facts(plugin: Plugin) -> Facts:
    """Open a plugin in a process and look for a device; raise ArgumentError, with the reason, if
    there is none."""
    if not Path(plugin.path).expanduser().is_file():
        raise ArgumentError(f"{PREFIX}{plugin.path}: there is no such file")
    pool = WorkerPool(_asked, seconds=_OPENS_WITHIN, memory=None, preload=_PRELOAD)
    with pool:
        outcome = pool(plugin)
    why = outcome.value.error if isinstance(outcome, Result) else f"when opened: {outcome}"
    if why is not None:
        raise ArgumentError(f"{PREFIX}{plugin.path}: {why}")
    assert isinstance(outcome, Result)
    return outcome.value


@contextmanager
def _asked() -> Iterator[Callable[[Plugin], Facts]]:
    """Open a worker whose tasks open plugins: so their time limit is a task's."""
    yield _facts


def _facts(plugin: Plugin) -> Facts:
    try:
        with _opened(plugin) as at:
            name = f"{at.client.platform_name}, {at.device.to_string()}"
            return Facts(name, _version(at.plugin))
    except ArgumentError as error:
        return Facts(error=str(error))
    except RuntimeError as error:  # as all errors of pypjrt are
        return Facts(error=f"it gives no device: {_first_line(str(error))}")


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "it does not say why")


@dataclass(frozen=True, slots=True)
class _Opened:
    """Hold a loaded plugin, its client, and the device to run on."""

    plugin: pypjrt.Plugin
    client: Client
    device: Device


@contextmanager
def _opened(plugin: Plugin) -> Iterator[_Opened]:
    """Open a plugin's client; its options override pypjrt's defaults for GPUs."""
    loaded = _loaded(plugin.path)
    defaults = Client.GPU_DEFAULTS if loaded.is_gpu else {}
    options = {**defaults, **dict(plugin.options)}
    with Client.create(loaded, options=options) as client, client.devices() as devices:
        if not devices:
            raise ArgumentError("it has no device")
        yield _Opened(loaded, client, devices[0])


def _loaded(path: str) -> pypjrt.Plugin:
    try:
        return pypjrt.Plugin(path)
    except OSError as error:
        raise ArgumentError(f"it cannot be loaded as a library: {error}") from error
    except AttributeError as error:
        raise ArgumentError("it is no plugin of PJRT: it exports no GetPjrtApi") from error


def _version(plugin: pypjrt.Plugin) -> Version | None:
    """Return the newest StableHLO version that a plugin reads, None if it does not tell."""
    try:
        known = plugin.stablehlo_version_range
    except PjrtError:
        return None
    return None if known is None else known[1]


@contextmanager
def plugin_runner(plugin: Plugin) -> Iterator[Callable[[bytes, Sequence[Array]], Answer]]:
    """Open the function of one worker process, which opens the client once."""
    fill_unwritten_memory()
    with _opened(plugin) as at:

        def answer(program: bytes, arrays: Sequence[Array]) -> Answer:
            try:
                return _answer(at, program, arrays)
            except PjrtError as error:
                return Answer(error=str(error))

        yield answer


def _answer(at: _Opened, program: bytes, arrays: Sequence[Array]) -> Answer:
    begin = time.perf_counter()
    with ExitStack() as stack:
        executable = stack.enter_context(at.client.compile(program))
        compiled = time.perf_counter()
        given = [stack.enter_context(_on_device(at, array)) for array in arrays]
        results = [stack.enter_context(result) for result in executable(*given)]
        found = [_on_host(at.plugin, result) for result in results]
        outputs = tuple(array for array in found if array is not None)
        return Answer(outputs, None, None, compiled - begin, time.perf_counter() - compiled)


def _on_device(at: _Opened, array: Array) -> Buffer[Any]:
    """Copy an array to the device; elements of fewer than 8 bits take a byte each."""
    kind = element_type_of(array.dtype)
    assert kind is not None, array.dtype
    memory = bytearray(array.tobytes()) or bytearray(1)  # an address, also of no elements
    return at.client.buffer_from_host(
        memory, getattr(at.plugin.abi, _code(kind.name)), array.shape, at.device
    )


def _code(element_type: str) -> str:
    return f"PJRT_Buffer_Type_{element_type.upper()}"


def _on_host(plugin: pypjrt.Plugin, buffer: Buffer[Any]) -> Array | None:
    """Copy a result to the host; None for a token, which has no elements."""
    kinds = {getattr(plugin.abi, _code(name), None): x for name, x in ELEMENT_TYPES.items()}
    kind = kinds.get(buffer.element_type)
    if kind is None:
        raise Unknown(f"a result is of type {buffer.element_type} of the PJRT API, which HLO lacks")
    if not kind.is_array:
        return None
    array: Array = np.zeros(buffer.dimensions, kind.numpy)
    if array.size:
        _copy(plugin, buffer, array)
    return array


def _copy(plugin: pypjrt.Plugin, buffer: Buffer[Any], array: Array) -> None:
    """Copy a buffer into an array with an explicit row-major layout: the default is the
    device's."""
    rank = array.ndim
    order = (ctypes.c_int64 * max(rank, 1))(*range(rank - 1, -1, -1))
    tiled = plugin.args(
        "PJRT_Buffer_MemoryLayout_Tiled",
        minor_to_major=ctypes.addressof(order),
        minor_to_major_size=rank,
    )
    layout = plugin.args(
        "PJRT_Buffer_MemoryLayout",
        type=plugin.abi.PJRT_Buffer_MemoryLayout_Type_Tiled,
        tiled=tiled,
    )
    call = plugin.args(
        "PJRT_Buffer_ToHostBuffer_Args",
        src=buffer.address,
        host_layout=ctypes.addressof(layout),
        dst=array.ctypes.data,
        dst_size=array.nbytes,
    )
    plugin.call("PJRT_Buffer_ToHostBuffer", call)
    if call.event:
        Event(plugin, call.event).consume()


class PJRT:
    """Compile and run programs with a plugin in worker processes; use it in ``with``.

    Tuple parameters and results are passed as their elements. ``timeout`` in seconds is for one
    program. Memory is not limited: drivers reserve more address space than a machine has memory.
    """

    name = "PJRT"

    def __init__(self, plugin: Plugin, timeout: float = 60.0) -> None:
        self._conversion = Conversion(facts(plugin).stablehlo, timeout)
        made = partial(plugin_runner, plugin)
        pool = WorkerPool(made, seconds=timeout, memory=None, preload=_PRELOAD, stacks=True)
        self._process = Isolated(pool)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *of_exception: object) -> None:
        self._process.close()
        self._conversion.close()

    def __call__(self, text: str, arrays: Sequence[Array]) -> Answer:
        """Compile and run one program. It is refused if StableHLO cannot express it, or would
        change it."""
        module = hlo.parse(text)
        if reads_layouts(module):
            return Answer(error=LOST)
        if (why := converted_otherwise(module)) is not None:
            return Answer(error=why)
        converted = self._conversion(text)
        if converted.error is not None:
            return Answer(error=converted.error)
        outcome = self._process(converted.program, arrays)
        if isinstance(outcome, Result):
            return outcome.value
        return Answer(crash=described(outcome))

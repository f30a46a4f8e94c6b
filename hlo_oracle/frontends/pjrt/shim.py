"""Build the shared library that PJRT clients load, and fill its function table with Python
functions."""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from backend_c.native.cache import default_directory, open_cache
from backend_c.native.libraries import build
from backend_c.native.toolchain import known_compiler
from hlo.errors import Unsupported
from hlo_oracle.frontends.pjrt import (
    abi_versions,
    async_transfers,
    buffers,
    client,
    devices,
    errors,
    events,
    executables,
    execution,
    layouts,
    loaded_executables,
    topology,
    transfers,
)
from hlo_oracle.frontends.pjrt.declarations import MAJOR, MINOR, declarations, structure
from hlo_oracle.frontends.pjrt.interrupts import Interrupts
from hlo_oracle.frontends.pjrt.plugin import Plugin

_SOURCE = Path(__file__).with_name("shim.c")
_COLUMNS = (
    *(errors, client, devices, topology, buffers, transfers, async_transfers),
    *(events, executables, loaded_executables, execution),
    *(layouts, abi_versions),
)
_FUNCTIONS = 160  # as shim.c has it
_WORD = ctypes.sizeof(ctypes.c_void_p)
_Size = ctypes.c_size_t
# A second Ctrl-C ends these.
_LONG = ("Client_Compile", "Compile", "Event_Await", "LoadedExecutable_Execute")
# To PJRT up to 0.67 these arguments are one field shorter than they are.
_LONGER = ("Plugin_Attributes",)
_RELEASES = ("_Destroy", "DecreaseExternalReferenceCount")
_Callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
Function = Callable[[Plugin, Any], None]


class _Shim(ctypes.Structure):
    """``struct shim`` of shim.c."""

    _fields_ = [
        ("api", ctypes.c_void_p * (_FUNCTIONS + 8)),
        ("python", ctypes.c_void_p * _FUNCTIONS),
        ("entries", ctypes.c_void_p * _FUNCTIONS),
        ("nothing", ctypes.c_void_p),
        ("inside", ctypes.c_int),
        ("is_interrupted", ctypes.c_int),
        ("end", ctypes.c_void_p),
        ("is_release", ctypes.c_int * _FUNCTIONS),
    ]


@dataclass(frozen=True, slots=True)
class _Filled:
    """The objects behind a filled function table, kept alive for the life of the process."""

    plugin: Plugin
    callbacks: tuple[Any, ...]
    extensions: tuple[Any, ...]


def built() -> Path:
    """Return the library's path, compiled if it is not cached, without loading it."""
    kept = open_cache(default_directory(os.environ))
    sources = {_SOURCE.name: _SOURCE.read_text("ascii")}
    return build(sources, known_compiler(os.environ, kept), kept)


def library() -> Path:
    """Build the library, load it into this process and fill its table; return its path.

    A PJRT client in this process can then load that path. Raises ToolchainError.
    """
    path = built()
    loaded = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_NODELETE)
    fill(ctypes.addressof(_Shim.in_dll(loaded, "hlo_pjrt")))
    return path


@cache  # what it returns is held as long as the process lives, as the table is
def fill(address: int) -> _Filled:
    """Fill the ``struct shim`` at an address with the PJRT_Api and its extensions."""
    shim = _Shim.from_address(address)
    interrupts = Interrupts(address + _Shim.inside.offset, address + _Shim.is_interrupted.offset)
    plugin, known = Plugin(shim.nothing, interrupts), declarations()
    callbacks = tuple(_Callback(entry(plugin, name)) for name in known.names)
    for number, callback in enumerate(callbacks):
        shim.python[number] = ctypes.cast(callback, ctypes.c_void_p).value
        shim.is_release[number] = known.names[number].endswith(_RELEASES)
    entries = dict(zip(known.names, shim.entries, strict=False))
    extensions: list[Any] = []
    for kind, names in known.extensions.items():
        after = ctypes.addressof(extensions[-1]) if extensions else 0
        extensions.append(_extension(kind, after, [entries[name] for name in names]))
    version = (3 * _WORD, 0, MAJOR | MINOR << 32)  # PJRT_Api_Version
    # PJRT_Api: five words (struct_size, extension_start, the version), then the functions.
    header = ((5 + len(known.functions)) * _WORD, ctypes.addressof(extensions[-1]), *version)
    table = [*header, *(entries[name] for name in known.functions)]
    for place, word in [*enumerate(table)][::-1]:
        shim.api[place] = word  # the size last: it says that the table is filled
    atexit.register(ctypes.CFUNCTYPE(None)(shim.end))  # without Python's lock: calls go on
    return _Filled(plugin, callbacks, tuple(extensions))


def entry(plugin: Plugin, name: str) -> Callable[[int], int | None]:
    """Make the C-callable function of a PJRT name: it takes the address of its arguments, and
    returns a PJRT_Error or None."""
    function, from_address = functions().get(snake_case(name)), structure(name).from_address
    size = declarations().sizes[name]
    if function is None:
        function = _unimplemented(name)

    def run(address: int) -> None:
        if _Size.from_address(address).value >= size or name in _LONGER:
            function(plugin, from_address(address))
        else:
            with _extended(address, size) as own:
                function(plugin, from_address(own))

    def called(address: int) -> int | None:
        try:
            if name in _LONG and plugin.interrupts is not None:
                plugin.interrupts.during(lambda: run(address))
            else:
                run(address)
        except BaseException as error:  # nothing may leave: the caller is C++
            if name.endswith(_RELEASES):  # jaxlib ends the process if these fail
                traceback.print_exception(error)
                return None
            return plugin.handles.give(errors.described(error))
        return None

    return called


@contextmanager
def _extended(address: int, size: int) -> Iterator[int]:
    """Yield the address of arguments that have all fields: an older client's structure is shorter,
    and the memory behind it is not the callee's to read."""
    given = _Size.from_address(address).value
    own = ctypes.create_string_buffer(size + _WORD)
    ctypes.memmove(own, address, given)
    yield ctypes.addressof(own)
    ctypes.memmove(address, own, given)


@cache
def functions() -> dict[str, Function]:
    """Map names such as ``client_create`` (for PJRT_Client_Create) to the plugin's functions."""
    return {
        name.rstrip("_"): getattr(column, name) for column in _COLUMNS for name in column.__all__
    }


def snake_case(name: str) -> str:
    """Convert ``Client_Create`` to ``client_create``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _unimplemented(name: str) -> Function:
    def function(plugin: Plugin, args: Any) -> None:
        raise Unsupported(f"PJRT_{name} is not implemented by hlo-oracle")

    return function


def _extension(kind: int, after: int, entries: list[int]) -> Any:
    """Build the structure of an extension: a PJRT_Extension_Base and its functions."""
    size = 3 + len(entries)
    return (ctypes.c_void_p * size)(size * _WORD, kind, after, *entries)

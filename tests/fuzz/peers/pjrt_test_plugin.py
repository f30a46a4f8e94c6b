"""Build the plugin of PJRT that tests judge, against the ABI that pypjrt describes."""

from __future__ import annotations

import ctypes
import importlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from backend_c.native.cache import default_directory, open_cache
from backend_c.native.libraries import build
from backend_c.native.toolchain import find_compiler
from hlo.types import ELEMENT_TYPES

_SOURCE = Path(__file__).with_name("pjrt_plugin.c")
_FIELD = re.compile(r"\b(PJRT_\w+?)_([a-z]\w*)\b", re.ASCII)


def library() -> Path:
    """Return the plugin, compiled; ToolchainError without a C compiler."""
    _abi = importlib.import_module("pypjrt._abi")
    version = _abi.available()[0]
    abi, _ = _abi.load(*version)
    source = _SOURCE.read_text()
    header = "\n".join(
        (*_constants(abi, version, _abi.bootstrap_offsets()), *_fields(abi, source), "")
    )
    sources = {_SOURCE.name: source, "pjrt_abi.h": header}
    return build(sources, find_compiler(os.environ), open_cache(default_directory(os.environ)))


def _constants(
    abi: ModuleType, version: tuple[int, int], offsets: tuple[int, int, int]
) -> Iterator[str]:
    """Yield the version, the slots of functions, and the bytes of each element type."""
    count = 1 + max(abi.SLOT.values())
    yield f"#define VTABLE_OFFSET {abi.VTABLE_OFFSET}"
    yield f"#define API_SIZE {abi.VTABLE_OFFSET + count * ctypes.sizeof(ctypes.c_void_p)}"
    for name, value in zip(("MAJOR", "MINOR"), version, strict=True):
        yield f"#define {name} {value}"
    for name, value in zip(("MAJOR_OFFSET", "MINOR_OFFSET"), offsets[1:], strict=True):
        yield f"#define {name} {value}"
    yield from (f"#define SLOT_{name} {slot}" for name, slot in abi.SLOT.items())
    yield f"#define PJRT_NamedValue_SIZE {ctypes.sizeof(abi.PJRT_NamedValue)}"
    widths = {
        getattr(abi, f"PJRT_Buffer_Type_{name.upper()}"): kind.numpy.itemsize
        for name, kind in ELEMENT_TYPES.items()
        if kind.is_array
    }
    row = ", ".join(str(widths.get(code, 0)) for code in range(1 + max(widths)))
    yield f"#define ELEMENT_WIDTHS {{{row}}}"


def _fields(abi: ModuleType, source: str) -> Iterator[str]:
    """Yield the offset of each field that the source names as ``STRUCT_field``."""
    for name in dict.fromkeys(match[0] for match in _FIELD.finditer(source)):
        struct, field = next(
            (name[:at], name[at + 1 :])
            for at in (match.start() for match in re.finditer("_", name))
            if hasattr(abi, name[:at])
            and isinstance(getattr(abi, name[:at]), type)
            and hasattr(getattr(abi, name[:at]), name[at + 1 :])
        )
        yield f"#define {name} {getattr(getattr(abi, struct), field).offset}"

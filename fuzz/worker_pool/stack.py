"""Record a process's stack at a fatal signal, by a signal handler in C."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fuzz.worker_pool.symbols import symbols
from hlo.errors import ToolchainError

_SOURCE = Path(__file__).with_suffix(".c")
_MARKER = "stack of the process:"  # the line that the handler writes before it
# As glibc's backtrace_symbols_fd writes: ``file(+0x1f)[0x7f…]``, or ``file(name+0x1f)[0x7f…]``,
# where the offset counts from an exported function and is not used; ``[0x7f…]`` is in no file.
_LINE = re.compile(r"(?P<file>[^()]*)(?:\(\+?(?P<offset>0x[0-9a-f]+|[^()]*)\))?\s?\[0x[0-9a-f]+\]")
_HANDLER = 2  # frames: the handler, and what called it
_INTERPRETER = re.compile(r"(lib)?python[^/]*")


@dataclass(frozen=True, slots=True)
class Frame:
    """Hold a stack frame: a file and an address in it; no file for code generated at run time."""

    file: str
    offset: int | None


@cache
def library() -> Path | None:
    """Return the path of the compiled handler; None without a C compiler."""
    # Here, as each worker imports this module, and all of the backend takes half a second.
    from backend_c.native.cache import default_directory, open_cache
    from backend_c.native.libraries import build
    from backend_c.native.toolchain import find_compiler

    try:
        sources = {_SOURCE.name: _SOURCE.read_text("utf-8")}
        return build(sources, find_compiler(os.environ), open_cache(default_directory(os.environ)))
    except ToolchainError:
        return None


def watch(path: Path) -> None:
    """Install the handler, which writes this process's stack to stderr at a fatal signal."""
    ctypes.CDLL(str(path)).show_stacks()


def split(lines: Sequence[str]) -> tuple[list[str], tuple[Frame, ...]]:
    """Split a process's output into its text and the stack at its end, if there is one."""
    if _MARKER not in lines:
        return [*lines], ()
    begin = len(lines) - 1 - lines[::-1].index(_MARKER)
    rest, frames = [*lines[:begin]], list[Frame]()
    # What other threads write in between is text.
    for line in lines[begin + 1 :]:
        match = _LINE.fullmatch(line)
        if match is None:
            rest.append(line)
            continue
        is_offset = (match["offset"] or "").startswith("0x")
        frames.append(Frame(match["file"], int(match["offset"], 16) if is_offset else None))
    return rest, tuple(frames)


def place(frames: Sequence[Frame], own: re.Pattern[str]) -> str | None:
    """Return the innermost function whose name matches ``own``, as far as it matches; None if the
    process ended in the interpreter, or in a function that it called for itself."""
    for frame in frames[_HANDLER:]:
        if not frame.file:
            return "generated code"
        if _INTERPRETER.fullmatch(Path(frame.file).name):
            return None
        for name in _name(frame):
            match = own.match(name)
            if match is not None:
                return match[0]
    return None


def _name(frame: Frame) -> Iterator[str]:
    known = symbols(Path(frame.file)) if frame.offset is not None else None
    if known is not None and frame.offset is not None:
        name = known.at(frame.offset - 1)  # the call, not where it returns to
        if name is not None:
            yield name

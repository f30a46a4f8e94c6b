"""Map Python objects to the opaque pointers that PJRT's functions take."""

from __future__ import annotations

import ctypes
from typing import TypeVar

from hlo.errors import ArgumentError

T = TypeVar("T")


class Handles:
    """Objects by handle: the address of a word of memory allocated for each.

    The words are zero: jaxlib reads the first one of a PJRT_Memory as a table of functions, which
    may be missing, and that of a PJRT_Error from version 0.114 on.
    """

    def __init__(self) -> None:
        self._objects: dict[int, tuple[object, object]] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def give(self, held: object) -> int:
        """Create a handle that keeps an object alive until :meth:`drop`."""
        word = ctypes.c_void_p()
        handle = ctypes.addressof(word)
        self._objects[handle] = held, word
        return handle

    def of(self, handle: int | None, kind: type[T]) -> T:
        """Look up the object of a handle; ArgumentError if there is none of this type."""
        found, _ = self._objects.get(handle or 0, (None, None))
        if not isinstance(found, kind):
            told = "was destroyed, or never was" if found is None else type(found).__name__
            raise ArgumentError(f"a {kind.__name__} is expected, and this handle is: {told}")
        return found

    def drop(self, handle: int | None) -> object | None:
        """Remove a handle; return its object, None if there was none."""
        return self._objects.pop(handle or 0, (None, None))[0]

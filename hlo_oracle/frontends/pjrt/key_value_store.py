"""The key-value store shared by the processes of one client, through callbacks of the client."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from hlo_oracle.frontends.pjrt.declarations import declarations, structure
from hlo_oracle.frontends.pjrt.errors import Failed, PjrtError
from hlo_oracle.frontends.pjrt.foreign_memory import bytes_at, text_at
from hlo_oracle.frontends.pjrt.plugin import Plugin

_Callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_Delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_CallbackError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)


class KeyValueStore:
    """A wrapper of PJRT_KeyValueGetCallback and PJRT_KeyValuePutCallback as given to
    PJRT_Client_Create. Raises Failed with the client's status code and message."""

    def __init__(self, plugin: Plugin, args: Any) -> None:
        self._plugin = plugin
        self._get: Callable[[int], int | None] = _Callback(args.kv_get_callback)
        self._put: Callable[[int], int | None] = _Callback(args.kv_put_callback)
        self._given = {"get": args.kv_get_user_arg, "put": args.kv_put_user_arg}
        self._error = _CallbackError(self._failed)  # held for as long as it may be called

    def get(self, key: str, seconds: float) -> bytes:
        """Return the value of a key; wait for it for at most so many seconds."""
        args, _name = self._arguments("Get", key)
        args.give(timeout_in_ms=round(1000 * seconds))
        self._raise(self._get(ctypes.addressof(args)))
        value = bytes_at(args.value, args.value_size)
        if args.value_deleter_callback:
            _Delete(args.value_deleter_callback)(args.value)
        return value

    def put(self, key: str, value: bytes) -> None:
        """Store a value under a key."""
        args, _name = self._arguments("Put", key)
        held = ctypes.create_string_buffer(value)
        args.give(value=ctypes.addressof(held), value_size=len(value))
        self._raise(self._put(ctypes.addressof(args)))

    def _arguments(self, what: str, key: str) -> tuple[Any, object]:
        """Build the arguments structure of a callback; return it with the key's memory, to keep
        that alive."""
        name, encoded = f"KeyValue{what}Callback_Args", key.encode()
        held, args = ctypes.create_string_buffer(encoded), structure(name)()
        args.give(struct_size=declarations().sizes[name], key=ctypes.addressof(held))
        args.give(key_size=len(encoded), user_arg=self._given[what.lower()])
        args.give(callback_error=ctypes.cast(self._error, ctypes.c_void_p).value)
        return args, held

    def _failed(self, code: int, text: int | None, size: int) -> int:
        """Create the PJRT_Error by which a callback fails."""
        return self._plugin.handles.give(PjrtError(code, text_at(text, size)))

    def _raise(self, error: int | None) -> None:
        if error:
            found = self._plugin.handles.drop(error)
            assert isinstance(found, PjrtError)
            raise Failed(found.code, found.text)

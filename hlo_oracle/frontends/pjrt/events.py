"""PJRT events: most are set when they are returned; clients can create pending ones."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass, field
from typing import Any

from hlo.errors import ArgumentError
from hlo_oracle.frontends.pjrt.errors import Failed, PjrtError, described
from hlo_oracle.frontends.pjrt.foreign_memory import text_at
from hlo_oracle.frontends.pjrt.plugin import Plugin

__all__ = [
    "event_await",
    "event_create",
    "event_destroy",
    "event_error",
    "event_is_ready",
    "event_on_ready",
    "event_set",
]

_OnReady = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(slots=True)
class Event:
    """An event that is set once, perhaps with an error, and then calls its callbacks.

    ``happening`` is None for an event that was set when it was created, as most are.
    """

    happening: threading.Event | None = None
    error: PjrtError | None = None
    waiting: list[tuple[int, int | None]] = field(default_factory=list)

    @property
    def has_happened(self) -> bool:
        return self.happening is None or self.happening.is_set()

    def wait(self) -> None:
        """Block until the event is set."""
        if self.happening is not None:
            self.happening.wait()

    def result(self) -> None:
        """Wait; raise the event's error if it has one."""
        self.wait()
        if self.error is not None:
            raise Failed(self.error.code, self.error.text)

    def set(self, plugin: Plugin, error: PjrtError | None = None) -> None:
        """Set the event, with an error if one is given, and run the callbacks."""
        with _CHANGING:
            if self.happening is None or self.happening.is_set():
                raise ArgumentError("the event has happened already")
            self.error = error
            self.happening.set()
            waiting, self.waiting = self.waiting, []
        # Outside of the lock, which all events share: a callback may set another event.
        for callback, argument in waiting:
            self._call(plugin, callback, argument)

    def on_ready(self, plugin: Plugin, callback: int, argument: int | None) -> None:
        """Register a C callback for the event, called at once if it is set."""
        with _CHANGING:
            if not self.has_happened:
                self.waiting.append((callback, argument))
                return
        self._call(plugin, callback, argument)

    def _call(self, plugin: Plugin, callback: int, argument: int | None) -> None:
        error = None if self.error is None else plugin.handles.give(self.error)
        _OnReady(callback)(error, argument)


_CHANGING = threading.Lock()  # of any event, for as long as a list changes


def happened(plugin: Plugin) -> int:
    """Create an event that is set; return its handle."""
    return plugin.handles.give(Event())


def pending() -> Event:
    """Create an event that is not set."""
    return Event(threading.Event())


def event_destroy(plugin: Plugin, args: Any) -> None:
    plugin.handles.drop(args.event)


def event_is_ready(plugin: Plugin, args: Any) -> None:
    args.give(is_ready=plugin.handles.of(args.event, Event).has_happened)


def event_error(plugin: Plugin, args: Any) -> None:
    """Raise the event's error, if it has one, for the caller to return."""
    event = plugin.handles.of(args.event, Event)
    if event.has_happened:
        event.result()


def event_await(plugin: Plugin, args: Any) -> None:
    plugin.handles.of(args.event, Event).result()


def event_on_ready(plugin: Plugin, args: Any) -> None:
    plugin.handles.of(args.event, Event).on_ready(plugin, args.callback, args.user_arg)


def event_create(plugin: Plugin, args: Any) -> None:
    args.give(event=plugin.handles.give(pending()))


def event_set(plugin: Plugin, args: Any) -> None:
    event = plugin.handles.of(args.event, Event)
    text = text_at(args.error_message, args.error_message_size)
    event.set(plugin, described(Failed(args.error_code, text)) if args.error_code else None)

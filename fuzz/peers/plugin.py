"""Parse the name of a PJRT plugin with options: ``pjrt:PLUGIN.so[,KEY=VALUE…]``."""

from __future__ import annotations

from dataclasses import dataclass

from hlo.errors import ArgumentError
from interp.envelope.budget import UNKNOWN, Budget, named

PREFIX = "pjrt:"
_BUDGET = "budget"  # an option for us, not for the plugin
_BOOLS = {"true": True, "false": False}

Option = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Plugin:
    """Hold a parsed name: the library's ``path``, the client's ``options`` in order, and the
    ``budget`` by which results are judged."""

    path: str
    options: tuple[tuple[str, Option], ...] = ()
    budget: Budget = UNKNOWN


def is_plugin(name: str) -> bool:
    """Return whether a name is a plugin's."""
    return name.startswith(PREFIX)


def parsed(name: str) -> Plugin:
    """Parse ``pjrt:PLUGIN.so,KEY=VALUE,…``. Values are bools (true, false), integers, floats, or
    else strings; ``budget=NAME`` is a row of ``BUDGETS``. Raises ArgumentError if malformed."""
    path, *words = name.removeprefix(PREFIX).split(",")
    if not path:
        raise ArgumentError(f"{name}: the plugin's file is missing: {PREFIX}PLUGIN.so")
    budget, options = UNKNOWN, dict[str, Option]()
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise ArgumentError(f"{name}: {word!r} is no KEY=VALUE")
        if key == _BUDGET:
            budget = named(value)
        else:
            options[key] = _value(value)
    return Plugin(path, tuple(options.items()), budget)


def _value(text: str) -> Option:
    if text in _BOOLS:
        return _BOOLS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text

"""Name a plugin of PJRT with its options: ``pjrt:PLUGIN.so[,KEY=VALUE…]``."""

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
    """Hold what a name says: the library's ``path``, ``options`` for its client in the order of
    the name, and the ``budget`` by which its results are judged."""

    path: str
    options: tuple[tuple[str, Option], ...] = ()
    budget: Budget = UNKNOWN


def is_plugin(name: str) -> bool:
    """Test whether a name is that of a plugin."""
    return name.startswith(PREFIX)


def parsed(name: str) -> Plugin:
    """Read ``pjrt:PLUGIN.so,KEY=VALUE,…``: options are bools (true, false), integers, floats, or
    else texts, and ``budget=NAME`` is a row of ``BUDGETS``. ArgumentError if it is not so."""
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

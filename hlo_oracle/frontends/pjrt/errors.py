"""Convert exceptions to PJRT_Errors: an absl status code and a message."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hlo import errors
from hlo_oracle.frontends.pjrt.foreign_memory import Kept
from hlo_oracle.frontends.pjrt.plugin import Plugin

__all__ = ["error_destroy", "error_for_each_payload", "error_get_code", "error_message"]

_CANCELLED, UNKNOWN, _INVALID_ARGUMENT = 1, 2, 3
_RESOURCE_EXHAUSTED, _FAILED_PRECONDITION, _ABORTED = 8, 9, 10
UNIMPLEMENTED, _INTERNAL, _UNAVAILABLE = 12, 13, 14

# The first that an exception is an instance of.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (MemoryError, _RESOURCE_EXHAUSTED),
    (errors.Unsupported, UNIMPLEMENTED),
    (errors.CollectiveError, _ABORTED),
    (errors.OutOfFuel, _RESOURCE_EXHAUSTED),
    (errors.ToolchainError, _FAILED_PRECONDITION),
    (errors.DeviceError, _UNAVAILABLE),
    (errors.Error, _INVALID_ARGUMENT),
    (KeyboardInterrupt, _CANCELLED),
)


class Failed(errors.Error):
    """An error that came from the client with a status code, to be returned to it."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        super().__init__(text)


@dataclass(slots=True)
class PjrtError:
    """The object behind an opaque PJRT_Error."""

    code: int
    text: str
    kept: Kept = field(default_factory=Kept)


def described(error: BaseException) -> PjrtError:
    """Format an exception as a message; an unexpected one with the place where it was raised."""
    if isinstance(error, Failed):
        return PjrtError(error.code, str(error))
    lacking = next((one for one in _chain(error) if isinstance(one, MemoryError)), error)
    code = next((code for kind, code in _CODES if isinstance(lacking, kind)), None)
    if code is not None:
        return PjrtError(code, errors.explained(error) or type(error).__name__)
    place = "".join(traceback.format_tb(error.__traceback__)[-1:]).strip()
    told = f"a defect of hlo-oracle: {type(error).__name__}: {error}\n{place}"
    return PjrtError(_INTERNAL, told)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and its chain of causes."""
    while error is not None:
        yield error
        error = error.__cause__


def error_destroy(plugin: Plugin, args: Any) -> None:
    plugin.handles.drop(args.error)


def error_message(plugin: Plugin, args: Any) -> None:
    error = plugin.handles.of(args.error, PjrtError)
    args.give_each(("message", "message_size"), error.kept.text(error.text))


def error_get_code(plugin: Plugin, args: Any) -> None:
    args.give(code=plugin.handles.of(args.error, PjrtError).code)


def error_for_each_payload(plugin: Plugin, args: Any) -> None:
    """Do nothing: these errors have no payloads."""
    plugin.handles.of(args.error, PjrtError)

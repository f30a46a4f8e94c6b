"""Turn exceptions into PJRT_Errors: a code of absl's, and our text."""

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
    """An error that a client handed over with its code, to be given back to it."""

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
    """Describe an exception; one that is none of ours with where it was raised."""
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
    """Yield an exception, and those that it was raised from."""
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
    """Visit nothing: our errors have no payloads."""
    plugin.handles.of(args.error, PjrtError)

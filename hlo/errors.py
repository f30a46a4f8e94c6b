"""Define every error that this project raises on purpose.

Each one says what is wrong, where, and what to do about it when that is known; any other exception
that escapes is a defect of this project.
"""

from __future__ import annotations

from collections.abc import Sequence


class Error(Exception):
    """The base of all typed errors: catching it catches every bad input."""


def explained(error: BaseException) -> str:
    """Format an error, with the details of the VerifyError among its causes if there is one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, VerifyError):
        cause = cause.__cause__
    return "\n".join([str(error), *(cause.details if cause is not None else ())])


class ParseError(Error):
    """The text is not HLO: ``line:column: message``, the line, and a caret under the column.

    ``line`` and ``column`` count from 1; ``source`` is the offending line without its newline.
    """

    def __init__(self, message: str, line: int, column: int, source: str) -> None:
        self.message, self.line, self.column, self.source = message, line, column, source
        first = max(0, column - 61)  # a line of a dump can be megabytes long: show a window of it
        # A tab counts as one column, so that the caret stays under its character.
        window = source[first : first + 100].expandtabs(1)
        super().__init__(f"{line}:{column}: {message}\n{window}\n{' ' * (column - 1 - first)}^")


class VerifyError(Error):
    """The text parses but means nothing: ``line: %name = opcode, C3: message``.

    ``details`` are lines that explain it: the text of the instruction and its operands, and what
    the label (C3) means.
    """

    def __init__(self, message: str, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.details = tuple(details)


class Unsupported(Error):
    """Valid HLO that this implementation does not take (yet); the message names the alternative."""


class ArgumentError(Error):
    """The arguments of a run do not fit the entry computation, or a value could not be read."""


class CollectiveError(Error):
    """Ranks that should meet do not: they wait for each other, or their groups, operations, shapes
    or channels differ; the message names the ranks."""


class OutOfFuel(Error):
    """The evaluation used up the ``fuel`` it was given."""


class ToolchainError(Error):
    """No C compiler, a failed compilation, or a cache directory that cannot be used."""


class DeviceError(Error):
    """A GPU is missing, or its driver reports an error; the message names the kernel and the HLO
    instruction if one is known."""


class CompilerWarning(UserWarning):
    """The C compiler cannot be trusted with the flags as shipped, and got others; or it warns of
    generated code."""

"""The language: HLO text to modules and back, and what makes a module meaningful."""

from hlo.errors import (
    ArgumentError,
    CollectiveError,
    Error,
    OutOfFuel,
    ParseError,
    ToolchainError,
    Unsupported,
    VerifyError,
)
from hlo.module import Computation, Instruction, Module
from hlo.parser import parse
from hlo.printer import format
from hlo.verify import verify

__all__ = [
    "ArgumentError",
    "CollectiveError",
    "Computation",
    "Error",
    "Instruction",
    "Module",
    "OutOfFuel",
    "ParseError",
    "ToolchainError",
    "Unsupported",
    "VerifyError",
    "format",
    "parse",
    "verify",
]

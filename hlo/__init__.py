"""Define the HLO language: parse, print and verify modules."""

from hlo.errors import (
    ArgumentError,
    CollectiveError,
    DeviceError,
    Error,
    OutOfFuel,
    ParseError,
    ToolchainError,
    Unsupported,
    VerifyError,
)
from hlo.module import Computation, Instruction, Module
from hlo.text.parser import parse
from hlo.text.printer import format
from hlo.verification.verify import verify

__all__ = [
    "ArgumentError",
    "CollectiveError",
    "Computation",
    "DeviceError",
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

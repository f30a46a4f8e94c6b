"""Compile HLO to C: the interpreter's bits, on every target, at any number of threads."""

from backend_c.native.executable import Executable
from backend_c.pipeline import compile, emit

__all__ = ["Executable", "compile", "emit"]

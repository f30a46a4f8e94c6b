"""C for HLO: the same bits as the interpreter, fast."""

from backend_c.native.executable import Executable
from backend_c.pipeline import compile, emit

__all__ = ["Executable", "compile", "emit"]

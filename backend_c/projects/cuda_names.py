"""Name what other code sees of an emitted project of CUDA: files, functions, macros, kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass

from backend_c.render.translation_units import LAUNCHED

_PLAIN = "module"  # what our own texts say, and a project without a name of its own


@dataclass(frozen=True, slots=True)
class ProjectNames:
    """Names that begin with that of the module, so that several projects link into one program."""

    module: str = _PLAIN

    def kernel(self, kernel: str) -> str:
        """Return the symbol of a kernel."""
        return kernel if self.module == _PLAIN else f"{self.module}_{kernel}"

    def number(self, kernel: str) -> str:
        """Return the constant that is a kernel's place in the table of them."""
        return f"{self.module.upper()}_{kernel}"

    def begun(self, text: str) -> str:
        """Begin the names in a text of ours, in which nothing is of the program's, with that of the
        module."""
        own = text.replace(f"{_PLAIN.upper()}_", f"{self.module.upper()}_")
        return re.sub(rf"\b{_PLAIN}(?=_|\.(?:cu|h)\b)", self.module, own)

    def with_kernels(self, code: str) -> str:
        """Rename the kernels in CUDA that has no comments of the program yet."""
        kernels = LAUNCHED.findall(code)
        if self.module == _PLAIN or not kernels:
            return code
        return re.sub(rf"\b(?:{'|'.join(kernels)})\b", lambda match: self.kernel(match[0]), code)

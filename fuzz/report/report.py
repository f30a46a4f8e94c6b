"""What a report is made of."""

from __future__ import annotations

from dataclasses import dataclass

from fuzz.judge.failure import Judged
from fuzz.reducer.search import Value
from hlo.module import Module


@dataclass(frozen=True, slots=True)
class Report:
    """A program that fails, reduced, and where it comes from. ``seconds`` is how long the compiler
    may take before it hangs."""

    module: Module
    arrays: tuple[Value, ...]
    judged: Judged
    original: bytes
    original_arrays: tuple[Value, ...]
    seed: int = 0
    seconds: float = 60.0

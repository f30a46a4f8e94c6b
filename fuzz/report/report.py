"""Define the contents of a report."""

from __future__ import annotations

from dataclasses import dataclass

from fuzz.judge.failure import Judged
from hlo.module import Module
from interp.values import Value


@dataclass(frozen=True, slots=True)
class Report:
    """Hold a reduced failing program and its origin. ``seconds`` is the time limit after which the
    compiler counts as hanging."""

    module: Module
    arrays: tuple[Value, ...]
    judged: Judged
    original: bytes
    original_arrays: tuple[Value, ...]
    seed: int = 0
    seconds: float = 60.0

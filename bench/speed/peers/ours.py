"""The C backend of this project, exact or fast."""

from __future__ import annotations

import time
from pathlib import Path

import backend_c
import hlo
from bench.speed.peers.subject import Compiled, Question, Subject, nested
from hlo.values import arrays_of

TRIVIAL = """HloModule trivial
ENTRY main { p = f32[] parameter(0)
  ROOT n = f32[] negate(p) }
"""


def ready(question: Question, numerics: str) -> Subject:
    """Compile a program, and again from the cache. The cache holds what one machine compiles once
    (:func:`warmed`), and nothing of this program."""
    cache = Path(question.cache)
    warmed(cache)  # the first use also imports the ops, which is no program's time
    arrays = iter(question.arrays())
    module = question.module()
    values = [nested(p.shape, arrays) for p in module.entry.parameters]
    seconds = []
    for _ in range(question.compilations):
        begin = time.perf_counter()
        executable = backend_c.compile(
            question.module(), numerics=numerics, threads=question.threads, cache=cache
        )
        seconds.append(time.perf_counter() - begin)
    compiled = Compiled(seconds[0], seconds[-1], "hlo-oracle")
    return Subject(lambda: executable(*values), lambda result: [*arrays_of(result)], compiled)


def warmed(cache: Path) -> None:
    """Compile a trivial program into a cache: so the compiler is known to give right answers, which
    is asked once per machine."""
    backend_c.compile(hlo.parse(TRIVIAL), cache=cache)

"""The C backend of this project, exact or fast."""

from __future__ import annotations

import os
import time
from pathlib import Path

import backend_c
import hlo
from backend_c.native.cache import copy_parts, default_directory, open_cache
from backend_c.native.libraries import build
from backend_c.native.toolchain import known_compiler
from backend_c.render.dialect import OPENMP
from bench.speed.peers.subject import Compiled, Question, Subject
from hlo.values import arrays_of, unflattened

TRIVIAL = """HloModule trivial
ENTRY main { p = f32[] parameter(0)
  ROOT n = f32[] negate(p) }
"""


def ready(question: Question, numerics: str) -> Subject:
    """Compile a program, and again from the cache, which at first has only what is compiled once
    per machine (:func:`warmed`)."""
    cache = Path(question.cache)
    warmed(cache)  # the first use also imports the ops, which is no program's time
    arrays = iter(question.arrays())
    module = question.module()
    values = [unflattened(p.shape, arrays) for p in module.entry.parameters]
    seconds = []
    for _ in range(question.compilations):
        begin = time.perf_counter()
        executable = backend_c.compile(
            question.module(), numerics=numerics, threads=question.threads, cache=cache
        )
        seconds.append(time.perf_counter() - begin)
    compiled = Compiled(seconds[0], seconds[-1], "hlo-oracle")
    return Subject(lambda: executable(*values), lambda result: [*arrays_of(result)], compiled)


def warm_cache(cache: Path) -> None:
    """Make a cache with what is compiled once per machine, and with no program: a copy from the
    user's own, where anything missing is compiled first."""
    own = default_directory(os.environ)
    warmed(own)
    copy_parts(open_cache(own), cache)


def warmed(cache: Path) -> None:
    """Compile into a cache what is compiled once per machine: a trivial program, which first probes
    the compiler, and the runtime's procedures."""
    backend_c.compile(hlo.parse(TRIVIAL), cache=cache)
    kept = open_cache(cache)
    headers = "".join(f'#include "{name}"\n' for name, _ in OPENMP.includes)
    build({"runtime.c": headers}, known_compiler(os.environ, kept), kept)

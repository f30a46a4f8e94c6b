"""Run a program of examples/jax step by step, on the plugin and on XLA:CPU in turn.

A process of :mod:`selftest.real_programs`: ``session.py PROGRAM STEPS what``, where the environment
names the platforms and the mode. Prints a JSON object: a :class:`Run`, or the verdicts on the first
step.
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

PROGRAMS = Path(__file__).resolve().parents[2] / "examples" / "jax"
_BUDGETS = {"hlo_oracle": "fast", "cpu": None}  # None: that of XLA:CPU


@dataclass(slots=True)
class Run:
    """A run on one platform: the numbers that each step shows; seconds to start and make the first
    step, and the least of a later one, by the clock and by processor time; ``bits`` of the last
    state and numbers; ``interpreted``: why no C ran, if so."""

    seen: list[list[float]] = field(default_factory=list)
    first: float = 0.0
    least: float = 0.0
    processor: float = 0.0
    bits: list[str] = field(default_factory=list)
    interpreted: list[str] = field(default_factory=list)


class _Log(logging.Handler):
    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        self._told.append(record.getMessage())


def runs(program: Any, steps: int) -> dict[str, Run]:
    """Run ``steps`` steps on each platform, alternating step by step."""
    made = {platform: Run() for platform in jax.config.jax_platforms.split(",")}  # type: ignore[attr-defined]
    log = _Log(next(iter(made.values())).interpreted)
    logging.getLogger("hlo_oracle.frontends.pjrt.programs").addHandler(log)
    turns = [_steps(program, steps, platform, run) for platform, run in made.items()]
    for _ in range(steps):
        for turn in turns:
            next(turn)
    for turn in turns:
        next(turn, None)  # keeps the last state
    return made


def _steps(program: Any, steps: int, platform: str, run: Run) -> Iterator[None]:
    """Make one step for each request of the generator."""
    device = jax.devices(platform)[0]
    begin = time.perf_counter()
    with jax.default_device(device):
        state = program.start()
    for number in range(steps):
        clock = time.perf_counter(), time.process_time()
        with jax.default_device(device):
            state, seen = jax.block_until_ready(program.step(state, np.int32(number)))  # type: ignore[no-untyped-call]
        wall, cpu = time.perf_counter() - clock[0], time.process_time() - clock[1]
        if number == 0:
            run.first = time.perf_counter() - begin
        else:
            run.least, run.processor = min((run.least or wall, run.processor or cpu), (wall, cpu))
        run.seen.append([float(np.sum(x)) for x in jax.tree.leaves(seen)])
        yield
    arrays = [x for x in jax.tree.leaves(state) if isinstance(x, jax.Array)]
    plain = [x for x in arrays if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key)]
    run.bits = [np.asarray(x).tobytes().hex()[:4096] for x in (*plain, *jax.tree.leaves(seen))]


def both_judged(program: Any) -> dict[str, str]:
    """Judge both platforms' results of the first step."""
    import hlo_oracle

    told = {}
    for platform, budget in _BUDGETS.items():
        with jax.default_device(jax.devices(platform)[0]):
            state = program.start()
            verdict = hlo_oracle.check(program.step, state, np.int32(0), budget=budget)
        words = ("equal", "within", "outside", "undetermined")
        counts = [f"{n:,} {word}" for word in words if (n := getattr(verdict, word))]
        told[platform] = ", ".join(counts)
    return told


def main() -> None:
    name, steps, what = sys.argv[1:]
    sys.path.insert(0, str(PROGRAMS))
    program = importlib.import_module(name)
    if what == "judge":
        print(json.dumps(both_judged(program)))
    else:
        print(
            json.dumps(
                {platform: asdict(run) for platform, run in runs(program, int(steps)).items()}
            )
        )


if __name__ == "__main__":
    main()

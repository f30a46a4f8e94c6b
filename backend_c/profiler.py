"""Describe a module kernel by kernel, and time its kernels in a library with timers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from backend_c.compilation import Compilation, compilation
from backend_c.ir.settings import Settings
from backend_c.native.cache import Cache
from backend_c.native.executable import Executable, require_threads
from backend_c.native.libraries import build
from backend_c.native.loaded_library import LoadedLibrary
from backend_c.native.machine_limits import measured_quickly
from backend_c.native.marshalling import Value
from backend_c.native.toolchain import Compiler
from backend_c.profiles.describer import Describer
from backend_c.profiles.limits import Limits, best
from backend_c.profiles.profile import Memory, Profile
from backend_c.profiles.rows import Machine
from backend_c.render.timers import READINGS
from backend_c.render.translation_units import Program
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.operating_system import processors


@dataclass(frozen=True)
class Profiler:
    """Describe and profile a verified module; ``pipeline`` names its passes.

    ``measure`` returns the limits of the machine (bandwidth, operations) at a number of threads.
    """

    module: Module
    settings: Settings
    pipeline: str
    compiler: Compiler
    cache: Cache
    measure: Callable[[int, Cache], Limits] = measured_quickly

    def explain(self, threads: int | None = None) -> Profile:
        """Describe the kernels without running them, beside the machine's limits at ``threads``;
        raise ArgumentError for a number of threads that no program runs in."""
        return self._described(_threads(threads))

    def profile(
        self, arrays: Sequence[Value], repeat: int, seed: int = 0, threads: int | None = None
    ) -> Profile:
        """Describe the kernels with their times: the least of ``repeat`` calls, for each kernel.

        Raises ArgumentError for arguments that do not fit, for ``repeat`` less than 1, and for a
        number of threads that no program runs in.
        """
        if repeat < 1:
            raise ArgumentError(f"repeat={repeat}: at least 1")
        threads = _threads(threads)  # given, so that no call chooses another number
        described = self._described(threads)
        start = time.perf_counter()
        program = self._compiled.program
        library = LoadedLibrary(build(program.sources, self.compiler, self.cache))
        stage = time.perf_counter() - start
        entry = self.module.entry
        parameters = [(p.name, p.shape) for p in entry.parameters]
        executable = Executable(library, program, parameters, entry.root_instruction.shape, threads)
        calls = [_timed_call(executable, program, arrays, seed) for _ in range(repeat + 1)]
        found = _without_clock(calls[1:])  # the first one wakes threads and touches memory
        steps = [
            (min(taken for taken, _ in step), step[-1][1]) for step in zip(*found, strict=True)
        ]
        least = min(sum(taken for taken, _ in call) for call in found)
        return described.timed(steps, least, repeat, stage)

    def _described(self, threads: int) -> Profile:
        """Describe the kernels, without times."""
        made, machine = self._compiled, self._machine(threads)
        describer = Describer(made.plan, made.after, made.before, made.groups, machine)
        rows = describer.rows()
        arguments, results = (
            sum(buffer.bytes for buffer in buffers)
            for buffers in (made.plan.arguments, made.plan.results)
        )
        assert made.program.times is not None
        memory = Memory(arguments, results, len(made.program.constants), made.program.times)
        return Profile(
            self.module.name,
            self.settings.numerics.value,
            machine,
            rows,
            describer.edges(),
            describer.free(rows),
            memory,
            made.stages,
            made.listing,
        )

    @cached_property
    def _compiled(self) -> Compilation:
        """Run the passes, lower and render with timers."""
        return compilation(self.module, self.settings, self.pipeline)

    def _machine(self, threads: int) -> Machine:
        """Measure the machine's limits with one thread and with all ``threads``."""
        one = self.measure(1, self.cache)
        if threads == 1:
            return Machine(one, one, 1)
        return Machine(one, _at_least(one, self.measure(threads, self.cache)), threads)


def _at_least(one: Limits, every: Limits) -> Limits:
    """Return the limits of all threads, raised to at least those of one thread.

    Other work on the machine may make the measurement of all threads the lower one.
    """
    return replace(best(one, every), region=every.region)


def _timed_call(
    executable: Executable, program: Program, arrays: Sequence[Value], seed: int
) -> list[tuple[int, int]]:
    """Call the executable once; return (nanoseconds, runs) of each step, the timer's own last."""
    executable(*arrays, seed=seed)
    assert program.times is not None
    return executable.times(program.times)


def _without_clock(calls: Sequence[Sequence[tuple[int, int]]]) -> list[list[tuple[float, int]]]:
    """Return (seconds, runs) of each step of each call, less the cost of reading the clock.

    That cost is the least over the calls, as other work on the machine only lengthens it.
    """
    reading = min(call[-1][0] for call in calls) / READINGS
    return [
        [(max(0.0, taken - reading * runs) * 1e-9, runs) for taken, runs in call[:-1]]
        for call in calls
    ]


def _threads(threads: int | None) -> int:
    """Return the threads of a call: ``threads``, else OMP_NUM_THREADS, else all processors; raise
    ArgumentError for a number that no program runs in."""
    if threads is None:
        told = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        threads = int(told) if told.isdecimal() and int(told) else processors()
    require_threads(threads)
    return threads

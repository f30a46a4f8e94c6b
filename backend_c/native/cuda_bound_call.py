"""Run a program repeatedly on the same memory of a GPU, and measure its kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from backend_c.cuda.host_plan import LaunchKernel, MultiplyMatrices
from backend_c.native.cuda_driver import events
from backend_c.native.cuda_host_run import Around, Queue, Simple
from backend_c.native.cuda_launches import computed_by
from backend_c.native.device_arrays import DeviceArray, DeviceInput, Writer
from backend_c.native.marshalling import Value
from hlo.errors import ArgumentError

# Least milliseconds of runs between two readings of the GPU's clock, which counts in steps of about
# 0.5 µs (cuEventElapsedTime).
_BATCH = 2.0
_MOST = 1 << 12  # runs of a batch
_AHEAD = 10.0  # milliseconds of runs before one whose launches are timed


@dataclass(frozen=True, slots=True)
class KernelTime:
    """Hold the total milliseconds of a kernel's launches in one run."""

    kernel: str
    instruction: str
    launches: int
    milliseconds: float


class BoundCall:
    """Hold arguments and results of a program on a GPU; each run overwrites ``results``.

    Runs are queued on the program's stream, those of several threads one after the other. All
    raise DeviceError once the program is closed.
    """

    def __init__(
        self,
        queue: Queue,
        inputs: Sequence[DeviceInput],
        outputs: Sequence[DeviceArray],
        results: Value,
        writer: Writer,
    ) -> None:
        self._queue, self._steps = queue, queue.steps
        self._inputs, self._writer = inputs, writer  # whose memory the runs need
        self._given = [one.address for one in inputs]
        self._outputs = outputs
        self._found = [one.address for one in outputs]
        self.results = results

    def enqueue(self, seed: int = 0) -> None:
        """Start a run asynchronously; later runs follow it in the stream.

        Only loops and branches of the host wait for the GPU. Raises DeviceError for the driver's
        errors.
        """
        with self._queue.held():
            self._run(seed)

    def wait(self) -> None:
        """Wait for the runs; raise DeviceError with the kernels that may have failed."""
        with self._queue.held():
            self._synchronize()

    def time(self, repeat: int = 10, seed: int = 0) -> float:
        """Return the least milliseconds of a run by the GPU's clock, of some batches of runs.

        Raises ArgumentError for ``repeat`` less than 1.
        """
        if repeat < 1:
            raise ArgumentError(f"repeat={repeat}: at least 1")
        driver = self._steps.device.driver
        least, runs = float("inf"), 1
        with self._queue.held(), events(driver, 2) as (start, end):
            while repeat:
                driver.call("cuEventRecord", start, self._steps.stream)
                for _ in range(runs):
                    self._run(seed)
                driver.call("cuEventRecord", end, self._steps.stream)
                self._synchronize()
                taken = driver.made("cuEventElapsedTime", "float", start, end)
                if taken < _BATCH and runs < _MOST:
                    runs *= 2
                    continue
                least, repeat = min(least, taken / runs), repeat - 1
        return least

    def profile(self, seed: int = 0) -> list[KernelTime]:
        """Run once, timing each launch by the GPU's clock; return the longest kernels first.

        Usual runs are queued before it, so that the GPU does not have to wait for the host.
        """
        device = self._steps.device
        timed: list[tuple[LaunchKernel | MultiplyMatrices, Any, Any]] = []
        ahead = min(_MOST, math.ceil(_AHEAD / self.time(1, seed)))
        with self._queue.held(), ExitStack() as stack:

            def around(run: Callable[[Simple], None], step: Simple) -> None:
                if not isinstance(step, LaunchKernel | MultiplyMatrices):
                    run(step)
                    return
                start, end = stack.enter_context(events(device.driver, 2))
                device.driver.call("cuEventRecord", start, self._steps.stream)
                run(step)
                device.driver.call("cuEventRecord", end, self._steps.stream)
                timed.append((step, start, end))

            for _ in range(ahead):
                self._run(seed)
            self._run(seed, around)
            self._synchronize()
            elapsed = device.driver.made
            taken: dict[tuple[str, str], list[float]] = {}
            for step, start, end in timed:
                key = computed_by(step), step.origin.instruction
                taken.setdefault(key, []).append(elapsed("cuEventElapsedTime", "float", start, end))
        found = [KernelTime(*key, len(times), sum(times)) for key, times in taken.items()]
        return sorted(found, key=lambda one: -one.milliseconds)

    def _run(self, seed: int, around: Around | None = None) -> None:
        """Queue a run; the results are not complete from here on."""
        for one in self._outputs:
            one.write(self._writer)
        self._steps.run(self._given, self._found, seed, around)

    def _synchronize(self) -> None:
        """Wait for the runs; the results are complete from here on."""
        self._steps.synchronize()
        for one in self._outputs:
            one.complete()

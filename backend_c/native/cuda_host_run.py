"""Execute a host plan by the driver's calls; repeated stretches of steps become CUDA graphs.

Steps between two decisions of the host (a loop, a branch) are a *stretch*. One that is run again
with the same addresses is captured as a graph, which is launched by one call: that takes a GPU's
front end about a microsecond for each kernel, where a call from Python takes several.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from backend_c.cuda.host_plan import (
    CopyBytes,
    FillBytes,
    HostLoop,
    HostPlan,
    HostStep,
    HostSwitch,
    LaunchKernel,
    MultiplyMatrices,
    launches,
    products,
)
from backend_c.native.cublas_lt import CublasLt, PreparedProduct
from backend_c.native.cuda_driver import Driver, DriverError, LoadedModule
from backend_c.native.cuda_launches import Launcher, PreparedLaunch, launch_as_planned, one_of
from backend_c.render.translation_units import Place
from hlo.errors import DeviceError

_NOT_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: apart from the default stream
_BY_THREAD = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may allocate meanwhile
_MOST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_FEWEST = 2  # steps of a stretch that is worth a graph
_MOST_WRITTEN_OUT = 1 << 12  # steps of a loop, all trips together, that are one graph
_HELD_BACK = 2  # runs with the same addresses before a stretch is captured

Simple = LaunchKernel | MultiplyMatrices | CopyBytes | FillBytes
# Runs a step, by the function that is given.
Around = Callable[[Callable[[Simple], None], Simple], None]
Blocks = Mapping[str, Sequence[int]]


class _Stretch:
    """Hold consecutive steps without a decision of the host, and their graph once captured.

    ``moves``: they touch arguments or results, whose addresses change, or take the seed.
    """

    def __init__(self, steps: Sequence[Simple], moves: bool, driver: Driver, stream: Any) -> None:
        self.steps, self.moves = tuple(steps), moves
        self.launches = [s for s in steps if isinstance(s, LaunchKernel | MultiplyMatrices)]
        self._driver, self._stream = driver, stream
        self._runs = 0  # with these addresses, without a graph
        self._graph: Any = None

    def do(self, each: Callable[[Simple], None], has_graphs: bool) -> None:
        """Run the steps: each by ``each``, or all by a graph captured from that."""
        if not has_graphs or len(self.steps) < _FEWEST:
            _do_all(each, self.steps)
        elif self._graph is None and self._runs < _HELD_BACK:
            self._runs += 1
            _do_all(each, self.steps)
        else:
            if self._graph is None:
                self._graph = self._captured(each)
            self._driver.call("cuGraphLaunch", self._graph, self._stream, doing="launching a graph")

    def _captured(self, each: Callable[[Simple], None]) -> Any:
        """Capture the steps as an executable graph."""
        self._driver.call("cuStreamBeginCapture_v2", self._stream, _BY_THREAD)
        try:
            _do_all(each, self.steps)
        except BaseException:
            # Or the stream would go on capturing. It reports the same error once more.
            with suppress(DeviceError):
                self._driver.call("cuGraphDestroy", self._end_capture())
            raise
        graph = self._end_capture()
        try:
            return self._driver.made("cuGraphInstantiateWithFlags", "CUgraphExec", graph, 0)
        finally:
            # The executable graph is a copy.
            self._driver.call("cuGraphDestroy", graph)

    def _end_capture(self) -> Any:
        """Return the graph of what the stream was given since the capture began."""
        return self._driver.made("cuStreamEndCapture", "CUgraph", before=[self._stream])

    def forget(self) -> None:
        """Free the graph: its addresses are outdated."""
        graph, self._graph, self._runs = self._graph, None, 0
        if graph is not None:
            with suppress(DeviceError):  # the context may be lost
                self._driver.call("cuGraphExecDestroy", graph)


def _do_all(each: Callable[[Simple], None], steps: Iterable[Simple]) -> None:
    for step in steps:
        each(step)


@dataclass(frozen=True, slots=True)
class _Loop:
    """Hold a loop; unless ``trips`` is known, the condition is repeated at the end of the body."""

    predicate: Place
    condition: list[_Part]
    body: list[_Part]
    trips: int | None


@dataclass(frozen=True, slots=True)
class _Switch:
    step: HostSwitch
    cases: list[list[_Part]]


_Part = _Stretch | _Loop | _Switch


def _written_out(steps: Sequence[HostStep], taken: Collection[int]) -> Iterator[HostStep]:
    """Unroll the loops whose trip counts are known and small, and replace products of matrices by
    the launches of kernels unless their numbers are in ``taken``.
    """
    for step in steps:
        if isinstance(step, MultiplyMatrices) and step.number not in taken:
            yield from step.launches
            continue
        if isinstance(step, HostLoop) and step.trips is not None:
            body = list(_written_out(step.body, taken))
            if step.trips * len(body) <= _MOST_WRITTEN_OUT:
                yield from body * step.trips
                continue
        yield step


def _stretches(parts: Iterable[_Part]) -> Iterator[_Stretch]:
    for part in parts:
        match part:
            case _Stretch():
                yield part
            case _Loop():
                yield from _stretches([*part.condition, *part.body])
            case _Switch():
                yield from _stretches(itertools.chain.from_iterable(part.cases))


class HostRun:
    """Run the host plan of a loaded module on a stream of its own.

    ``fixed`` has the addresses of the constants and of the workspace. ``launcher`` makes each
    launch; graphs are used only with the default one. ``library`` computes the products of matrices
    that it takes.
    """

    def __init__(
        self,
        module: LoadedModule,
        host: HostPlan,
        fixed: Mapping[str, int],
        launcher: Launcher = launch_as_planned,
        library: CublasLt | None = None,
    ) -> None:
        self.device, self._host = module.device, host
        self._driver, self._fixed, self._launcher = module.device.driver, fixed, launcher
        self._since: dict[_Stretch, None] = {}  # that nobody has waited for yet, each once
        self._at: list[Any] = []  # arguments, results and seed of the last run
        self._blocks: Blocks = {}
        # An error is that of one kernel only if each is launched alone.
        alone = os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"
        self._has_graphs = launcher is launch_as_planned and not alone
        self._products: dict[int, PreparedProduct] = {} if library is None else {
            step.number: ready
            for step in products(host) if (ready := library.prepared(step)) is not None
        }  # fmt: skip
        self._launches = [
            PreparedLaunch(step, self._function(module, step), self._driver.ffi, fixed)
            for step in launches(host)
        ]
        # After all that may fail: nobody would free it.
        self.stream = self._driver.made("cuStreamCreate", "CUstream", _NOT_BLOCKING)
        self._parts = self._divided(host.steps)

    def run(
        self,
        given: Sequence[int],
        found: Sequence[int],
        seed: int,
        around: Around | None = None,
    ) -> None:
        """Queue all steps, with arguments, results at these addresses; ``around``, if given, runs
        each step.

        Returns without waiting for steps after the last decision of the host.
        """
        self._since = {}
        self._place(given, found, seed)
        if around is None:
            self._do(self._parts, self._simple, self._has_graphs)
        else:
            self._do(self._parts, partial(around, self._simple), has_graphs=False)

    def synchronize(self) -> None:
        """Wait for the stream; an error names the launches since the last synchronisation."""
        since, self._since = self._since, {}
        try:
            self._driver.call("cuStreamSynchronize", self.stream, doing="waiting for the GPU")
        except DriverError as error:
            launched = [step for stretch in since for step in stretch.launches]
            raise DeviceError(f"{one_of(launched)}{error}") from error

    def close(self) -> None:
        """Wait for the stream, free it and the graphs; the device's context is current."""
        for stretch in _stretches(self._parts):
            stretch.forget()
        if self.stream is not None:
            stream, self.stream = self.stream, None
            # Results may outlive the program: they are complete from here on.
            with suppress(DeviceError):
                self._driver.call("cuStreamSynchronize", stream)
            self._driver.call("cuStreamDestroy_v2", stream)

    def _function(self, module: LoadedModule, step: LaunchKernel) -> Any:
        """Return a launch's kernel, allowed to use the dynamic shared memory that it asks for."""
        function, shared = module.function(step.kernel), step.geometry.shared
        if shared:
            doing = f"asking for {shared} bytes of shared memory for {step.kernel}"
            self._driver.call("cuFuncSetAttribute", function, _MOST_SHARED, shared, doing=doing)
        return function

    def _divided(self, steps: Sequence[HostStep]) -> list[_Part]:
        """Divide steps into stretches, at the decisions of the host; unroll short counted loops."""
        parts: list[_Part] = []
        simple: list[Simple] = []
        for step in _written_out(steps, self._products):
            if isinstance(step, HostLoop | HostSwitch):
                parts += [self._stretch(simple)] * bool(simple)
                parts.append(self._decision(step))
                simple = []
            else:
                simple.append(step)
        return parts + [self._stretch(simple)] * bool(simple)

    def _decision(self, step: HostLoop | HostSwitch) -> _Loop | _Switch:
        if isinstance(step, HostSwitch):
            return _Switch(step, [self._divided(case) for case in step.cases])
        if step.trips is not None:
            return _Loop(step.predicate, [], self._divided(step.body), step.trips)
        body = self._divided([*step.body, *step.condition])
        return _Loop(step.predicate, self._divided(step.condition), body, None)

    def _stretch(self, steps: Sequence[Simple]) -> _Stretch:
        moves = any(map(self._moves, steps))
        return _Stretch(steps, moves, self._driver, self.stream)

    def _moves(self, step: Simple) -> bool:
        match step:
            case LaunchKernel():
                return step.takes_seed or bool(self._launches[step.number].moving)
            case MultiplyMatrices():
                return any(map(self._moves, step.launches))
            case CopyBytes(source, target):
                return not {source.block, target.block} <= set(self._fixed)
            case FillBytes(target):
                return target.block not in self._fixed

    def _place(self, given: Sequence[int], found: Sequence[int], seed: int) -> None:
        """Set the addresses of a run; if they changed, free the graphs that depend on them."""
        # A seed that no kernel takes does not outdate graphs.
        at = [list(given), list(found), seed if self._host.uses_seed else 0]
        if at == self._at:
            return
        self._at, self._blocks = at, {"arguments": given, "results": found}
        for launch in self._launches:
            launch.place(self._blocks, seed)
        for stretch in _stretches(self._parts):
            if stretch.moves:
                stretch.forget()

    def _do(self, parts: Sequence[_Part], each: Callable[[Simple], None], has_graphs: bool) -> None:
        for part in parts:
            match part:
                case _Stretch():
                    part.do(each, has_graphs)
                    self._since[part] = None
                case _Loop(_, _, body, trips) if trips is not None:
                    for _ in range(trips):
                        self._do(body, each, has_graphs)
                case _Loop():
                    self._do(part.condition, each, has_graphs)
                    while self._read("uint8_t", part.predicate, 1):
                        self._do(part.body, each, has_graphs)
                case _Switch():
                    self._do(part.cases[self._chosen(part.step)], each, has_graphs)

    def _simple(self, step: Simple) -> None:
        """Queue a step that needs no decision of the host."""
        match step:
            case LaunchKernel():
                ready = self._launches[step.number]
                self._launcher(self.device, step, ready.function, ready.words, self.stream)
            case MultiplyMatrices():
                self._multiply(step)
            case CopyBytes(source, target, size):
                words = self._address(target), self._address(source), size, self.stream
                self._driver.call("cuMemcpyDtoDAsync_v2", *words, doing="copying on the GPU")
            case FillBytes(target, value, size):
                words = self._address(target), value, size, self.stream
                self._driver.call("cuMemsetD8Async", *words, doing="filling")

    def _multiply(self, step: MultiplyMatrices) -> None:
        """Queue a product of matrices: by the library, or by kernels if these lie as it takes
        none."""
        ready = self._products[step.number]
        at = [self._address(place) for place in (step.lhs, step.rhs, step.result)]
        if ready.takes(at):
            stream = int(self._driver.ffi.cast("uintptr_t", self.stream))
            ready.enqueue(at, self._address(step.workspace), stream)
        else:
            _do_all(self._simple, step.launches)

    def _chosen(self, step: HostSwitch) -> int:
        """Read the selector of a branch; return the number of its case."""
        words = ("uint8_t", 1) if step.is_pred else ("int32_t", 4)
        value = self._read(words[0], step.selector, words[1])
        if step.is_pred:
            value = 0 if value else 1
        last = len(step.cases) - 1
        return value if 0 <= value < last else last

    def _read(self, c_type: str, place: Place, size: int) -> int:
        """Wait for the GPU and read a number from its memory."""
        number = self._driver.ffi.new(f"{c_type} *")
        self._driver.call(
            "cuMemcpyDtoHAsync_v2", number, self._address(place), size, self.stream,
            doing="reading a condition",
        )  # fmt: skip
        self.synchronize()
        return int(number[0])

    def _address(self, place: Place) -> int:
        """Return the device address of a place in this run."""
        if place.block in self._fixed:
            return self._fixed[place.block] + place.offset
        return self._blocks[place.block][place.offset]


class Queue:
    """Let the runs of several threads on one stream follow each other."""

    def __init__(self, steps: HostRun) -> None:
        self.steps, self._running = steps, threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other threads out, and make the device's context current.

        Raises DeviceError if the program was closed.
        """
        with self._running, self.steps.device.current():
            if self.steps.stream is None:
                raise DeviceError("the program was closed, and what it held of the GPU is freed")
            yield

    def wait(self) -> None:
        """Wait for all runs; there are none after :meth:`close`."""
        with self._running, self.steps.device.current():
            if self.steps.stream is not None:
                self.steps.synchronize()

    def close(self) -> None:
        """Free what the runs need, after the last one."""
        with self._running, suppress(DeviceError), self.steps.device.current():
            self.steps.close()

"""Run a compiled program on a GPU: walk through its host plan, with the driver's calls.

There is one workspace and one stream for each program. Calls take NumPy arrays and give them;
:meth:`CudaExecutable.on_device` takes and gives memory of the GPU (:mod:`backend_c.native.
device_arrays`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from backend_c.cuda.geometry import Geometry
from backend_c.cuda.host_plan import (
    CopyBytes,
    FillBytes,
    HostLoop,
    HostPlan,
    HostStep,
    HostSwitch,
    LaunchKernel,
    launches,
)
from backend_c.native.cuda_driver import Device, DeviceMemory, DriverError, LoadedModule
from backend_c.native.device_arrays import DeviceArray, device_arguments
from backend_c.native.marshalling import Array, Memory, Value, arguments, array_leaves, assembled
from backend_c.native.marshalling import nested as nested_values
from backend_c.render.translation_units import Place, storage_type
from hlo.errors import DeviceError
from hlo.types import ArrayShape, Shape

_SEED = 0xFFFF_FFFF_FFFF_FFFF  # kernels take 64 bits of it
_NOT_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: apart from the default stream
_NAMED = 4  # launches in a message

# Launches a kernel (its step, its function, the addresses of its arguments) on a stream.
Launcher = Callable[[Device, LaunchKernel, Any, Any, Any], None]


def launch_as_planned(
    device: Device,
    step: LaunchKernel,
    function: Any,
    words: Any,
    stream: Any,
    chosen: Geometry | None = None,
) -> None:
    """Launch a kernel in the geometry that its step has, or in the chosen one."""
    blocks, threads, shared = chosen or step.geometry
    null = device.driver.ffi.NULL
    device.driver.call(
        "cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, stream, words, null,
        doing=_told(step),
    )  # fmt: skip


class _Launch:
    """Hold a launch whose arguments need only the addresses of a run.

    ``moving`` are the arguments in memory of the caller: number, block and number there.
    """

    __slots__ = ("addresses", "function", "moving", "step", "words")

    def __init__(self, step: LaunchKernel, function: Any, ffi: Any, fixed: Mapping[str, int]):
        places = [operand.place for operand in step.operands]
        self.step, self.function = step, function
        # The seed, by value, is the last.
        self.addresses = ffi.new("uint64_t[]", len(places) + 1)
        self.words = ffi.new("void *[]", [self.addresses + n for n in range(len(places) + 1)])
        self.moving = [(n, p.block, p.offset) for n, p in enumerate(places) if p.block not in fixed]
        for n, place in enumerate(places):
            if place.block in fixed:
                self.addresses[n] = fixed[place.block] + place.offset


class CudaExecutable:
    """Run a program on the arrays of its parameters; ``source`` is its CUDA by file name.

    ``parameters`` are the entry's names and shapes in order, ``result`` is its root's shape. Calls
    from several threads run one after the other, as they share the workspace. What the program
    holds of the GPU is freed by :meth:`close`, or with the object.
    """

    def __init__(
        self,
        module: LoadedModule,
        host: HostPlan,
        parameters: Sequence[tuple[str, Shape]],
        result: Shape,
        source: Mapping[str, str],
        launcher: Launcher = launch_as_planned,
    ) -> None:
        self._module, self._device, self._host = module, module.device, host
        self._parameters, self._result = tuple(parameters), result
        self._launcher, self.source = launcher, source
        self._running = threading.Lock()
        self._driver = driver = module.device.driver
        self._constants = DeviceMemory(self._device, len(host.constants))
        self._workspace = DeviceMemory(self._device, host.workspace_bytes)
        fixed = {"constants": self._constants.address, "workspace": self._workspace.address}
        self._fixed = fixed
        self._held: dict[tuple[str, int], DeviceMemory] = {}
        self._since: list[LaunchKernel] = []  # that nobody has waited for yet
        with self._device.current():
            self._stream = driver.made("cuStreamCreate", "CUstream", _NOT_BLOCKING)
            self._launches = [
                _Launch(step, module.function(step.kernel), driver.ffi, fixed)
                for step in launches(host)
            ]
            self._upload(self._constants.address, host.constants)
            self._synchronize()

    def __call__(self, *arrays: Value, seed: int = 0) -> Value:
        """Run on one value for each parameter, copied to the GPU, and copy the result back.

        Raises ArgumentError for the first value that does not fit its shape, Unsupported if the
        memory of the GPU does not suffice, and DeviceError for what the driver reports: it names
        the kernel and the instruction.
        """
        inputs = [a for m in arguments(self._parameters, arrays) for a in m.arrays()]
        made = [Memory.empty(shape) for shape in array_leaves(self._result)]
        outputs = [array for memory in made for array in memory.arrays()]
        with self._running, self._device.current():
            given = [self._memory("arguments", n, a.nbytes) for n, a in enumerate(inputs)]
            found = [self._memory("results", n, a.nbytes) for n, a in enumerate(outputs)]
            for address, array in zip(given, inputs, strict=True):
                self._upload(address, array)
            self._run(given, found, seed)
            for address, array in zip(found, outputs, strict=True):
                self._download(array, address)
            self._synchronize()
        return assembled(self._result, iter(made))

    def on_device(self, *arrays: Value, seed: int = 0) -> Value:
        """Run on values in memory of the GPU, of any library that has ``__cuda_array_interface__``
        or ``__dlpack__``; the result is one, too, or a tuple. NumPy arrays are copied.

        Raises as calls do, and ArgumentError for memory that is not row-major or of another GPU,
        and for shapes that are converted at each call (bounded ones, integers of less than a byte).
        """
        inputs = device_arguments(self._device, self._parameters, arrays)
        results = [_empty(self._device, leaf) for leaf in array_leaves(self._result)]
        with self._running, self._device.current():
            for one in inputs:
                one.wait(self._stream)
                if one.data is not None:
                    self._upload(one.address, one.data)
            addresses = [one.address for one in inputs]
            self._run(addresses, [result.address for result in results], seed)
            # Whoever owns the arguments may free them as soon as this returns.
            self._synchronize()
        return nested_values(self._result, iter(results))

    def time(self, *arrays: Value, repeat: int = 10, seed: int = 0) -> float:
        """Return the least milliseconds of a run by the GPU's clock, without copies.

        Raises as :meth:`on_device`.
        """
        inputs = device_arguments(self._device, self._parameters, arrays)
        results = [_empty(self._device, leaf) for leaf in array_leaves(self._result)]
        call, made = self._driver.call, self._driver.made
        times: list[float] = []
        with self._running, self._device.current():
            for one in inputs:
                one.wait(self._stream)
                if one.data is not None:
                    self._upload(one.address, one.data)
            words = [one.address for one in inputs], [result.address for result in results]
            start, end = (made("cuEventCreate", "CUevent", 0) for _ in range(2))
            for _ in range(repeat):
                call("cuEventRecord", start, self._stream)
                self._run(*words, seed)
                call("cuEventRecord", end, self._stream)
                self._synchronize()
                times.append(made("cuEventElapsedTime", "float", start, end))
            for event in (start, end):
                call("cuEventDestroy_v2", event)
        return min(times)

    def close(self) -> None:
        """Free what the program holds of the GPU."""
        if stream := getattr(self, "_stream", None):
            self._stream = None
            with suppress(DeviceError), self._device.current():
                self._driver.call("cuStreamDestroy_v2", stream)
        for memory in (self._constants, self._workspace, *self._held.values()):
            memory.close()

    def __del__(self) -> None:
        if hasattr(self, "_held"):
            self.close()

    def _memory(self, block: str, number: int, size: int) -> int:
        """Return the address of an argument or a result that is copied: always the same."""
        key = block, number
        if key not in self._held:
            self._held[key] = DeviceMemory(self._device, size)
        return self._held[key].address

    def _upload(self, address: int, data: bytes | Array) -> None:
        """Copy to the GPU."""
        buffer = self._driver.ffi.from_buffer(data)
        if len(buffer):
            self._driver.call(
                "cuMemcpyHtoDAsync_v2", address, buffer, len(buffer), self._stream,
                doing="copying to the GPU",
            )  # fmt: skip

    def _download(self, array: Array, address: int) -> None:
        """Copy from the GPU; the array is written when the stream has been waited for."""
        if array.nbytes:
            self._driver.call(
                "cuMemcpyDtoHAsync_v2", self._driver.ffi.from_buffer(array), address, array.nbytes,
                self._stream, doing="copying from the GPU",
            )  # fmt: skip

    def _run(self, given: Sequence[int], found: Sequence[int], seed: int) -> None:
        """Do the steps on arguments and results at these addresses."""
        blocks = {"arguments": given, "results": found}
        self._since = []
        for launch in self._launches:
            for n, block, number in launch.moving:
                launch.addresses[n] = blocks[block][number]
            if launch.step.takes_seed:
                launch.addresses[len(launch.step.operands)] = seed & _SEED
        _Run(self, blocks).steps(self._host.steps)

    def launch(self, step: LaunchKernel) -> None:
        """Launch a kernel of a run."""
        ready = self._launches[step.number]
        self._since.append(step)
        self._launcher(self._device, step, ready.function, ready.words, self._stream)

    def address(self, place: Place, blocks: Mapping[str, Sequence[int]]) -> int:
        """Return the address of a place in a run."""
        if place.block in self._fixed:
            return self._fixed[place.block] + place.offset
        return blocks[place.block][place.offset]

    def copied(self, target: int, source: int, size: int) -> None:
        """Copy on the GPU."""
        words = target, source, size, self._stream
        self._driver.call("cuMemcpyDtoDAsync_v2", *words, doing="copying on the GPU")

    def filled(self, target: int, value: int, size: int) -> None:
        """Set bytes on the GPU."""
        self._driver.call("cuMemsetD8Async", target, value, size, self._stream, doing="filling")

    def read(self, c_type: str, address: int, size: int) -> int:
        """Return a number in memory of the GPU when all before is done."""
        place = self._driver.ffi.new(f"{c_type} *")
        self._driver.call("cuMemcpyDtoHAsync_v2", place, address, size, self._stream,
                          doing="reading a condition")  # fmt: skip
        self._synchronize()
        return int(place[0])

    def _synchronize(self) -> None:
        """Wait for the stream; an error is that of one of the launches since the last time."""
        since, self._since = self._since, []
        try:
            self._driver.call("cuStreamSynchronize", self._stream, doing="waiting for the GPU")
        except DriverError as error:
            raise DeviceError(f"{_one_of(since)}{error}") from error


class _Run:
    """Walk through the steps of one run."""

    def __init__(self, program: CudaExecutable, blocks: Mapping[str, Sequence[int]]) -> None:
        self._program, self._blocks = program, blocks

    def steps(self, steps: Iterable[HostStep]) -> None:
        """Do steps in order."""
        for step in steps:
            self._step(step)

    def _step(self, step: HostStep) -> None:
        program = self._program
        match step:
            case LaunchKernel():
                program.launch(step)
            case CopyBytes(source, target, size):
                program.copied(self._address(target), self._address(source), size)
            case FillBytes(target, value, size):
                program.filled(self._address(target), value, size)
            case HostLoop(_, condition, predicate, body):
                self.steps(condition)
                while program.read("uint8_t", self._address(predicate), 1):
                    self.steps(body)
                    self.steps(condition)
            case HostSwitch(_, selector, is_pred, cases):
                words = ("uint8_t", 1) if is_pred else ("int32_t", 4)
                value = program.read(words[0], self._address(selector), words[1])
                if is_pred:
                    value = 0 if value else 1
                last = len(cases) - 1
                self.steps(cases[value if 0 <= value < last else last])

    def _address(self, place: Place) -> int:
        return self._program.address(place, self._blocks)


def _empty(device: Device, shape: ArrayShape) -> DeviceArray:
    """Allocate an array of the GPU."""
    dtype = storage_type(shape.element_type)
    memory = DeviceMemory(device, shape.elements * dtype.itemsize)
    return DeviceArray(device, shape.dims, dtype, memory)


def _told(step: LaunchKernel) -> str:
    """Name a kernel and its instruction."""
    instruction = step.origin.instruction
    return f"{step.kernel} (%{instruction})" if instruction else step.kernel


def _one_of(since: Sequence[LaunchKernel]) -> str:
    """Name the launches that may have failed."""
    names = list(dict.fromkeys(map(_told, since)))
    if not names:
        return ""
    if len(names) == 1:
        return f"{names[0]}: "
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    listed = ", ".join(names[:_NAMED])
    return f"one of {listed}{more} (CUDA_LAUNCH_BLOCKING=1 tells which): "

"""Run a compiled program on a GPU: on arrays of the host, or where they are.

There is one workspace and one stream for each program. Calls take NumPy arrays and give them;
:meth:`CudaExecutable.on_device` takes and gives memory of the GPU (:mod:`backend_c.native.
device_arrays`), and :meth:`CudaExecutable.bind` runs as often as wanted on the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backend_c.cuda.host_plan import HostPlan
from backend_c.native.cublas_lt import CublasLt
from backend_c.native.cuda_bound_call import BoundCall
from backend_c.native.cuda_driver import Device, DeviceMemory, LoadedModule
from backend_c.native.cuda_host_run import HostRun, Queue
from backend_c.native.cuda_launches import Launcher, launch_as_planned
from backend_c.native.device_arrays import DeviceArray, device_arguments
from backend_c.native.in_place import is_fixed
from backend_c.native.marshalling import Memory, Value, arguments, assembled
from backend_c.render.translation_units import storage_type
from hlo.errors import ArgumentError
from hlo.types import ArrayShape, Shape, array_leaves
from hlo.values import Array, unflattened


class CudaExecutable:
    """Run a program on the arrays of its parameters; ``source`` is its CUDA by file name.

    ``parameters`` are the entry's names and shapes in order, ``result`` is its root's shape.
    ``library`` computes the products of matrices that it takes. Calls
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
        *,
        library: CublasLt | None = None,
    ) -> None:
        self._module, self._device = module, module.device
        self._parameters, self._result = tuple(parameters), result
        self.source = source
        self._driver = module.device.driver
        self._constants = DeviceMemory(self._device, len(host.constants))
        self._workspace = DeviceMemory(self._device, host.workspace_bytes)
        fixed = {"constants": self._constants.address, "workspace": self._workspace.address}
        self._held: dict[tuple[str, int], DeviceMemory] = {}
        with self._device.current():
            self._steps = HostRun(module, host, fixed, launcher, library)
            self._queue = Queue(self._steps)
            self._upload(self._constants.address, host.constants)
            self._steps.synchronize()

    def __call__(self, *arrays: Value, seed: int = 0) -> Value:
        """Run on one value for each parameter, copied to the GPU, and copy the result back.

        Raises ArgumentError for the first value that does not fit its shape, Unsupported if the
        memory of the GPU does not suffice, and DeviceError for what the driver reports: it names
        the kernel and the instruction.
        """
        inputs = [a for m in arguments(self._parameters, arrays) for a in m.arrays()]
        made = [Memory.empty(shape) for shape in array_leaves(self._result)]
        outputs = [array for memory in made for array in memory.arrays()]
        with self._queue.held():
            given = [self._memory("arguments", n, a.nbytes) for n, a in enumerate(inputs)]
            found = [self._memory("results", n, a.nbytes) for n, a in enumerate(outputs)]
            for address, array in zip(given, inputs, strict=True):
                self._upload(address, array)
            self._steps.run(given, found, seed)
            for address, array in zip(found, outputs, strict=True):
                self._download(array, address)
            self._steps.synchronize()
        return assembled(self._result, iter(made))

    def on_device(self, *arrays: Value, seed: int = 0) -> Value:
        """Run on values in memory of the GPU, of any library that has ``__cuda_array_interface__``
        or ``__dlpack__``; the result is one, too, or a tuple. NumPy arrays are copied.

        Raises as calls do, and ArgumentError for memory that is not row-major or of another GPU,
        and for shapes that are converted at each call (bounded ones, integers of less than a byte).
        """
        bound = self.bind(*arrays)
        bound.enqueue(seed)
        # Whoever owns the arguments may free them as soon as this returns.
        bound.wait()
        return bound.results

    def bind(self, *arrays: Value) -> BoundCall:
        """Take values in memory of the GPU, and memory for the results, for any number of runs.

        Raises as :meth:`on_device`.
        """
        inputs = device_arguments(self._device, self._parameters, arrays)
        leaves = list(array_leaves(self._result))
        for leaf in leaves:
            if not is_fixed(leaf):
                raise ArgumentError(
                    f"a result of {leaf} is converted at each call: call it without on_device"
                )
        results = [_empty(self._device, leaf) for leaf in leaves]
        with self._queue.held():
            for one in inputs:
                one.wait(self._steps.stream)
                if one.data is not None:
                    self._upload(one.address, one.data)
        value = unflattened(self._result, iter(results))
        return BoundCall(self._queue, inputs, results, value, writer=self)

    def time(self, *arrays: Value, repeat: int = 10, seed: int = 0) -> float:
        """Return the least milliseconds of a run by the GPU's clock, without copies.

        Raises as :meth:`on_device`, and ArgumentError for ``repeat`` less than 1.
        """
        return self.bind(*arrays).time(repeat, seed)

    def wait(self) -> None:
        """Wait for all runs; there are none after :meth:`close`."""
        self._queue.wait()

    def close(self) -> None:
        """Free what the program holds of the GPU, after its last run; calls raise DeviceError."""
        if queue := getattr(self, "_queue", None):
            queue.close()
        for memory in (self._constants, self._workspace, *self._held.values()):
            memory.close()

    def __del__(self) -> None:
        if hasattr(self, "_held"):
            self.close()

    def _memory(self, block: str, number: int, size: int) -> int:
        """Return the device address of an argument or a result, which is the same in every call."""
        # The addresses stay, and with them the graphs that were captured.
        key = block, number
        if key not in self._held:
            self._held[key] = DeviceMemory(self._device, size)
        return self._held[key].address

    def _upload(self, address: int, data: bytes | Array) -> None:
        """Copy to the GPU."""
        buffer = self._driver.ffi.from_buffer(data)
        if len(buffer):
            self._driver.call(
                "cuMemcpyHtoDAsync_v2", address, buffer, len(buffer), self._steps.stream,
                doing="copying to the GPU",
            )  # fmt: skip

    def _download(self, array: Array, address: int) -> None:
        """Queue the copy of an array from the GPU; it is there once the stream has been waited
        for."""
        if array.nbytes:
            self._driver.call(
                "cuMemcpyDtoHAsync_v2", self._driver.ffi.from_buffer(array), address, array.nbytes,
                self._steps.stream, doing="copying from the GPU",
            )  # fmt: skip


def _empty(device: Device, shape: ArrayShape) -> DeviceArray:
    """Allocate an array of the GPU."""
    dtype = storage_type(shape.element_type)
    memory = DeviceMemory(device, shape.elements * dtype.itemsize)
    return DeviceArray(device, shape.dims, dtype, memory)

"""Compile HLO to C and CUDA: the interpreter's bits, on every target, at any number of threads."""

from typing import TYPE_CHECKING

from hlo.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from backend_c.native.cuda_emulation import Emulated, Schedule
    from backend_c.native.cuda_executable import CudaExecutable
    from backend_c.native.device_arrays import DeviceArray
    from backend_c.native.emulation_findings import EmulationError
    from backend_c.native.executable import Bound, Executable
    from backend_c.native.recycled_memory import keep_result_memory
    from backend_c.pipeline import compile, emit, emulate, explain, listing
    from backend_c.profiles.profile import Profile

__all__ = [
    "Bound",
    "CudaExecutable",
    "DeviceArray",
    "Emulated",
    "EmulationError",
    "Executable",
    "Profile",
    "Schedule",
    "compile",
    "emit",
    "emulate",
    "explain",
    "keep_result_memory",
    "listing",
]

_HOMES = {
    "Bound": "backend_c.native.executable",
    "CudaExecutable": "backend_c.native.cuda_executable",
    "DeviceArray": "backend_c.native.device_arrays",
    "Emulated": "backend_c.native.cuda_emulation",
    "EmulationError": "backend_c.native.emulation_findings",
    "Executable": "backend_c.native.executable",
    "Profile": "backend_c.profiles.profile",
    "Schedule": "backend_c.native.cuda_emulation",
    "keep_result_memory": "backend_c.native.recycled_memory",
} | dict.fromkeys(("compile", "emit", "emulate", "explain", "listing"), "backend_c.pipeline")

__getattr__ = lazy_exports(__name__, _HOMES)

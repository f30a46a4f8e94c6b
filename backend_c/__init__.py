"""Compile HLO to C and CUDA: the interpreter's bits, on every target, at any number of threads."""

from backend_c.explain.profile import Profile
from backend_c.native.cuda_emulation import Emulated, Schedule
from backend_c.native.cuda_executable import CudaExecutable
from backend_c.native.device_arrays import DeviceArray
from backend_c.native.emulation_findings import EmulationError
from backend_c.native.executable import Bound, Executable
from backend_c.native.recycled_memory import keep_result_memory
from backend_c.pipeline import compile, emit, emulate, explain, listing

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

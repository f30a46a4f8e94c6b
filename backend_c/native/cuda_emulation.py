"""Build generated CUDA for the CPU, and run it as blocks of emulated threads that are checked.

See runtime/cuda_emulation/: the text that nvcc gets is compiled by the host compiler, with a header
before it and instrumented by -fsanitize=thread, whose calls our own engine answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from backend_c.cuda.geometry import WARP, Geometry
from backend_c.cuda.host_plan import HostPlan, LaunchKernel, launches
from backend_c.ir.gpu import LARGEST_BLOCK
from backend_c.native.cache import OBJECT, Cache, found, publish, workspace
from backend_c.native.cuda_driver import DECLARATIONS, Device, Driver, LoadedModule
from backend_c.native.cuda_executable import CudaExecutable
from backend_c.native.cuda_launches import launch_as_planned
from backend_c.native.emulation_findings import EmulationError, Finding, Found, told
from backend_c.native.marshalling import Value
from backend_c.native.toolchain import RUNTIME, Compiler, digest, headers, processor, require, run
from backend_c.render.translation_units import LAUNCHED
from hlo.errors import ArgumentError, DeviceError, ToolchainError
from hlo.types import Shape

EMULATION = RUNTIME / "cuda_emulation"
_INCLUDES = (f"-I{RUNTIME}", f"-I{EMULATION}", f"-I{EMULATION / 'runtime_api'}")
_MOST_FINDINGS = 16  # that the engine keeps
# -O1: what it saves in running it costs in compiling, for programs that run once. Hidden: tables of
# templates are otherwise one for all libraries of a process, whatever their kernels are.
EMULATION_FLAGS = (
    *("-std=gnu++17", "-O1", "-g1", "-fPIC", "-w", "-fno-exceptions", "-fno-rtti"),
    "-fvisibility=hidden",
    *("-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno"),
)
INSTRUMENTED = ("-fsanitize=thread", "-include", "cuda_emulation.h")
# What the engine in each library has.
_CHOOSE, _SHARED = "void (*)(uint64_t)", "void (*)(const int64_t *, int64_t)"
_SYMBOL = re.compile(r"([0-9a-f]+) (?:([0-9a-f]+) )?\w (.*)")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Choose how kernels are emulated: threads of a block, blocks of a grid, and their order.

    ``seed`` 0 is the order of their numbers; others draw one for each interval between barriers.
    """

    threads: int = 128
    blocks: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.threads <= LARGEST_BLOCK and self.blocks >= 1):
            raise ArgumentError(
                f"{self.threads} threads in {self.blocks} blocks: 1 to {LARGEST_BLOCK} and at least"
                " one"
            )


_USUAL = Schedule()


def build_emulated(sources: Mapping[str, str], compiler: Compiler, cache: Cache) -> Path:
    """Return the library of one unit of CUDA, compiled if it is not cached.

    Raises ToolchainError with the compiler's first error lines.
    """
    key = emulation_key([*INSTRUMENTED, processor(), headers(), *sources.values()], compiler)
    library = found(cache, key)
    if library is not None:
        return library
    with workspace(cache) as directory:
        return publish(cache, key, build_emulated_in(directory, sources, compiler, cache))


def emulation_key(parts: Sequence[str], compiler: Compiler) -> str:
    """Hash all that a build with the files of the emulation depends on."""
    files = sorted(file for file in EMULATION.rglob("*") if file.is_file())
    texts = [file.read_text("utf-8") for file in (*files, DECLARATIONS)]
    return digest([*compiler.command, compiler.version, *EMULATION_FLAGS, *parts, *texts])


def build_emulated_in(
    directory: str, sources: Mapping[str, str], compiler: Compiler, cache: Cache
) -> Path:
    """Compile one unit of CUDA into a library in a directory; the cache keeps its engine alone."""
    ((name, text),) = sources.items()
    (Path(directory) / name).write_text(with_table(text), "utf-8")
    words = [*compiler.command, *EMULATION_FLAGS, f"-I{RUNTIME}", f"-I{EMULATION}", "-x", "c++"]
    unit = [*words, *INSTRUMENTED, "-c", name, "-o", "unit.o"]
    # The engine first: its gap lies before all shared arrays.
    made = [str(emulation_object("engine.cpp", compiler, cache)), "unit.o"]
    link = [*compiler.command, "-shared", "-Wl,-Bsymbolic", *made, "-o", "library.so"]
    for command in (unit, link):
        require(run(command, directory), compiler)
    return Path(directory) / "library.so"


def emulation_object(name: str, compiler: Compiler, cache: Cache) -> Path:
    """Return the object file of a part of the emulation, from the cache or compiled."""
    key = emulation_key([name, headers()], compiler)
    known = found(cache, key, OBJECT)
    if known is not None:
        return known
    with workspace(cache) as directory:
        words = [*compiler.command, *EMULATION_FLAGS, *_INCLUDES, "-x", "c++", "-c"]
        require(run([*words, str(EMULATION / name), "-o", "part.o"], directory), compiler)
        return publish(cache, key, Path(directory) / "part.o", OBJECT)


def with_table(text: str) -> str:
    """Append the table of its kernels to a unit of CUDA, as a cubin has one."""
    kernels = " ".join(f"HLO_KERNEL({name})" for name in LAUNCHED.findall(text))
    return f"{text}\nHLO_KERNELS({kernels})\n"


def build_driver(compiler: Compiler, cache: Cache) -> Path:
    """Return the library of the emulated driver, compiled if it is not cached.

    Raises ToolchainError with the compiler's first error lines.
    """
    key = emulation_key(["driver.cpp"], compiler)
    library = found(cache, key)
    if library is not None:
        return library
    with workspace(cache) as directory:
        source, made = str(EMULATION / "driver.cpp"), Path(directory) / "driver.so"
        command = [
            *compiler.command,
            *EMULATION_FLAGS,
            "-x",
            "c++",
            source,
            "-shared",
            "-o",
            str(made),
        ]
        require(run([*command, "-lstdc++", "-ldl"], directory), compiler)
        return publish(cache, key, made)


class EmulatedCompiler:
    """Compile CUDA to what the emulated driver takes for a cubin."""

    def __init__(self, compiler: Compiler, cache: Cache) -> None:
        self._compiler, self._cache = compiler, cache
        self.version = emulation_key([*INSTRUMENTED, processor(), headers()], compiler)

    def compiled(self, text: str, architecture: str, directory: Path) -> Path:
        """Return the file of a library."""
        sources = {"module.cu": text}
        return build_emulated_in(str(directory), sources, self._compiler, self._cache)


class Emulated:
    """Run a compiled program on emulated blocks of threads; ``source`` is its CUDA by file name."""

    def __init__(
        self,
        library: EmulatedLibrary,
        host: HostPlan,
        parameters: Sequence[tuple[str, Shape]],
        result: Shape,
        source: Mapping[str, str],
    ) -> None:
        self._library = library
        given = parameters, result, source
        self._executable = CudaExecutable(library.module, host, *given, launcher=library.launch)
        self._launches = launches(host)
        self.source = source

    def __call__(self, *arrays: Value, schedule: Schedule | None = _USUAL, seed: int = 0) -> Value:
        """Run on one value for each parameter; without a schedule in the geometries of the plan.

        Raises EmulationError for a race, an access outside of memory, or threads that wait for
        ever; ArgumentError for a value that does not fit its parameter.
        """
        self._library.choose(schedule)
        try:
            return self._executable(*arrays, seed=seed)
        except DeviceError as error:
            raise self._library.findings(self._launches) or error from None


class EmulatedLibrary:
    """Load a library of emulated kernels by the emulated driver, as a GPU's does a cubin."""

    def __init__(self, path: Path, driver: Path) -> None:
        self._path = path
        self._device = Device(Driver(driver))
        self._ffi, self._driver = self._device.driver.ffi, self._device.driver.library
        self.module = LoadedModule(self._device, path.read_bytes())
        self._shared = _shared_arrays(path)
        bounds = [place for start, end, _ in self._shared for place in (start, end)]
        self._bounds = self._ffi.new("int64_t[]", bounds)  # which the engine reads
        self._symbol(_SHARED, "hlo_emulation_shared")(self._bounds, len(self._shared))
        self._choose = self._symbol(_CHOOSE, "hlo_emulation_choose")
        self._schedule: Schedule | None = _USUAL

    def choose(self, schedule: Schedule | None) -> None:
        """Select the schedule of the next calls; None for the planned geometries."""
        self._schedule = schedule
        self._choose(schedule.seed if schedule else 0)

    def launch(
        self, device: Device, step: LaunchKernel, function: Any, words: Any, stream: Any
    ) -> None:
        """Launch a kernel by the schedule, after telling the engine the sizes of its arrays."""
        elements = self._ffi.new("int64_t[]", [operand.elements for operand in step.operands])
        self._driver.hlo_emulated_tell(step.number, elements, len(step.operands))
        chosen = _scheduled(step, self._schedule) if self._schedule else step.geometry
        launch_as_planned(device, step, function, words, stream, chosen)

    def findings(self, launched: Sequence[LaunchKernel]) -> EmulationError | None:
        """Return what the engine found in the kernel that failed; None if nothing."""
        self._driver.hlo_emulated_forgive()
        place = self._symbol("const hlo_finding *(*)(void)", "hlo_emulation_findings")()
        kept = [one for one in place[0:_MOST_FINDINGS] if one.kind]
        return EmulationError([self._told(one, launched) for one in kept]) if kept else None

    def _symbol(self, c_type: str, name: str) -> Any:
        """Return a function of the library as a pointer of a C type."""
        found = self._driver.hlo_emulated_symbol(self.module.handle, name.encode())
        return self._ffi.cast(c_type, found)

    def _told(self, one: Any, launched: Sequence[LaunchKernel]) -> Finding:
        """Convert a finding of the engine to a :class:`Finding`."""
        found = Found(*(getattr(one, field.name) for field in fields(Found)))
        launch = launched[found.launch]
        memory = self._shared_name(found.shared)
        if found.array >= 0:
            memory = f"{launch.operands[found.array].name}[{found.index}]"
        kernel = launch.kernel, launch.origin.instruction
        return told(found, kernel, memory, self._line(found.place) if found.place else "")

    def _shared_name(self, place: int) -> str:
        """Describe an offset in shared memory by the array that it is in, or is beyond."""
        before = [(start, end, name) for start, end, name in self._shared if start <= place]
        if place < 0 or not before:
            return "memory of nobody"
        start, end, name = max(before)
        beyond = f", which has {end - start}" if place >= end else ""
        return f"byte {place - start} of shared {name}{beyond}"

    def _line(self, place: int) -> str:
        """Return file:line of an offset in the library; empty if unknown."""
        # The call returns behind the access: the line is that of the byte before.
        done = run(["addr2line", "-e", str(self._path), hex(place - 1)])
        file, _, line = done.stdout.strip().partition(":")
        return f"{Path(file).name}:{line.split()[0]}" if line and done.returncode == 0 else ""


def _scheduled(step: LaunchKernel, schedule: Schedule) -> Geometry:
    """Return a launch's geometry by a schedule, within what its shape allows."""
    blocks = schedule.blocks if step.shape in ("grid", "warps") else 1
    threads = 1 if step.shape == "single" else schedule.threads
    threads = -(-threads // WARP) * WARP if step.shape == "warps" else threads
    return Geometry(blocks, threads, step.geometry.shared)


def _shared_arrays(path: Path) -> list[tuple[int, int, str]]:
    """Return start, end and name of each shared array of a library, as offsets in shared memory.

    Raises ToolchainError if the symbols cannot be read.
    """
    done = run(["nm", "-S", "-C", "--defined-only", str(path)])
    if done.returncode:
        raise ToolchainError(f"nm cannot read the symbols of {path} (Debian: apt install binutils)")
    symbols = [
        match.groups() for match in map(_SYMBOL.fullmatch, done.stdout.splitlines()) if match
    ]
    places = {name: int(address, 16) for address, _, name in symbols}
    if "__start_hlo_shared" not in places:
        return []
    first, last = places["__start_hlo_shared"], places["__stop_hlo_shared"]
    return sorted(
        (int(address, 16) - first, int(address, 16) - first + int(size, 16), name.split("::")[-1])
        for address, size, name in symbols
        if size and first <= int(address, 16) < last and "hlo_gap_" not in name
    )

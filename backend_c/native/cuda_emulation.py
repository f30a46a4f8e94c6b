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

import cffi

from backend_c.lower.plan import Launch, Plan, in_order
from backend_c.native.cache import Cache, found, publish, workspace
from backend_c.native.emulation_findings import EmulationError, Finding, Found, told
from backend_c.native.executable import Executable
from backend_c.native.marshalling import Value
from backend_c.native.plain_call import Entry
from backend_c.native.toolchain import RUNTIME, Compiler, digest, headers, processor, require, run
from backend_c.render.translation_units import Program
from hlo.errors import ArgumentError, ToolchainError
from hlo.types import Shape

EMULATION = RUNTIME / "cuda_emulation"
MOST_THREADS = 1024  # of a block, as CUDA has it
_MOST_FINDINGS = 16  # that the engine keeps
# -O1: what it saves in running it costs in compiling, for programs that run once.
_FLAGS = (
    *("-std=gnu++17", "-O1", "-g1", "-fPIC", "-w", "-fno-exceptions", "-fno-rtti"),
    *("-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno"),
)
_CHECKED = ("-fsanitize=thread", "-include", "cuda_emulation.h")
_INTERFACE = """
    extern void (*const hlo_entries[])(const void *const *, void *const *,
                                       const unsigned char *, unsigned char *, uint64_t);
    typedef struct {
        int32_t kind, launch, array, is_write, bytes, line, other_line, is_other_block;
        int64_t block, thread, other_thread, index, shared;
        uint64_t place;
    } hlo_finding;
    void hlo_emulation_choose(uint32_t block_size, uint32_t blocks, uint64_t seed);
    void hlo_emulation_shared(const int64_t *places, int64_t count);
    int64_t hlo_emulation_call(void *entry, const void *const *arguments, void *const *results,
                               const unsigned char *constants, unsigned char *workspace,
                               uint64_t seed);
    const hlo_finding *hlo_emulation_findings(void);
"""
_FFI = cffi.FFI()
_FFI.cdef(_INTERFACE)
_SYMBOL = re.compile(r"([0-9a-f]+) (?:([0-9a-f]+) )?\w (.*)")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Choose how kernels run: threads of a block, blocks of a grid, and the order of both.

    ``seed`` 0 is the order of their numbers; others draw one for each interval between barriers.
    """

    threads: int = 128
    blocks: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.threads <= MOST_THREADS and self.blocks >= 1):
            raise ArgumentError(
                f"{self.threads} threads in {self.blocks} blocks: 1 to {MOST_THREADS} and at least"
                " one"
            )


_USUAL = Schedule()


def build_emulated(sources: Mapping[str, str], compiler: Compiler, cache: Cache) -> Path:
    """Return the library of one unit of CUDA, compiled if it is not cached.

    Raises ToolchainError with the compiler's first error lines.
    """
    parts = [*compiler.command, compiler.version, *_FLAGS, *_CHECKED, processor(), headers()]
    parts += [text for name, text in sources.items()]
    parts += [file.read_text("utf-8") for file in sorted(EMULATION.iterdir()) if file.is_file()]
    key = digest(parts)
    library = found(cache, key)
    if library is not None:
        return library
    with workspace(cache) as directory:
        return publish(cache, key, build_emulated_in(directory, sources, compiler))


def build_emulated_in(directory: str, sources: Mapping[str, str], compiler: Compiler) -> Path:
    """Compile one unit of CUDA into a library in a directory, without a cache."""
    ((name, text),) = sources.items()
    (Path(directory) / name).write_text(text, "utf-8")
    words = [*compiler.command, *_FLAGS, f"-I{RUNTIME}", f"-I{EMULATION}", "-x", "c++", "-c"]
    engine = [*words, str(EMULATION / "engine.cpp"), "-o", "engine.o"]
    unit = [*words, *_CHECKED, name, "-o", "unit.o"]
    # The engine first: its gap lies before all shared arrays.
    made = ["engine.o", "unit.o"]
    link = [*compiler.command, "-shared", "-Wl,-Bsymbolic", *made, "-o", "library.so"]
    for command in (engine, unit, link):
        require(run(command, directory), compiler)
    return Path(directory) / "library.so"


class Emulated:
    """Run a compiled program on emulated blocks of threads; ``source`` is its CUDA by file name."""

    def __init__(
        self,
        library: EmulatedLibrary,
        program: Program,
        parameters: Sequence[tuple[str, Shape]],
        result: Shape,
    ) -> None:
        self._library = library
        self._executable = Executable(library, program, parameters, result)
        self.source: Mapping[str, str] = program.sources

    def __call__(self, *arrays: Value, schedule: Schedule = _USUAL, seed: int = 0) -> Value:
        """Run on one value for each parameter.

        Raises EmulationError for a race, an access outside of memory, or threads that wait for
        ever; ArgumentError for a value that does not fit its parameter.
        """
        self._library.choose(schedule)
        return self._executable(*arrays, seed=seed)


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """Name what a launch runs: its kernel, the HLO instruction, and the kernel's arrays."""

    kernel: str
    instruction: str
    arrays: tuple[str, ...]


def launches(plan: Plan, names: Sequence[str]) -> tuple[KernelLaunch, ...]:
    """Return the launches of a plan in the order of their text; ``names`` are its kernels'."""
    made = []
    for _, step in in_order(plan.steps):
        if isinstance(step, Launch):
            kernel = plan.kernels[step.kernel]
            arrays = (*kernel.inputs, *kernel.outputs, *kernel.scratch)
            given = (*(array.name for array in arrays), *["seed"] * kernel.uses_seed)
            instruction = step.origin.instruction
            made.append(KernelLaunch(names[step.kernel], instruction, given))
    return tuple(made)


class EmulatedLibrary:
    """Call the entry points of a library, each with its launches.

    It has what :class:`backend_c.native.executable.Executable` needs of a library.
    """

    def __init__(self, path: Path, programs: Sequence[Sequence[KernelLaunch]]) -> None:
        self._path = path
        try:
            self._library = _FFI.dlopen(str(path), _FFI.RTLD_NOW)
        except OSError as error:
            raise ToolchainError(f"cannot load {path}: {error}") from None
        self._shared = _shared_arrays(path)
        bounds = [place for start, end, _ in self._shared for place in (start, end)]
        self._bounds = _FFI.new("int64_t[]", bounds)  # which the engine reads
        self._library.hlo_emulation_shared(self._bounds, len(self._shared))
        self.hlo_entries = [self._entry(n, launched) for n, launched in enumerate(programs)]

    def choose(self, schedule: Schedule) -> None:
        """Run the next calls by a schedule."""
        words = schedule.threads, schedule.blocks, schedule.seed
        self._library.hlo_emulation_choose(*words)

    def _entry(self, number: int, launched: Sequence[KernelLaunch]) -> Entry:
        """Return the entry point of a number; calls raise EmulationError for what is found."""
        library = self._library
        entry = library.hlo_entries[number]

        def call(*words: Any) -> None:
            count = library.hlo_emulation_call(entry, *words)
            if count:
                kept = library.hlo_emulation_findings()[0 : min(count, _MOST_FINDINGS)]
                raise EmulationError([self._told(one, launched) for one in kept])

        return call

    def _told(self, one: Any, launched: Sequence[KernelLaunch]) -> Finding:
        """Tell a finding of the engine."""
        found = Found(*(getattr(one, field.name) for field in fields(Found)))
        launch = launched[found.launch]
        memory = self._shared_name(found.shared)
        if found.array >= 0:
            memory = f"{launch.arrays[found.array]}[{found.index}]"
        kernel = launch.kernel, launch.instruction
        return told(found, kernel, memory, self._line(found.place) if found.place else "")

    def _shared_name(self, place: int) -> str:
        """Name the shared array at an offset, or the one before it."""
        before = [(start, end, name) for start, end, name in self._shared if start <= place]
        if place < 0 or not before:
            return "memory of nobody"
        start, end, name = max(before)
        beyond = f", which has {end - start}" if place >= end else ""
        return f"byte {place - start} of shared {name}{beyond}"

    def _line(self, place: int) -> str:
        """Return file:line of an offset in the library, if it can be told."""
        # The call returns behind the access: the line is that of the byte before.
        done = run(["addr2line", "-e", str(self._path), hex(place - 1)])
        file, _, line = done.stdout.strip().partition(":")
        return f"{Path(file).name}:{line.split()[0]}" if line and done.returncode == 0 else ""


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

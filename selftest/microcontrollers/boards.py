"""Build emitted C99 for a microcontroller, and run it in QEMU.

QEMU counts instructions, not cycles (``-icount shift=0``: one nanosecond each). An Arm program
looks at a timer, which ticks every 40 or 50 of them; RISC-V has a register that counts them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from backend_c.projects.call_graph import call_graph, stack_depths
from backend_c.projects.elf_sections import read_only_bytes

HERE = Path(__file__).parent
_SECONDS = 300
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror")


@dataclass(frozen=True, slots=True)
class Board:
    """A processor: its compiler, and a QEMU machine that has it.

    ``start`` is the code that starts and ends a program there, ``memory`` the linker script. The
    program reads a timer: ``instructions_of_a_tick``, which wraps around at ``ticks``.
    """

    name: str
    flags: tuple[str, ...]
    machine: tuple[str, ...]
    compiler: str = "arm-none-eabi-gcc"
    emulator: str = "qemu-system-arm"
    start: str = "arm_start.c"
    memory: str = "arm.ld"
    instructions_of_a_tick: int = 40  # 25 MHz
    ticks: int = 1 << 24

    @property
    def missing(self) -> list[str]:
        """List the commands that are not installed."""
        return [name for name in (self.compiler, self.emulator) if shutil.which(name) is None]


BOARDS = (
    # A Cortex-M3 runs all instructions of a Cortex-M0, and QEMU's M0 has but 16 KiB.
    Board("Cortex-M0", ("-mcpu=cortex-m0", "-mthumb", "-mfloat-abi=soft"), ("mps2-an385",)),
    Board(
        "Cortex-M4F",
        ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
        ("mps2-an386",),
    ),
    Board(
        "Cortex-M33",
        ("-mcpu=cortex-m33", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"),
        ("mps2-an505",),
        memory="arm_secure.ld",
        instructions_of_a_tick=50,  # 20 MHz
    ),
    Board(
        "RV32IMAC",
        ("-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs"),
        ("virt", "-bios", "none"),
        compiler="riscv64-unknown-elf-gcc",
        emulator="qemu-system-riscv32",
        start="riscv_start.c",
        memory="riscv.ld",
        instructions_of_a_tick=1,
        ticks=1 << 32,
    ),
)


class Ran(NamedTuple):
    """The result of a program with its test: the test's exit status (0: the recorded bits); all
    instructions, None if the timer may have wrapped around; bytes of code and constants (``text``)
    and of stack at the deepest chain of calls, both without the test."""

    status: int
    instructions: int | None
    text: int
    stack: int


def ran(
    board: Board,
    files: Mapping[str, bytes],
    name: str,
    directory: Path,
    optimize: str = "-Os",
    warnings: Sequence[str] = WARNINGS,
) -> Ran:
    """Build the files of an emitted project with a test, and run them. Raises CalledProcessError
    where a compiler refuses them, TimeoutExpired after some minutes."""
    for file, content in files.items():
        (directory / file).write_bytes(content)
    flags = [*board.flags, "-std=c99", optimize, "-ffunction-sections", "-fcallgraph-info=su"]
    own = [file for file in files if file.endswith(".c") and file != f"{name}_test.c"]
    for file in own:
        _run([board.compiler, *flags, *warnings, "-c", file], directory)
    objects = [str(Path(file).with_suffix(".o")) for file in own]
    start = [str(HERE / board.start), "-nostartfiles", "-T", str(HERE / board.memory)]
    rest = [f"{name}_test.c", *start, *objects, "-Wl,--gc-sections", "-o", "program.elf", "-lm"]
    _run([board.compiler, *board.flags, "-Os", *rest], directory)
    words = [board.emulator, "-M", *board.machine, "-display", "none", "-monitor", "none"]
    words += ["-serial", "none", "-semihosting", "-icount", "shift=0", "-kernel", "program.elf"]
    done = subprocess.run(
        words, cwd=directory, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    graph = call_graph(path.read_text() for path in sorted(directory.glob("*.ci")))
    return Ran(
        done.returncode,
        _instructions(board, done.stdout + done.stderr),
        sum(read_only_bytes((directory / file).read_bytes()) for file in objects),
        stack_depths(graph)[f"{name}_run"],
    )


def _run(words: Sequence[str], directory: Path) -> str:
    done = subprocess.run(words, cwd=directory, check=True, capture_output=True, text=True)
    return done.stdout


def _instructions(board: Board, told: str) -> int | None:
    found = re.search(r"\d+", told)
    ticks = int(found[0]) if found else board.ticks
    # Half of the range is taken for a sign that it began again: no program here runs longer.
    return ticks * board.instructions_of_a_tick if ticks < board.ticks // 2 else None

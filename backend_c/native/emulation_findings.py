"""Describe the errors that the emulation of CUDA found: kernel, block, thread and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo.errors import Error

# As runtime/cuda_emulation/memory_checks.h numbers them. In the texts: who, what they did to which
# memory, and the other thread.
_KINDS = (
    "",
    "barrier not reached",
    "different barriers",
    "warp waits",
    "lane undefined",
    "read race",
    "write race",
    "writes race",
    "out of bounds",
    "input written",
    "uninitialised",
    "stack of another thread",
    "copy not awaited",
)
_TEXTS = {
    "barrier not reached": "waits at the barrier of line {line}, which {other} does not reach",
    "different barriers": "waits at the barrier of line {line}, {other} at that of line {far}",
    "warp waits": "waits at the warp operation of line {line} for lanes that do not come",
    "lane undefined": "takes the value of {other} in line {line}, which gives none",
    "read race": "reads {memory}, which {other} wrote{unordered}",
    "write race": "writes {memory}, which {other} read{unordered}",
    "writes race": "writes {memory}, which {other} wrote{unordered}",
    "out of bounds": "{does} {bytes} bytes outside of every array: {memory}",
    "input written": "writes {memory}, which is an input",
    "uninitialised": "reads {memory}, which its block has not written",
    "copy not awaited": "{does} {memory}, to which {other} has a copy under way",
    "stack of another thread": "{does} {bytes} bytes on the stack of another thread",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Describe one error of a kernel: a race, an access out of bounds, a barrier not reached.

    ``kind`` names the class of error. ``kernel`` is the kernel's name in the text, ``instruction``
    what it computes in HLO. ``code`` is file:line of the access.
    """

    kind: str
    kernel: str
    instruction: str
    block: int
    thread: int
    what: str
    code: str = ""

    def __str__(self) -> str:
        name = f"{self.kernel} ({self.instruction})" if self.instruction else self.kernel
        place = f" [{self.code}]" if self.code else ""
        return f"{name}, block {self.block}, thread {self.thread}: {self.what}{place}"


class EmulationError(Error):
    """Raised for undefined behaviour of a kernel: races, accesses out of bounds, barriers not
    reached.

    ``findings`` has each error once.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(map(str, findings)))


@dataclass(frozen=True, slots=True)
class Found:
    """Hold a finding as the engine reports it; ``struct hlo_finding`` has the same fields."""

    kind: int
    launch: int
    array: int
    is_write: int
    bytes: int
    line: int
    other_line: int
    is_other_block: int
    block: int
    thread: int
    other_thread: int
    index: int
    shared: int
    place: int


def told(found: Found, kernel: tuple[str, str], memory: str, code: str) -> Finding:
    """Convert the engine's finding to text; ``kernel`` is (name, instruction).

    ``memory`` and ``code`` describe the array and the line of the access.
    """
    kind = _KINDS[found.kind]
    other = "a thread of another block" if found.is_other_block else f"thread {found.other_thread}"
    unordered = "" if found.is_other_block else ", without a barrier between"
    far = str(found.other_line or "none")
    what = _TEXTS[kind].format(
        line=found.line, far=far, other=other, memory=memory, unordered=unordered,
        does="writes" if found.is_write else "reads", bytes=found.bytes,
    )  # fmt: skip
    return Finding(kind, *kernel, found.block, found.thread, what, code)

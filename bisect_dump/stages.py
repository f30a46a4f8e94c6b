"""A stage of a dump as a program, and whether two stages are the same one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import hlo
from bisect_dump.dump import Stage
from hlo.errors import Unsupported
from hlo.module import Module
from hlo.program_file import read
from hlo.ranks import declared, knows_ranks
from hlo.types import Shape, leaves, without_layout


@dataclass(frozen=True, slots=True)
class Read:
    """A stage that could be read. ``digest`` is equal for stages that are the same program."""

    stage: Stage
    module: Module
    digest: bytes

    @property
    def takes(self) -> tuple[Shape, ...]:
        """The arrays that go into it, tuples opened."""
        return tuple(leaf for p in self.module.entry.parameters for leaf in _plain(p.shape))

    @property
    def ranks(self) -> int:
        """How many it is made for."""
        return math.prod(declared(self.module)) if knows_ranks(self.module) else 1

    @property
    def gives(self) -> tuple[Shape, ...]:
        return tuple(_plain(self.module.entry.root_instruction.shape))


def _plain(shape: Shape) -> Iterator[Shape]:
    return (without_layout(leaf) for leaf in leaves(shape))


def read_stage(stage: Stage) -> Read:
    """Error, which names the file, if it is not a program."""
    return as_stage(stage, read(stage.path))


def as_stage(stage: Stage, module: Module) -> Read:
    """The program of a stage."""
    try:
        text = hlo.format(module, "canonical").partition("\n")[2]
    except Unsupported:  # bodies in bodies: too long
        text = hlo.format(module)
    digest = blake2b(text.encode("utf-8", "surrogatepass"))
    for computation in module.computations:  # the canonical text leaves out what they mean
        for instruction in computation.instructions:
            if instruction.opcode == "custom-call":
                digest.update(instruction.annotations.get("backend_config", "").encode())
    return Read(stage, module, digest.digest())


def same_interface(one: Read, other: Read) -> bool:
    """Whether two stages take and give the same arrays, however tuples hold them."""
    return (one.takes, one.gives) == (other.takes, other.gives)


def interface(stage: Read) -> str:
    """What a stage takes and gives, as text."""
    takes, gives = (", ".join(map(str, shapes)) for shapes in (stage.takes, stage.gives))
    return f"({takes}) -> ({gives})"

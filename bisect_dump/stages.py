"""Read stages of a dump as programs, and compare programs by digest and interface."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import hlo
from bisect_dump.dump import Stage
from hlo.errors import Unsupported
from hlo.module import Module
from hlo.program_file import read
from hlo.ranks import declared, knows_ranks
from hlo.types import Shape, leaves, without_layout

Reader = Callable[[Stage], Module]  # parses and verifies; raises Error with the file's name


@dataclass(frozen=True, slots=True)
class Read:
    """Hold a stage that parsed and verified. Equal ``digest``: the same program up to names and
    metadata (a hash of the canonical text)."""

    stage: Stage
    module: Module
    digest: bytes

    @property
    def takes(self) -> tuple[Shape, ...]:
        """Return the shapes of the entry's parameters, tuples flattened, without layouts."""
        return tuple(leaf for p in self.module.entry.parameters for leaf in _flattened(p.shape))

    @property
    def ranks(self) -> int:
        """Return the number of ranks (replicas × partitions); 1 if the program does not depend on
        its rank."""
        return math.prod(declared(self.module)) if knows_ranks(self.module) else 1

    @property
    def gives(self) -> tuple[Shape, ...]:
        """Return the shapes of the entry's result, flattened likewise."""
        return tuple(_flattened(self.module.entry.root_instruction.shape))


def _flattened(shape: Shape) -> Iterator[Shape]:
    return (without_layout(leaf) for leaf in leaves(shape))


def read_text(stage: Stage) -> Module:
    """Read a stage whose file is HLO text."""
    return read(stage.path)


def as_stage(stage: Stage, module: Module) -> Read:
    """Return a parsed module as its stage, with the digest of its canonical text."""
    try:
        text = hlo.format(module, "canonical").partition("\n")[2]
    except Unsupported:  # the canonical text nests computations; beyond a limit it is too long
        text = hlo.format(module)
    digest = blake2b(text.encode("utf-8", "surrogatepass"))
    # The canonical text drops backend_config, which is part of what a custom call means.
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.opcode == "custom-call":
                digest.update(instruction.annotations.get("backend_config", "").encode())
    return Read(stage, module, digest.digest())


def same_interface(one: Read, other: Read) -> bool:
    """Return whether two stages have the same parameter and result arrays, tuples flattened."""
    return (one.takes, one.gives) == (other.takes, other.gives)


def interface(stage: Read) -> str:
    """Format a stage's parameter and result shapes: ``(f32[2], s32[]) -> (f32[2])``."""
    takes, gives = (", ".join(map(str, shapes)) for shapes in (stage.takes, stage.gives))
    return f"({takes}) -> ({gives})"

"""Read the number of ranks that a module declares, and whether its results depend on them.

A *rank* is one replica of one partition; its number is ``replica * partitions + partition``, which
HLO calls the flattened id. Source: XLA's ``collective_ops_utils.h``.
"""

from __future__ import annotations

import re

from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.opcodes import RANKS, having

COUNTS = ("replica_count", "num_partitions")  # attributes of the header
_RANKS = having(RANKS)


def declared(module: Module) -> tuple[int, int]:
    """Return the header's ``replica_count`` and ``num_partitions``, 1 where absent; raise
    ArgumentError if one is malformed."""

    def count(name: str) -> int:
        text = str(module.attributes.get(name, "1"))
        if not re.fullmatch(r"\d{1,9}+", text, re.ASCII) or not int(text):
            raise ArgumentError(f"{name}={text[:40]} in the header is not a number of ranks")
        return int(text)

    replicas, partitions = map(count, COUNTS)
    return replicas, partitions


def knows_ranks(module: Module) -> bool:
    """Return whether a module has instructions whose result depends on the rank, or other ranks."""
    return any(i.opcode in _RANKS for c in module.computations for i in c.instructions)

"""Ranks that a module is made for, and whether it asks about them.

A *rank* is one replica of one partition; its number is ``replica * partitions + partition``, which
the language calls the flattened id. Source: XLA's ``collective_ops_utils.h``.
"""

from __future__ import annotations

import re

from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.opcodes import RANKS, having

_RANKS = having(RANKS)


def declared(module: Module) -> tuple[int, int]:
    """Return the ``replica_count`` and ``num_partitions`` of the module's header: 1 if it has
    none."""

    def count(name: str) -> int:
        text = str(module.attributes.get(name, "1"))
        if not re.fullmatch(r"\d{1,9}+", text, re.ASCII) or not int(text):
            raise ArgumentError(f"{name}={text[:40]} in the header is not a number of ranks")
        return int(text)

    return count("replica_count"), count("num_partitions")


def knows_ranks(module: Module) -> bool:
    """Test whether a module behaves differently on one rank than on one of many."""
    return any(i.opcode in _RANKS for c in module.computations for i in c.instructions)

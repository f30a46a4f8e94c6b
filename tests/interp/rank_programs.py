"""Programs on simulated ranks, from the body of their entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import hlo
import interp
from hlo.values import Array


def computation(name: str, opcode: str, element_type: str = "f32") -> str:
    """A computation of two scalars."""
    t = element_type
    return (
        f"{name} {{\n  x = {t}[] parameter(0)\n  y = {t}[] parameter(1)\n"
        f"  ROOT z = {t}[] {opcode}(x, y)\n}}\n"
    )


def program(body: str, computations: str = "", header: str = "") -> hlo.Module:
    """``add`` of f32 is there; the last instruction of the body is the root."""
    lines = [line.strip() for line in body.strip().splitlines()]
    lines[-1] = f"ROOT {lines[-1].removeprefix('ROOT ')}"
    entry = "\n  ".join(lines)
    text = f"HloModule m{header}\n\n{computation('add', 'add')}{computations}"
    return hlo.parse(f"{text}ENTRY e {{\n  {entry}\n}}\n")


def run(body: str, per_rank: Sequence[Any], computations: str = "", **options: Any) -> Any:
    """One result per rank; ``per_rank`` has an array, or a tuple of them, for each."""
    given = [each if isinstance(each, tuple) else (each,) for each in per_rank]
    counts = options.get("replicas", 1), options.get("partitions", 1)
    header = ", replica_count={}, num_partitions={}".format(*counts)
    module = program(body, computations, header)
    if len(given) == 1:
        return (interp.evaluate(module, *given[0], **options),)
    return interp.evaluate(module, *given, **options)


def f32(*rows: Any) -> list[Array]:
    return [np.array(row, np.float32) for row in rows]

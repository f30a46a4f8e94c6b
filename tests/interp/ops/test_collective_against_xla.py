"""Collectives as XLA:CPU runs them on eight devices, in every group mode and notation.

Values are small integers, so that no order of additions matters. Left out is what XLA:CPU does not
take (collective-broadcast, ragged-all-to-all, several operands of a collective-permute) and what
is lost on the way into its compiler (``device_ids`` of a mesh). Compiling takes XLA a tenth of a
second for each: one in three is run, all of them with ``EVERY_COLLECTIVE=1`` in the environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import TESTS

import hlo
import interp
from hlo.replica_groups import group_size
from hlo.text.replica_groups import read_groups
from hlo.values import arrays_of

pytestmark = pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")

GRIDS = [(4, 1), (1, 4), (2, 2), (2, 4)]
COMPUTATIONS = """
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
"""
ALL, CHANNEL, GLOBAL = "", ", channel_id=1", ", channel_id=1, use_global_device_ids=true"


@dataclass(frozen=True, slots=True)
class Program:
    """One instruction, and the dims of its f32 parameters."""

    replicas: int
    partitions: int
    result: str
    instruction: str
    dims: tuple[tuple[int, ...], ...] = ()

    @property
    def text(self) -> str:
        """Partitions are the program's own affair: everything is sharded by hand."""
        manual = ", sharding={manual}" if self.partitions > 1 else ""
        shapes = [f"f32[{','.join(map(str, dims))}]" for dims in self.dims]
        lines = [f"p{k} = {shape} parameter({k})" for k, shape in enumerate(shapes)]
        lines.append(f"ROOT r = {self.result} {self.instruction}")
        body = "\n".join(f"  {line}{manual}" for line in lines)
        header = f"replica_count={self.replicas}, num_partitions={self.partitions}"
        return f"HloModule m, {header}\n{COMPUTATIONS}\nENTRY e {{\n{body}\n}}\n"


def notations(count: int) -> Iterator[str]:
    """Groups of ``count`` ids, of one size each."""
    ids = ",".join(map(str, range(count)))
    yield f"{{{{{ids}}}}}"
    if count >= 4:
        yield f"{{{{{','.join(map(str, reversed(range(count))))}}}}}"
        yield f"[2,{count // 2}]<=[{count}]"
        yield f"[2,{count // 2}]<=[{count // 2},2]T(1,0)"
        yield f"mesh['x'=2,'y'={count // 2}] {{'x'}}"
        yield f"mesh['x'=2,'y'={count // 2}] {{'y','x'}}"
        yield f"mesh['x'={count}] {{'x':(2)2}}"


def reductions(replicas: int, partitions: int) -> Iterator[Program]:
    for ids in (ALL, CHANNEL, GLOBAL):
        count = replicas * partitions if ids == GLOBAL else replicas
        for groups in notations(count):
            size = group_size(read_groups(groups)) * (partitions if ids == CHANNEL else 1)
            rest = f"replica_groups={groups}{ids}"
            gather = f"all-gather(p0), dimensions={{0}}, {rest}"
            scatter = f"reduce-scatter(p0), to_apply=add, dimensions={{1}}, {rest}"
            yield Program(replicas, partitions, f"f32[{2 * size}]", gather, ((2,),))
            yield Program(replicas, partitions, "f32[3,2]", scatter, ((3, 2 * size),))
        if count < 3:
            continue
        uneven = f"{{{{0}},{{{','.join(map(str, reversed(range(1, count))))}}}}}"
        reduce = f"all-reduce(p0), to_apply=add, replica_groups={uneven}{ids}"
        yield Program(replicas, partitions, "f32[2]", reduce, ((2,),))


def exchanges(replicas: int, partitions: int) -> Iterator[Program]:
    for ids, count in ((ALL, replicas), (CHANNEL, partitions)):
        for groups in notations(count) if count > 1 else ():
            size, rest = group_size(read_groups(groups)), f"replica_groups={groups}{ids}"
            whole = f"f32[{2 * size},3]"
            split = f"all-to-all(p0), dimensions={{0}}, {rest}"
            yield Program(replicas, partitions, whole, split, ((2 * size, 3),))
            if "mesh" not in groups:
                operands = ", ".join(f"p{k}" for k in range(size))
                result = f"({', '.join(['f32[2]'] * size)})"
                listed = f"all-to-all({operands}), {rest}"
                yield Program(replicas, partitions, result, listed, ((2,),) * size)
        for pairs in ("{}", "{{0,1}}", f"{{{{0,{count - 1}}},{{1,0}}}}") if count > 1 else ():
            permute = f"collective-permute(p0), source_target_pairs={pairs}{ids}"
            yield Program(replicas, partitions, "f32[2]", permute, ((2,),))


def programs() -> list[Program]:
    found: list[Program] = []
    for grid in GRIDS:
        found += [*reductions(*grid), *exchanges(*grid)]
        found += [Program(*grid, "u32[]", f"{what}-id()") for what in ("replica", "partition")]
    return found if "EVERY_COLLECTIVE" in os.environ else found[::3]


def ours(program: Program, arguments: list[np.ndarray]) -> list[list[np.ndarray]]:
    """The results of each rank."""
    ranks = range(program.replicas * program.partitions)
    each = [tuple(array[rank] for array in arguments) for rank in ranks]
    grid: dict[str, Any] = {"replicas": program.replicas, "partitions": program.partitions}
    results = interp.evaluate(hlo.parse(program.text), *each, **grid)
    return [list(arrays_of(result)) for result in results]


def test_collectives_against_xla(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    cases = programs()
    drawn: list[list[np.ndarray]] = []
    for number, program in enumerate(cases):
        ranks = program.replicas * program.partitions
        shapes = [(ranks, *dims) for dims in program.dims]
        drawn.append([random.integers(-9, 9, dims).astype(np.float32) for dims in shapes])
        np.savez(tmp_path / f"{number}.npz", **{str(k): a for k, a in enumerate(drawn[-1])})
    listed = [{"text": p.text, "replicas": p.replicas, "partitions": p.partitions} for p in cases]
    (tmp_path / "programs.json").write_text(json.dumps(listed))
    script = TESTS / "interp" / "xla_ranks.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True)
    for number, program in enumerate(cases):
        refusal = tmp_path / f"{number}.error.txt"
        assert not refusal.exists(), f"{program.text}\n{refusal.read_text()}"
        found = ours(program, drawn[number])
        with np.load(tmp_path / f"{number}.result.npz") as stored:
            for k in stored.files:
                mine = np.stack([result[int(k)] for result in found])
                assert np.array_equal(mine, stored[k]), program.text

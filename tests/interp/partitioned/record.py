"""Writes the programs beside it: what JAX and XLA:CPU make of functions on a mesh of 2 × 4 devices.

    python tests/interp/partitioned/record.py

For each function NAME.hlo, the program of one partition after XLA's partitioner and optimisation,
and in results.json the arguments and results of every rank.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _hlo

HERE = Path(__file__).parent
MESH = Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
SPEC = PartitionSpec("a", "b")
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


def by_hand(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.shard_map(function, mesh=MESH, in_specs=SPEC, out_specs=SPEC, check_vma=False)


def turn(_: int, value: Any) -> Any:
    return jax.lax.ppermute(value, "b", RING) + jax.lax.psum(value, "a")


def branch(value: Any) -> Any:
    """Only one half of the ranks adds up."""
    first = jax.lax.axis_index("a") == 0
    return jax.lax.cond(first, lambda v: jax.lax.psum(v, "b"), lambda v: -v, value)


FUNCTIONS = {
    "all_to_all": by_hand(lambda v: jax.lax.all_to_all(v, "b", 0, 1, tiled=True).reshape(4, 2)),
    "branch": by_hand(branch),
    "cumsum": lambda v: jnp.cumsum(v, axis=1),
    "dot": lambda v: v @ v.T,
    "gather": by_hand(lambda v: jax.lax.all_gather(v, "b", axis=1, tiled=True)[:, 3:5]),
    "loop": by_hand(lambda v: jax.lax.fori_loop(0, 3, turn, v)),
    "scatter": by_hand(lambda v: jax.lax.psum_scatter(v, "b", tiled=True)),
    "sort": lambda v: jnp.sort(v, axis=1),
    "transpose": lambda v: jax.lax.with_sharding_constraint(v.T, NamedSharding(MESH, SPEC)),
}


def shards(array: Any) -> list[list[Any]]:
    """Rank by rank."""
    found = sorted(array.addressable_shards, key=lambda shard: shard.device.id)
    return [np.asarray(shard.data).tolist() for shard in found]


def main() -> None:
    whole = np.random.default_rng(0).integers(-9, 9, (8, 8)).astype(np.float32)
    given = jax.device_put(whole, NamedSharding(MESH, SPEC))
    options = _hlo.HloPrintOptions()
    options.print_metadata = False
    recorded = {}
    for name, function in FUNCTIONS.items():
        compiled = jax.jit(function).lower(given).compile()
        (module,) = compiled.runtime_executable().hlo_modules()
        (HERE / f"{name}.hlo").write_text(module.to_string(options))
        recorded[name] = {"arguments": shards(given), "results": shards(compiled(given))}
    (HERE / "results.json").write_text(json.dumps(recorded, indent=None) + "\n")


if __name__ == "__main__":
    main()

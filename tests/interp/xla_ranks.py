"""Runs programs on XLA:CPU with eight devices: a process of its own, for the number of devices is
fixed when JAX starts.

    python xla_ranks.py DIRECTORY

reads ``programs.json``, a list of {text, replicas, partitions}, and ``N.npz`` with parameter K of
program N as ``K``, stacked over ranks; writes ``N.result.npz``, result K stacked over ranks, or
``N.error.txt``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jaxlib.xla_client as xc
import numpy as np
from jaxlib import _hlo, _jax


def compiled(text: str, replicas: int, partitions: int) -> Any:
    """An executable on the first devices, rank by rank."""
    module = _hlo.hlo_module_from_text(text)
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    program = _jax.mlir.xla_computation_to_mlir_module(computation)
    assignment = xc.DeviceAssignment.create(
        np.arange(replicas * partitions).reshape(replicas, partitions)
    )
    options = xc.CompileOptions()
    build = options.executable_build_options
    for one in (options, build):
        one.num_replicas, one.num_partitions = replicas, partitions
        one.device_assignment = assignment
    build.use_spmd_partitioning = partitions > 1
    devices = jax.devices()[: replicas * partitions]
    client = devices[0].client
    return client.compile_and_load(program, xc.DeviceList(tuple(devices)), options)


def results(executable: Any, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """Each result, stacked over ranks."""
    ranks = len(executable.local_devices())
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:ranks]), ("ranks",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("ranks"))
    flat = [array.reshape(-1, *array.shape[2:]) for array in arguments]
    given = [jax.device_put(array, sharding) for array in flat]
    made = executable.execute_sharded(given).disassemble_into_single_device_arrays()
    return [np.stack([np.asarray(part) for part in parts]) for parts in made]


def main(directory: Path) -> None:
    jax.config.update("jax_enable_x64", True)
    for number, program in enumerate(json.loads((directory / "programs.json").read_text())):
        with np.load(directory / f"{number}.npz") as stored:
            arguments = [stored[str(k)] for k in range(len(stored.files))]
        try:
            executable = compiled(**program)
            made = results(executable, arguments)
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            (directory / f"{number}.error.txt").write_text(str(error))
            continue
        stored = {str(k): array for k, array in enumerate(made)}
        np.savez(directory / f"{number}.result.npz", **stored)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Partition programs of several partitions by their shardings, with XLA's SPMD partitioner.

It runs within a compilation for the CPU, in a process of its own, as it may crash; its output is
dumped after its pass and kept in the cache of libraries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from backend_c.native.cache import default_directory, open_cache, remembered
from backend_c.native.toolchain import digest
from fuzz.peers.jaxlib_modules import compiled, cpu_client
from hlo.errors import Error
from hlo_oracle.loading.wire_format import messages

if TYPE_CHECKING:
    from fuzz.worker_pool import WorkerPool

_SECONDS = 600.0  # for one program
_PASS = "spmd-partitioning"
_MODULE = 1  # of HloProto
_PRELOAD = ("jaxlib.xla_client",)


@dataclass(frozen=True, slots=True)
class Partitioned:
    """The HloModuleProto of a program for one partition, or the reason why there is none."""

    proto: bytes = b""
    error: str = ""


@contextmanager
def partitioner(devices: int) -> Iterator[Callable[[bytes, bytes], Partitioned]]:
    """Yield the function that partitions, for a worker process: it takes StableHLO and
    a CompileOptionsProto, with device ids below ``devices``."""
    os.environ.pop("XLA_FLAGS", None)
    from jaxlib import xla_client

    def partitioned(code: bytes, options: bytes) -> Partitioned:
        client = cpu_client(devices)
        settings = xla_client.CompileOptions.ParseFromString(options)
        with TemporaryDirectory() as directory:
            settings.env_option_overrides = [
                ("xla_dump_to", directory),
                ("xla_dump_hlo_pass_re", _PASS),
                ("xla_dump_hlo_as_proto", True),  # texts say nothing of the results' shardings
                ("xla_backend_optimization_level", 0),  # the compiled program is not wanted
            ]
            why = "jaxlib did not partition it"
            try:
                chosen = xla_client.DeviceList(tuple(client.devices()))
                compiled(client, code, chosen, settings)
            except (RuntimeError, ValueError, TypeError) as error:  # jaxlib's are RuntimeErrors
                why = str(error)  # perhaps of what comes after: calls that XLA:CPU does not know
            dumped = sorted(Path(directory).glob(f"*.after_{_PASS}.*.hlo.pb"))
            if not dumped:
                return Partitioned(error=why)
            return Partitioned(messages(dumped[-1].read_bytes(), _MODULE)[-1])

    yield partitioned


class Partitioner:
    """Partitions programs in a process that is started at the first use."""

    def __init__(self) -> None:
        self._pool: WorkerPool[Partitioned] | None = None
        self._devices = 0  # of its process

    def __call__(self, code: bytes, options: bytes, devices: int) -> bytes:
        """Partition a StableHLO program; return the HloModuleProto for one partition, or raise
        Error."""
        kept = open_cache(default_directory(os.environ))
        key = digest(["partitioned", version("jaxlib"), code.hex(), options.hex(), str(devices)])
        made = remembered(kept, key, lambda: self._made(code, options, devices).hex())
        return bytes.fromhex(made)

    def _made(self, code: bytes, options: bytes, devices: int) -> bytes:
        from fuzz.worker_pool import Result, WorkerPool  # starts processes, which few programs need

        if self._pool is None or devices > self._devices:
            if self._pool is not None:
                self._pool.close()
            started = partial(partitioner, devices)
            self._pool = WorkerPool(started, seconds=_SECONDS, preload=_PRELOAD)
            self._devices = devices
        outcome = self._pool(code, options)
        if not isinstance(outcome, Result):
            raise Error(f"XLA's partitioner died: {outcome}")
        if outcome.value.error:
            raise Error(f"XLA cannot partition the program: {outcome.value.error}")
        return outcome.value.proto

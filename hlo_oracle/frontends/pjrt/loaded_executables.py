"""PJRT functions that compile programs and load them onto devices."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

from hlo.errors import ArgumentError, Unsupported
from hlo_oracle.frontends.pjrt import programs
from hlo_oracle.frontends.pjrt.callbacks import calls_python
from hlo_oracle.frontends.pjrt.client import Client
from hlo_oracle.frontends.pjrt.compile_options import device_assignment
from hlo_oracle.frontends.pjrt.declarations import structure
from hlo_oracle.frontends.pjrt.devices import Device
from hlo_oracle.frontends.pjrt.executables import Executable
from hlo_oracle.frontends.pjrt.foreign_memory import Kept, bytes_at, text_at
from hlo_oracle.frontends.pjrt.modes import Mode
from hlo_oracle.frontends.pjrt.plugin import Plugin
from hlo_oracle.frontends.pjrt.programs import Program
from hlo_oracle.frontends.pjrt.topology import Topology

__all__ = [
    "client_compile",
    "client_load",
    "compile_",
    "executable_deserialize_and_load",
    "loaded_executable_addressable_device_logical_ids",
    "loaded_executable_addressable_devices",
    "loaded_executable_delete",
    "loaded_executable_destroy",
    "loaded_executable_fingerprint",
    "loaded_executable_get_device_assignment",
    "loaded_executable_get_executable",
    "loaded_executable_is_deleted",
]


@dataclass(slots=True)
class LoadedExecutable:
    """A compiled program loaded onto devices; without devices it is portable and runs on any."""

    program: Program
    devices: list[Device]
    client: Client
    is_deleted: bool = False
    was_called: bool = False
    kept: Kept = field(default_factory=Kept)

    @property
    def addressable(self) -> list[Device]:
        """The program's devices in this process."""
        return [device for device in self.devices if device.is_addressable]

    def is_first(self) -> bool:
        """Return True at the first call only."""
        before, self.was_called = self.was_called, True
        return not before


def _loaded(plugin: Plugin, args: Any) -> LoadedExecutable:
    return plugin.handles.of(args.executable, LoadedExecutable)


def _compiled(plugin: Plugin, args: Any) -> Program:
    given = structure("Program").from_address(args.program)
    code, form = bytes_at(given.code, given.code_size), text_at(given.format, given.format_size)
    options = bytes_at(args.compile_options, args.compile_options_size)
    mode = plugin.mode or Mode.FAST
    return programs.compiled(code, form, options, mode, plugin.partitioner)


def _load(plugin: Plugin, program: Program, client: Client) -> int:
    """Load a program onto the devices of its options; return the handle."""
    known = {device.id: device for device in client.devices}
    ids = program.ranks.devices
    if not ids and program.ranks.ranks > 1:
        ids = tuple(range(program.ranks.ranks))
    for number in ids:
        if number not in known:
            raise ArgumentError(
                f"{program.name} is for device {number} of {len(known)}: set"
                f" HLO_ORACLE_DEVICES={program.ranks.ranks} or more"
            )
    devices = [known[number] for number in ids] or client.addressable[:1]
    loaded = LoadedExecutable(program, devices, client)
    if len(loaded.addressable) < len(devices) and calls_python(program.module):
        raise Unsupported(
            f"{program.name} calls Python, and runs on devices of several processes: call outside"
            " of it, on its results"
        )
    return plugin.handles.give(loaded)


def client_compile(plugin: Plugin, args: Any) -> None:
    client = plugin.handles.of(args.client, Client)
    args.give(executable=_load(plugin, _compiled(plugin, args), client))


def compile_(plugin: Plugin, args: Any) -> None:
    """Compile for a topology, without loading."""
    plugin.handles.of(args.topology, Topology)
    args.give(executable=plugin.handles.give(Executable(_compiled(plugin, args))))


def client_load(plugin: Plugin, args: Any) -> None:
    client = plugin.handles.of(args.client, Client)
    args.give(
        loaded_executable=_load(
            plugin, plugin.handles.of(args.executable, Executable).program, client
        )
    )


def executable_deserialize_and_load(plugin: Plugin, args: Any) -> None:
    client = plugin.handles.of(args.client, Client)
    data = bytes_at(args.serialized_executable, args.serialized_executable_size)
    size = args.overridden_serialized_compile_options_size
    options = bytes_at(args.overridden_serialized_compile_options, size)
    args.give(loaded_executable=_load(plugin, programs.deserialized(data, options), client))


def loaded_executable_destroy(plugin: Plugin, args: Any) -> None:
    plugin.handles.drop(args.executable)


def loaded_executable_get_executable(plugin: Plugin, args: Any) -> None:
    loaded = plugin.handles.of(args.loaded_executable, LoadedExecutable)
    args.give(executable=plugin.handles.give(Executable(loaded.program)))


def loaded_executable_addressable_devices(plugin: Plugin, args: Any) -> None:
    loaded = _loaded(plugin, args)
    handles = [device.handle for device in loaded.addressable]
    found = loaded.kept.numbers(handles, ctypes.c_void_p)
    args.give_each(("addressable_devices", "num_addressable_devices"), found)


def loaded_executable_delete(plugin: Plugin, args: Any) -> None:
    _loaded(plugin, args).is_deleted = True


def loaded_executable_is_deleted(plugin: Plugin, args: Any) -> None:
    args.give(is_deleted=_loaded(plugin, args).is_deleted)


def loaded_executable_fingerprint(plugin: Plugin, args: Any) -> None:
    loaded = _loaded(plugin, args)
    found = loaded.kept.text(loaded.program.fingerprint)
    args.give_each(("executable_fingerprint", "executable_fingerprint_size"), found)


def loaded_executable_get_device_assignment(plugin: Plugin, args: Any) -> None:
    loaded = _loaded(plugin, args)
    ranks = loaded.program.ranks
    ids = [device.id for device in loaded.devices]
    found = loaded.kept.text(device_assignment(ranks.replicas, ranks.partitions, ids))
    args.give_each(("serialized_bytes", "serialized_bytes_size"), found)
    args.give(serialized_device_assignment=None)
    args.give(serialized_device_assignment_deleter=plugin.nothing_to_free)


def loaded_executable_addressable_device_logical_ids(plugin: Plugin, args: Any) -> None:
    """Return the replica and partition of each rank of this process."""
    loaded = _loaded(plugin, args)
    partitions = loaded.program.ranks.partitions
    ranks = [rank for rank, device in enumerate(loaded.devices) if device.is_addressable]
    pairs = [part for rank in ranks for part in divmod(rank, partitions)]
    addressable_device_logical_ids, _ = loaded.kept.numbers(pairs, ctypes.c_int32)
    args.give(addressable_device_logical_ids=addressable_device_logical_ids)
    args.give(num_addressable_device_logical_ids=len(ranks))

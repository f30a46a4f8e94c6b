"""PJRT functions of the client: it lists devices and compiles programs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlo.errors import ArgumentError
from hlo_oracle.frontends.pjrt.devices import Device, devices
from hlo_oracle.frontends.pjrt.foreign_memory import Kept, named_at, write_numbers
from hlo_oracle.frontends.pjrt.key_value_store import KeyValueStore
from hlo_oracle.frontends.pjrt.modes import (
    PLATFORM,
    devices_of,
    mode_of,
    version_text,
)
from hlo_oracle.frontends.pjrt.plugin import Plugin
from hlo_oracle.frontends.pjrt.processes import Processes, joined
from hlo_oracle.frontends.pjrt.stablehlo import versions
from hlo_oracle.frontends.pjrt.topology import Topology, topology

__all__ = [
    "client_addressable_devices",
    "client_addressable_memories",
    "client_create",
    "client_default_device_assignment",
    "client_destroy",
    "client_devices",
    "client_dma_map",
    "client_dma_unmap",
    "client_lookup_addressable_device",
    "client_lookup_device",
    "client_platform_name",
    "client_platform_version",
    "client_process_index",
    "client_topology_description",
    "client_update_global_process_info",
    "plugin_attributes",
    "plugin_initialize",
]

_XLA_VERSION = 2  # what the attribute of this name has to be for jaxlib


@dataclass(slots=True)
class Client:
    """A PJRT client: the devices of all processes, of which those of this one are addressable."""

    devices: list[Device]
    topology: Topology
    processes: Processes
    kept: Kept = field(default_factory=Kept)

    @property
    def addressable(self) -> list[Device]:
        return [device for device in self.devices if device.is_addressable]


def _of(plugin: Plugin, args: Any) -> Client:
    return plugin.handles.of(args.client, Client)


def plugin_initialize(plugin: Plugin, args: Any) -> None:
    """Do nothing: the options are those of each client, which come later."""


def plugin_attributes(plugin: Plugin, args: Any) -> None:
    """Return the range of StableHLO versions that are read: that of the installed jaxlib."""
    current, minimum = versions()
    found = plugin.kept.named(
        {
            "xla_version": _XLA_VERSION,
            "stablehlo_current_version": current,
            "stablehlo_minimum_version": minimum,
        }
    )
    args.give_each(("attributes", "num_attributes"), found)


def client_create(plugin: Plugin, args: Any) -> None:
    options = named_at(args.create_options, args.num_options)
    plugin.choose(mode_of(options, os.environ))
    store = KeyValueStore(plugin, args) if args.kv_get_callback and args.kv_put_callback else None
    processes = joined(options, store, devices_of(options, os.environ), plugin.next_name())
    made = devices(plugin, processes.devices, processes.number)
    described = topology(plugin, tuple(device.description for device in made))
    args.give(client=plugin.handles.give(Client(made, described, processes)))


def client_destroy(plugin: Plugin, args: Any) -> None:
    client = plugin.handles.drop(args.client)
    if not isinstance(client, Client):
        return
    client.processes.leave()
    for device in client.devices:
        for handle in (device.handle, device.memory, device.description.handle):
            plugin.handles.drop(handle)


def client_platform_name(plugin: Plugin, args: Any) -> None:
    args.give_each(("platform_name", "platform_name_size"), _of(plugin, args).kept.text(PLATFORM))


def client_platform_version(plugin: Plugin, args: Any) -> None:
    found = _of(plugin, args).kept.text(version_text())
    args.give_each(("platform_version", "platform_version_size"), found)


def client_process_index(plugin: Plugin, args: Any) -> None:
    args.give(process_index=_of(plugin, args).processes.number)


def client_devices(plugin: Plugin, args: Any) -> None:
    client = _of(plugin, args)
    args.give_each(("devices", "num_devices"), _handles(client, client.devices))


def client_addressable_devices(plugin: Plugin, args: Any) -> None:
    client = _of(plugin, args)
    found = _handles(client, client.addressable)
    args.give_each(("addressable_devices", "num_addressable_devices"), found)


def client_addressable_memories(plugin: Plugin, args: Any) -> None:
    client = _of(plugin, args)
    memories = [device.memory for device in client.addressable]
    found = client.kept.numbers(memories, ctypes.c_void_p)
    args.give_each(("addressable_memories", "num_addressable_memories"), found)


def client_lookup_device(plugin: Plugin, args: Any) -> None:
    found = {device.id: device for device in _of(plugin, args).devices}
    args.give(device=_numbered(found, args.id).handle)


def client_lookup_addressable_device(plugin: Plugin, args: Any) -> None:
    found = {device.number: device for device in _of(plugin, args).addressable}
    args.give(addressable_device=_numbered(found, args.local_hardware_id).handle)


def client_default_device_assignment(plugin: Plugin, args: Any) -> None:
    count, ranks = len(_of(plugin, args).devices), args.num_replicas * args.num_partitions
    if ranks > count:
        raise ArgumentError(f"{ranks} ranks on {count} devices: set HLO_ORACLE_DEVICES={ranks}")
    write_numbers(args.default_assignment, range(ranks), ctypes.c_int32)


def client_topology_description(plugin: Plugin, args: Any) -> None:
    args.give(topology=_of(plugin, args).topology.handle)


def client_update_global_process_info(plugin: Plugin, args: Any) -> None:
    """Do nothing: processes join when the client is created. (jaxlib aborts the process if this
    fails.)"""


def client_dma_map(plugin: Plugin, args: Any) -> None:
    """Do nothing: devices use the host's memory."""


def client_dma_unmap(plugin: Plugin, args: Any) -> None:
    """Do nothing: nothing was mapped."""


def _handles(client: Client, of: Sequence[Device]) -> tuple[int, int]:
    return client.kept.numbers([device.handle for device in of], ctypes.c_void_p)


def _numbered(known: Mapping[int, Device], number: int) -> Device:
    if number not in known:
        raise ArgumentError(f"there is no device {number}: there are {len(known)}")
    return known[number]

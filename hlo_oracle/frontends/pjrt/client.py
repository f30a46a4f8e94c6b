"""The client: it knows the devices, and compiles."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass, field
from typing import Any

from hlo.errors import ArgumentError
from hlo_oracle.frontends.pjrt.devices import Device, devices
from hlo_oracle.frontends.pjrt.foreign_memory import Kept, named_at, write_numbers
from hlo_oracle.frontends.pjrt.modes import (
    PLATFORM,
    devices_of,
    mode_of,
    require_one_process,
    version_text,
)
from hlo_oracle.frontends.pjrt.plugin import Plugin
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
    """The devices of this process, all of which are addressable."""

    devices: list[Device]
    topology: Topology
    kept: Kept = field(default_factory=Kept)


def _of(plugin: Plugin, args: Any) -> Client:
    return plugin.handles.of(args.client, Client)


def plugin_initialize(plugin: Plugin, args: Any) -> None:
    """Do nothing: a client's options are not known yet."""


def plugin_attributes(plugin: Plugin, args: Any) -> None:
    """Name the versions of StableHLO that are read: those of the jaxlib that reads them."""
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
    require_one_process(options)
    plugin.choose(mode_of(options, os.environ))
    made = devices(plugin, devices_of(options, os.environ))
    described = topology(plugin, tuple(device.description for device in made))
    args.give(client=plugin.handles.give(Client(made, described)))


def client_destroy(plugin: Plugin, args: Any) -> None:
    client = plugin.handles.drop(args.client)
    for device in client.devices if isinstance(client, Client) else ():
        for handle in (device.handle, device.memory, device.description.handle):
            plugin.handles.drop(handle)


def client_platform_name(plugin: Plugin, args: Any) -> None:
    args.give_each(("platform_name", "platform_name_size"), _of(plugin, args).kept.text(PLATFORM))


def client_platform_version(plugin: Plugin, args: Any) -> None:
    found = _of(plugin, args).kept.text(version_text())
    args.give_each(("platform_version", "platform_version_size"), found)


def client_process_index(plugin: Plugin, args: Any) -> None:
    _of(plugin, args)
    args.give(process_index=0)


def client_devices(plugin: Plugin, args: Any) -> None:
    args.give_each(("devices", "num_devices"), _device_handles(_of(plugin, args)))


def client_addressable_devices(plugin: Plugin, args: Any) -> None:
    found = _device_handles(_of(plugin, args))
    args.give_each(("addressable_devices", "num_addressable_devices"), found)


def client_addressable_memories(plugin: Plugin, args: Any) -> None:
    client = _of(plugin, args)
    memories = [device.memory for device in client.devices]
    found = client.kept.numbers(memories, ctypes.c_void_p)
    args.give_each(("addressable_memories", "num_addressable_memories"), found)


def client_lookup_device(plugin: Plugin, args: Any) -> None:
    args.give(device=_numbered(_of(plugin, args), args.id).handle)


def client_lookup_addressable_device(plugin: Plugin, args: Any) -> None:
    args.give(addressable_device=_numbered(_of(plugin, args), args.local_hardware_id).handle)


def client_default_device_assignment(plugin: Plugin, args: Any) -> None:
    count, ranks = len(_of(plugin, args).devices), args.num_replicas * args.num_partitions
    if ranks > count:
        raise ArgumentError(f"{ranks} ranks on {count} devices: set HLO_ORACLE_DEVICES={ranks}")
    write_numbers(args.default_assignment, range(ranks), ctypes.c_int32)


def client_topology_description(plugin: Plugin, args: Any) -> None:
    args.give(topology=_of(plugin, args).topology.handle)


def client_update_global_process_info(plugin: Plugin, args: Any) -> None:
    """Do nothing: there is one process, whatever ``jax.distributed`` tells of it. (jaxlib ends the
    process if this fails.)"""


def client_dma_map(plugin: Plugin, args: Any) -> None:
    """Do nothing: devices read the host's memory as it is."""


def client_dma_unmap(plugin: Plugin, args: Any) -> None:
    """Do nothing."""


def _device_handles(client: Client) -> tuple[int, int]:
    return client.kept.numbers([device.handle for device in client.devices], ctypes.c_void_p)


def _numbered(client: Client, number: int) -> Device:
    for device in client.devices:
        if device.id == number:
            return device
    raise ArgumentError(f"there is no device {number}: there are {len(client.devices)}")

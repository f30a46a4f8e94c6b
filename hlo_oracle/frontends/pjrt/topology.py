"""PJRT functions of the topology: a number of devices in a line."""

from __future__ import annotations

import ctypes
import json
import os
from dataclasses import dataclass, field
from typing import Any

from hlo.errors import ArgumentError
from hlo_oracle.frontends.pjrt.devices import MEMORY_KIND_ID, Description, description
from hlo_oracle.frontends.pjrt.foreign_memory import Kept, bytes_at, named_at
from hlo_oracle.frontends.pjrt.modes import PLATFORM, devices_of, version_text
from hlo_oracle.frontends.pjrt.plugin import Plugin

__all__ = [
    "topology_description_attributes",
    "topology_description_create",
    "topology_description_deserialize",
    "topology_description_destroy",
    "topology_description_fingerprint",
    "topology_description_get_device_descriptions",
    "topology_description_get_memory_space_kind_ids",
    "topology_description_platform_name",
    "topology_description_platform_version",
    "topology_description_serialize",
]


@dataclass(slots=True)
class Topology:
    """The descriptions of a client's devices."""

    descriptions: tuple[Description, ...]
    kept: Kept = field(default_factory=Kept)
    handle: int = 0


def topology(plugin: Plugin, descriptions: tuple[Description, ...]) -> Topology:
    """Create a topology of device descriptions, and its handle."""
    made = Topology(descriptions)
    made.handle = plugin.handles.give(made)
    return made


def _of(plugin: Plugin, args: Any) -> Topology:
    return plugin.handles.of(args.topology, Topology)


def _of_count(plugin: Plugin, count: int) -> Topology:
    return topology(plugin, tuple(description(plugin, number) for number in range(count)))


def topology_description_create(plugin: Plugin, args: Any) -> None:
    """Create the topology of a client with the given options; the name is ignored."""
    options = named_at(args.create_options, args.num_options)
    args.give(topology=_of_count(plugin, devices_of(options, os.environ)).handle)


def topology_description_destroy(plugin: Plugin, args: Any) -> None:
    plugin.handles.drop(args.topology)


def topology_description_platform_name(plugin: Plugin, args: Any) -> None:
    args.give_each(("platform_name", "platform_name_size"), _of(plugin, args).kept.text(PLATFORM))


def topology_description_platform_version(plugin: Plugin, args: Any) -> None:
    found = _of(plugin, args).kept.text(version_text())
    args.give_each(("platform_version", "platform_version_size"), found)


def topology_description_get_device_descriptions(plugin: Plugin, args: Any) -> None:
    found = _of(plugin, args)
    handles = [each.handle for each in found.descriptions]
    args.give_each(
        ("descriptions", "num_descriptions"), found.kept.numbers(handles, ctypes.c_void_p)
    )


def topology_description_serialize(plugin: Plugin, args: Any) -> None:
    found = _of(plugin, args)
    data = json.dumps({"hlo-oracle": 1, "devices": len(found.descriptions)}).encode()
    args.give_each(("serialized_bytes", "serialized_bytes_size"), found.kept.text(data))
    args.give(serialized_topology=None, serialized_topology_deleter=plugin.nothing_to_free)


def topology_description_deserialize(plugin: Plugin, args: Any) -> None:
    data = bytes_at(args.serialized_topology, args.serialized_topology_size)
    try:
        count = json.loads(data)["devices"]
    except (ValueError, KeyError, TypeError):
        raise ArgumentError("these bytes are no topology of hlo-oracle") from None
    args.give(topology=_of_count(plugin, devices_of({"devices": count}, {})).handle)


def topology_description_attributes(plugin: Plugin, args: Any) -> None:
    args.give_each(("attributes", "num_attributes"), _of(plugin, args).kept.named({}))


def topology_description_fingerprint(plugin: Plugin, args: Any) -> None:
    args.give(fingerprint=len(_of(plugin, args).descriptions))


def topology_description_get_memory_space_kind_ids(plugin: Plugin, args: Any) -> None:
    found = _of(plugin, args).kept.numbers([MEMORY_KIND_ID], ctypes.c_int32)
    args.give_each(("memory_space_kind_ids", "num_memory_space_kind_ids"), found)

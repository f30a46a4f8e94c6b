"""PJRT devices and memories: ranks simulated by this process, and those of its peers."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hlo_oracle.frontends.pjrt.foreign_memory import Kept
from hlo_oracle.frontends.pjrt.plugin import Plugin

__all__ = [
    "device_addressable_memories",
    "device_clear_memory_stats",
    "device_default_memory",
    "device_description_attributes",
    "device_description_debug_string",
    "device_description_id",
    "device_description_kind",
    "device_description_process_index",
    "device_description_to_string",
    "device_get_attributes",
    "device_get_description",
    "device_is_addressable",
    "device_local_hardware_id",
    "device_memory_stats",
    "memory_addressable_by_devices",
    "memory_debug_string",
    "memory_id",
    "memory_kind",
    "memory_kind_id",
    "memory_to_string",
]

KIND = "hlo-oracle"
MEMORY_KIND, MEMORY_KIND_ID = "device", 0


@dataclass(slots=True)
class Description:
    """The description of a device: its global id, which is its rank, and the process that simulates
    it."""

    id: int
    process: int = 0
    kept: Kept = field(default_factory=Kept)
    handle: int = 0

    @property
    def attributes(self) -> dict[str, int | str | tuple[int, ...]]:
        """The attributes from which JAX derives the order of devices in a mesh."""
        return {"coords": (self.id, 0, 0), "core_on_chip": 0, "slice_index": 0}


@dataclass(slots=True)
class Device:
    """A device with its one memory; ``number`` is its index in its process, and it is
    ``is_addressable`` in that process only."""

    description: Description
    number: int = 0
    is_addressable: bool = True
    kept: Kept = field(default_factory=Kept)
    handle: int = 0
    memory: int = 0
    in_use: int = 0  # bytes of its buffers
    most_in_use: int = 0

    @property
    def id(self) -> int:
        return self.description.id

    def count(self, more: int) -> None:
        """Add to the bytes in use; negative when a buffer is freed."""
        self.in_use += more
        self.most_in_use = max(self.most_in_use, self.in_use)


@dataclass(slots=True)
class Memory:
    """The single memory space of a device."""

    device: Device
    kept: Kept = field(default_factory=Kept)
    handle: int = 0


def devices(plugin: Plugin, counts: Sequence[int], here: int = 0) -> list[Device]:
    """Create the devices of all processes, with descriptions and memories; ``counts`` has their
    number in each process, ``here`` is the number of this one."""
    made: list[Device] = []
    for process, count in enumerate(counts):
        for number in range(count):
            described = description(plugin, len(made), process)
            device = Device(described, number, is_addressable=process == here)
            memory = Memory(device)
            device.handle = plugin.handles.give(device)
            memory.handle = device.memory = plugin.handles.give(memory)
            made.append(device)
    return made


def description(plugin: Plugin, number: int, process: int = 0) -> Description:
    """Create the description of a device, and its handle."""
    made = Description(number, process)
    made.handle = plugin.handles.give(made)
    return made


def device_description_id(plugin: Plugin, args: Any) -> None:
    args.give(id=plugin.handles.of(args.device_description, Description).id)


def device_description_process_index(plugin: Plugin, args: Any) -> None:
    args.give(process_index=plugin.handles.of(args.device_description, Description).process)


def device_description_attributes(plugin: Plugin, args: Any) -> None:
    described = plugin.handles.of(args.device_description, Description)
    args.give_each(("attributes", "num_attributes"), described.kept.named(described.attributes))


def device_description_kind(plugin: Plugin, args: Any) -> None:
    described = plugin.handles.of(args.device_description, Description)
    args.give_each(("device_kind", "device_kind_size"), described.kept.text(KIND))


def device_description_debug_string(plugin: Plugin, args: Any) -> None:
    described = plugin.handles.of(args.device_description, Description)
    text = f"{KIND} device {described.id}: a rank that process {described.process} simulates"
    args.give_each(("debug_string", "debug_string_size"), described.kept.text(text))


def device_description_to_string(plugin: Plugin, args: Any) -> None:
    described = plugin.handles.of(args.device_description, Description)
    args.give_each(
        ("to_string", "to_string_size"), described.kept.text(f"HloOracleDevice(id={described.id})")
    )


def device_get_description(plugin: Plugin, args: Any) -> None:
    args.give(device_description=plugin.handles.of(args.device, Device).description.handle)


def device_is_addressable(plugin: Plugin, args: Any) -> None:
    args.give(is_addressable=plugin.handles.of(args.device, Device).is_addressable)


def device_local_hardware_id(plugin: Plugin, args: Any) -> None:
    args.give(local_hardware_id=plugin.handles.of(args.device, Device).number)


def device_addressable_memories(plugin: Plugin, args: Any) -> None:
    device = plugin.handles.of(args.device, Device)
    places = device.kept.numbers([device.memory], ctypes.c_void_p)
    args.give_each(("memories", "num_memories"), places)


def device_default_memory(plugin: Plugin, args: Any) -> None:
    args.give(memory=plugin.handles.of(args.device, Device).memory)


def device_memory_stats(plugin: Plugin, args: Any) -> None:
    device = plugin.handles.of(args.device, Device)
    args.clear("bytes_in_use")
    args.give(bytes_in_use=device.in_use, peak_bytes_in_use=device.most_in_use)
    args.give(peak_bytes_in_use_is_set=True)


def device_clear_memory_stats(plugin: Plugin, args: Any) -> None:
    device = plugin.handles.of(args.device, Device)
    device.most_in_use = device.in_use


def device_get_attributes(plugin: Plugin, args: Any) -> None:
    device = plugin.handles.of(args.device, Device)
    args.give_each(
        ("attributes", "num_attributes"), device.kept.named(device.description.attributes)
    )
    args.give(device_attributes=None, attributes_deleter=plugin.nothing_to_free)


def memory_id(plugin: Plugin, args: Any) -> None:
    args.give(id=plugin.handles.of(args.memory, Memory).device.id)


def memory_kind(plugin: Plugin, args: Any) -> None:
    memory = plugin.handles.of(args.memory, Memory)
    args.give_each(("kind", "kind_size"), memory.kept.text(MEMORY_KIND))


def memory_kind_id(plugin: Plugin, args: Any) -> None:
    plugin.handles.of(args.memory, Memory)
    args.give(kind_id=MEMORY_KIND_ID)


def memory_debug_string(plugin: Plugin, args: Any) -> None:
    memory = plugin.handles.of(args.memory, Memory)
    args.give_each(("debug_string", "debug_string_size"), memory.kept.text(_named(memory)))


def memory_to_string(plugin: Plugin, args: Any) -> None:
    memory = plugin.handles.of(args.memory, Memory)
    args.give_each(("to_string", "to_string_size"), memory.kept.text(_named(memory)))


def memory_addressable_by_devices(plugin: Plugin, args: Any) -> None:
    memory = plugin.handles.of(args.memory, Memory)
    args.give_each(
        ("devices", "num_devices"), memory.kept.numbers([memory.device.handle], ctypes.c_void_p)
    )


def _named(memory: Memory) -> str:
    return f"HloOracleMemory(device={memory.device.id}, kind={MEMORY_KIND})"

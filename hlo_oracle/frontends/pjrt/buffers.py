"""PJRT buffers: NumPy arrays in the memory of this process, row-major."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlo.errors import ArgumentError
from hlo.types import ArrayShape, ElementType
from hlo.values import Array
from hlo_oracle.frontends.pjrt import element_types, events
from hlo_oracle.frontends.pjrt.devices import Device, Memory
from hlo_oracle.frontends.pjrt.events import Event
from hlo_oracle.frontends.pjrt.foreign_memory import Kept, address_of
from hlo_oracle.frontends.pjrt.plugin import Plugin

__all__ = [
    "buffer_decrease_external_reference_count",
    "buffer_delete",
    "buffer_destroy",
    "buffer_device",
    "buffer_dimensions",
    "buffer_dynamic_dimension_indices",
    "buffer_element_type",
    "buffer_get_memory_layout",
    "buffer_increase_external_reference_count",
    "buffer_is_deleted",
    "buffer_is_on_cpu",
    "buffer_memory",
    "buffer_on_device_size_in_bytes",
    "buffer_opaque_device_memory_data_pointer",
    "buffer_ready_event",
    "buffer_unpadded_dimensions",
    "buffer_unsafe_pointer",
]

_TILED = 0  # PJRT_Buffer_MemoryLayout_Type


@dataclass(slots=True)
class Buffer:
    """An array on a device; None in place of the array for a token.

    ``array`` is None once the buffer is deleted. While clients hold external references
    (``references``) the memory stays. ``release`` is called when the memory is freed; the event
    ``ready`` fires when the memory is written, if that is later.
    """

    array: Array | None
    element: ElementType
    dims: tuple[int, ...]
    device: Device
    is_deleted: bool = False
    references: int = 0
    release: Callable[[], None] | None = None
    ready: Event | None = None
    kept: Kept = field(default_factory=Kept)

    def value(self) -> Array | None:
        """Wait until the buffer is ready and return its array, None for a token.

        Raises ArgumentError if the buffer was deleted, Failed if its memory was never written.
        """
        if self.ready is not None:
            self.ready.result()
        if self.is_deleted:
            raise ArgumentError(
                f"a buffer of {self.element}{list(self.dims)} was deleted or donated: it is used"
                " again"
            )
        return self.array

    def data(self) -> Array:
        """Return the array; an empty one for a token."""
        value = self.value()
        return np.empty(0, np.bool_) if value is None else value

    def delete(self) -> None:
        """Delete the buffer; its memory is freed once no client holds a reference."""
        self.is_deleted = True
        if not self.references:
            self._let_go()

    def release_reference(self) -> None:
        """Drop one external reference."""
        self.references -= 1
        if self.is_deleted and not self.references:
            self._let_go()

    def _let_go(self) -> None:
        if self.array is not None:
            self.device.count(-self.array.nbytes)
            self.array = None
        release, self.release = self.release, None
        if release is not None:
            release()


def on_device(
    plugin: Plugin,
    device: Device,
    array: Array | None,
    shape: ArrayShape,
    release: Callable[[], None] | None = None,
    ready: Event | None = None,
) -> int:
    """Create a buffer with an array of a shape, or a token; return its handle."""
    if array is not None:
        device.count(array.nbytes)
    dims = shape.dims if array is None else array.shape
    made = Buffer(array, shape.element_type, dims, device, release=release, ready=ready)
    return plugin.handles.give(made)


def _of(plugin: Plugin, args: Any) -> Buffer:
    return plugin.handles.of(args.buffer, Buffer)


def buffer_destroy(plugin: Plugin, args: Any) -> None:
    buffer = plugin.handles.drop(args.buffer)
    if isinstance(buffer, Buffer):
        buffer.delete()


def buffer_delete(plugin: Plugin, args: Any) -> None:
    _of(plugin, args).delete()


def buffer_is_deleted(plugin: Plugin, args: Any) -> None:
    args.give(is_deleted=_of(plugin, args).is_deleted)


def buffer_element_type(plugin: Plugin, args: Any) -> None:
    args.give(type=element_types.number_of(_of(plugin, args).element))


def buffer_dimensions(plugin: Plugin, args: Any) -> None:
    buffer = _of(plugin, args)
    args.give_each(("dims", "num_dims"), buffer.kept.numbers(buffer.dims))


def buffer_unpadded_dimensions(plugin: Plugin, args: Any) -> None:
    buffer = _of(plugin, args)
    args.give_each(("unpadded_dims", "num_dims"), buffer.kept.numbers(buffer.dims))


def buffer_dynamic_dimension_indices(plugin: Plugin, args: Any) -> None:
    """Return no dimensions: buffers have the actual sizes."""
    buffer = _of(plugin, args)
    found = buffer.kept.numbers((), ctypes.c_size_t)
    args.give_each(("dynamic_dim_indices", "num_dynamic_dims"), found)


def buffer_get_memory_layout(plugin: Plugin, args: Any) -> None:
    buffer = _of(plugin, args)
    layout = args.layout
    layout.give(struct_size=ctypes.sizeof(layout))
    layout.give(type=_TILED)
    tiled = layout.format.tiled
    tiled.give(struct_size=ctypes.sizeof(tiled))
    order = range(len(buffer.dims))[::-1]
    tiled.give_each(("minor_to_major", "minor_to_major_size"), buffer.kept.numbers(order))
    tiled.give(tile_dims=None, tile_dim_sizes=None)
    tiled.give(num_tiles=0)


def buffer_on_device_size_in_bytes(plugin: Plugin, args: Any) -> None:
    args.give(on_device_size_in_bytes=_of(plugin, args).data().nbytes)


def buffer_device(plugin: Plugin, args: Any) -> None:
    args.give(device=_of(plugin, args).device.handle)


def buffer_memory(plugin: Plugin, args: Any) -> None:
    args.give(memory=_of(plugin, args).device.memory)


def buffer_is_on_cpu(plugin: Plugin, args: Any) -> None:
    _of(plugin, args)
    args.give(is_on_cpu=True)


def buffer_ready_event(plugin: Plugin, args: Any) -> None:
    ready = _of(plugin, args).ready
    args.give(event=events.happened(plugin) if ready is None else plugin.handles.give(ready))


def buffer_unsafe_pointer(plugin: Plugin, args: Any) -> None:
    args.give(buffer_pointer=address_of(_of(plugin, args).data()))


def buffer_opaque_device_memory_data_pointer(plugin: Plugin, args: Any) -> None:
    args.give(device_memory_ptr=address_of(_of(plugin, args).data()))


def buffer_increase_external_reference_count(plugin: Plugin, args: Any) -> None:
    buffer = _of(plugin, args)
    buffer.value()
    buffer.references += 1


def buffer_decrease_external_reference_count(plugin: Plugin, args: Any) -> None:
    buffer = _of(plugin, args)
    if not buffer.references:
        raise ArgumentError("the buffer has no external references")
    buffer.release_reference()


def device_of(plugin: Plugin, device: int | None, memory: int | None) -> Device:
    """Return the device of the memory handle if there is one, else of the device handle."""
    if memory:
        return plugin.handles.of(memory, Memory).device
    return plugin.handles.of(device, Device)

"""PJRT functions that copy arrays from the host to a device piece by piece."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.errors import ArgumentError
from hlo.types import ArrayShape
from hlo.values import Array
from hlo_oracle.frontends.pjrt import events
from hlo_oracle.frontends.pjrt.buffers import device_of, on_device
from hlo_oracle.frontends.pjrt.declarations import structure
from hlo_oracle.frontends.pjrt.devices import Device
from hlo_oracle.frontends.pjrt.element_types import element_type
from hlo_oracle.frontends.pjrt.errors import Failed, described
from hlo_oracle.frontends.pjrt.events import Event
from hlo_oracle.frontends.pjrt.foreign_memory import address_of, numbers_at, text_at
from hlo_oracle.frontends.pjrt.plugin import Plugin

__all__ = [
    "async_host_to_device_transfer_manager_add_metadata",
    "async_host_to_device_transfer_manager_buffer_count",
    "async_host_to_device_transfer_manager_buffer_size",
    "async_host_to_device_transfer_manager_destroy",
    "async_host_to_device_transfer_manager_device",
    "async_host_to_device_transfer_manager_retrieve_buffer",
    "async_host_to_device_transfer_manager_set_buffer_error",
    "async_host_to_device_transfer_manager_transfer_data",
    "async_host_to_device_transfer_manager_transfer_literal",
    "client_create_buffers_for_async_host_to_device",
]


@dataclass(slots=True)
class Transfer:
    """A buffer that is being filled; its event ``ready`` fires with the last piece."""

    array: Array
    shape: ArrayShape
    ready: Event

    def write(self, plugin: Plugin, source: int, offset: int, size: int, is_last: bool) -> None:
        """Copy bytes from the client's memory to an offset."""
        if offset < 0 or size < 0 or offset + size > self.array.nbytes:
            told = f"bytes {offset} to {offset + size} of a buffer of {self.array.nbytes}"
            raise ArgumentError(told)
        if size:
            ctypes.memmove(address_of(self.array) + offset, source, size)
        if is_last:
            self.ready.set(plugin)


@dataclass(slots=True)
class TransferManager:
    """The transfers of arrays to one device."""

    device: Device
    transfers: tuple[Transfer, ...]

    def numbered(self, number: int) -> Transfer:
        """Return the transfer of an array by number; raises ArgumentError if there is none."""
        if not 0 <= number < len(self.transfers):
            raise ArgumentError(f"buffer {number} of {len(self.transfers)}")
        return self.transfers[number]


def _of(plugin: Plugin, args: Any) -> TransferManager:
    return plugin.handles.of(args.transfer_manager, TransferManager)


def _buffer(plugin: Plugin, args: Any) -> Transfer:
    return _of(plugin, args).numbered(args.buffer_index)


def client_create_buffers_for_async_host_to_device(plugin: Plugin, args: Any) -> None:
    device, kind = device_of(plugin, None, args.memory), structure("ShapeSpec")
    transfers = []
    for number in range(args.num_shape_specs):
        spec = kind.from_address(args.shape_specs + number * ctypes.sizeof(kind))
        shape = ArrayShape(
            element_type(spec.element_type), tuple(numbers_at(spec.dims, spec.num_dims))
        )
        array = np.zeros(shape.dims, shape.element_type.numpy)
        transfers.append(Transfer(array, shape, events.pending()))
    manager = TransferManager(device, tuple(transfers))
    args.give(transfer_manager=plugin.handles.give(manager))


def async_host_to_device_transfer_manager_destroy(plugin: Plugin, args: Any) -> None:
    plugin.handles.drop(args.transfer_manager)


def async_host_to_device_transfer_manager_transfer_data(plugin: Plugin, args: Any) -> None:
    piece = args.data, args.offset, args.transfer_size, bool(args.is_last_transfer)
    _buffer(plugin, args).write(plugin, *piece)
    args.give(done_with_h2d_transfer=events.happened(plugin))


def async_host_to_device_transfer_manager_transfer_literal(plugin: Plugin, args: Any) -> None:
    transfer = _buffer(plugin, args)
    transfer.write(plugin, args.data, 0, transfer.array.nbytes, True)
    args.give(done_with_h2d_transfer=events.happened(plugin))


def async_host_to_device_transfer_manager_retrieve_buffer(plugin: Plugin, args: Any) -> None:
    transfer, device = _buffer(plugin, args), _of(plugin, args).device
    given = transfer.array, transfer.shape, None, transfer.ready
    args.give(buffer_out=on_device(plugin, device, *given))


def async_host_to_device_transfer_manager_device(plugin: Plugin, args: Any) -> None:
    args.give(device_out=_of(plugin, args).device.handle)


def async_host_to_device_transfer_manager_buffer_count(plugin: Plugin, args: Any) -> None:
    args.give(buffer_count=len(_of(plugin, args).transfers))


def async_host_to_device_transfer_manager_buffer_size(plugin: Plugin, args: Any) -> None:
    args.give(buffer_size=_buffer(plugin, args).array.nbytes)


def async_host_to_device_transfer_manager_set_buffer_error(plugin: Plugin, args: Any) -> None:
    """Fail the buffer with the client's error, which every use of it will raise."""
    text = text_at(args.error_message, args.error_message_size)
    _buffer(plugin, args).ready.set(plugin, described(Failed(args.error_code, text)))


def async_host_to_device_transfer_manager_add_metadata(plugin: Plugin, args: Any) -> None:
    """Ignore the metadata, which are for profilers."""
    _of(plugin, args)

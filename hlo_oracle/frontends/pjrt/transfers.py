"""PJRT functions that copy arrays between the host and devices."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.errors import ArgumentError, Unsupported
from hlo.types import ArrayShape
from hlo.values import Array
from hlo_oracle.frontends.pjrt import events
from hlo_oracle.frontends.pjrt.buffers import Buffer, device_of, on_device
from hlo_oracle.frontends.pjrt.declarations import structure
from hlo_oracle.frontends.pjrt.devices import Device
from hlo_oracle.frontends.pjrt.element_types import element_type
from hlo_oracle.frontends.pjrt.foreign_memory import address_of, array_at, numbers_at
from hlo_oracle.frontends.pjrt.plugin import Plugin

__all__ = [
    "buffer_copy_raw_to_host",
    "buffer_copy_to_device",
    "buffer_copy_to_memory",
    "buffer_to_host_buffer",
    "client_buffer_from_host_buffer",
    "client_create_uninitialized_buffer",
    "client_create_view_of_device_buffer",
]

_ZERO_COPY = (2, 3)  # PJRT_HostBufferSemantics: immutable and mutable memory of the client
_ALIGNMENT = 64  # of what is used without a copy: as jaxlib aligns its own, and C its vectors
_TILED, _STRIDES = 0, 1  # PJRT_Buffer_MemoryLayout_Type
_OnDelete = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


def client_buffer_from_host_buffer(plugin: Plugin, args: Any) -> None:
    device = device_of(plugin, args.device, args.memory)
    dims = tuple(numbers_at(args.dims, args.num_dims))
    shape = ArrayShape(element_type(args.type), dims)
    if not shape.element_type.is_array:
        args.give(buffer=on_device(plugin, device, None, shape))
        args.give(done_with_host_buffer=events.happened(plugin))
        return
    _require_row_major(args.device_layout, len(dims))
    strides = numbers_at(args.byte_strides, args.num_byte_strides) if args.byte_strides else None
    given = array_at(args.data, dims, shape.element_type.numpy, strides)
    is_used = args.host_buffer_semantics in _ZERO_COPY and _is_usable(given)
    if not is_used:
        args.give(buffer=on_device(plugin, device, np.array(given, order="C"), shape))
        args.give(done_with_host_buffer=events.happened(plugin))
        return
    done = events.pending()
    args.give(buffer=on_device(plugin, device, given, shape, release=lambda: done.set(plugin)))
    args.give(done_with_host_buffer=plugin.handles.give(done))


def _is_usable(array: Array) -> bool:
    """Test for memory that can back a buffer without a copy."""
    return array.flags.c_contiguous and array.size > 0 and not address_of(array) % _ALIGNMENT


def buffer_to_host_buffer(plugin: Plugin, args: Any) -> None:
    array = plugin.handles.of(args.src, Buffer).data()
    if not args.dst:
        args.give(dst_size=array.nbytes)
        return
    if args.dst_size < array.nbytes:
        raise ArgumentError(f"the host buffer has {args.dst_size} bytes of {array.nbytes}")
    strides = _strides(args.host_layout, array.shape, array.itemsize)
    array_at(args.dst, array.shape, array.dtype, strides)[...] = array
    args.give(event=events.happened(plugin))


def buffer_copy_raw_to_host(plugin: Plugin, args: Any) -> None:
    array = plugin.handles.of(args.buffer, Buffer).data()
    first, size = args.offset, args.transfer_size
    if first < 0 or size < 0 or first + size > array.nbytes:
        raise ArgumentError(f"bytes {first} to {first + size} of a buffer of {array.nbytes}")
    if size:
        ctypes.memmove(args.dst, address_of(array) + first, size)
    args.give(event=events.happened(plugin))


def buffer_copy_to_device(plugin: Plugin, args: Any) -> None:
    device = plugin.handles.of(args.dst_device, Device)
    args.give(dst_buffer=_copied(plugin, args.buffer, device))


def buffer_copy_to_memory(plugin: Plugin, args: Any) -> None:
    args.give(dst_buffer=_copied(plugin, args.buffer, device_of(plugin, None, args.dst_memory)))


def client_create_uninitialized_buffer(plugin: Plugin, args: Any) -> None:
    device = device_of(plugin, args.device, args.memory)
    dims = tuple(numbers_at(args.shape_dims, args.shape_num_dims))
    shape = ArrayShape(element_type(args.shape_element_type), dims)
    array = np.zeros(dims, shape.element_type.numpy) if shape.element_type.is_array else None
    args.give(buffer=on_device(plugin, device, array, shape))


def client_create_view_of_device_buffer(plugin: Plugin, args: Any) -> None:
    """Create a buffer on the client's memory, which it keeps until told: devices use the host's
    memory."""
    device = device_of(plugin, args.device, args.memory)
    dims = tuple(numbers_at(args.dims, args.num_dims))
    shape = ArrayShape(element_type(args.element_type), dims)
    _require_row_major(args.layout, len(dims))
    array = array_at(args.device_buffer_ptr, dims, shape.element_type.numpy)
    pointer, told = args.device_buffer_ptr, args.on_delete_callback_arg
    delete = _OnDelete(args.on_delete_callback) if args.on_delete_callback else None
    release = None if delete is None else lambda: delete(pointer, told)
    args.give(buffer=on_device(plugin, device, array, shape, release))


def _copied(plugin: Plugin, handle: int, device: Device) -> int:
    buffer = plugin.handles.of(handle, Buffer)
    value = buffer.value()
    array = None if value is None else value.copy()
    return on_device(plugin, device, array, ArrayShape(buffer.element, buffer.dims))


def _strides(layout: int | None, dims: Sequence[int], itemsize: int) -> list[int] | None:
    """Compute the strides in bytes of a PJRT_Buffer_MemoryLayout; None means row-major."""
    if not layout:
        return None
    read = structure("Buffer_MemoryLayout").from_address(layout)
    if read.type == _STRIDES:
        return numbers_at(read.format.strides.byte_strides, read.format.strides.num_byte_strides)
    tiled = read.format.tiled
    if read.type != _TILED or tiled.num_tiles:
        raise Unsupported("a host layout with tiles: dense ones are known")
    strides, step = [0] * len(dims), itemsize
    for dimension in numbers_at(tiled.minor_to_major, tiled.minor_to_major_size):
        strides[dimension] = step
        step *= dims[dimension]
    return strides


def _require_row_major(layout: int | None, rank: int) -> None:
    """Raise Unsupported for a device layout that is not row-major."""
    # Of sizes of 2 each order of dimensions has other strides, which sizes of 1 would hide.
    strides = _strides(layout, [2] * rank, 1)
    if strides is not None and strides != sorted(strides, reverse=True):
        raise Unsupported("devices keep arrays row-major: another layout was asked for")

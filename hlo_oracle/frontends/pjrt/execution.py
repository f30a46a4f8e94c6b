"""PJRT functions that run executables on buffers."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.errors import ArgumentError, Unsupported
from hlo.values import Array, Value
from hlo_oracle.frontends.pjrt import events
from hlo_oracle.frontends.pjrt.buffers import Buffer, on_device
from hlo_oracle.frontends.pjrt.checks import Checks
from hlo_oracle.frontends.pjrt.declarations import structure
from hlo_oracle.frontends.pjrt.devices import Device
from hlo_oracle.frontends.pjrt.foreign_memory import numbers_at, write_numbers
from hlo_oracle.frontends.pjrt.loaded_executables import LoadedExecutable
from hlo_oracle.frontends.pjrt.plugin import Plugin
from hlo_oracle.frontends.pjrt.programs import Arguments, Program

__all__ = ["execute_context_create", "execute_context_destroy", "loaded_executable_execute"]


_POINTER = ctypes.c_void_p


class ExecuteContext:
    """An execution context that a client may attach; nothing in it is used."""


def execute_context_create(plugin: Plugin, args: Any) -> None:
    args.give(context=plugin.handles.give(ExecuteContext()))


def execute_context_destroy(plugin: Plugin, args: Any) -> None:
    plugin.handles.drop(args.context)


def loaded_executable_execute(plugin: Plugin, args: Any) -> None:
    """Execute on one list of buffers per device; the results are ready when it returns."""
    loaded = plugin.handles.of(args.executable, LoadedExecutable)
    if loaded.is_deleted:
        raise ArgumentError(f"the executable {loaded.program.name} was deleted")
    program, devices = loaded.program, _devices(plugin, loaded, args)
    buffers = [
        [plugin.handles.of(handle, Buffer) for handle in numbers_at(row, args.num_args, _POINTER)]
        for row in numbers_at(args.argument_lists, args.num_devices, _POINTER)
    ]
    options = structure("ExecuteOptions").from_address(args.options) if args.options else None
    if options is not None and (options.num_send_ops or options.num_recv_ops):
        raise Unsupported(f"{program.name} sends to its host or receives from it while it runs")
    arguments = [_values(program, row) for row in buffers]
    if plugin.checks is not None and loaded.is_first():
        _judge(plugin.checks, program, arguments)
    results = _results(loaded, arguments)
    lists = numbers_at(args.output_lists, args.num_devices, _POINTER)
    for device, result, place in zip(devices, results, lists, strict=True):
        write_numbers(place, _outputs(plugin, program, device, result), _POINTER)
    for number in program.donated - _kept_arguments(options):
        for row in buffers:
            row[number].delete()
    if args.device_complete_events:
        ready = (events.happened(plugin) for _ in devices)
        write_numbers(args.device_complete_events, ready, _POINTER)


def _results(loaded: LoadedExecutable, arguments: Arguments) -> Sequence[Value]:
    """Run the program on the arguments of this process's ranks; return their results.

    A program whose ranks exchange values with those of another process runs on the arguments of all
    ranks in each process.
    """
    program, devices = loaded.program, loaded.devices
    if not program.is_joint or len(loaded.addressable) == len(devices):
        return program.run(arguments)
    owners = [device.description.process for device in devices]
    called = f"{program.name} ({program.fingerprint[:16]})"
    every = loaded.client.processes.gathered(called, program.parameters, owners, arguments)
    ran = zip(devices, program.run(every), strict=True)
    return [result for device, result in ran if device.is_addressable]


def _values(program: Program, buffers: Sequence[Buffer]) -> tuple[Array | None, ...]:
    """Return the buffers' arrays; None for a token, which JAX may keep as an empty array."""
    values = tuple(buffer.value() for buffer in buffers)
    if not program.takes_tokens or len(values) != len(program.parameters):
        return values
    pairs = zip(values, program.parameters, strict=True)
    return tuple(value if shape.element_type.is_array else None for value, shape in pairs)


def _judge(checks: Checks, program: Program, arguments: Arguments) -> None:
    """Judge another compiler on a program of one rank; note that others are not judged."""
    ranks = program.ranks.ranks
    if ranks == 1:
        values: Any = arguments[0]
        checks.judge(program.module, program.text, values)
    else:
        checks.leave_out(f"{program.name}: it runs on {ranks} devices: one is judged")


def _devices(plugin: Plugin, loaded: LoadedExecutable, args: Any) -> Sequence[Device]:
    """Return the devices to execute on; ArgumentError if their number does not fit the arguments.

    A portable executable runs on the device named in the call.
    """
    if args.execute_device:
        return [plugin.handles.of(args.execute_device, Device)]
    if args.num_devices != len(loaded.addressable):
        raise ArgumentError(
            f"{loaded.program.name} runs on {len(loaded.addressable)} devices, and was given"
            f" arguments for {args.num_devices}"
        )
    return loaded.addressable


def _outputs(plugin: Plugin, program: Program, device: Device, result: Value) -> list[int]:
    """Create the buffers of a rank's results; return their handles."""
    arrays: Any = result if isinstance(result, tuple) else (result,)
    return [
        on_device(plugin, device, None if array is None else np.asarray(array), shape)
        for array, shape in zip(arrays, program.results, strict=True)
    ]


def _kept_arguments(options: Any) -> frozenset[int]:
    """Return the numbers of donatable parameters that the client does not donate in this call."""
    if options is None:
        return frozenset()
    count = options.num_non_donatable_input_indices
    return frozenset(numbers_at(options.non_donatable_input_indices, count))

"""Read a CompileOptionsProto: how many ranks a program is for, and which devices they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo.errors import ArgumentError
from hlo_oracle.loading.wire_format import Fields, NotAMessage, fields, integers, message, varint

# Numbers of fields: xla/pjrt/proto/compile_options.proto, xla/xla_data.proto.
_BUILD_OPTIONS, _IS_PORTABLE = 3, 4
_REPLICAS, _PARTITIONS, _ASSIGNMENT = 4, 5, 9
_ASSIGNED, _REPLICA_DEVICES = 3, 1


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Replicas, partitions and device ids of a compilation, ``devices`` ordered by rank ``replica *
    partitions + partition``; empty for a program of one rank that runs on any device."""

    replicas: int = 1
    partitions: int = 1
    devices: tuple[int, ...] = ()

    @property
    def ranks(self) -> int:
        return self.replicas * self.partitions


def compile_options(data: bytes) -> CompileOptions:
    """Decode the options of a compilation; ArgumentError if they are malformed or inconsistent."""
    try:
        return _read(fields(data))
    except NotAMessage as error:
        raise ArgumentError(f"the compile options are no CompileOptionsProto: {error}") from None


def _read(options: Fields) -> CompileOptions:
    build = fields(_message(options, _BUILD_OPTIONS))
    replicas, partitions = _number(build, _REPLICAS, 1), _number(build, _PARTITIONS, 1)
    assignment = fields(_message(build, _ASSIGNMENT))
    columns = [  # by partition, the devices of the replicas
        list(integers(fields(one).get(_REPLICA_DEVICES, [])))
        for one in assignment.get(_ASSIGNED, ())
        if isinstance(one, bytes)
    ]
    if _number(options, _IS_PORTABLE, 0) or not columns:
        return CompileOptions(replicas, partitions)
    if len(columns) != partitions or any(len(column) != replicas for column in columns):
        raise ArgumentError(
            f"the device assignment is not one of {replicas} replicas of {partitions} partitions"
        )
    return CompileOptions(replicas, partitions, tuple(id_ for row in zip(*columns) for id_ in row))


def _message(of: Fields, number: int) -> bytes:
    """Return the bytes of an embedded message, empty if the field is missing."""
    value = of.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _number(of: Fields, number: int, default: int) -> int:
    value = of.get(number, [default])[-1]
    return value if isinstance(value, int) and value > 0 else default


def device_assignment(replicas: int, partitions: int, devices: Sequence[int]) -> bytes:
    """Encode the device ids of the ranks as a DeviceAssignmentProto."""
    columns = (b"".join(map(varint, devices[n::partitions])) for n in range(partitions))
    assigned = (message([(_REPLICA_DEVICES, column)]) for column in columns)
    return message([(1, replicas), (2, partitions), *((_ASSIGNED, one) for one in assigned)])

"""The PJRT extension AbiVersion: an executable is compatible with its own version of this package
only."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from hlo.errors import ArgumentError
from hlo_oracle.frontends.pjrt.client import Client
from hlo_oracle.frontends.pjrt.executables import Executable
from hlo_oracle.frontends.pjrt.foreign_memory import Kept, bytes_at
from hlo_oracle.frontends.pjrt.modes import PLATFORM, version_text
from hlo_oracle.frontends.pjrt.plugin import Plugin
from hlo_oracle.loading.wire_format import NotAMessage, fields, message

__all__ = [
    "client_runtime_abi_version",
    "executable_abi_version_destroy",
    "executable_abi_version_from_proto",
    "executable_abi_version_platform_id",
    "executable_abi_version_to_proto",
    "executable_get_abi_version",
    "runtime_abi_version_destroy",
    "runtime_abi_version_from_proto",
    "runtime_abi_version_is_compatible_with_executable",
    "runtime_abi_version_is_compatible_with_runtime",
    "runtime_abi_version_platform_id",
    "runtime_abi_version_to_proto",
]

# Of PjRtRuntimeAbiVersionProto and PjRtExecutableAbiVersionProto: xla/pjrt/proto.
_PLATFORM, _VERSION = 1, 2
_PLATFORM_ID = int.from_bytes(hashlib.sha256(PLATFORM.encode()).digest()[:8], "little")


@dataclass(slots=True)
class AbiVersion:
    """The ABI version of a runtime, or the one that an executable requires."""

    platform: int
    version: str
    kept: Kept = field(default_factory=Kept)


def _own(plugin: Plugin) -> int:
    return plugin.handles.give(AbiVersion(_PLATFORM_ID, version_text()))


def _of(plugin: Plugin, args: Any) -> AbiVersion:
    return plugin.handles.of(args.abi_version, AbiVersion)


def client_runtime_abi_version(plugin: Plugin, args: Any) -> None:
    plugin.handles.of(args.client, Client)
    args.give(abi_version=_own(plugin))


def executable_get_abi_version(plugin: Plugin, args: Any) -> None:
    plugin.handles.of(args.executable, Executable)
    args.give(abi_version=_own(plugin))


def _destroy(plugin: Plugin, args: Any) -> None:
    plugin.handles.drop(args.abi_version)


def _to_proto(plugin: Plugin, args: Any) -> None:
    known = _of(plugin, args)
    proto = message([(_PLATFORM, known.platform), (_VERSION, known.version.encode())])
    args.give_each(("serialized_proto", "serialized_proto_size"), known.kept.text(proto))
    args.give(serialized_proto_holder=None, serialized_proto_deleter=plugin.nothing_to_free)


def _platform_id(plugin: Plugin, args: Any) -> None:
    args.give(platform_id=_of(plugin, args).platform)


def _from_proto(plugin: Plugin, args: Any) -> None:
    try:
        read = fields(bytes_at(args.serialized_proto, args.serialized_proto_size))
    except NotAMessage as error:
        raise ArgumentError(f"these bytes are no version of an ABI: {error}") from None
    platform, version = read.get(_PLATFORM, [0])[-1], read.get(_VERSION, [b""])[-1]
    if not isinstance(platform, int) or not isinstance(version, bytes):
        raise ArgumentError("these bytes are no version of an ABI")
    made = AbiVersion(platform, version.decode("utf-8", "replace"))
    args.give(abi_version=plugin.handles.give(made))


def _compare(plugin: Plugin, args: Any, other: int) -> None:
    """Raise ArgumentError unless two versions are equal."""
    here, there = _of(plugin, args), plugin.handles.of(other, AbiVersion)
    if (here.platform, here.version) != (there.platform, there.version):
        raise ArgumentError(f"made by {there.version or 'something else'}, and this is"
                            f" {here.version}: compile it again")  # fmt: skip


def runtime_abi_version_is_compatible_with_runtime(plugin: Plugin, args: Any) -> None:
    _compare(plugin, args, args.other_abi_version)


def runtime_abi_version_is_compatible_with_executable(plugin: Plugin, args: Any) -> None:
    _compare(plugin, args, args.executable_abi_version)


# The same for runtimes and for executables.
runtime_abi_version_destroy = executable_abi_version_destroy = _destroy
runtime_abi_version_to_proto = executable_abi_version_to_proto = _to_proto
runtime_abi_version_platform_id = executable_abi_version_platform_id = _platform_id
runtime_abi_version_from_proto = executable_abi_version_from_proto = _from_proto

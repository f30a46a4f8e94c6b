"""The PJRT extension Layouts: every array is row-major."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

from hlo.types import ArrayShape
from hlo_oracle.frontends.pjrt.buffers import Buffer
from hlo_oracle.frontends.pjrt.executables import Executable
from hlo_oracle.frontends.pjrt.foreign_memory import Kept
from hlo_oracle.frontends.pjrt.plugin import Plugin

__all__ = [
    "layouts_memory_layout_destroy",
    "layouts_memory_layout_serialize",
    "layouts_pjrt_buffer_memory_layout",
    "layouts_pjrt_client_get_default_layout",
    "layouts_pjrt_executable_get_output_layouts",
    "layouts_pjrt_executable_get_parameter_layouts",
    "layouts_pjrt_topology_get_default_layout",
]


@dataclass(slots=True)
class MemoryLayout:
    """The row-major layout of arrays of a rank."""

    rank: int
    kept: Kept = field(default_factory=Kept)

    def __str__(self) -> str:
        return f"{{{','.join(map(str, reversed(range(self.rank))))}}}"


def layouts_memory_layout_destroy(plugin: Plugin, args: Any) -> None:
    plugin.handles.drop(args.layout)


def layouts_memory_layout_serialize(plugin: Plugin, args: Any) -> None:
    layout = plugin.handles.of(args.layout, MemoryLayout)
    args.give_each(("serialized_bytes", "serialized_bytes_size"), layout.kept.text(str(layout)))
    args.give(serialized_layout=None, serialized_layout_deleter=plugin.nothing_to_free)


def layouts_pjrt_buffer_memory_layout(plugin: Plugin, args: Any) -> None:
    rank = len(plugin.handles.of(args.buffer, Buffer).dims)
    args.give(layout=plugin.handles.give(MemoryLayout(rank)))


def layouts_pjrt_client_get_default_layout(plugin: Plugin, args: Any) -> None:
    args.give(layout=plugin.handles.give(MemoryLayout(args.num_dims)))


def layouts_pjrt_topology_get_default_layout(plugin: Plugin, args: Any) -> None:
    args.give(layout=plugin.handles.give(MemoryLayout(args.num_dims)))


def layouts_pjrt_executable_get_output_layouts(plugin: Plugin, args: Any) -> None:
    executable = plugin.handles.of(args.executable, Executable)
    args.give_each(
        ("layouts", "num_outputs"), _layouts(plugin, executable, executable.program.results)
    )


def layouts_pjrt_executable_get_parameter_layouts(plugin: Plugin, args: Any) -> None:
    executable = plugin.handles.of(args.executable, Executable)
    found = _layouts(plugin, executable, executable.program.parameters)
    args.give_each(("layouts", "num_parameters"), found)


def _layouts(
    plugin: Plugin, executable: Executable, shapes: tuple[ArrayShape, ...]
) -> tuple[int, int]:
    """Return the address and number of the layouts of shapes, which the executable owns."""
    made = executable.owned.get(shapes)
    if made is None:
        made = [plugin.handles.give(MemoryLayout(shape.rank)) for shape in shapes]
        executable.owned[shapes] = made
    return executable.kept.numbers(made, ctypes.c_void_p)

"""PJRT functions of compiled programs: parameters, results, cost analysis, serialization."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

from hlo.errors import ArgumentError
from hlo.types import ArrayShape
from hlo.work import byte_count
from hlo_oracle.frontends.pjrt import element_types
from hlo_oracle.frontends.pjrt.declarations import structure
from hlo_oracle.frontends.pjrt.devices import MEMORY_KIND
from hlo_oracle.frontends.pjrt.foreign_memory import Kept
from hlo_oracle.frontends.pjrt.plugin import Plugin
from hlo_oracle.frontends.pjrt.programs import Program
from hlo_oracle.frontends.pjrt.stablehlo import with_config

__all__ = [
    "executable_destroy",
    "executable_fingerprint",
    "executable_get_compile_options",
    "executable_get_compiled_memory_stats",
    "executable_get_cost_analysis",
    "executable_name",
    "executable_num_outputs",
    "executable_num_partitions",
    "executable_num_replicas",
    "executable_optimized_program",
    "executable_output_dimensions",
    "executable_output_element_types",
    "executable_output_memory_kinds",
    "executable_parameter_memory_kinds",
    "executable_serialize",
    "executable_size_of_generated_code_in_bytes",
]

_FORMAT = "hlo_with_config"  # of the programs that clients are shown


@dataclass(slots=True)
class Executable:
    """A compiled program; ``owned`` are the handles of its layouts, which are destroyed with it."""

    program: Program
    kept: Kept = field(default_factory=Kept)
    owned: dict[tuple[ArrayShape, ...], list[int]] = field(default_factory=dict)


def _of(plugin: Plugin, args: Any) -> Executable:
    return plugin.handles.of(args.executable, Executable)


def executable_destroy(plugin: Plugin, args: Any) -> None:
    executable = plugin.handles.drop(args.executable)
    for owned in executable.owned.values() if isinstance(executable, Executable) else ():
        for handle in owned:
            plugin.handles.drop(handle)


def executable_name(plugin: Plugin, args: Any) -> None:
    executable = _of(plugin, args)
    found = executable.kept.text(executable.program.name)
    args.give_each(("executable_name", "executable_name_size"), found)


def executable_num_replicas(plugin: Plugin, args: Any) -> None:
    args.give(num_replicas=_of(plugin, args).program.ranks.replicas)


def executable_num_partitions(plugin: Plugin, args: Any) -> None:
    args.give(num_partitions=_of(plugin, args).program.ranks.partitions)


def executable_num_outputs(plugin: Plugin, args: Any) -> None:
    args.give(num_outputs=len(_of(plugin, args).program.results))


def executable_size_of_generated_code_in_bytes(plugin: Plugin, args: Any) -> None:
    args.give(size_in_bytes=_of(plugin, args).program.code_bytes)


def executable_get_cost_analysis(plugin: Plugin, args: Any) -> None:
    executable = _of(plugin, args)
    found = executable.kept.named(costs(executable.program))
    args.give_each(("properties", "num_properties"), found)


def executable_output_memory_kinds(plugin: Plugin, args: Any) -> None:
    executable = _of(plugin, args)
    kinds = [MEMORY_KIND] * len(executable.program.results)
    args.give_each(
        ("memory_kinds", "memory_kind_sizes", "num_outputs"), executable.kept.texts(kinds)
    )


def executable_parameter_memory_kinds(plugin: Plugin, args: Any) -> None:
    executable = _of(plugin, args)
    kinds = [MEMORY_KIND] * len(executable.program.parameters)
    args.give_each(
        ("memory_kinds", "memory_kind_sizes", "num_parameters"), executable.kept.texts(kinds)
    )


def executable_optimized_program(plugin: Plugin, args: Any) -> None:
    """Return the compiled program's HLO; the client first asks for its size."""
    executable = _of(plugin, args)
    ranks = executable.program.ranks
    proto = with_config(executable.program.proto, ranks.replicas, ranks.partitions)
    wanted = structure("Program").from_address(args.program)
    wanted.give_each(("format", "format_size"), executable.kept.text(_FORMAT))
    if wanted.code:
        if wanted.code_size < len(proto):
            raise ArgumentError(f"the program has {len(proto)} bytes")
        ctypes.memmove(wanted.code, proto, len(proto))
    wanted.give(code_size=len(proto))


def executable_serialize(plugin: Plugin, args: Any) -> None:
    executable = _of(plugin, args)
    found = executable.kept.text(executable.program.serialized())
    args.give_each(("serialized_bytes", "serialized_bytes_size"), found)
    args.give(serialized_executable=None, serialized_executable_deleter=plugin.nothing_to_free)


def executable_fingerprint(plugin: Plugin, args: Any) -> None:
    executable = _of(plugin, args)
    found = executable.kept.text(executable.program.fingerprint)
    args.give_each(("executable_fingerprint", "executable_fingerprint_size"), found)


def executable_output_element_types(plugin: Plugin, args: Any) -> None:
    executable = _of(plugin, args)
    numbers = [element_types.number_of(s.element_type) for s in executable.program.results]
    found = executable.kept.numbers(numbers, ctypes.c_int32)
    args.give_each(("output_types", "num_output_types"), found)


def executable_output_dimensions(plugin: Plugin, args: Any) -> None:
    executable = _of(plugin, args)
    results = executable.program.results
    dims, _ = executable.kept.numbers([dim for shape in results for dim in shape.dims])
    args.give(dims=dims)
    ranks = [shape.rank for shape in results]
    args.give_each(("dim_sizes", "num_outputs"), executable.kept.numbers(ranks, ctypes.c_size_t))


def executable_get_compiled_memory_stats(plugin: Plugin, args: Any) -> None:
    program = _of(plugin, args).program
    taken, given = (sum(map(byte_count, x)) for x in (program.parameters, program.results))
    args.clear("generated_code_size_in_bytes")
    args.give(
        generated_code_size_in_bytes=program.code_bytes,
        argument_size_in_bytes=taken,
        output_size_in_bytes=given,
        peak_memory_in_bytes=taken + given,
        total_size_in_bytes=taken + given,
    )


def executable_get_compile_options(plugin: Plugin, args: Any) -> None:
    executable = _of(plugin, args)
    found = executable.kept.text(executable.program.options)
    args.give_each(("serialized_bytes", "serialized_bytes_size"), found)
    args.give(serialized_compile_options=None)
    args.give(serialized_compile_options_deleter=plugin.nothing_to_free)


def costs(program: Program) -> dict[str, float]:
    """Return the program's cost analysis: ``bytes accessed``, of arguments and results."""
    shapes = (*program.parameters, *program.results)
    return {"bytes accessed": float(sum(map(byte_count, shapes)))}

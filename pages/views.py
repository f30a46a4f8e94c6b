"""Gather a program as plain data for a page: its text, instructions and graphs."""

from __future__ import annotations

from hlo.module import Module
from hlo.opcodes import (
    CONTRACTION,
    CONTROL,
    DATA_MOVEMENT,
    ELEMENTWISE,
    INDEXING,
    LINEAR_ALGEBRA,
    OPCODES,
    REDUCTION,
    STRUCTURAL,
    having,
)
from hlo.text.printer import instruction_parts
from hlo.text.source_locations import SourceLines, operation_name
from hlo.work import Operations, byte_count
from pages.graphs import Graph, Kernels, graphs, label, node_width

Data = dict[str, object]

# What nodes have a colour for.
FAMILIES = (
    "elementwise", "structural", "contraction", "reduction", "data movement", "control",
    "indexing", "other",
)  # fmt: skip
_BY_FAMILY = {
    ELEMENTWISE: 0, CONTRACTION: 2, LINEAR_ALGEBRA: 2, REDUCTION: 3, DATA_MOVEMENT: 4, CONTROL: 5,
    INDEXING: 6,
}  # fmt: skip
_STRUCTURAL = having(STRUCTURAL)
_MOST_TEXT = 4000  # characters of one part of a line


def view(title: str, module: Module, kernels: Kernels | None = None) -> Data:
    """Describe a module; ``kernels`` says which instructions were fused."""
    found, entry = graphs(module, kernels)
    return {
        "title": title,
        "name": module.name,
        "instructions": _instructions(module),
        "computations": _computations(module),
        "graphs": [_graph(graph) for graph in found],
        "entry": entry,
    }


def family(opcode: str) -> int:
    """Return the number of an opcode's family in :data:`FAMILIES`."""
    return 1 if opcode in _STRUCTURAL else _BY_FAMILY.get(OPCODES[opcode].family, 7)


def _computations(module: Module) -> list[Data]:
    """Describe the computations: names and numbers of instructions."""
    return [
        {
            "name": c.name,
            "count": len(c.instructions),
            "root": next(n for n, i in enumerate(c.instructions) if i.name == c.root),
            "entry": c.name == module.entry_name,
        }
        for c in module.computations
    ]


def _instructions(module: Module) -> Data:
    """Describe the instructions of all computations, in order, as one list for each property."""
    operations, lines = Operations(module), SourceLines(module.preamble)
    places: dict[str, int] = {"": -1}
    rows: list[Data] = []
    for computation in module.computations:
        first = len(rows)
        numbers = {i.name: first + n for n, i in enumerate(computation.instructions)}
        shapes = {i.name: i.shape for i in computation.instructions}
        for instruction in computation.instructions:
            place = _cut(lines.of(instruction.annotations.get("metadata", "")))
            _, shape, rest = instruction_parts(instruction)
            counts = operations.of_instruction(instruction, computation, shapes)
            row = {
                "name": instruction.name,
                "shape": _cut(shape),
                "opcode": instruction.opcode,
                "family": family(instruction.opcode),
                "rest": _cut(rest),
                "operands": [numbers[name] for name in instruction.operands],
                "bytes": byte_count(instruction.shape),
                "flops": sum(counts.values()),
                "place": places.setdefault(place, len(places) - 1),
                "operation": _cut(operation_name(instruction)),
                "labels": label(instruction),
                "width": node_width(instruction),
            }
            rows.append(row)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return columns | {"places": list(places)[1:]}


def _cut(text: str) -> str:
    """Shorten a text to the width of a line, stating its length."""
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}… ({len(text)} characters)"


def _graph(graph: Graph) -> Data:
    """Describe a graph by columns: for each node instruction, kernel, place, layer and inner
    graphs; for each edge its ends and bends."""
    layout = graph.layout
    return {
        "title": graph.title,
        "instruction": [node.instruction for node in graph.nodes],
        "kernel": [node.kernel for node in graph.nodes],
        "inner": {n: node.inner for n, node in enumerate(graph.nodes) if node.inner},
        "x": layout.x,
        "layer": layout.layer,
        "edges": [[e.source, e.target, *([None] if e.long else e.bends)] for e in layout.edges],
        "width": layout.width,
        "height": layout.height,
    }

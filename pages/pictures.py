"""Draw one graph of a program without a browser: as SVG, and as text for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from hlo.errors import ArgumentError
from hlo.module import Instruction, Module
from pages.graphs import Graph, graphs, label, node_width
from pages.layered_layout import HEIGHT, ROW, Edge
from pages.views import FAMILIES, family

_MARGIN = 16.0
_LIGHT = ("#4c78a8", "#8b98a8", "#d1495b", "#e08e2b", "#7a9e3f", "#9a62b3", "#2a9d8f", "#b07d62")
_STYLE = """
svg { background: #f6f7f9; font-family: ui-monospace, Menlo, "DejaVu Sans Mono", monospace }
path { fill: none; stroke: #aab3be } rect.node { fill: #fff; stroke: #c3cad3 }
text { fill: #1c2430; font-size: 12px; font-weight: 600 }
text.second { fill: #64707f; font-size: 11px; font-weight: 400 }
@media (prefers-color-scheme: dark) {
  svg { background: #14181d } path { stroke: #56606d } rect.node { fill: #1e242c; stroke: #465160 }
  text { fill: #e4e9ef } text.second { fill: #98a4b3 }
}
"""


def svg(module: Module, computation: str | None = None) -> str:
    """Draw a computation, by default the entry, as SVG; ArgumentError for an unknown name."""
    graph, instructions = _chosen(module, computation)
    layout = graph.layout
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}">',
        f"<title>{_text(graph.title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">',
        *(f'<path d="{_path(graph, edge)}"/>' for edge in layout.edges),
    ]
    for number, node in enumerate(graph.nodes):
        lines += _node(graph, number, instructions[node.instruction])
    return "\n".join([*lines, "</g>", "</svg>", ""])


def dot(module: Module, computation: str | None = None) -> str:
    """Write a computation, by default the entry, in the language of Graphviz; ArgumentError for an
    unknown name."""
    graph, instructions = _chosen(module, computation)
    lines = [
        f"digraph {_quoted(graph.title)} {{",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=monospace];',
    ]
    for number, node in enumerate(graph.nodes):
        instruction = instructions[node.instruction]
        text = "\\n".join(_escaped(line) for line in label(instruction))
        colour = _LIGHT[family(instruction.opcode)]
        lines.append(f'  n{number} [label="{text}", color="{colour}"];')
    lines += [f"  n{edge.source} -> n{edge.target};" for edge in graph.layout.edges]
    return "\n".join([*lines, "}", ""])


def _chosen(module: Module, computation: str | None) -> tuple[Graph, list[Instruction]]:
    """Make the graph of a computation, and list all instructions by number."""
    found, _ = graphs(module)
    wanted = module.entry_name if computation is None else computation.removeprefix("%")
    graph = next((graph for graph in found if graph.title == wanted), None)
    if graph is None:
        names = ", ".join(c.name for c in module.computations[:8])
        raise ArgumentError(f"no computation {wanted!r}: there are {names}")
    return graph, [i for c in module.computations for i in c.instructions]


def _node(graph: Graph, number: int, instruction: Instruction) -> Iterator[str]:
    """Yield the SVG elements of a node."""
    width = node_width(instruction)
    x, y = graph.layout.x[number] - width / 2, graph.layout.layer[number] * ROW
    first, second = map(_text, label(instruction))
    kind = family(instruction.opcode)
    yield f'<rect class="node" x="{x:g}" y="{y:g}" width="{width:g}" height="{HEIGHT:g}" rx="6"/>'
    yield (
        f'<rect x="{x + 1:g}" y="{y + 6:g}" width="4" height="{HEIGHT - 12:g}"'
        f' fill="{_LIGHT[kind]}"><title>{FAMILIES[kind]}</title></rect>'
    )
    yield f'<text x="{x + 13:g}" y="{y + 17:g}">{first}</text>'
    yield f'<text class="second" x="{x + 13:g}" y="{y + 32:g}">{second}</text>'


def _path(graph: Graph, edge: Edge) -> str:
    """Compute the SVG path of an edge: curves between layers and straight lines through them; only
    the two ends of an edge over many layers."""
    layout = graph.layout
    top = layout.layer[edge.source] * ROW + HEIGHT
    begin, end = layout.x[edge.source], layout.x[edge.target]
    bottom = layout.layer[edge.target] * ROW
    if edge.long:
        return f"M{begin:g} {top:g}v9M{end:g} {bottom:g}v-9"
    places = [(begin, top)]
    for number, bend in enumerate(edge.bends, layout.layer[edge.source] + 1):
        places += [(bend, number * ROW), (bend, number * ROW + HEIGHT)]
    parts = [f"M{begin:g} {top:g}"]
    for (x, y), (u, v) in zip(places, [*places[1:], (end, bottom)]):
        middle = (y + v) / 2
        straight = f"L{u:g} {v:g}" if x == u else ""
        parts.append(straight or f"C{x:g} {middle:g} {u:g} {middle:g} {u:g} {v:g}")
    return "".join(parts)


def _text(text: str) -> str:
    """Escape a text for XML, dropping control characters."""
    return escape("".join(c if c.isprintable() else "\ufffd" for c in text))


def _quoted(text: str) -> str:
    """Quote a text as a Graphviz string."""
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Escape a text for the inside of a Graphviz string."""
    printable = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')

"""Print a Module in the dialects of XLA's printers.

``short`` is that of dumps: no ``%``, no computation shapes. ``long`` is that of ``as_text``:
``%names``, the shape of each computation, ``/*index=5*/``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hlo.attributes import COMPUTATION_ATTRIBUTES
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.text.async_sugar import sugared
from hlo.text.canonical import IN_PARENTHESES, canonical_computations
from hlo.text.codecs import CODECS
from hlo.text.literals import show_literal
from hlo.text.module_header import show_header
from hlo.text.scanning import percent, quoted
from hlo.types import Shape, without_layout

_SHAPES = frozenset(("operand_layout_constraints", "outfeed_shape"))


@dataclass(frozen=True, slots=True)
class _Style:
    name: Callable[[str], str]
    program_shapes: bool
    index_comments: bool


_STYLES = {"short": _Style(quoted, False, False), "long": _Style(percent, True, True)}


def format(module: Module, dialect: str = "short", large_constants: bool = True) -> str:
    """Format a module as text; parsing it gives an equal module.

    ``dialect`` is ``short`` or ``long``; without ``large_constants`` those of more than ten
    elements are written ``{...}``. ``canonical`` gives equal texts for modules that differ in names
    and in where they come from only (see :mod:`hlo.text.canonical`): reading it gives the same
    program under other names, but for the ``backend_config`` of custom calls, which XLA leaves out.
    """
    style = _STYLES.get(dialect)
    if style is None and dialect != "canonical":
        raise ValueError(f"dialect {dialect!r}: one of {', '.join(_STYLES)}, canonical")
    module = sugared(module)
    attributes = "".join(f", {k}={show_header(k, v)}" for k, v in module.attributes.items())
    lines = [f"HloModule {quoted(module.name)}{attributes}", ""]
    if style is None:
        return "\n".join((*lines, *canonical_computations(module, large_constants)))
    if module.preamble:
        lines += [module.preamble, ""]
    for computation in module.computations:
        is_entry = computation.name == module.entry_name
        lines += _computation(computation, is_entry, style, large_constants)
        lines.append("")
    return "\n".join(lines)


def _computation(
    computation: Computation, is_entry: bool, style: _Style, large: bool
) -> Iterator[str]:
    signature = ""
    if style.program_shapes:
        # XLA leaves out the % of parameters in signatures.
        parameters = ", ".join(
            f"{quoted(p.name).removeprefix('%')}: {_shape(without_layout(p.shape), style)}"
            for p in computation.parameters
        )
        result = _shape(without_layout(computation.root_instruction.shape), style)
        signature = f"({parameters}) -> {result} "
    entry = "ENTRY " if is_entry else ""
    yield f"{entry}{style.name(computation.name)} {signature}{{"
    for instruction in computation.instructions:
        root = "ROOT " if instruction.name == computation.root else ""
        yield f"  {root}{_instruction(instruction, style, large)}"
    annotations = "".join(f", {k}={v}" for k, v in computation.annotations.items())
    yield f"}}{annotations}"


def _shape(shape: Shape, style: _Style) -> str:
    text = str(shape)
    if style.index_comments or "/*" not in text:
        return text
    return _uncommented(text)


def _uncommented(text: str) -> str:
    while (start := text.find("/*")) >= 0:
        text = text[:start] + text[text.index("*/", start) + 2 :]
    return text


def instruction_parts(instruction: Instruction) -> tuple[str, str, str]:
    """Format one instruction in the short dialect, without annotations and large constants; return
    its name, its shape, and what follows the opcode."""
    return _parts(instruction._replace(annotations={}), _STYLES["short"], large=False)


def _instruction(instruction: Instruction, style: _Style, large: bool) -> str:
    name, shape, rest = _parts(instruction, style, large)
    return f"{name} = {shape} {instruction.opcode}{rest}"


def _parts(instruction: Instruction, style: _Style, large: bool) -> tuple[str, str, str]:
    """Return the texts of an instruction's name, its shape, and what follows the opcode."""
    inside = _inside(instruction, style, large)
    shown = IN_PARENTHESES.get(instruction.opcode)
    attributes = "".join(
        f", {name}={_value(name, value, style)}"
        for name, value in instruction.attributes.items()
        if name != shown
    )
    annotations = "".join(f", {name}={text}" for name, text in instruction.annotations.items())
    shape = _shape(instruction.shape, style)
    return style.name(instruction.name), shape, f"({inside}){attributes}{annotations}"


def _inside(instruction: Instruction, style: _Style, large: bool) -> str:
    """Format what is between an instruction's parentheses: operands, a literal, or a number."""
    literal = instruction.attributes.get("literal")
    if instruction.opcode == "constant" and isinstance(literal, Literal):
        return show_literal(literal, large)
    if instruction.opcode == "parameter":
        return str(instruction.attributes["parameter_number"])
    names = list(map(style.name, instruction.operands))
    if style.index_comments:
        names = [f"/*index={n}*/{t}" if n and n % 5 == 0 else t for n, t in enumerate(names)]
    return ", ".join(names)


def _value(name: str, value: object, style: _Style) -> str:
    if name not in COMPUTATION_ATTRIBUTES:
        text = CODECS[name].show(value)
        return text if style.index_comments or name not in _SHAPES else _uncommented(text)
    if isinstance(value, str):
        return style.name(value)
    assert isinstance(value, tuple)
    return "{" + ", ".join(map(style.name, value)) + "}"

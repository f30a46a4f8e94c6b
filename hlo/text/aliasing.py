"""Read and print aliasing and buffer donors.

Source: ``ParseAliasing``, ``ParseBufferDonor`` and ``ParseInstructionOutputOperandAliasing`` of
XLA's ``hlo_parser.cc``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlo.aliasing import Alias, Donor
from hlo.text.patterns import pattern

_INDEX = r"\{\s*+((?:\d{1,9}+\s*+(?:,\s*+\d{1,9}+\s*+)*+)?+)\}"
_PLACE = rf"\(\s*+(\d{{1,9}}+)\s*+,\s*+{_INDEX}\s*+"
_ALIAS = pattern(
    rf"\s*+{_INDEX}\s*+:\s*+(?:{_PLACE}(?:,\s*+(may-alias|must-alias)\s*+)?+\)|(\d{{1,9}}+))"
    r"\s*+(?P<comma>,?+)",
    re.ASCII,
)
_DONOR = pattern(rf"\s*+{_PLACE}\)\s*+(?P<comma>,?+)", re.ASCII)


def read_aliases(text: str) -> tuple[Alias, ...]:
    """Read ``output_to_operand_aliasing``: ``{{0}: (1, {}), …}``, or ``{0}: 1`` for short."""
    return tuple(map(_alias, _matches(_ALIAS, text, "{{output}: (number, {part}), …}")))


def read_header_aliases(text: str) -> tuple[Alias, ...]:
    """Read ``input_output_alias``: ``{ {0}: (1, {}, may-alias), … }``."""
    wanted = "{ {output}: (parameter, {index}, may-alias), … }"
    found = _matches(_ALIAS, text, wanted)
    # The short form, ``{0}: 1``, is for instructions only.
    if any(match[5] for match in found):
        raise ValueError(f"expected {wanted}")
    return tuple(map(_alias, found))


def read_donors(text: str) -> tuple[Donor, ...]:
    """Read ``buffer_donor``: ``{ (1, {}), … }``."""
    found = _matches(_DONOR, text, "{ (parameter, {index}), … }")
    return tuple(Donor(int(match[1]), _index(match[2])) for match in found)


def show_aliases(aliases: tuple[Alias, ...]) -> str:
    """Print aliases as an instruction's attribute."""
    return "{" + ", ".join(map(_shown, aliases)) + "}"


def show_header_aliases(aliases: tuple[Alias, ...]) -> str:
    return _spaced(map(_shown, aliases))


def show_donors(donors: tuple[Donor, ...]) -> str:
    return _spaced(f"({number}, {_braced(part)})" for number, part in donors)


def _matches(pattern: re.Pattern[str], text: str, wanted: str) -> list[re.Match[str]]:
    """Return the matches of a comma-separated list in braces; raise ValueError for other text."""
    found: list[re.Match[str]] = []
    position, comma = 1, ","
    while comma and (match := pattern.match(text, position)):
        found.append(match)
        position, comma = match.end(), match["comma"]
    whole = text.startswith("{") and text[position:].strip() == "}"
    if not whole or (found and comma):
        raise ValueError(f"expected {wanted}")
    return found


def _alias(match: re.Match[str]) -> Alias:
    number = int(match[2] or match[5])
    return Alias(_index(match[1]), number, _index(match[3] or ""), match[4] or "")


def _index(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def _shown(alias: Alias) -> str:
    kind = f", {alias.kind}" if alias.kind else ""
    return f"{_braced(alias.output)}: ({alias.number}, {_braced(alias.part)}{kind})"


def _spaced(texts: Iterable[str]) -> str:
    """Join texts in braces with spaces, as XLA prints headers."""
    inner = ", ".join(texts)
    return f"{{ {inner} }}" if inner else "{}"


def _braced(index: tuple[int, ...]) -> str:
    return f"{{{','.join(map(str, index))}}}"

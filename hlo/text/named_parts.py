"""Read and print attributes that are lists of named fields: ``domain`` and ``sparsity_config``.

Source: ``ParseDomain`` and ``ParseSparsityConfig`` of XLA's ``hlo_parser.cc``.
"""

from __future__ import annotations

import re

from hlo.attributes import Domain, OperandSparsity, SparsityConfig
from hlo.text.scanning import fields
from hlo.text.string_escapes import read_string, show_string

_DOMAIN = ["entry", "exit", "kind"]
_OPERAND = re.compile(r"\s*+(lhs|rhs)=\s*+\{([^{}]*+)\}\s*+", re.ASCII)
_RATIO = re.compile(r"(\d{1,18}+)x(\d{1,18}+)", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,18}+", re.ASCII)
_SPARSITY = "expected {lhs={sparsity=NxM dimension=D stride=S idx=K} rhs={…}}, each at most once"


def read_domain(text: str) -> Domain:
    """Read ``{kind="sharding", entry={…}, exit={…}}``, in any order; shardings stay text."""
    parts = [field.partition("=") for field in fields(_inner(text, "expected {…}"))]
    found = {name.strip(): value.strip() for name, _, value in parts}
    if sorted(name.strip() for name, _, _ in parts) != _DOMAIN:
        raise ValueError("expected kind, entry and exit, each once")
    for side in ("entry", "exit"):
        _inner(found[side], f"expected {{…}} after {side}=")
    return Domain(read_string(found["kind"]), found["entry"], found["exit"])


def show_domain(domain: Domain) -> str:
    return f"{{kind={show_string(domain.kind)}, entry={domain.entry}, exit={domain.exit}}}"


def read_sparsity(text: str) -> SparsityConfig:
    """Read ``{lhs={sparsity=2x4 dimension=1 stride=0 idx=2} rhs={…}}``; all fields are optional."""
    inner = _inner(text, _SPARSITY)
    found: dict[str, OperandSparsity] = {}
    position = 0
    while match := _OPERAND.match(inner, position):
        if match[1] in found:
            raise ValueError(_SPARSITY)
        found[match[1]] = _operand(match[2])
        position = match.end()
    if inner[position:].strip():
        raise ValueError(_SPARSITY)
    return SparsityConfig(**found)


def _inner(text: str, message: str) -> str:
    """Return the text between braces."""
    if len(text) < 2 or text[0] + text[-1] != "{}":
        raise ValueError(message)
    return text[1:-1]


def _operand(text: str) -> OperandSparsity:
    found = dict.fromkeys(("sparsity", "dimension", "stride", "idx"), "")
    for part in text.split():
        name, _, value = part.partition("=")
        pattern = _RATIO if name == "sparsity" else _NUMBER
        if found.get(name) != "" or not pattern.fullmatch(value):
            raise ValueError(_SPARSITY)
        found[name] = value
    stored, _, block = found["sparsity"].partition("x")
    return OperandSparsity(
        (int(stored), int(block)) if stored else None,
        int(found["dimension"]) if found["dimension"] else None,
        int(found["stride"]) if found["stride"] else None,
        int(found["idx"]) if found["idx"] else None,
    )

"""The attributes of a module's first line: which there are, and how their values look.

Their values are kept as text. Source: ``ParseHloModule`` of XLA's ``hlo_parser.cc``.
"""

from __future__ import annotations

import re

from hlo.text.suggestion import suggestion

_INDEX = r"\{\s*+(?:\d++\s*+,?+\s*+)*+\}"
_DONOR = rf"\(\s*+\d++\s*+,\s*+{_INDEX}\s*+\)"
_ALIAS = rf"{_INDEX}\s*+:\s*+\(\s*+\d++\s*+,\s*+{_INDEX}\s*+(?:,\s*+(?:may|must)-alias\s*+)?+\)"
_BOOLEAN = r"true|false"


def _braced(item: str) -> str:
    return rf"\{{\s*+(?:(?:{item})\s*+,?+\s*+)*+\}}"


_BRACES = r"\{.*\}", "{…}"
_NUMBER = r"-?\d++", "an integer"
_TRUTH = _BOOLEAN, "true or false"
_TRUTHS = rf"{_BOOLEAN}|{_braced(_BOOLEAN)}", "{true, false, …}"
_PATTERNS = {
    "is_scheduled": _TRUTH,
    "replica_count": _NUMBER,
    "num_partitions": _NUMBER,
    "input_output_alias": (_braced(_ALIAS), "{ {output}: (parameter, {index}, may-alias), … }"),
    "buffer_donor": (_braced(_DONOR), "{ (parameter, {index}), … }"),
    "alias_passthrough_params": _TRUTH,
    "entry_computation_layout": (r"\{.*->.*\}", "{(shape, …)->shape}"),
    "frontend_attributes": _BRACES,
    "allow_spmd_sharding_propagation_to_parameters": _TRUTHS,
    "allow_spmd_sharding_propagation_to_output": _TRUTHS,
    "origin_recovery_table": _BRACES,
    "debug_attributes": _BRACES,
}
_COMPILED = {name: re.compile(pattern, re.A | re.S) for name, (pattern, _) in _PATTERNS.items()}


def header_fault(name: str, value: str) -> str | None:
    """What is wrong with an attribute of a module, or None."""
    pattern = _COMPILED.get(name)
    if pattern is None:
        hint = suggestion(name, _PATTERNS) or f"; allowed: {', '.join(sorted(_PATTERNS))}"
        return f"unexpected attribute {name!r} of a module{hint}"
    return None if pattern.fullmatch(value) else f"{name}: expected {_PATTERNS[name][1]}"

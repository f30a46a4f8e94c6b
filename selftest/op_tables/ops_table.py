"""Write docs/ops.md, the table of opcodes: ``python -m selftest.op_tables.ops_table``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from hlo.opcodes import OPCODES
from hlo.ops.element_types import TAKES, VALUE, listed
from hlo.types import ELEMENT_TYPES, ElementType
from hlo.walk import column, function_name
from selftest.op_tables.op_types import COLUMNS, DONE, MEASURED, cells

# The walker evaluates parameters itself; fusions, calls and tuples need no code of their own in C.
_BY_THE_WALKER = "walker"
# What a pass turns into other instructions before C is generated.
_BY_PASSES = {"bitcast": "hlo.passes.layouts"}
_FILE = Path(__file__).parents[2] / "docs" / "ops.md"

# Why a column does not take what the verifier does: what the refusal says, and the reason.
_REASONS = (
    (
        r"the C backend takes no (infeed|outfeed|send|recv)\b",
        "Generated C is one rank without a host, with nobody to call (docs/ranks.md).",
    ),
    (
        r"unknown element type 'u6'",
        "It takes as many random bits as the operand's type has, and the language has no `u6`.",
    ),
    (
        r"rng_uniform of T",
        "`[false, true)` has one value; XLA's compiler dies of it, too.",
    ),
    (
        r"scaled-dot scales T by \w+: products are exact up to f32 and s16",
        "A scaled dot is the exact sum of exact products of elements and scales, f32's at most:"
        " what scales blocks has 8 bits or fewer.",
    ),
)


def holes() -> dict[tuple[str, str], dict[ElementType, str]]:
    """Map each opcode and column to the element types that it does not support, with the reason."""
    found: dict[tuple[str, str], dict[ElementType, str]] = {}
    for line in MEASURED.read_text().splitlines()[1:]:
        opcode, name, types, outcome = line.split(" | ")
        missing = found.setdefault((opcode, name), {})
        if outcome != DONE:
            missing.update({ELEMENT_TYPES[t]: outcome for t in types.split()})
    return found


def reason(outcome: str) -> int:
    """Return the number of a refusal's reason; ValueError if it has none."""
    for number, (pattern, _) in enumerate(_REASONS):
        if re.search(pattern, outcome):
            return number
    raise ValueError(f"no reason in selftest/op_tables/ops_table.py for {outcome!r}")


def _but(missing: Mapping[ElementType, str]) -> str:
    """Format what a cell lacks: ``, not c64, c128 [1]``."""
    by_reason: dict[int, set[ElementType]] = {}
    for element_type, outcome in missing.items():
        by_reason.setdefault(reason(outcome), set()).add(element_type)
    return "".join(f", not {listed(types)} [{n + 1}]" for n, types in sorted(by_reason.items()))


def _homes(opcode: str) -> list[str]:
    """Find the module of an opcode's function in each column."""
    columns = (
        column("hlo.ops"),
        column("interp.ops"),
        column("backend_c.elemental", "backend_c.kernels", "backend_c.lower"),
    )
    name = function_name(opcode)
    found = [ops[name].home if name in ops else "" for ops in columns]
    if opcode == "parameter":
        found = [_BY_THE_WALKER] * len(columns)
    found[2] = found[2] or _BY_PASSES.get(opcode, "")
    return [home.split(".", 1)[-1] if "." in home else home for home in found]


def _rows() -> Iterator[str]:
    missing = holes()
    for opcode in sorted(OPCODES):
        types = TAKES[opcode]
        taken = "any value" if types is VALUE else listed(types.types)
        homes = _homes(opcode)
        for number, name in enumerate(COLUMNS, start=1):
            lacks = missing[opcode, name]
            every = len(lacks) == len(cells(opcode))
            but = f"[{reason(next(iter(lacks.values()))) + 1}]" if every else _but(lacks)
            homes[number] = f"refused {but}" if every else homes[number] + but
        yield f"| {opcode} | {taken} | {' | '.join(homes)} |"


def _sums() -> str:
    """Count the supported cells."""
    every = sum(len(cells(opcode)) for opcode in OPCODES)
    missing = holes()
    done = [
        every - sum(len(lacks) for (_, name), lacks in missing.items() if name == wanted)
        for wanted in COLUMNS
    ]
    return f"| **{len(OPCODES)}** | **{every}** | | {' | '.join(f'**{n}**' for n in done)} |"


def table() -> str:
    """Format docs/ops.md: a row for each opcode, a column for each interpretation."""
    used = {reason(o) for lacks in holes().values() for o in lacks.values()}
    reasons = [f"{n + 1}. {why}" for n, (_, why) in enumerate(_REASONS) if n in used]
    assert len(used) == len(_REASONS), "a reason that nothing needs"
    return "\n".join(
        [
            "# Opcodes",
            "",
            "Where each opcode lives in each column, and the element types that it does *not* do"
            " there; the numbers are reasons, below. Measured: "
            "`python -m selftest.op_tables.op_types` gives the smallest program of each op on each"
            " type (`selftest/op_tables/op_programs.txt`) to the interpreter and to C, which must"
            " give the same bits; `python -m selftest.op_tables.ops_table` writes this from what it"
            " found. `convert` is measured from and to each type.",
            "",
            "*Element types*: of the first operand, or of the result of an op without one, as"
            " `hlo/ops/element_types.py` has them for the verifier; *any value* is also a token or"
            " a tuple. The floats are f4e2m1fn, f6e2m3fn, f6e3m2fn, all kinds of f8, f16, bf16, f32"
            " and f64. The last row counts opcodes, pairs of an opcode and a type, and those done.",
            "",
            "| opcode | element types | hlo/ops | interp | backend_c |",
            "|---|---|---|---|---|",
            *_rows(),
            _sums(),
            "",
            *reasons,
            "",
        ]
    )


if __name__ == "__main__":
    _FILE.write_text(table())

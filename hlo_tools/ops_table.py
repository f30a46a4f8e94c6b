"""The table of opcodes and what there is of each: ``python -m hlo_tools.ops_table`` writes it."""

from __future__ import annotations

from pathlib import Path

from hlo.opcodes import OPCODES
from hlo.ops.element_types import listed
from hlo.walk import column, function_name

# The walker evaluates parameters itself; fusions, calls and tuples need no code of their own in C.
_BY_THE_WALKER = "walker"
# What a pass turns into other instructions before C is generated.
_BY_PASSES = {"bitcast": "hlo.passes.layouts"}
# What generated C, one rank without a host, refuses by name.
_REFUSED = frozenset(("infeed", "outfeed", "recv", "recv-done", "send", "send-done"))
_FILE = Path(__file__).parents[1] / "docs" / "ops.md"


def table() -> str:
    """docs/ops.md: a row for each opcode, a column for each interpretation."""
    control = {n: op for n, op in column("backend_c").items() if op.home == "backend_c.control"}
    columns = {
        "hlo/ops": column("hlo.ops"),
        "interp": column("interp"),
        "backend_c": {**column("backend_c.elemental"), **column("backend_c.kernels"), **control},
    }
    rows = []
    for opcode in sorted(OPCODES):
        name = function_name(opcode)
        homes = [ops[name].home if name in ops else "" for ops in columns.values()]
        if opcode == "parameter":
            homes = [_BY_THE_WALKER] * len(columns)
        homes[2] = homes[2] or _BY_PASSES.get(opcode, "")
        if opcode in _REFUSED:
            homes[2] = "refused"
        cells = [home.split(".", 1)[-1] if "." in home else home for home in homes]
        rows.append(f"| {opcode} | {listed(opcode)} | {' | '.join(cells)} |")
    done = [sum(name in ops for name in map(function_name, OPCODES)) for ops in columns.values()]
    done[2] += len(_BY_PASSES) - len(_REFUSED)
    return "\n".join(
        [
            "# Opcodes",
            "",
            "Where each opcode lives in each column; an empty cell is not there yet. *refused*:"
            " generated C is one rank without a host (docs/ranks.md).",
            "",
            "*Element types*: of the first operand, or of the result of an op without one, as"
            " `hlo/ops/element_types.py` has them for the verifier; *any value* is also a token or"
            " a tuple. The floats are f4e2m1fn, f6e2m3fn, f6e3m2fn, all kinds of f8, f16, bf16, f32"
            " and f64.",
            "",
            f"| opcode | element types | {' | '.join(columns)} |",
            "|---|---|---|---|---|",
            *rows,
            f"| **{len(OPCODES)}** | | {' | '.join(f'**{count + 1}**' for count in done)} |",
            "",
        ]
    )


if __name__ == "__main__":
    _FILE.write_text(table())

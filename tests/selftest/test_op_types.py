"""Check that the table of ops and element types in docs/ops.md is complete, and still true.

That both columns give the same bits is measured by ``python -m selftest.op_tables.op_types``
(minutes); here each program is evaluated, and its C is generated but not compiled.
"""

from __future__ import annotations

import pytest

import hlo
from hlo.opcodes import OPCODES
from hlo.types import C64, F32
from selftest.op_tables import op_types, ops_table
from selftest.op_tables.op_types import Cell, cells


def test_every_op_and_type_was_measured_once_in_each_column() -> None:
    found: list[tuple[str, str, str]] = []
    for line in op_types.MEASURED.read_text().splitlines()[1:]:
        opcode, column, types, _ = line.split(" | ")
        found += [(opcode, column, t) for t in types.split()]
    every = [
        (opcode, column, str(cell.element_type))
        for opcode in OPCODES
        for cell in cells(opcode)
        for column in op_types.COLUMNS
    ]
    assert sorted(found) == sorted(every)


def test_no_hole_is_without_a_reason() -> None:
    for missing in ops_table.holes().values():
        for outcome in missing.values():
            assert ops_table.reason(outcome) >= 0
    with pytest.raises(ValueError, match="no reason"):
        ops_table.reason("other bits: 1 of 4 differ")


HOLES = ops_table.holes()


@pytest.mark.sampled(18)
@pytest.mark.parametrize("opcode", sorted(OPCODES))
def test_what_was_measured_is_still_so(opcode: str) -> None:
    """If more is done than the table has: python -m selftest.op_tables.op_types, then ops_table."""
    for cell in cells(opcode):
        recorded = [HOLES[opcode, column].get(cell.element_type, "") for column in op_types.COLUMNS]
        assert [op_types.by_interpreter(cell), op_types.by_generator(cell)] == recorded, cell


def test_programs_are_the_smallest_that_show_the_op() -> None:
    for opcode in OPCODES:
        for cell in (c for c in cells(opcode) if "u6[" not in op_types.text(c)):
            entry = hlo.parse(op_types.text(cell)).entry
            assert any(i.opcode == opcode for i in entry.instructions), cell


def test_a_cell_is_a_program_of_its_type() -> None:
    assert "less { x = c64[] parameter(0)" in op_types.text(Cell("sort", C64))
    assert "ROOT p = c64[4] fft(a)" in op_types.text(Cell("fft", F32))
    converted = op_types.module(Cell("convert", C64)).entry
    assert [i.opcode for i in converted.instructions].count("convert") == 2

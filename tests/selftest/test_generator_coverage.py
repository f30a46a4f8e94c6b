"""Every opcode is drawn on every element type with every kind of value of its attributes."""

import hlo
from fuzz.draw.choices import examples
from fuzz.draw.programs import GENERATORS, program
from selftest.generator_coverage import Cell, cells, covered, main, measured, refused

# Few enough kinds for a short test: ``python -m selftest.generator_coverage`` draws 100,000.
_SOME = ("compare", "pad", "reverse", "dot", "all-gather", "triangular-solve")


def test_nothing_is_left_out_of_some() -> None:
    found = measured(6000, 0, _SOME)
    assert not found.refused
    assert not [cell for cell in found.empty() if cell.opcode in _SOME]


def test_the_verifier_takes_what_is_drawn() -> None:
    found = measured(5000, 1)
    assert not found.refused
    reached = {cell.opcode for cell in found.counts}
    assert reached >= set(GENERATORS)
    # what is in the table, and what is drawn of it, have the same names
    assert set(found.counts) & set(cells()) and len(found.empty()) < len(cells()) / 2


def test_the_verifier_takes_programs_of_campaigns() -> None:
    assert not [*refused(1000, 1)]


def test_a_fusion_has_nothing_dead() -> None:
    opcodes = ("fusion", "after-all", "add")
    for module in examples(lambda c: program(c, max_instructions=24, opcodes=opcodes), 800, 1):
        hlo.verify(module)


def test_kinds_of_an_instruction() -> None:
    module = hlo.parse(
        """HloModule m
ENTRY e {
  p = f16[3,4] parameter(0)
  z = f16[] constant(0)
  ROOT r = f16[2,5] pad(p, z), padding=0_-1x1_0
}
"""
    )
    found = set(covered(module.entry, module.entry.root_instruction))
    kinds = {cell.kind for cell in found if cell.attribute == "padding"}
    assert kinds == {"any", "less", "more"} and Cell("pad", "f16") in found


def test_what_was_never_drawn_is_printed(capsys) -> None:  # type: ignore[no-untyped-def]
    assert main(["--draws", "40", "--opcode", "compare"]) == 1
    assert "never drawn: compare c64 direction" in capsys.readouterr().out

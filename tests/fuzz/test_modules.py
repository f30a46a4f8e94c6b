"""Drawn programs are valid, survive printing, and run."""

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from fuzz.programs import GENERATORS
from hlo.opcodes import OPCODES
from hlo.results import outputs
from hlo.walk import function_name


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_drawn_modules_are_valid(data: st.DataObject) -> None:
    module = data.draw(fuzz.modules())
    note(hlo.format(module))
    hlo.verify(module)
    assert hlo.parse(hlo.format(module)) == module
    arrays = data.draw(fuzz.arguments(module))
    assert list(outputs(interp.evaluate(module, *arrays)))


def test_generators_are_named_as_their_opcodes() -> None:
    for opcode, (generator, _) in GENERATORS.items():
        assert getattr(generator, "__name__", "") in ("generator", function_name(opcode))


def test_every_opcode_is_drawn() -> None:
    """But those that reach beyond the program."""
    outside = {"infeed", "outfeed", "parameter", "recv", "recv-done", "send", "send-done"}
    assert set(GENERATORS) == set(OPCODES) - outside


def test_a_choice_of_opcodes_and_types_is_kept() -> None:
    from hlo.types import F64

    chosen = fuzz.modules(
        opcodes=("add", "negate", "dynamic-slice"), element_types=(F64,), max_instructions=5
    )

    @settings(max_examples=20, deadline=None)
    @given(chosen)
    def check(module: hlo.Module) -> None:
        opcodes = {i.opcode for i in module.entry.instructions}
        assert opcodes <= {"add", "negate", "dynamic-slice", "parameter", "constant", "tuple"}

    check()

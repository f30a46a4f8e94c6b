"""Control flow, tuples and custom calls: the interpreter and the C backend give the same bits.

Over all types, ranks 0 to 5, dimensions without elements and values of the attributes. More
examples: pytest --hypothesis-profile=default draws other ones; COUNT is how many each op gets.
"""

from functools import partial

import batch
import pytest
from conftest import has_c_compiler

import hlo
from fuzz.draw.generators import control, custom_call
from fuzz.draw.programs import single_op
from hlo.types import F32, F64

COUNT = 6
OPCODES = [*control.GENERATORS, *custom_call.GENERATORS]

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


@pytest.mark.parametrize(("together", "opcode"), batch.groups(OPCODES, 16))
def test_the_same_bits(together: tuple[str, ...], opcode: str) -> None:
    batch.assert_agree(together, opcode, COUNT)


def test_the_same_bits_of_custom_calls_on_matrices() -> None:
    make = partial(single_op, opcode="custom-call", element_types=(F32, F64))
    ((*cases,),) = batch.drawn([make], 8 * COUNT)
    assert any("lapack" in hlo.format(module) for module, _ in cases)
    for (module, arguments), found in zip(cases, batch.outcomes(cases), strict=True):
        assert not found, f"{hlo.format(module)}\n{arguments}\n{found[0]}"

"""Every elementwise op: the interpreter and the C backend give the same bits.

Over all types, ranks 0 to 5, dimensions without elements and values of the attributes. More
examples: pytest --hypothesis-profile=default draws other ones; COUNT is how many each op gets.
"""

import batch
import pytest
from conftest import has_c_compiler

from fuzz.draw.generators import elementwise

COUNT = 6

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("together", "opcode"), batch.groups(list(elementwise.GENERATORS), 16))
def test_the_same_bits(together: tuple[str, ...], opcode: str) -> None:
    batch.assert_agree(together, opcode, COUNT)

"""Reductions over any dimensions, of any number of operands, by any computation; scans, and
normalisation of batches.

The interpreter and the C backend give the same bits, over all types, ranks 0 to 5, dimensions
without elements and values of the attributes; on small arrays both do what the definition says.
More examples: pytest --hypothesis-profile=default draws other ones; COUNT is how many each op gets.
"""

import batch
import pytest
from conftest import has_c_compiler
from defined import assert_defined

from fuzz.draw.generators import batch_norm, reduction, scan

COUNT = 16
OPCODES = [*reduction.GENERATORS, *batch_norm.GENERATORS]


@pytest.mark.sampled(1)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize(("together", "opcode"), batch.groups(OPCODES, 8))
def test_the_same_bits(together: tuple[str, ...], opcode: str) -> None:
    batch.assert_agree(together, opcode, COUNT)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("opcode", scan.GENERATORS)
def test_the_same_bits_in_steps(opcode: str) -> None:
    """Scans have the interpreter's bits in C: more programs are drawn, as in few the result depends
    on the order of the steps."""
    batch.assert_agree((opcode,), opcode, 5 * COUNT)


@pytest.mark.parametrize("opcode", ["reduce"])
def test_the_definition(opcode: str) -> None:
    assert_defined(opcode, COUNT)

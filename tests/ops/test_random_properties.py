"""Random numbers: the interpreter and the C backend give the same bits for every state and seed.

More examples: pytest --hypothesis-profile=default draws other ones; COUNT is how many each op gets.
"""

import os

import batch
import pytest
from conftest import has_c_compiler

import interp
from backend_c.native.executable import Executable
from fuzz.compilers import combined_programs
from fuzz.compilers.quick_compilers import thorough
from fuzz.draw.generators import random
from hlo.bit_equality import differences

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

COUNT = 10


@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_the_same_bits(seed: int) -> None:
    """All in one program: what an rng gives depends on how many ran before it."""
    drawn = batch.drawn(batch.single_ops(list(random.GENERATORS)), COUNT)
    cases = [case for cases in drawn for case in cases]
    whole = combined_programs.merged([module for module, _ in cases])
    arrays = [array for _, arguments in cases for array in arguments]
    expected = interp.evaluate(whole, *arrays, seed=seed)
    (executable,) = combined_programs.compiled([whole], thorough(os.environ))
    assert isinstance(executable, Executable), executable
    assert not differences(expected, executable(*arrays, seed=seed))

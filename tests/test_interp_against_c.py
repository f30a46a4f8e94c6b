"""The main property: the interpreter and the C backend give the same bits, at any thread count."""

import shutil

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import backend_c
import fuzz
import hlo
import interp
from hlo.bit_equality import differences

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("gcc", "clang", "cc"))), reason="no C compiler"
)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_same_bits(data: st.DataObject) -> None:
    module = data.draw(fuzz.modules())
    arrays = data.draw(fuzz.arguments(module))
    note(hlo.format(module))
    expected = interp.evaluate(module, *arrays)
    executable = backend_c.compile(module, numerics="exact")
    for threads in (1, 2):
        assert not differences(expected, executable.in_threads(threads)(*arrays)), threads

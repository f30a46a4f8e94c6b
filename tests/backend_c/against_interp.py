"""A module as text through both: the interpreter's bits are those of the generated C."""

from __future__ import annotations

from typing import Any

import backend_c
import hlo
import interp
from hlo.bit_equality import differences


def assert_same_bits(text: str, *arrays: Any, seed: int = 0) -> None:
    """Assert that compiled C gives the interpreter's bits, with one thread and with two."""
    module = hlo.parse(text)
    expected = interp.evaluate(module, *arrays, seed=seed)
    executable = backend_c.compile(module, numerics="exact")
    for threads in (1, 2):
        assert not differences(expected, executable.in_threads(threads)(*arrays, seed=seed))

"""Flushing is tried where zeros and subnormals show, in either part of a complex number, too."""

from __future__ import annotations

import numpy as np
import pytest

from interp.envelope.trying import Trying
from interp.envelope.verdict import KINDS, UNDETERMINED

_TINY = 1e-40


@pytest.mark.parametrize(
    ("actual", "exact", "is_small"),
    [
        (1 + 1j, 1 + 1j, False),
        (1 + 0j, 1 + 1j, True),
        (0 + 1j, 1 + 1j, True),
        (1 + 1j, complex(1, _TINY), True),
        (1 + 1j, complex(_TINY, 1), True),
    ],
)
def test_complex_numbers(actual: complex, exact: complex, is_small: bool) -> None:
    open_ = np.full(1, KINDS.index(UNDETERMINED), np.int8)
    trying = Trying([np.complex64([actual])], [open_])
    assert trying.has_small([("", np.complex64([exact]))]) is is_small


@pytest.mark.parametrize(
    ("actual", "exact", "is_small"), [(1, 1, False), (0, 1, True), (1, _TINY, True)]
)
def test_real_numbers(actual: float, exact: float, is_small: bool) -> None:
    open_ = np.full(1, KINDS.index(UNDETERMINED), np.int8)
    trying = Trying([np.float32([actual])], [open_])
    assert trying.has_small([("", np.float32([exact]))]) is is_small

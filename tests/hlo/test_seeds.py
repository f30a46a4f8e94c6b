"""Seeds that are whole numbers of 64 bits, and what is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlo.errors import ArgumentError
from hlo.seeds import whole_seed


@pytest.mark.parametrize("seed", [0, 2**64 - 1, np.int32(7), True])
def test_seeds(seed: Any) -> None:
    assert whole_seed(seed) == seed


@pytest.mark.parametrize("seed", ["a", 1.5, -1, 2**64, None])
def test_what_is_no_seed(seed: Any) -> None:
    with pytest.raises(ArgumentError, match="a whole number from 0 to"):
        whole_seed(seed)

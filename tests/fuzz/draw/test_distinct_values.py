"""Numbers are finite, also where there are more of them than the type has."""

import numpy as np
import pytest

from fuzz.draw.distinct_values import distinct
from hlo.types import ELEMENT_TYPES


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "s16", "u16"])
def test_many_consecutive_numbers_are_finite(name: str) -> None:
    for count in (0, 1, 200_000):
        numbers = distinct(np.random.default_rng(0), ELEMENT_TYPES[name], count, 2)
        assert numbers.size == count and np.all(np.isfinite(numbers.astype(np.float64)))

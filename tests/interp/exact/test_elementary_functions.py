"""Results of elementary functions that are kept are those of the operands, and nobody else's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from interp.exact import elementary_functions
from interp.exact.elementary_functions import elementary


@pytest.mark.parametrize("size", [3, 1000, 20_000])
def test_what_becomes_of_a_result_changes_no_later_one(size: int) -> None:
    x = np.linspace(0, 1, size, dtype=np.float32)
    first = elementary("exponential", x)
    expected = first.copy()
    first[...] = 0
    x_again = x.copy()
    np.testing.assert_array_equal(elementary("exponential", x_again), expected)
    x_again[0] = 1
    assert elementary("exponential", x_again)[0] == np.float32(np.e)


def test_signs_of_zeros_types_and_sizes_are_told_apart() -> None:
    zeros = np.zeros(2, np.complex64)
    below = np.array([-4 - 0j, -4 - 0j], np.complex64)
    below.imag = -0.0
    assert (elementary("sqrt", below).imag == -2).all()
    assert (elementary("sqrt", below + 0j * zeros).imag == 2).all()
    bits = np.float64([1.0, 2.0])
    assert elementary("log", bits).dtype == np.float64
    assert elementary("log", bits.view(np.complex128)).shape == (1,)
    assert elementary("log", bits.reshape(2, 1)).shape == (2, 1)
    assert elementary("log", np.asarray(bits[1])).shape == ()


def test_a_function_of_the_same_numbers_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[str] = []
    evaluate = elementary_functions._elementary

    def noted(name: str, *operands: Any) -> Any:
        evaluated.append(name)
        return evaluate(name, *operands)

    monkeypatch.setattr(elementary_functions, "_elementary", noted)
    for size in (3, 1000):
        x = np.random.default_rng(1402).random(size)
        for _ in range(3):
            elementary("tanh", x.copy())
    assert evaluated == ["tanh", "tanh"]

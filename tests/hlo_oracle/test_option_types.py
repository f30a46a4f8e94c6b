"""Values of options that are in their range, and values that are not."""

from __future__ import annotations

import argparse

import pytest

from hlo_oracle import option_types


@pytest.mark.parametrize("text", ["0" * 40 + "9" * 30, "9" * 5000, str(2**64), "-1", "1.5", ""])
def test_a_number_beyond_its_range(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        option_types.seed(text)


@pytest.mark.parametrize(("text", "value"), [("0" * 5000 + "7", 7), (str(2**64 - 1), 2**64 - 1)])
def test_a_number_in_its_range(text: str, value: int) -> None:
    assert option_types.seed(text) == value

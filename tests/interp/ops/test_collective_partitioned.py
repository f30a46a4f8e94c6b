"""Programs that XLA's partitioner made for eight devices, with the results recorded of XLA:CPU.

``partitioned/record.py`` wrote them. All values are small integers: there is nothing to round.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import TESTS

import backend_c
import hlo
import interp

DIRECTORY = TESTS / "interp" / "partitioned"
RECORDED = json.loads((DIRECTORY / "results.json").read_text())


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_partitioned(name: str) -> None:
    module = hlo.parse((DIRECTORY / f"{name}.hlo").read_text())
    given = [(np.array(each, np.float32),) for each in RECORDED[name]["arguments"]]
    results = interp.evaluate(module, *given, partitions=8)
    assert [result.tolist() for result in results] == RECORDED[name]["results"]


def test_they_are_not_for_one_rank() -> None:
    module = hlo.parse((DIRECTORY / "dot.hlo").read_text())
    with pytest.raises(hlo.ArgumentError, match="made for replicas=1, partitions=8, not for"):
        interp.evaluate(module, np.zeros((4, 2), np.float32))
    with pytest.raises(hlo.Unsupported, match="made for 1 replicas × 8 partitions: generated C is"):
        backend_c.emit(module)

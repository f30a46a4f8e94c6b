"""Check programs of each opcode against the results of jaxlib 0.10.2 on the CPU in
known_answers.json, which known_answers.py writes. The bounds are those of against_jax for XLA's
errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from against_jax.case import ELEMENTARY, EXACT, SUM, Bound
from against_jax.judge import complaints
from known_answers import array

import hlo
import interp
from fuzz.draw.generators import (
    batch_norm,
    contraction,
    elementwise,
    grouped,
    linear_algebra,
    reduction,
    window,
)
from hlo.values import arrays_of

ROWS = json.loads(Path(__file__).with_name("known_answers.json").read_text())
_BOUNDS: dict[str, Bound] = {
    **dict.fromkeys(elementwise.GENERATORS, ELEMENTARY),
    **dict.fromkeys(
        (
            *batch_norm.GENERATORS,
            *contraction.GENERATORS,
            *grouped.GENERATORS,
            *reduction.GENERATORS,
            *window.GENERATORS,
            *linear_algebra.GENERATORS,
        ),
        SUM,
    ),
}


@pytest.mark.parametrize("row", ROWS, ids=[f"{n} {row['opcode']}" for n, row in enumerate(ROWS)])
def test_as_recorded(row: dict[str, Any]) -> None:
    module = hlo.parse("\n".join(row["hlo"]))
    value = interp.evaluate(module, *map(array, row["arguments"]))
    ours = list(arrays_of(value))
    theirs = [array(one) for one in row["results"]]
    assert not list(complaints(ours, theirs, _BOUNDS.get(row["opcode"], EXACT)))

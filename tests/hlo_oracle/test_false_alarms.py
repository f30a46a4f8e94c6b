"""Check that XLA's legal rewrites of ordinary programs, once called wrong, are within the
envelope."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

import hlo
import interp
from hlo_oracle import arguments, peer_verdicts
from hlo_oracle.peer_verdicts import Run

PROGRAMS = sorted((Path(__file__).parent / "false_alarms").glob("*.hlo"))


@pytest.fixture(scope="module")
def xla() -> Iterator[Run]:
    """One process for all programs."""
    with peer_verdicts.peer("xla").start(60) as run:
        yield run


@pytest.mark.skipif(not importlib.util.find_spec("jaxlib"), reason="XLA is not installed")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_nothing_is_outside(path: Path, xla: Run) -> None:
    """No element is outside or undetermined: sums of f16 in order, exp(x) / exp(y) as exp(x - y),
    log(sqrt(x)) as log(x) / 2, (x + c) - c as x in another computation, behind a tuple, behind a
    reverse, (x + c) + d as x + (c + d) also of an x computed of constants, 1 / (1 + exp(-x)) in
    f16, x - floor(x) computed in two loops, in one of them with x contracted, equal complex numbers
    whose parts are subnormal, z / |z| of a |z| that overflows, a subnormal constant that is
    shown as zero beside an opening."""
    text = path.read_text()
    module = hlo.parse(text)
    (values,) = arguments.from_archive(module, path.with_suffix(".npz"))
    budget, exact = peer_verdicts.peer("xla").budget, interp.evaluate(module, *values)
    found = peer_verdicts.peer_judgement(xla, budget, module, text, values, exact=exact, seed=0)
    assert found.counts is not None, found
    assert not found.counts["outside"] and not found.counts["undetermined"], found

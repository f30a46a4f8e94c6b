"""Every pass keeps every bit, and its result verifies and survives printing."""

from pathlib import Path

import pytest
from conftest import CORPUS
from cost import python_calls
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.passes import PASSES, PIPELINES, run

PROGRAMS = sorted(CORPUS.glob("*/*.txt"))


@settings(max_examples=24, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_passes_keep_every_bit(data: st.DataObject) -> None:
    _require_bits(data, data.draw(fuzz.modules()))


@settings(max_examples=16, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_passes_keep_every_bit_of_bounded_programs(data: st.DataObject) -> None:
    _require_bits(data, data.draw(fuzz.loosened(data.draw(fuzz.modules(max_instructions=6)))))


def _require_bits(data: st.DataObject, module: Module) -> None:
    arrays = data.draw(fuzz.arguments(module))
    expected = interp.evaluate(module, *arrays)
    note(hlo.format(module))

    def check(name: str, changed: Module) -> None:
        note(f"after {name}:\n{hlo.format(changed)}")
        hlo.verify(changed)
        assert not differences(expected, interp.evaluate(changed, *arrays)), name

    run(module, "backend_c", after=check)
    check("backend_c_scalar", run(module, "backend_c_scalar"))


@pytest.mark.sampled(20)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_real_programs_stay_valid(path: Path) -> None:
    module = hlo.parse(path.read_text())
    changed = run(module, "backend_c")
    hlo.verify(changed)
    assert hlo.parse(hlo.format(changed)) == changed


@pytest.mark.sampled(18)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_time_is_linear_in_the_instructions(path: Path) -> None:
    module = hlo.parse(path.read_text())
    size = sum(len(computation.instructions) for computation in module.computations)
    assert python_calls(lambda: run(module, "backend_c")) < 500 * size


def test_pipelines_name_passes() -> None:
    assert all(name in PASSES for names in PIPELINES.values() for name in names)

"""Trips of loops are known where the counter is, and nowhere else."""

from __future__ import annotations

import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.cuda.host_plan import HostLoop, in_text_order
from backend_c.ir.settings import Numerics, launched
from backend_c.pipeline import lowered
from backend_c.projects.targets import cuda_parts
from hlo.bit_equality import differences
from hlo_oracle.arguments import from_seed

# A product of matrices keeps a loop with the host.
TEXT = """HloModule counted
below {{ s = ({t}[], f32[9,9]) parameter(0)
        n = {t}[] get-tuple-element(s), index=0
        limit = {t}[] constant({end}){also}
        ROOT less = pred[] compare({sides}), direction={direction} }}
step {{ s = ({t}[], f32[9,9]) parameter(0)
       n = {t}[] get-tuple-element(s), index=0
       x = f32[9,9] get-tuple-element(s), index=1
       by = {t}[] constant({by})
       more = {t}[] {op}
       y = f32[9,9] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
       ROOT state = ({t}[], f32[9,9]) tuple(more, y) }}
ENTRY main {{ x = f32[9,9] parameter(0)
             m = {t}[] parameter(1)
             begin = {t}[] constant({start})
             start = ({t}[], f32[9,9]) tuple({first}, x)
             end = ({t}[], f32[9,9]) while(start), condition=below, body=step
             ROOT y = f32[9,9] get-tuple-element(end), index=1 }}"""
USUAL = {"t": "s32", "start": 0, "end": 3, "by": 1, "sides": "n, limit", "direction": "LT",
         "op": "add(n, by)", "first": "begin", "also": ""}  # fmt: skip
DRAWS = """
        low = f32[] constant(0)
        high = f32[] constant(1)
        u = f32[] rng(low, high), distribution=rng_uniform"""


def text(**changes: object) -> str:
    return TEXT.format(**{**USUAL, **changes})


def trips(program: str) -> int | None:
    """Return what the host knows of the only loop."""
    plan = lowered(hlo.parse(program), launched(Numerics.EXACT))
    _, ((host, _),) = cuda_parts([plan])
    (found,) = (step for step in in_text_order(host.steps) if isinstance(step, HostLoop))
    return found.trips


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 3),
        ({"by": 2}, 2),
        ({"t": "u8", "end": 255, "start": 250}, 5),
        ({"t": "u64", "end": 2**64 - 1}, None),
        ({"t": "u64", "end": 2**64 - 1, "by": 2**63}, None),
        ({"sides": "limit, n", "direction": "GT"}, 3),
        ({"start": 9, "by": -4, "direction": "GT"}, 2),
        ({"direction": "LE"}, 4),
        ({"sides": "limit, n", "direction": "GE"}, 4),
        ({"start": 9, "by": -3, "direction": "GE"}, 3),
        ({"t": "u8", "end": 0, "start": 9, "by": 255, "direction": "GE"}, None),
        # It would go on beyond the type's end, or for ever.
        ({"t": "u8", "end": 255, "start": 250, "by": 4}, None),
        ({"t": "u8", "end": 255, "start": 250, "direction": "LE"}, None),
        ({"direction": "NE"}, None),
        ({"by": 0}, None),
        ({"by": -1}, None),
        # What is not known.
        ({"first": "m"}, None),
        ({"op": "multiply(n, by)"}, None),
        ({"op": "add(n, n)"}, None),
        # Each trip draws a number before it.
        ({"also": DRAWS}, None),
    ],
)
def test_trips(changes: dict[str, object], count: int | None) -> None:
    assert trips(text(**changes)) == count


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_loops_of_known_trips_have_their_bits() -> None:
    for changes in ({}, {"start": 5}, {"start": 9, "by": -4, "direction": "GT"},
                    {"direction": "LE"}):  # fmt: skip
        module = hlo.parse(text(**changes))
        arrays = from_seed(module, 0)
        expected = interp.evaluate(module, *arrays)
        assert not differences(expected, backend_c.emulate(module)(*arrays)), changes

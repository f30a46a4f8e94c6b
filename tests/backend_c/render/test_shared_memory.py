"""Kernels ask for shared memory where the static limit has no room for their arrays."""

from __future__ import annotations

import pytest

import hlo
from backend_c.cuda.host_plan import launches
from backend_c.ir.settings import Numerics, launched
from backend_c.pipeline import lowered
from backend_c.projects.targets import cuda_parts


@pytest.mark.parametrize(("order", "asked"), [(107, 0), (109, 109 * 109 * 4)])
def test_functions_of_the_runtime_have_room(order: int, asked: int) -> None:
    """A matrix of 46 KiB is static, one that leaves less than 2 KiB of the 48 is not."""
    module = hlo.parse(f"""HloModule m
ENTRY e {{ a = f32[{order},{order}] parameter(0)
          ROOT l = f32[{order},{order}] cholesky(a), lower=true }}""")
    text, ((host, _),) = cuda_parts([lowered(module, launched(Numerics.FAST))])
    assert max(step.geometry.shared for step in launches(host)) == asked
    assert ("HLO_DYNAMIC_SHARED(float" in text) == bool(asked)

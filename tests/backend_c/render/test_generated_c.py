"""The C of small programs, read like code: tests/golden/*.c."""

from collections.abc import Callable

import pytest

import hlo
from backend_c.pipeline import lowered
from backend_c.render.dialect import DIALECTS
from backend_c.render.translation_units import render_plan

PROGRAMS = {
    "reduce_sum_fma": """
        HloModule reduce_sum_fma
        add { a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT sum = f32[] add(a, b) }
        ENTRY main {
          x = f32[128,1000] parameter(0)
          y = f32[128,1000] parameter(1)
          z = f32[128,1000] parameter(2)
          product = f32[128,1000] multiply(y, z)
          sum = f32[128,1000] add(x, product)
          zero = f32[] constant(0)
          ROOT total = f32[128] reduce(sum, zero), dimensions={1}, to_apply=add
        }""",
    "dynamic_slice": """
        HloModule dynamic_slice
        ENTRY main {
          x = bf16[50,900] parameter(0)
          i = u64[] parameter(1)
          j = u64[] parameter(2)
          window = bf16[30,700] dynamic-slice(x, i, j), dynamic_slice_sizes={30,700}
          ROOT doubled = bf16[30,700] add(window, window)
        }""",
    "while": """
        HloModule while
        condition { state = (s32[], s32[]) parameter(0)
                    i = s32[] get-tuple-element(state), index=0
                    ten = s32[] constant(10)
                    ROOT less = pred[] compare(i, ten), direction=LT }
        body { state = (s32[], s32[]) parameter(0)
               i = s32[] get-tuple-element(state), index=0
               x = s32[] get-tuple-element(state), index=1
               one = s32[] constant(1)
               next = s32[] add(i, one)
               square = s32[] multiply(x, next)
               ROOT both = (s32[], s32[]) tuple(next, square) }
        ENTRY main {
          zero = s32[] constant(0)
          start = s32[] parameter(0)
          init = (s32[], s32[]) tuple(zero, start)
          ROOT result = (s32[], s32[]) while(init), condition=condition, body=body
        }""",
    "transpose_reshape": """
        HloModule transpose_reshape
        ENTRY main {
          x = f32[8,12,128] parameter(0)
          split = f32[8,12,16,8] reshape(x)
          turned = f32[8,16,12,8] transpose(split), dimensions={0,2,1,3}
          ROOT flat = f32[128,96] reshape(turned)
        }""",
}


def source(name: str, dialect: str) -> str:
    made = render_plan(lowered(hlo.parse(PROGRAMS[name])), DIALECTS[dialect])
    ((_, text),) = made.sources.items()
    return text


@pytest.mark.parametrize("name", PROGRAMS)
def test_openmp(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.c", source(name, "openmp"))


def test_cuda(golden: Callable[[str, str], None]) -> None:
    golden("reduce_sum_fma.cu", source("reduce_sum_fma", "cuda"))


def test_a_fused_sum_has_no_intermediate_array() -> None:
    plan = lowered(hlo.parse(PROGRAMS["reduce_sum_fma"]))
    assert len(plan.kernels) == 1
    assert plan.kernels[0].scratch == ()
    assert set(plan.buffers) == {*plan.arguments, *plan.results} | {
        buffer for buffer, _ in plan.constants
    }


def test_the_same_text_every_time() -> None:
    assert source("reduce_sum_fma", "openmp") == source("reduce_sum_fma", "openmp")

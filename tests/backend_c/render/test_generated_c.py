"""The C of small programs in each dialect, read like code.

Of the program NAME tests/golden has NAME.c (OpenMP), NAME.embedded.c and .h, and NAME.cu with the
launches of its kernels, NAME.launches.json and NAME.launch.cu. The runtime headers are left out.
"""

import re
from collections.abc import Callable

import pytest

import hlo
from backend_c.cuda import phases
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import emit, lowered, settings_for
from backend_c.render.dialect import CUDA, EMBEDDED, OPENMP, Dialect
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


def source(name: str, dialect: Dialect) -> str:
    plan = lowered(hlo.parse(PROGRAMS[name]), settings_for("exact", dialect))
    made = render_plan(phases.split(plan) if dialect is CUDA else plan, dialect)
    ((_, text),) = made.sources.items()
    return text


def emitted(name: str, dialect: Dialect, file: str) -> str:
    return emit(hlo.parse(PROGRAMS[name]), dialect.name, numerics="exact")[file].decode()


@pytest.mark.parametrize("name", PROGRAMS)
def test_openmp(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.c", source(name, OPENMP))


def test_a_fast_sum_has_no_bound(golden: Callable[[str, str], None]) -> None:
    plan = lowered(hlo.parse(PROGRAMS["reduce_sum_fma"]), Settings(Numerics.FAST))
    ((_, text),) = render_plan(plan, OPENMP).sources.items()
    golden("reduce_sum_fma.fast.c", text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_embedded(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.embedded.c", source(name, EMBEDDED))
    golden(f"{name}.embedded.h", emitted(name, EMBEDDED, "module.h"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_cuda(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.cu", source(name, CUDA))
    golden(f"{name}.launches.json", emitted(name, CUDA, "launches.json"))
    golden(f"{name}.launch.cu", emitted(name, CUDA, "launch.cu"))


@pytest.mark.parametrize(
    ("dialect", "file"), [(OPENMP, "unit_0.c"), (EMBEDDED, "module.c"), (CUDA, "module.cu")]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_golden_text_is_what_users_get(name: str, dialect: Dialect, file: str) -> None:
    _, _, text = source(name, dialect).partition(dialect.prologue)
    if dialect is EMBEDDED:  # callers have module_run
        text = text.replace("\nvoid hlo_entry(", "\nstatic void hlo_entry(")
    found = emitted(name, dialect, file)
    if dialect in (EMBEDDED, CUDA):  # which say before each kernel what it computes
        found = re.sub(r"/\* %.*?\*/\n", "", found, flags=re.DOTALL)
    assert text.strip() and text in found


def test_a_fused_sum_has_no_intermediate_array() -> None:
    plan = lowered(hlo.parse(PROGRAMS["reduce_sum_fma"]))
    assert len(plan.kernels) == 1
    assert plan.kernels[0].scratch == ()
    assert set(plan.buffers) == {*plan.arguments, *plan.results} | {
        buffer for buffer, _ in plan.constants
    }


def test_the_same_text_every_time() -> None:
    assert source("reduce_sum_fma", OPENMP) == source("reduce_sum_fma", OPENMP)

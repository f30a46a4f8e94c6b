"""Tests of how kernels are divided into translation units."""

import re

import backend_c
import hlo
from backend_c.pipeline import lowered, settings_for
from backend_c.render.dialect import EMBEDDED, OPENMP
from backend_c.render.translation_units import render_plan

# Each sort is a kernel, and none is a short one.
_SORTS = """HloModule sorts
by {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}}
ENTRY e {{
  x = f32[{n},300] parameter(0)
  y = f32[{n},301] parameter(1)
  s = f32[{n},300] sort(x), dimensions={{1}}, to_apply=by
  t = f32[{n},301] sort(y), dimensions={{1}}, to_apply=by
  c = f32[{n},601] concatenate(s, t), dimensions={{1}}
  u = f32[{n},601] sort(c), dimensions={{0}}, to_apply=by
  f = f32[{n},601] exponential(u)
  m = f32[{n},{n}] dot(f, f), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  ROOT l = f32[{n},{n}] cholesky(m)
}}
"""


def _units(at_a_time: int, dialect: object = OPENMP, n: int = 40) -> dict[str, str]:
    plan = lowered(hlo.parse(_SORTS.format(n=n)), settings_for("fast"))
    return dict(render_plan(plan, dialect, at_a_time=at_a_time).sources)  # type: ignore[arg-type]


def _kernels(text: str) -> set[str]:
    return set(re.findall(r"void (kernel_\d+)\([^)]*\) \{", text))


def test_units_have_all_kernels_once() -> None:
    whole = _kernels("\n".join(_units(1).values()))
    for at_a_time in (1, 2, 3, 8):
        found = [_kernels(text) for text in _units(at_a_time).values()]
        assert set().union(*found) == whole
        assert sum(map(len, found)) == len(whole)


def test_more_units_where_more_are_compiled_at_a_time() -> None:
    counts = [len(_units(at_a_time)) for at_a_time in (1, 2, 8)]
    assert counts[0] < counts[1] <= counts[2]


def test_units_have_similar_sizes() -> None:
    sizes = [len(text) for text in _units(2).values()]
    assert max(sizes) < 2 * min(sizes)


def test_a_short_program_is_one_unit() -> None:
    plan = lowered(hlo.parse("HloModule m\nENTRY e { ROOT x = f32[9] parameter(0) }"))
    assert len(render_plan(plan, OPENMP, at_a_time=8).sources) == 1


def test_other_targets_are_one_file() -> None:
    assert len(_units(8, EMBEDDED)) == 1


def test_emitted_files_do_not_depend_on_the_machine() -> None:
    module = hlo.parse(_SORTS.format(n=40))
    units = [name for name in backend_c.emit(module) if name.startswith("unit_")]
    assert len(units) == len(_units(1))

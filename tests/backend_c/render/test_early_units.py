"""Tests of translation units that are rendered while kernels are still being lowered."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import backend_c
import hlo
from backend_c.pipeline import settings_for
from backend_c.programs import rendered
from backend_c.render.translation_units import render_plan
from hlo.module import Module
from hlo.types import array_leaves

# Layers of matrix products and of sums of rows, none of which is like another, between maps.
_LAYER = """
  p{n} = f32[8,{k}] dot(x{n}, w{n}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  r{n} = f32[8] reduce(p{n}, zero), dimensions={{1}}, to_apply=add
  b{n} = f32[8,{k}] broadcast(r{n}), dimensions={{0}}
  x{m} = f32[8,{k}] subtract(p{n}, b{n})"""
_LAYERS = 24


def _network() -> Module:
    parameters = ["  x0 = f32[8,20] parameter(0)"]
    layers = []
    for n in range(_LAYERS):
        parameters.append(f"  w{n} = f32[{20 + n},{21 + n}] parameter({n + 1})")
        layers.append(_LAYER.format(n=n, m=n + 1, k=21 + n))
    lines = "\n".join([*parameters, "  zero = f32[] constant(0)", *layers])
    return hlo.parse(f"""HloModule network
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY e {{
{lines}
  ROOT root = f32[8,{20 + _LAYERS}] copy(x{_LAYERS})
}}
""")


def _kernels(sources: dict[str, str]) -> Iterator[str]:
    for text in sources.values():
        yield from re.findall(r"void (kernel_\d+)\([^)]*\) \{", text)


def test_units_are_started_before_all_kernels_are_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    started: dict[str, str] = {}
    met: list[set[str]] = []

    def whole(*arguments: object, **options: object) -> object:
        met.append(set(started))
        return render_plan(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("backend_c.programs.render_plan", whole)
    program = rendered(_network(), settings_for("fast"), started.__setitem__)
    assert len(started) >= 2
    assert met == [set(started)], "all are started before the plan is complete"
    assert started.items() <= program.sources.items()
    found = list(_kernels(dict(program.sources)))
    assert len(found) == len(set(found)), "no kernel is in two units"
    assert set(program.kernel_names) <= set(found)


def test_early_units_change_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, random = _network(), np.random.default_rng(1)
    shapes = [s.dims for p in module.entry.parameters for s in array_leaves(p.shape)]
    values = [random.standard_normal(dims).astype(np.float32) for dims in shapes]
    by_units = backend_c.compile(module, cache=tmp_path / "units")
    monkeypatch.setattr("backend_c.render.early_units._FIRST", math.inf)
    whole = backend_c.compile(module, cache=tmp_path / "whole")
    assert len(by_units.source) > len(whole.source)
    assert by_units(*values).tobytes() == whole(*values).tobytes()


def test_explanations_name_kernels_as_the_source_does(tmp_path: Path) -> None:
    """A fused kernel is named where it is met first, a merged one at the end, in both."""
    step = """HloModule step
ENTRY e {
  g = f32[5000] parameter(0)
  m = f32[5000] parameter(1)
  v = f32[5000] parameter(2)
  s = f32[5000] sort(g), dimensions={0}, to_apply=by
  m1 = f32[5000] add(m, g)
  q = f32[5000] multiply(g, g)
  v1 = f32[5000] add(v, q)
  ROOT t = (f32[5000], f32[5000], f32[5000]) tuple(m1, s, v1)
}
"""
    by = "by {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
    by += "  ROOT r = pred[] compare(a, b), direction=LT\n}\n"
    module = hlo.parse(step.replace("ENTRY", f"{by}ENTRY"))
    for numerics in ("fast", "exact"):
        source = dict(backend_c.compile(module, numerics, cache=tmp_path).source)
        explained = backend_c.listing(module, numerics=numerics)
        assert set(explained.texts) == set(_kernels(source))

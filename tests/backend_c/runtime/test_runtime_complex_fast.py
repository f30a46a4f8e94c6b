"""Absolute values of complex numbers in fast mode: within 2 ULP, at every magnitude."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


@pytest.mark.parametrize("name", ["c64", "c128"])
def test_absolute_values(name: str) -> None:
    real = np.dtype(np.float32 if name == "c64" else np.float64)
    info, rng = np.finfo(real), np.random.default_rng(5)
    edges = [0.0, -0.0, info.max, info.smallest_subnormal, info.tiny, 1.0, -3.0, np.inf, np.nan]
    pairs = np.array(list(itertools.product(edges, repeat=2)))
    exponents = rng.integers(info.minexp - info.nmant, info.maxexp, (20000, 1))
    near = exponents + rng.integers(-60, 60, (20000, 2))
    with np.errstate(over="ignore", under="ignore"):
        drawn = np.ldexp(rng.uniform(-2, 2, (20000, 2)), np.minimum(near, info.maxexp - 2))
    parts = np.concatenate([pairs, drawn]).astype(real)
    x = (parts[:, 0] + 1j * 0).astype(np.complex64 if name == "c64" else np.complex128)
    x.imag, x.real = parts[:, 1], parts[:, 0]
    result = {"c64": "f32", "c128": "f64"}[name]
    text = f"""HloModule m
ENTRY e {{ x = {name}[{x.size}] parameter(0)
  ROOT r = {result}[{x.size}] abs(x) }}"""
    module = hlo.parse(text)
    found = np.asarray(backend_c.compile(module, numerics="fast")(x))
    expected = np.asarray(interp.evaluate(module, x))
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(found[special], expected[special])
    ulps = abs(
        found[~special].view(f"i{real.itemsize}") - expected[~special].view(f"i{real.itemsize}")
    )
    assert ulps.max() <= 2


@pytest.mark.parametrize("name", ["c64", "c128"])
def test_quotients(name: str) -> None:
    """Complex quotients are within 8 units in the last place of the larger component, and at the
    edges as defined."""
    real = np.dtype(np.float32 if name == "c64" else np.float64)
    info, rng = np.finfo(real), np.random.default_rng(5)
    edges = [0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan]
    at_edges = np.array(list(itertools.product(edges, repeat=4)))
    exponents = rng.integers(info.minexp - info.nmant, info.maxexp, (20000, 2)).repeat(2, axis=1)
    near = np.minimum(exponents + rng.integers(-40, 40, (20000, 4)), info.maxexp - 2)
    with np.errstate(over="ignore", under="ignore"):
        drawn = np.ldexp(rng.uniform(-2, 2, (20000, 4)), near)
    parts = np.concatenate([at_edges, drawn]).astype(real)
    x, y = parts.reshape(-1, 2, 2).view(f"c{2 * real.itemsize}")[..., 0].T.copy()
    shape = f"{name}[{x.size}]"
    text = f"""HloModule m
ENTRY e {{ x = {shape} parameter(0)
  y = {shape} parameter(1)
  ROOT r = {shape} divide(x, y) }}"""
    module = hlo.parse(text)
    found = np.asarray(backend_c.compile(module, numerics="fast")(x, y)).view(real).reshape(-1, 2)
    expected = np.asarray(interp.evaluate(module, x, y)).view(real).reshape(-1, 2)
    edge = len(at_edges)
    np.testing.assert_array_equal(np.isnan(found[:edge]), np.isnan(expected[:edge]))
    with np.errstate(over="ignore", invalid="ignore"):
        largest = abs(expected).max(1)[:, None]
        unit = np.maximum(largest * info.eps, info.smallest_subnormal)
        is_near = (found == expected) | (abs(found - expected) <= 8 * unit)
        is_beyond = np.isnan(expected) | (largest > info.max / 4)
        is_beyond[:edge] = np.isnan(expected[:edge])
    assert (is_near | is_beyond).all()

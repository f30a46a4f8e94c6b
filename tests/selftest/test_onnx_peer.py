"""Networks as ONNX mean what they mean as HLO, but for the order of sums."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo_oracle.arguments import from_seed

pytest.importorskip("onnx")

import onnx.reference

from selftest.microcontrollers.onnx_peer import OnnxNetwork

NETWORK = """HloModule network
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
most {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}
ENTRY main {
  input = f32[1,5,4,2] parameter(0)
  w = f32[3,3,2,2] constant({...})
  c = f32[1,3,4,3] convolution(input, w), window={size=3x2 stride=2x1 pad=1_1x0_1},
    dim_labels=b01f_o01i->b01f
  b = f32[3] constant({1, -2, 0.5})
  each = f32[1,3,4,3] broadcast(b), dimensions={3}
  biased = f32[1,3,4,3] add(c, each)
  zero = f32[] constant(0)
  zeros = f32[1,3,4,3] broadcast(zero), dimensions={}
  relu = f32[1,3,4,3] maximum(biased, zeros)
  total = f32[1,3] reduce(relu, zero), dimensions={1,2}, to_apply=sum
  v = f32[4,3] constant({{1, 2, 3}, {-1, 0.5, 2}, {0, 1, 0}, {0.25, 0, 1}})
  d = f32[1,4] dot(total, v), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  low = f32[] constant(-inf)
  top = f32[1] reduce(d, low), dimensions={1}, to_apply=most
  tops = f32[1,4] broadcast(top), dimensions={0}
  shifted = f32[1,4] subtract(d, tops)
  powers = f32[1,4] exponential(shifted)
  all = f32[1] reduce(powers, zero), dimensions={1}, to_apply=sum
  alls = f32[1,4] broadcast(all), dimensions={0}
  ROOT r = f32[1,4] divide(powers, alls)
}
"""


def test_a_network() -> None:
    weights = np.random.default_rng(0).standard_normal((3, 3, 2, 2)).astype(np.float32).round(2)
    text = str(weights.tolist()).replace("[", "{").replace("]", "}")
    module = hlo.parse(NETWORK.replace("{...}", text))
    (x,) = from_seed(module, 0)
    model = OnnxNetwork(module).model()
    (found,) = onnx.reference.ReferenceEvaluator(model).run(None, {"input": x})
    np.testing.assert_allclose(found, interp.evaluate(module, x), rtol=1e-5)

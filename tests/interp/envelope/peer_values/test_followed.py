"""A step is wrong only if it is wrong whichever values a compiler computes again, or never."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import hlo
import interp
from hlo.module import Module
from hlo.values import Array
from interp.envelope.budget import XLA_CPU
from interp.envelope.judgement import Judge
from interp.envelope.verdict import OUTSIDE, UNDETERMINED, WITHIN

_QUOTIENT = """HloModule m
ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  c = f32[2] parameter(2)
  ea = f32[2] exponential(a)
  eb = f32[2] exponential(b)
  ec = f32[2] exponential(c)
  product = f32[2] multiply(ea, eb)
  ROOT quotient = f32[2] divide(product, ec)
}
"""


def merged(module: Module, a: Array, b: Array, c: Array) -> Sequence[Array]:
    """Compute as XLA does: products and quotients of exponentials as exponentials of sums."""
    with np.errstate(over="ignore"):
        values = {
            "a": a, "b": b, "c": c, "ea": np.exp(a), "eb": np.exp(b), "ec": np.exp(c),
            "product": np.exp(a + b), "quotient": np.exp(a + (b - c)),
        }  # fmt: skip
    root = module.entry.root_instruction
    names = root.operands if root.opcode == "tuple" else (root.name,)
    return [values[name] for name in names]


def test_an_exponential_of_a_sum_does_not_pass_through_the_product() -> None:
    """exp(a) exp(b) / exp(c) as exp(a + (b - c)): a product that is shown is exp(a + b), whose
    argument is rounded on its own. In the second element the quotient may be anything."""
    module = hlo.parse(_QUOTIENT)
    arguments = [np.array(x, np.float32) for x in ([60.1, 200], [20.3, 0], [-0.01, 200])]
    exact = [("", np.asarray(interp.evaluate(module, *arguments)))]
    judge = Judge(module, tuple(arguments), exact, peer=XLA_CPU)
    actual = merged(module, *arguments)
    found = judge.judged(actual, lambda other: merged(other, *arguments))
    assert not found.wrong
    assert (found.counts[OUTSIDE], found.counts[UNDETERMINED], found.counts[WITHIN]) == (0, 1, 1)

"""Wrong numbers of a bitcast whose layouts the text does not say are no compiler's fault."""

import numpy as np
import pytest

import hlo
import interp
from fuzz.judge.failure import Against
from fuzz.judge.undefined_behaviour import left_open
from fuzz.oracles import Difference, LeftOut
from fuzz.oracles.compilers import _failure_of
from fuzz.peers.layouts import layouts_left_open, reads_layouts
from fuzz.peers.xla import Answer
from fuzz.reducer.search import Case
from hlo_oracle.peer_verdicts import peer_judgement
from interp.envelope.budget import XLA_CPU
from interp.envelope.verdict import OUTSIDE


def _of(result: str, opcode: str = "bitcast") -> hlo.Module:
    return hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[3,2] parameter(0)
  y = f32[2,3] transpose(x), dimensions={{1,0}}
  ROOT r = {result} {opcode}(y)
}}
""")


@pytest.mark.parametrize(
    ("result", "opcode", "is_open"),
    [
        ("f32[6]", "bitcast", True),
        ("f32[3,2]", "bitcast", True),
        ("f32[2,3]", "bitcast", False),
        ("s32[2,3]", "bitcast", False),
        ("f32[6]", "reshape", False),
    ],
)
def test_bitcasts_to_other_dimensions_are_open(result: str, opcode: str, is_open: bool) -> None:
    module = _of(result, opcode)
    assert (layouts_left_open(module) is not None) == is_open
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    why = left_open(module, [x])
    assert (why is not None and why.startswith("%r: ")) == is_open
    # A compiler that gives the elements in another order is wrong, or not.
    right = np.asarray(interp.evaluate(module, x))
    other = Answer(outputs=(np.roll(right, 1),))
    told = _failure_of(Against(lambda text, arrays: other, XLA_CPU), None, Case(module, (x,)))
    assert told == LeftOut("the result is open") if is_open else isinstance(told, Difference)
    judged = peer_judgement(
        lambda text, arrays: other, XLA_CPU, module, hlo.format(module), (x,), exact=right, seed=0
    )
    assert judged.counts is not None and (judged.counts[OUTSIDE] > 0) != is_open


def test_layouts_that_the_text_says_are_not_open() -> None:
    text = hlo.format(_of("f32[6]")).replace("f32[2,3] t", "f32[2,3]{0,1} t")
    assert layouts_left_open(hlo.parse(text)) is not None
    assert layouts_left_open(hlo.parse(text.replace("f32[6] b", "f32[6]{0} b"))) is None


@pytest.mark.parametrize("operands", ["", "p, p"])
def test_bitcasts_of_other_than_one_operand_are_read(operands: str) -> None:
    module = hlo.parse(
        "HloModule m ENTRY e { p = s64[6]{0} parameter(0)"
        f" ROOT r = s64[3,2] bitcast({operands}) }}"
    )
    assert reads_layouts(module) == bool(operands)

"""Wrong numbers of a bitcast whose layouts the text does not say are no compiler's fault."""

import numpy as np
import pytest

import hlo
from fuzz.oracles import Difference, LeftOut
from fuzz.oracles.compilers import _carried
from fuzz.peers.layouts import leaves_layouts_open, reads_layouts
from fuzz.reducer.search import Case

_WRONG = Difference("wrong result: another number", "[1]")


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
    assert leaves_layouts_open(module) == is_open
    case = Case(module, (np.zeros((3, 2), np.float32),))
    found = LeftOut("depends on layouts") if is_open else _WRONG
    assert _carried(case, _WRONG) == found
    # That it ends the process is wrong all the same.
    assert _carried(case, Difference("crash: x", "")) == Difference("crash: x", "")


@pytest.mark.parametrize("operands", ["", "p, p"])
def test_bitcasts_of_other_than_one_operand_are_read(operands: str) -> None:
    module = hlo.parse(
        "HloModule m ENTRY e { p = s64[6]{0} parameter(0)"
        f" ROOT r = s64[3,2] bitcast({operands}) }}"
    )
    assert reads_layouts(module) == bool(operands)

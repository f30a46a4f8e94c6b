"""Check that the signature of a blamed instruction says which operands are constants, moved or
not."""

from __future__ import annotations

import numpy as np

import hlo
from fuzz.judge.blame import blamed
from fuzz.reducer.search import Case


def test_constants_are_looked_for_once() -> None:
    """Each link has two paths to the constant: 2^60 of them."""
    links = "\n".join(
        f"""  both{n} = s32[4] concatenate(part{n - 1}, part{n - 1}), dimensions={{0}}
  part{n} = s32[2] slice(both{n}), slice={{[1:3]}}"""
        for n in range(1, 61)
    )
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  x = s32[2] parameter(0)
  part0 = s32[2] constant({{1, 2}})
{links}
  ROOT sum = s32[2] add(x, part60)
}}""")
    case = Case(module, (np.zeros(2, np.int32),))
    assert blamed(case, culprit="add") == "add(s32, constant s32) -> s32"

"""Running folds in the order written, each from the one before, and folds of integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
from hlo.attributes import Window, WindowDimension
from hlo.walk import Callee
from interp.envelope import budget
from interp.envelope.budget import EXACT, XLA_CPU
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import Enclosing, enclose
from interp.envelope.folds import running_folds
from interp.evaluator import evaluate

_PAIRS = """HloModule m
fold { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  c = f32[] subtract(b, a)
  d = f32[] exponential(c)
  k = s32[] subtract(j, i)
  ROOT r = (f32[], s32[]) tuple(d, k) }
ENTRY e { x = f32[] parameter(0)
  ROOT r = f32[] negate(x) }"""

_MODULE = hlo.parse(_PAIRS)
_COMPUTATION = _MODULE.computation("fold")
_FOLD = Callee(_COMPUTATION, Enclosing(_MODULE)._enter(_COMPUTATION))


def _same(one: Enclosure, other: Enclosure) -> bool:
    pairs = zip((one.low, one.high, one.nan), (other.low, other.high, other.nan))
    return all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in pairs)


@given(st.data())
def test_each_fold_is_that_of_its_window(data: st.DataObject) -> None:
    """Folding each window from the init on gives the same ends."""
    rows, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 6))
    axis = data.draw(st.integers(0, 1))
    dims = (rows, length) if axis else (length, rows)
    along = WindowDimension(length, padding_low=length - 1)
    window = Window((WindowDimension(1), along) if axis else (along, WindowDimension(1)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    low = rng.standard_normal(dims).astype(np.float32)
    numbers = Enclosure(low, low + np.float32(rng.choice([0, 0.25])), rng.random(dims) < 0.1)
    index = rng.integers(0, 9, dims).astype(np.int32)
    inits = tuple(
        Enclosure(*[np.asarray(x)] * 2, np.asarray(False)) for x in (low[0, 0], index[0, 0])
    )
    given_ = (numbers, Enclosure(index, index, np.zeros(dims, np.bool_))), inits

    def folded() -> tuple[Enclosure, ...]:
        with budget.using(XLA_CPU), np.errstate(all="ignore"):
            return tuple(running_folds.windows_in_order(*given_, _FOLD, window))

    found = folded()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running_folds, "running", lambda *windows: None)
        expected = folded()
    assert all(map(_same, found, expected))


def test_what_takes_too_long_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows from each element on are folded one by one, as the order written has it."""
    module = hlo.parse("""HloModule m
fold { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] divide(a, b) }
ENTRY e { x = f32[8] parameter(0)
  i = f32[] constant(1)
  ROOT r = f32[8] reduce-window(x, i), window={size=8 pad=0_7}, to_apply=fold }""")
    x = np.arange(1, 9, dtype=np.float32)
    expected = evaluate(module, x)
    found = enclose(module, x, peer=EXACT).result
    assert found.is_point and np.array_equal(found.low, expected)
    monkeypatch.setattr(running_folds, "_MOST_WORK", 8 * 8 * 3 - 1)
    assert np.isinf(enclose(module, x, peer=EXACT).result.low).all()


@pytest.mark.parametrize("opcode", ["add", "multiply", "xor"])
def test_long_folds_of_integers_have_one_result(opcode: str) -> None:
    module = hlo.parse(f"""HloModule m
fold {{ a = s8[] parameter(0)
  b = s8[] parameter(1)
  ROOT r = s8[] {opcode}(a, b) }}
ENTRY e {{ x = s8[2,5000] parameter(0)
  i = s8[] constant(1)
  y = s8[2] reduce(x, i), dimensions={{1}}, to_apply=fold
  z = s8[2,5000] reduce-window(x, i), window={{size=1x5000 pad=0_0x0_4999}}, to_apply=fold
  ROOT r = (s8[2], s8[2,5000]) tuple(y, z) }}""")
    x = np.random.default_rng(0).integers(-128, 128, (2, 5000)).astype(np.int8) | np.int8(1)
    for legal, expected in zip(enclose(module, x, peer=XLA_CPU).result, evaluate(module, x)):
        assert legal.is_point and np.array_equal(legal.low, expected)


def test_integers_that_are_not_certain_are_folded_by_their_ends() -> None:
    module = hlo.parse("""HloModule m
fold { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b) }
ENTRY e { x = f32[3] parameter(0)
  y = f32[3] exponential(x)
  n = s32[3] convert(y)
  i = s32[] constant(1)
  ROOT r = s32[] reduce(n, i), dimensions={0}, to_apply=fold }""")
    x = np.log(np.float32([2, 3, 4]))
    legal = enclose(module, x, peer=XLA_CPU).result
    assert legal.low < legal.high and contains(legal, evaluate(module, x)).all()

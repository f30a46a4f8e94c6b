"""Dead values are left out, by the block that binds their name."""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.loop_ir import INDEX, Array, Constant, Let, Load, Loop, Statement, Store, Variable
from hlo.types import F32

_IN, _OUT = Array("a0", F32, 8), Array("r0", F32, 8, mutable=True)
_LANE, _PLACE = Variable(INDEX, "lane", 0, 7), Variable(INDEX, "place", 0, 7)
_BINDS = Let(_PLACE, ix.add(_LANE, ix.constant(0)))
_READS = Store(_OUT, _LANE, Load(_IN, _PLACE))
_READS_NOTHING = Store(_OUT, _LANE, Constant(F32, 1.0))


def _loop(*body: Statement) -> Loop:
    return Loop(_LANE, ix.constant(8), "lanes", body)


def test_a_name_is_live_in_the_block_that_uses_it() -> None:
    """A name that a later loop binds and uses kept an unused one of an earlier loop."""
    reading, other = _loop(_BINDS, _READS), _loop(_BINDS, _READS_NOTHING)
    assert without_dead_lets([other, reading]) == (_loop(_READS_NOTHING), reading)
    assert without_dead_lets([reading, other]) == (reading, _loop(_READS_NOTHING))


def test_an_inner_name_hides_an_outer_one_that_is_used_behind_it() -> None:
    inner, behind = _loop(_BINDS, _READS), Store(_OUT, ix.constant(0), Load(_IN, _PLACE))
    body = (Let(_PLACE, ix.constant(3)), inner, behind)
    assert without_dead_lets(body) == body


def test_an_outer_name_is_live_if_an_inner_block_uses_it() -> None:
    body = (Let(_PLACE, ix.constant(3)), _loop(_READS))
    assert without_dead_lets(body) == body

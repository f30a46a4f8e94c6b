"""Common subexpressions of statements of several kernels."""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir.common_values import with_common_values
from backend_c.ir.loop_ir import INDEX, Array, Let, Load, Store, Variable, expressions, variables
from hlo.types import F32


def test_a_removed_index_may_have_other_bounds_where_it_is_used() -> None:
    i = Variable(INDEX, "i", 0, 9)
    one, other = (Variable(INDEX, name, 0, 12) for name in ("one", "other"))
    source, target = Array("a0", F32, 13), Array("r0", F32, 13, mutable=True)
    body = [
        Let(one, ix.add(i, 3)),
        Let(other, ix.add(i, 3)),
        Store(target, one, Load(source, other._replace(high=5))),
    ]
    found, same = with_common_values(body)
    assert same == {"other": one} and len(found) == 2
    names = {name for s in found for value in expressions(s) for name in variables(value)}
    assert names == {"i", "one"}

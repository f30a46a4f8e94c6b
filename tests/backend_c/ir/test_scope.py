"""Names of indices: what was bound to a name folds away where it can."""

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import INDEX, Array, If, Let, Load, Loop
from backend_c.ir.scope import Scope, apply
from backend_c.ir.settings import Settings
from hlo.types import PRED, S64


def test_bound_parts_of_an_offset_fold_to_it() -> None:
    scope, dims = Scope(Settings()), (16, 13, 13, 8)
    with scope.loop(16 * 13 * 13 * 8, "lanes") as offset:
        parts = [scope.bind(part) for part in ix.delinearize(offset, dims)]
        assert scope.folded(ix.linearize(parts, dims)) == offset
        # A part alone takes its division: it keeps its name.
        assert scope.folded(parts[1]) == parts[1]
        part = ix.add(ix.multiply(parts[2], 8), parts[3])
        assert scope.folded(part) == part


def test_a_bound_load_keeps_its_name() -> None:
    """It is read once: another load of it might give something else."""
    scope = Scope(Settings())
    load = Load(Array("a0", S64, 4), ix.constant(0))
    bound = scope.bind(ix.divide(load._replace(array=load.array._replace(element_type=INDEX)), 8))
    assert scope.folded(ix.multiply(bound, 8)) == ix.multiply(bound, 8)


def test_a_load_leaves_an_if_where_its_index_is_inside_of_the_array() -> None:
    """A load whose index may be out of bounds stays inside of the ``if`` that guards it."""
    scope, array = Scope(Settings()), Array("a0", S64, 4)
    with scope.loop(4) as number:
        is_first = apply("compare-EQ", number, ix.constant(0), type=PRED)
        with scope.when(is_first):
            outside = scope.bind(Load(array, ix.multiply(number, 2)))
            inside = scope.bind(Load(array, number))
            total = scope.local(S64, 1)
            scope.store(total, ix.constant(0), apply("add", outside, inside))
    (loop,) = (one for one in scope.statements if isinstance(one, Loop))
    bound = {one.variable: one.value for one in loop.body if isinstance(one, Let)}
    assert inside in bound and outside not in bound
    (branch,) = (one for one in loop.body if isinstance(one, If))
    assert any(isinstance(one, Let) and one.variable == outside for one in branch.then)

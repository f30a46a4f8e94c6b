"""Steps are ordered so that less is alive, and none passes another that it depends on."""

import hlo
from backend_c.lower.buffers import peak
from backend_c.lower.memory_order import with_least_memory
from backend_c.lower.plan import Launch, Plan, Step, read_and_changed
from backend_c.pipeline import lowered, settings_for
from backend_c.render.dialect import EMBEDDED
from fuzz.draw.choices import examples
from fuzz.draw.programs import program
from hlo.types import U8, ArrayShape

_DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def _branches(number: int) -> hlo.Module:
    """Return branches that widen 8 features to 100 and narrow them to 2, layer by layer."""
    lines = ["x = s8[1,8] parameter(0)"]
    for n in range(number):
        lines.append(f"v{n} = s8[8,100] parameter({2 * n + 1})")
        lines.append(f"w{n} = s8[100,2] parameter({2 * n + 2})")
    lines += [f"wide{n} = s8[1,100] dot(x, v{n}), {_DOT}" for n in range(number)]
    lines += [f"narrow{n} = s8[1,2] dot(wide{n}, w{n}), {_DOT}" for n in range(number)]
    parts = ", ".join(f"narrow{n}" for n in range(number))
    lines.append(f"ROOT all = s8[1,{2 * number}] concatenate({parts}), dimensions={{1}}")
    return hlo.parse("HloModule m\nENTRY e {\n " + "\n ".join(lines) + "\n}")


def test_branches_are_computed_one_after_the_other() -> None:
    """Five branches take 100 bytes, as one does: each is narrowed into its part of the result
    before the next is computed."""
    plan = lowered(_branches(5), settings_for("fast", EMBEDDED))
    assert peak(plan).bytes == 100


def _may_not_pass(one: Step, other: Step) -> bool:
    (read, changed), (also_read, also_changed) = read_and_changed(one), read_and_changed(other)
    return bool(changed & (also_read | also_changed) or read & also_changed)


def _require_order(plan: Plan, ordered: Plan) -> None:
    """Require that steps which depend on each other are in the order that they had."""
    assert sorted(map(id, plan.steps)) == sorted(map(id, ordered.steps))
    place = {id(step): number for number, step in enumerate(ordered.steps)}
    for n, one in enumerate(plan.steps):
        for other in plan.steps[n + 1 :]:
            assert place[id(one)] < place[id(other)] or not _may_not_pass(one, other)


def test_nothing_passes_what_it_depends_on() -> None:
    moved = 0
    for module in examples(lambda choices: program(choices, max_instructions=24), 48, "order"):
        plan = lowered(module)
        ordered = with_least_memory(plan)
        assert peak(ordered).bytes <= peak(plan).bytes
        _require_order(plan, ordered)
        moved += plan.steps != ordered.steps
    assert moved


def test_what_is_overwritten_is_read_before() -> None:
    """A buffer is read before it is overwritten, though less would be alive if ``b`` were computed
    of it later."""
    plan = Plan()
    a, b, c, d = (plan.buffer(ArrayShape(U8, (size,))) for size in (8, 100, 100, 1))
    moves = (((), a), ((a,), b), ((), a), ((a,), c), ((c,), d), ((b, d), a))
    plan.steps = tuple(Launch(0, inputs, (output,), ()) for inputs, output in moves)
    _require_order(plan, with_least_memory(plan))

"""Dead code and common subexpressions: what may go, what may not."""

import hlo
from hlo.passes.common_subexpressions import common_subexpressions, merge_computations
from hlo.passes.dead_code import dead_code

UNUSED = """HloModule m
unused { x = f32[] parameter(0)
  ROOT y = f32[] negate(x) }
ENTRY main { p = f32[] parameter(0)
  q = f32[] parameter(1)
  a = f32[] negate(p)
  b = f32[] sine(a)
  ROOT r = f32[] cosine(p) }
"""


def test_parameters_stay_and_unused_values_go() -> None:
    module = dead_code(hlo.parse(UNUSED))
    assert [c.name for c in module.computations] == ["main"]
    assert [i.name for i in module.entry.instructions] == ["p", "q", "r"]


EQUAL = """HloModule m
one { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
two { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY main { p = f32[4] parameter(0)
  zero = f32[] constant(0)
  minus = f32[] constant(-0)
  also = f32[] constant(0)
  s = f32[] reduce(p, zero), dimensions={0}, to_apply=one
  t = f32[] reduce(p, also), dimensions={0}, to_apply=two
  u = f32[] reduce(p, minus), dimensions={0}, to_apply=two
  ROOT r = (f32[], f32[], f32[]) tuple(s, t, u) }
"""


def test_equal_instructions_merge_once_their_computations_are_merged() -> None:
    module = merge_computations(hlo.parse(EQUAL))
    assert [c.name for c in module.computations] == ["one", "main"]
    root = common_subexpressions(module).entry.root_instruction
    assert root.operands == ("s", "s", "u")  # constants are equal by bits: 0 and -0 are not


def test_random_numbers_do_not_merge() -> None:
    module = hlo.parse("""HloModule m
ENTRY main { zero = f32[] constant(0)
  one = f32[] constant(1)
  a = f32[4] rng(zero, one), distribution=rng_uniform
  b = f32[4] rng(zero, one), distribution=rng_uniform
  ROOT r = (f32[4], f32[4]) tuple(a, b) }
""")
    assert common_subexpressions(module).entry.root_instruction.operands == ("a", "b")

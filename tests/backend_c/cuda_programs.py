"""Programs for CUDA that need more of the host than a launch."""

# Counts up while it draws; then one of three branches, and one of two.
CONTROL = """
HloModule control
below { s = (s32[], u32[4], f32[300]) parameter(0)
        n = s32[] get-tuple-element(s), index=0
        limit = s32[] constant(5)
        ROOT less = pred[] compare(n, limit), direction=LT }
step { s = (s32[], u32[4], f32[300]) parameter(0)
       n = s32[] get-tuple-element(s), index=0
       drawn = u32[4] get-tuple-element(s), index=1
       x = f32[300] get-tuple-element(s), index=2
       one = s32[] constant(1)
       more = s32[] add(n, one)
       zero = u32[] constant(0)
       top = u32[] constant(77)
       next = u32[4] rng(zero, top), distribution=rng_uniform
       both = u32[4] add(drawn, next)
       twice = f32[300] add(x, x)
       ROOT state = (s32[], u32[4], f32[300]) tuple(more, both, twice) }
first { x = f32[300] parameter(0)
        ROOT y = f32[300] negate(x) }
second { x = f32[300] parameter(0)
         ROOT y = f32[300] multiply(x, x) }
third { x = f32[300] parameter(0)
        ROOT y = f32[300] copy(x) }
ENTRY main {
  x = f32[300] parameter(0)
  which = s32[] parameter(1)
  is_first = pred[] parameter(2)
  zero = s32[] constant(0)
  none = u32[4] constant({0, 0, 0, 0})
  start = (s32[], u32[4], f32[300]) tuple(zero, none, x)
  end = (s32[], u32[4], f32[300]) while(start), condition=below, body=step
  drawn = u32[4] get-tuple-element(end), index=1
  large = f32[300] get-tuple-element(end), index=2
  chosen = f32[300] conditional(which, large, large, large),
      branch_computations={first, second, third}
  last = f32[300] conditional(is_first, chosen, chosen),
      true_computation=first, false_computation=second
  ROOT all = (u32[4], f32[300]) tuple(drawn, last)
}"""

# Each row is shared by a block: shared memory, shuffles, barriers.
SOFTMAX = """
HloModule softmax
add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT sum = f32[] add(a, b) }
largest { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT max = f32[] maximum(a, b) }
ENTRY main {
  x = f32[70,300] parameter(0)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  most = f32[70] reduce(x, low), dimensions={1}, to_apply=largest
  tops = f32[70,300] broadcast(most), dimensions={0}
  powers = f32[70,300] exponential(f32[70,300] subtract(x, tops))
  norms = f32[70] reduce(powers, zero), dimensions={1}, to_apply=add
  below = f32[70,300] broadcast(norms), dimensions={0}
  ROOT softmax = f32[70,300] divide(powers, below)
}"""

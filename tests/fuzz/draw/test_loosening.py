"""Loosened programs are valid, whatever names and sizes they have, and no larger than theirs."""

import hlo
from fuzz.draw.choices import Seeded, examples
from fuzz.draw.loosening import loosened
from fuzz.draw.programs import program


def test_programs_may_be_loosened_again() -> None:
    for module in examples(lambda choices: program(choices, max_instructions=6), 20, "again"):
        for seed in range(2):
            module = loosened(Seeded(seed), module)
            hlo.verify(module)
            assert hlo.parse(hlo.format(module)) == module


def test_dimensions_larger_than_any_size_stay_static() -> None:
    module = hlo.parse("""HloModule large

ENTRY main {
  x = f32[] parameter(0)
  short = s32[2000000000,2] iota(), iota_dimension=0
  long = f32[2147483648,3] broadcast(x), dimensions={}
  both = s32[4000000000,2] concatenate(short, short), dimensions={0}
  flat = s32[8000000000] reshape(both)
  ROOT result = (f32[2147483648,3], s32[8000000000]) tuple(long, flat)
}
""")
    for seed in range(40):
        hlo.verify(loosened(Seeded(seed), module))


def test_a_computation_called_alike_is_copied_once() -> None:
    """The number of copies is linear in a chain of computations that call the next one twice."""
    depth = 12
    chain = "".join(
        f"c{n} {{\n  p = f32[<=4] parameter(0)\n"
        f"  one = f32[<=4] call(p), to_apply=c{n - 1}\n"
        f"  ROOT two = f32[<=4] call(one), to_apply=c{n - 1}\n}}\n\n"
        for n in range(1, depth)
    )
    text = (
        "HloModule chain\n\nc0 {\n  p = f32[<=4] parameter(0)\n  ROOT r = f32[<=4] negate(p)\n}\n\n"
        f"{chain}ENTRY main {{\n  x = f32[<=4] parameter(0)\n"
        f"  ROOT r = f32[<=4] call(x), to_apply=c{depth - 1}\n}}\n"
    )
    for seed in range(8):
        module = loosened(Seeded(seed), hlo.parse(text))
        hlo.verify(module)
        assert len(module.computations) <= 4 * depth  # a few shapes of the parameter

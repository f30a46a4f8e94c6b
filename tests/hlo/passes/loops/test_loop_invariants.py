"""Loop-invariant code motion: what moves, what stays, and that no bit of a result changes."""

from __future__ import annotations

import numpy as np
import pytest
from cost import cost

import hlo
import interp
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.passes.dead_code import dead_code
from hlo.passes.loops.loop_invariants import loop_invariants

X = np.linspace(-2, 2, 16, dtype=np.float32).reshape(4, 4)

LOOP = """HloModule loop
max {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b) }}
body {{
  s = (s32[], f32[4,4], f32[4,4]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  z = f32[4,4] get-tuple-element(s), index=1
  x = f32[4,4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(k, one)
  half = f32[] constant(0.5)
  halves = f32[4,4] broadcast(half), dimensions={{}}
  {lines}
  r = f32[4,4] add(z, {used})
  ROOT t = (s32[], f32[4,4], f32[4,4]) tuple(next, r, x)
}}
condition {{
  s = (s32[], f32[4,4], f32[4,4]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT l = pred[] compare(k, n), direction=LT
}}
ENTRY main {{
  x = f32[4,4] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[4,4], f32[4,4]) tuple(zero, x, x)
  {loop}
}}
"""
WHILE = "ROOT w = (s32[], f32[4,4], f32[4,4]) while(start), condition=condition, body=body"


CALL = 'y = f32[4,4] custom-call(x), custom_call_target="f"'


def loop(lines: str, used: str, trips: int = 3, loop: str = WHILE) -> Module:
    return hlo.parse(LOOP.format(lines=lines, used=used, trips=trips, loop=loop))


def opcodes(module: Module, computation: str) -> list[str]:
    (found,) = (c for c in module.computations if c.name.partition(".")[0] == computation)
    return [instruction.opcode for instruction in found.instructions]


def moved(module: Module) -> Module:
    """Move invariants, and look that the results keep every bit."""
    changed = dead_code(loop_invariants(module))
    hlo.verify(changed)
    assert not differences(interp.evaluate(module, X), interp.evaluate(changed, X))
    return changed


@pytest.mark.parametrize("trips", [0, 1, 3])
@pytest.mark.parametrize(
    ("lines", "used", "opcode"),
    [
        ("y = f32[4,4] multiply(x, halves)", "y", "multiply"),
        ("y = f32[4,4] tanh(x)", "y", "tanh"),
        (
            "y = f32[4,4] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            "y",
            "dot",
        ),
        (
            "low = f32[] constant(-inf)\n"
            "  m = f32[4] reduce(x, low), dimensions={1}, to_apply=max\n"
            "  y = f32[4,4] broadcast(m), dimensions={0}",
            "y",
            "reduce",
        ),
    ],
)
def test_what_moves(lines: str, used: str, opcode: str, trips: int) -> None:
    changed = moved(loop(lines, used, trips))
    assert opcode not in opcodes(changed, "body") and opcode in opcodes(changed, "main")


@pytest.mark.parametrize(
    ("lines", "used"),
    [
        ("", "halves"),  # a constant is no work
        ("y = f32[4,4] multiply(z, halves)", "y"),  # what changes from trip to trip
        ("h = f32[] multiply(half, half)\n  y = f32[4,4] broadcast(h), dimensions={}", "y"),
        ("y = f32[4,4] reverse(x), dimensions={0}", "y"),  # an index is no work
        (f"{CALL}, custom_call_has_side_effect=true", "y"),
        ("a = f32[] constant(0)\n  b = f32[] constant(1)\n"
         "  g = f32[4,4] rng(a, b), distribution=rng_uniform\n  y = f32[4,4] tanh(g)", "y"),
    ],
)  # fmt: skip
def test_what_stays(lines: str, used: str) -> None:
    module = loop(lines, used)
    assert loop_invariants(module) == module


def test_a_wider_type_is_not_worth_the_memory() -> None:
    """bf16 weights that are used in f32 stay bf16 in memory."""
    text = LOOP.format(lines="", used="y", trips=2, loop=WHILE).replace("f32[4,4]", "bf16[4,4]")
    wide = "c = f32[4,4] convert(x)\n  w = f32[4,4] convert(z)\n  a = f32[4,4] add(w, c)"
    text = text.replace("halves = ", "none = ").replace("f32[] constant(0.5)", "bf16[] constant(1)")
    text = text.replace("r = bf16[4,4] add(z, y)", f"{wide}\n  r = bf16[4,4] convert(a)")
    module = hlo.parse(text)
    hlo.verify(module)
    assert loop_invariants(module) == module


def test_the_result_may_be_read_whole_or_by_element() -> None:
    read = (
        "w = (s32[], f32[4,4], f32[4,4]) while(start), condition=condition, body=body\n"
        "  z = f32[4,4] get-tuple-element(w), index=1\n"
        "  n = f32[4,4] negate(z)\n"
        "  again = (s32[], f32[4,4], f32[4,4]) while(w), condition=condition, body=body\n"
        "  ROOT t = (f32[4,4], (s32[], f32[4,4], f32[4,4])) tuple(n, again)"
    )
    changed = moved(loop("y = f32[4,4] tanh(x)", "y", loop=read))
    loops = [i for i in changed.entry.instructions if i.opcode == "while"]
    assert len(loops) == 2 and loops[0].attributes["body"] != loops[1].attributes["body"]


def test_nested_loops_move_to_the_outermost() -> None:
    inner = loop("y = f32[4,4] tanh(x)", "y")
    text = hlo.format(inner).replace("ENTRY main", "outer_body").replace("%", "")
    text = text.replace("ROOT w =", "w =").replace("x = f32[4,4] parameter(0)", (
        "o = (s32[], f32[4,4], f32[4,4]) parameter(0)\n"
        "  x = f32[4,4] get-tuple-element(o), index=1\n"
        "  c = s32[] get-tuple-element(o), index=0"
    ))  # fmt: skip
    text = (
        text.rstrip().removesuffix("}")
        + """
  two = s32[] constant(2)
  k2 = s32[] get-tuple-element(w), index=0
  z2 = f32[4,4] get-tuple-element(w), index=1
  c1 = s32[] add(c, two)
  c2 = s32[] add(c1, k2)
  ROOT t = (s32[], f32[4,4], f32[4,4]) tuple(c2, x, z2)
}
outer_condition {
  o = (s32[], f32[4,4], f32[4,4]) parameter(0)
  c = s32[] get-tuple-element(o), index=0
  n = s32[] constant(4)
  ROOT l = pred[] compare(c, n), direction=LT
}
ENTRY main {
  x = f32[4,4] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[4,4], f32[4,4]) tuple(zero, x, x)
  ROOT w = (s32[], f32[4,4], f32[4,4]) while(start), condition=outer_condition, body=outer_body
}
"""
    )
    changed = moved(hlo.parse(text))
    assert "tanh" in opcodes(changed, "main")
    assert "tanh" not in opcodes(changed, "body") + opcodes(changed, "outer_body")


def test_a_state_that_is_read_whole_is_left() -> None:
    module = loop("e = ((s32[], f32[4,4], f32[4,4])) tuple(s)\n  y = f32[4,4] tanh(x)", "y")
    assert loop_invariants(module) == module


def test_an_element_of_another_tuple_is_not_handed_on() -> None:
    """The body gives element 1 of a tuple that it made, not of its state."""
    module = loop("y = f32[4,4] tanh(z)\n  o = (f32[4,4], f32[4,4]) tuple(x, y)\n"
                  "  e = f32[4,4] get-tuple-element(o), index=1", "y")  # fmt: skip
    text = hlo.format(module).replace("%", "").replace("tuple(next, r, x)", "tuple(next, e, x)")
    module = hlo.parse(text)
    assert "tanh" in opcodes(moved(module), "body")


def test_time_is_linear_in_the_invariants() -> None:
    """Four times the invariants take less than eight times as long."""

    def module(count: int) -> Module:
        lines = "".join(
            f"  a{n} = f32[4,4] sine(x)\n  b{n + 1} = f32[4,4] add(b{n}, a{n})\n"
            for n in range(count)
        )
        return loop(f"b0 = f32[4,4] copy(z)\n{lines}", f"b{count}")

    short, long = module(400), module(1600)
    most = 8 * cost(lambda: loop_invariants(short), 0)
    assert cost(lambda: loop_invariants(long), most) < most
    assert opcodes(loop_invariants(short), "main").count("sine") == 400


def test_time_is_linear_in_the_elements_of_the_state() -> None:
    """Four times the elements take less than eight times as long."""

    def module(count: int) -> Module:
        shape = f"({', '.join(['f32[16]'] * count)})"
        reads = "\n".join(f"  x{n} = f32[16] get-tuple-element(s), index={n}" for n in range(count))
        elements = ", ".join(f"x{n}" for n in range(count))
        return hlo.parse(f"""HloModule m
body {{
  s = {shape} parameter(0)
{reads}
  ROOT t = {shape} tuple({elements})
}}
condition {{
  s = {shape} parameter(0)
  ROOT c = pred[] constant(false)
}}
ENTRY main {{
  s = {shape} parameter(0)
  ROOT w = {shape} while(s), condition=condition, body=body
}}
""")

    short, long = module(500), module(2000)
    most = 8 * cost(lambda: loop_invariants(short), 0)
    assert cost(lambda: loop_invariants(long), most) < most

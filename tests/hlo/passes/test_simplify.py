"""Rewrites: each rule's case, and cases that look alike but are not the same bits."""

import pytest

import hlo
from hlo.module import Instruction
from hlo.passes.dead_code import dead_code
from hlo.passes.simplify import simplify


def simplified(body: str) -> tuple[Instruction, ...]:
    """Simplify a body whose root is ``r`` and whose parameters are ``p: f32[2,3]``, ``q: s8[4]``
    and ``v: f32[]``; return the instructions besides parameters and constants."""
    module = hlo.parse(f"""HloModule m
ENTRY main {{
  p = f32[2,3] parameter(0)
  q = s8[4] parameter(1)
  v = f32[] parameter(2)
{body}
}}
""")
    hlo.verify(module)
    changed = dead_code(simplify(module))
    hlo.verify(changed)
    found = changed.entry.instructions
    return tuple(i for i in found if i.opcode not in ("parameter", "constant"))


@pytest.mark.parametrize(
    ("body", "opcodes"),
    [
        ("ROOT r = f32[2,3] reshape(p)", ""),
        ("a = f32[6] reshape(p)\n ROOT r = f32[2,3] reshape(a)", ""),
        ("a = f32[6] reshape(p)\n ROOT r = f32[3,2] reshape(a)", "reshape"),
        ("ROOT r = f32[2,3] transpose(p), dimensions={0,1}", ""),
        ("a = f32[3,2] transpose(p), dimensions={1,0}\n"
         " ROOT r = f32[2,3] transpose(a), dimensions={1,0}", ""),
        ("a = f32[1,2,3] reshape(p)\n ROOT r = f32[2,1,3] transpose(a), dimensions={1,0,2}",
         "reshape"),
        ("ROOT r = f32[2,3] broadcast(p), dimensions={0,1}", ""),
        ("ROOT r = f32[2,1,3] broadcast(p), dimensions={0,2}", "reshape"),
        ("a = f32[2] broadcast(v), dimensions={}\n"
         " ROOT r = f32[2,5] broadcast(a), dimensions={0}", "broadcast"),
        ("a = f32[6] broadcast(v), dimensions={}\n ROOT r = f32[2,3] reshape(a)", "broadcast"),
        ("ROOT r = f32[2,3] slice(p), slice={[0:2],[0:3]}", ""),
        ("a = f32[2,2] slice(p), slice={[0:2],[1:3]}\n"
         " ROOT r = f32[1,1] slice(a), slice={[1:2],[1:2]}", "slice"),
        ("a = f32[4,3] concatenate(p, p), dimensions={0}\n"
         " ROOT r = f32[2,3] slice(a), slice={[2:4],[0:3]}", ""),
        ("a = f32[4,3] concatenate(p, p), dimensions={0}\n"
         " ROOT r = f32[2,3] slice(a), slice={[1:3],[0:3]}", "concatenate slice"),
        ("ROOT r = f32[2,3] pad(p, v), padding=0_0x0_0", ""),
        ("ROOT r = f32[2,3] pad(p, v), padding=1_-1x0_0", "pad"),
        ("ROOT r = f32[2,3] concatenate(p), dimensions={0}", ""),
        ("a = f32[1,2] slice(p), slice={[0:1],[0:2]}\n"
         " ROOT r = f32[1,2] reverse(a), dimensions={0}", "slice"),
        ("a = (f32[2,3], f32[]) tuple(p, v)\n ROOT r = f32[] get-tuple-element(a), index=1", ""),
        ("a = (f32[2,3], f32[]) tuple(p, v)\n b = (f32[2,3], f32[]) opt-barrier(a)\n"
         " ROOT r = f32[] get-tuple-element(b), index=1", ""),
        ("ROOT r = s32[] get-dimension-size(p), dimensions={1}", ""),
        # An exact conversion is left to the dot; the sum is rounded, or wraps, as before.
        ("a = s32[4] convert(q)\n"
         " ROOT r = s32[] dot(a, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "dot"),
        ("a = u8[4] convert(q)\n"
         " ROOT r = s32[] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
         "convert dot"),
        ("a = s32[4] convert(q)\n"
         " ROOT r = f32[] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
         "convert dot"),
        ("a = f64[2,3] convert(p)\n"
         " ROOT r = f32[2,2] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
         "convert dot"),
        ("a = f64[2,3] convert(p)\n"
         " ROOT r = f64[2,2] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
         "dot"),
        ("a = f64[2,3] convert(p)\n ROOT r = f32[2,3] convert(a)", ""),
        ("a = s32[4] convert(q)\n ROOT r = s16[4] convert(a)", "convert"),
        ("a = f32[4] convert(q)\n ROOT r = f64[4] convert(a)", "convert"),
        # Over f32, -1 saturates to 0; directly it wraps to 255.
        ("a = f32[4] convert(q)\n ROOT r = u8[4] convert(a)", "convert convert"),
        ("a = bf16[2,3] convert(p)\n ROOT r = f32[2,3] convert(a)", "convert convert"),
        ("one = f32[] constant(1)\n a = f32[2,3] broadcast(one), dimensions={}\n"
         " ROOT r = f32[2,3] multiply(p, a)", ""),
        ("zero = f32[] constant(0)\n ROOT r = f32[] subtract(v, zero)", ""),
        ("zero = f32[] constant(-0)\n ROOT r = f32[] add(v, zero)", ""),
        # -0 + 0 is 0, and -0 - -0 is 0: not the first operand.
        ("zero = f32[] constant(0)\n ROOT r = f32[] add(v, zero)", "add"),
        ("zero = f32[] constant(-0)\n ROOT r = f32[] subtract(v, zero)", "subtract"),
        ("low = f32[] constant(-inf)\n ROOT r = f32[] maximum(v, low)", ""),
        ("a = f32[] negate(v)\n ROOT r = f32[] negate(a)", ""),
        ("c = pred[] is-finite(v)\n ROOT r = f32[] select(c, v, v)", ""),
        ("a = c64[] complex(v, v)\n ROOT r = f32[] imag(a)", ""),
    ],
)  # fmt: skip
def test_what_is_left(body: str, opcodes: str) -> None:
    assert [i.opcode for i in simplified(body)] == opcodes.split()


def test_slices_of_slices_compose_with_strides() -> None:
    (left,) = simplified("""  i = s32[20] iota(), iota_dimension=0
  a = s32[6] slice(i), slice={[2:20:3]}
  ROOT r = s32[2] slice(a), slice={[1:5:2]}""")[1:]
    assert left.attributes["slice"] == ((5, 15, 6),)

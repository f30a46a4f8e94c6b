"""Programs in other words, for a compiler that refuses them as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import hlo
import interp
from fuzz.judge.failure import CRASH, Against, opcodes
from fuzz.peers.synchronous_form import asked_again, equivalent_forms, synchronous
from fuzz.peers.xla import Answer
from hlo.bit_equality import differences
from interp.envelope.budget import XLA_CPU

_PROGRAM = """HloModule m
sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}
inner {
  a = s32[4] parameter(0)
  ROOT n = s32[4] negate(a)
}
ENTRY e {
  x = s32[4] parameter(0)
  y = s32[4] parameter(1)
  s = ((s32[4]), s32[4]) async-start(x), calls=inner
  u = ((s32[4]), s32[4]) async-update(s)
  d = s32[4] async-done(u)
  t = token[] after-all()
  o = s32[4] add-dependency(d, t)
  m = s32[4] mulhi(o, y)
  r = s32[4] all-reduce-start(m), to_apply=sum
  q = s32[4] all-reduce-done(r)
  c = (s32[4], s32[4], u32[]) copy-start(q)
  k = s32[4] copy-done(c)
  g = (s32[4], s32[4]) reduce-scatter(k, x), dimensions={0}, to_apply=sum
  h = s32[4] get-tuple-element(g), index=1
  p = (s32[4], s32[4]) collective-permute(k, h), source_target_pairs={{0,0}}
  z = s32[4] get-tuple-element(p), index=0
  f = s32[4] call(z), to_apply=inner, is_composite=true, frontend_attributes={composite.name="a.b"}
  ROOT b = (s32[2], s32[2]) topk(f), k=2, is_stable=false
}
"""
_ARGUMENTS = (
    np.array([7, -8, 1 << 30, 5], np.int32),
    np.array([1 << 30, 3, -9, -(1 << 31)], np.int32),
)


def test_the_same_in_words_that_stablehlo_has() -> None:
    module = hlo.parse(_PROGRAM)
    other = synchronous(module)
    hlo.verify(other)
    assert not differences(
        interp.evaluate(module, *_ARGUMENTS), interp.evaluate(other, *_ARGUMENTS)
    )
    found = opcodes(other)
    assert not any(name.endswith(("-start", "-done", "-update")) for name in found)
    assert not found & {"add-dependency", "call", "mulhi"} and "is_stable" not in hlo.format(other)
    assert all(len(i.operands) == 1 for i in other.entry.instructions if i.opcode[:5] == "colle")


def test_what_is_refused_is_asked_in_other_words() -> None:
    def run(text: str, arrays: Sequence[object]) -> Answer:
        return Answer(error="no async") if "async" in text else Answer(crash="SIGSEGV")

    against = Against(run, XLA_CPU)
    found = against.failure(hlo.parse(_PROGRAM), _ARGUMENTS)
    assert found is not None and found.kind == CRASH and against.refusal is None


@pytest.mark.parametrize(
    ("instruction", "attribute"),
    [
        ("convolution(x, x), window={}, dim_labels=fb_io->bf", "convolution_kind=fprop"),
        ("dot(y, x), rhs_contracting_dims={0}, lhs_contracting_dims={0}", "algorithm=dot_unset"),
    ],
)
def test_attributes_that_jaxlib_does_not_read(instruction: str, attribute: str) -> None:
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[1,2] parameter(0)
  y = f32[1,1] parameter(1)
  ROOT r = f32[1,2] {instruction}, {attribute}
}}
""")
    assert attribute in hlo.format(module)
    assert attribute not in hlo.format(synchronous(module))


_FUSED = """HloModule m
f {
  x = f32[4] parameter(0)
  ROOT y = f32[4] negate(x)
}
ENTRY e {
  x = f32[4] parameter(0)
  v = f32[4] fusion(x), kind=kInput, calls=f
  s = ((f32[4]), f32[4], s32[]) async-start(v), calls=f, output_to_operand_aliasing={{1}: (0, {})}
  ROOT d = f32[4] async-done(s)
}
"""


def test_the_nearest_form_keeps_fusions_and_what_is_asynchronous() -> None:
    module = hlo.parse(_FUSED)
    hlo.verify(module)
    near, far = [form for form, _ in equivalent_forms(module)]
    hlo.verify(near)
    assert [i.opcode for i in near.entry.instructions] == [
        i.opcode for i in module.entry.instructions
    ]
    assert "kind=kLoop" in hlo.format(near) and "aliasing" not in hlo.format(near)
    assert "fusion(" not in hlo.format(far) and "async-start(" not in hlo.format(far)


def test_forms_are_asked_until_one_is_taken() -> None:
    module, asked = hlo.parse(_FUSED), []

    def run(text: str, arrays: object) -> Answer:
        asked.append(text)
        return Answer(error="no") if "fusion(" in text else Answer(outputs=())

    refusal = Answer(error="refused")
    other, answer, what = asked_again(run, module, (), refusal, equivalent_forms)
    assert answer.outputs == () and "without fusions" in (what or "")
    assert len(asked) == 2 and hlo.format(other) == asked[1]
    plain = hlo.parse("HloModule m ENTRY e { ROOT x = f32[] parameter(0) }")
    assert asked_again(run, plain, (), refusal, equivalent_forms) == (plain, refusal, None)
    assert len(asked) == 2

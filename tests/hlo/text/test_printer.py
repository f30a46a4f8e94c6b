"""Text of modules: dialects, and whatever is unusual reads back."""

from __future__ import annotations

import pytest

import hlo

TEXT = """HloModule m, is_scheduled=true

FileNames
1 "a.py"

region {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[2,3]{1,0} parameter(0)
  zero = f32[] constant(0)
  big = s32[12]{0} constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
  r = f32[2]{0} reduce(x, zero), dimensions={1}, to_apply=region, metadata={op_name="sum"}
  ROOT t = (f32[2]{0}, f32[], f32[], f32[], f32[], s32[12]{0}) tuple(r, zero, zero, zero, zero, big)
}, execution_thread="host"
"""


def test_short_is_as_it_was() -> None:
    assert hlo.format(hlo.parse(TEXT)) == TEXT


def test_long_has_percents_shapes_and_indices() -> None:
    text = hlo.format(hlo.parse(TEXT), "long")
    assert "\n%region (a: f32[], b: f32[]) -> f32[] {\n" in text
    assert (
        "ENTRY %e (x: f32[2,3]) -> (f32[2], f32[], f32[], f32[], f32[], /*index=5*/s32[12]) {"
        in text
    )
    assert "%r = f32[2]{0} reduce(%x, %zero), dimensions={1}, to_apply=%region, metadata" in text
    assert "tuple(%r, %zero, %zero, %zero, %zero, /*index=5*/%big)" in text
    assert hlo.parse(text) == hlo.parse(TEXT)


def test_large_constants_are_elided_on_request() -> None:
    text = hlo.format(hlo.parse(TEXT), large_constants=False)
    assert "big = s32[12]{0} constant({...})" in text
    assert "zero = f32[] constant(0)" in text


def test_no_other_dialect() -> None:
    with pytest.raises(ValueError, match="dialect 'tall': one of short, long, canonical"):
        hlo.format(hlo.parse(TEXT), "tall")


@pytest.mark.parametrize(
    "line",
    [
        'y = f32[2] custom-call(x), custom_call_target="a\\"b", api_version=API_VERSION_TYPED_FFI',
        "y = f32[2] custom-call(x), custom_call_target='say \"hi\"', literal=f32[] 1.5",
        'y = f32[2] call(x), to_apply=%"a name, with {"',
        'y = f32[2] custom-call(x), called_computations={%"a name, with {", f}',
        'y = (f32[2], ()) custom-call("x x"), backend_config={"a":{"b":[1,"}"]}}',
        "y = f32[2] all-reduce(x), replica_groups=mesh['x'=2,'y'=4] {'x'}, to_apply=f",
        "y = f32[2] all-gather(x), replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}",
        "y = f32[2] negate(x), sharding={{replicated}, /*index=1*/{devices=[2]<=[2]}}",
        "y = f32[2] negate(x), control-predecessors={%x}, result_accuracy={mode=highest}",
        "y = f32[2] batch-norm-training(x), epsilon=1e-05, feature_index=1",
        "y = f32[] pad(x, x), padding=",
        "y = f32[0,2] constant({})",
        "y = f32[2,0,3] constant({{},{}})",
        "y = (f32[], (s32[2])) constant((1, ({1,2})))",
        "y = () constant(())",
    ],
)
def test_unusual_text_reads_back(line: str) -> None:
    module = hlo.parse(
        'HloModule "m 1", input_output_alias={ {0}: (0, {}, may-alias) }\n'
        'f { z = f32[2] parameter(0) }\n"a name, with {" { z = f32[2] parameter(0) }\n'
        f'ENTRY e {{\n x = f32[2] parameter(0)\n "x x" = f32[2] negate(x)\n {line}\n}}'
    )
    for dialect in ("short", "long"):
        assert hlo.parse(hlo.format(module, dialect)) == module


def test_line_breaks_in_strings_are_not_indented() -> None:
    text = """HloModule m
inner {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b), frontend_attributes={k="x
y"}
}
middle {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=inner
}
ENTRY main {
  x = f32[4] parameter(0)
  ROOT r = f32[] call(x), to_apply=middle
}
"""
    module = hlo.parse(hlo.format(hlo.parse(text), "canonical"))
    found = [i.annotations for c in module.computations for i in c.instructions if i.annotations]
    assert found == [{"frontend_attributes": '{k="x\ny"}'}] * 3

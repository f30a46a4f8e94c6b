"""Check rules between instructions: chains, threads, channels, groups, aliasing, the header.

Each module is accepted by XLA's verifier (jaxlib 0.10.2) as it stands, and rejected with each of
the changes. (Counts of ranks were not given to it: those rows follow ``CheckReplicaGroups``.)
"""

from __future__ import annotations

import re

import pytest

import hlo

ADD = """add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
"""
ASYNC = """HloModule m
inner { p = f32[4] parameter(0)
  ROOT r = f32[4] negate(p) }, execution_thread="host"
ENTRY e { a = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) async-start(a), async_execution_thread="host", calls=inner
  u = ((f32[4]), f32[4], s32[]) async-update(s)
  d = f32[4] async-done(u), async_execution_thread="host", calls=inner
  ROOT t = f32[4] add(d, a), control-predecessors={u}
}"""
COPY = """HloModule m
ENTRY e { a = f32[4] parameter(0)
  s = (f32[4], f32[4], u32[]) copy-start(a)
  ROOT d = f32[4] copy-done(s)
}"""
HOST = """HloModule m
ENTRY e { a = f32[4] parameter(0)
  t = token[] after-all()
  s = (f32[4], u32[], token[]) send(a, t), channel_id=1, is_host_transfer=true
  sd = token[] send-done(s), channel_id=1, is_host_transfer=true
  r = (f32[4], u32[], token[]) recv(sd), channel_id=2, is_host_transfer=true
  rd = (f32[4], token[]) recv-done(r), channel_id=2, is_host_transfer=true
  ROOT g = f32[4] get-tuple-element(rd), index=0
}"""
RANKS = f"""HloModule m, replica_count=4, num_partitions=2
{ADD}ENTRY e {{ a = f32[4] parameter(0)
  r = f32[4] all-reduce(a), replica_groups={{{{0,1}},{{2,3}}}}, to_apply=add
  f = f32[4] all-reduce(a), replica_groups=[2,4]<=[8], channel_id=3, use_global_device_ids=true, to_apply=add
  g = f32[8] all-gather(a), replica_groups={{{{0,1}},{{2,3}}}}, dimensions={{0}}
  s = f32[2] reduce-scatter(a), replica_groups={{{{0,1}},{{2,3}}}}, dimensions={{0}}, to_apply=add
  t = (f32[4], f32[4]) all-to-all(a, a), replica_groups={{{{0,1}},{{2,3}}}}
  o = f32[4] all-to-all(a), replica_groups={{{{0,1}},{{2,3}}}}, dimensions={{0}}
  p = f32[4] collective-permute(a), source_target_pairs={{{{0,1}},{{1,3}}}}
  b = (f32[4], f32[8]) all-gather-start(a), replica_groups={{{{0,1}},{{2,3}}}}, dimensions={{0}}
  ROOT d = f32[8] all-gather-done(b)
}}"""  # noqa: E501  # lines of programs
FUSION = f"""HloModule m
{ADD}fused {{ p = f32[2,3] parameter(0)
  q = f32[] parameter(1)
  n = f32[2,3] negate(p)
  ROOT r = f32[2] reduce(n, q), dimensions={{1}}, to_apply=add }}
two {{ p = f32[2,3] parameter(0)
  ROOT r = (f32[2,3], f32[2,3]) tuple(p, p) }}
ENTRY e {{ a = f32[2,3] parameter(0)
  z = f32[] constant(0)
  f = f32[2] fusion(a, z), kind=kInput, calls=fused
  ROOT g = (f32[2,3], f32[2,3]) fusion(a), kind=kLoop, calls=two, output_to_operand_aliasing={{{{0}}: (0, {{}})}}
}}"""  # noqa: E501  # lines of programs
HEADER = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {0}, must-alias) }, buffer_donor={ (1, {1}) }, entry_computation_layout={(f32[2]{0}, (s32[], f32[3]{0}))->(f32[2]{0}, s32[])}
ENTRY e { a = f32[2] parameter(0)
  b = (s32[], f32[3]) parameter(1)
  n = f32[2] tanh(a), result_accuracy={tolerance={atol=0.1,rtol=0.1,ulps=2}}
  i = s32[] get-tuple-element(b), index=0
  ROOT r = (f32[2], s32[]) tuple(n, i)
}"""  # noqa: E501  # lines of programs
CUSTOM = f"""HloModule m
{ADD}ENTRY e {{ a = f32[2,3]{{1,0}} parameter(0)
  b = f32[] parameter(1)
  c = (f32[2,3]{{1,0}}, f32[]) custom-call(a, b), custom_call_target="foo", operand_layout_constraints={{f32[2,3]{{1,0}}, f32[]}}, output_to_operand_aliasing={{{{0}}: (0, {{}})}}
  o = token[] after-all()
  w = token[] outfeed(a, o), outfeed_shape=f32[2,3]{{1,0}}
  ROOT k = f32[] call(b, b), to_apply=add, is_composite=true, frontend_attributes={{composite.attributes={{n = 1 : i32}},composite.name="foo.bar",composite.version="1"}}
}}"""  # noqa: E501  # lines of programs

MODULES = {
    "async": ASYNC, "copy": COPY, "host": HOST, "ranks": RANKS, "fusion": FUSION,
    "header": HEADER, "custom": CUSTOM,
}  # fmt: skip
GROUPS = "replica_groups={{0,1},{2,3}}"
# (module, label, what is replaced, by what)
CHANGES = [
    ("async", "chain", '"host", calls=inner\n  u', '"main", calls=inner\n  u'),
    ("async", "chain", '"host", calls=inner\n  ROOT', '"main", calls=inner\n  ROOT'),
    ("async", "chain", "async-done(u)", "async-done(s)"),
    ("async", "chain", 'd = f32[4] async-done(u), async_execution_thread="host", calls=inner',
     "d = f32[4] abs(a)"),
    ("async", "calls", "ROOT r = f32[4] negate(p)",
     "q = f32[4] negate(p)\n  ROOT r = f32[4] abs(q)",
     'async_execution_thread="host", calls=inner\n  u', "calls=inner\n  u"),
    ("async", "control-predecessors", "={u}", "={t}"),
    ("async", "C2", "f32[4], s32[]) async-start", "f32[5], s32[]) async-start"),
    ("copy", "chain", "copy-done(s)", "get-tuple-element(s), index=0"),
    ("copy", "chain", "ROOT d =", "x = f32[4] copy-done(s)\n  ROOT d ="),
    ("copy", "chain", "s = (f32[4], f32[4], u32[]) copy-start(a)",
     "w = u32[] constant(0)\n  s = (f32[4], f32[4], u32[]) tuple(a, a, w)"),
    ("host", "chain", "recv-done(r), channel_id=2", "recv-done(r), channel_id=1"),
    ("host", "chain", "channel_id=2, is_host_transfer=true\n  ROOT", "channel_id=2\n  ROOT"),
    ("host", "channel", "channel_id=2", "channel_id=1"),
    ("host", "channel", "sd = token[]", """x = (f32[4], u32[], token[]) send(a, t), channel_id=1,\
 is_host_transfer=true, frontend_attributes={a="1"}
  xd = token[] send-done(x), channel_id=1, is_host_transfer=true
  sd = token[]"""),
    ("ranks", "C3", GROUPS, "replica_groups={{0,1},{1,3}}"),
    ("ranks", "C3", GROUPS, "replica_groups={{0,1},{2,4}}"),
    ("ranks", "C3", GROUPS, "replica_groups={{}}"),
    ("ranks", "C3", GROUPS, "replica_groups={{0,1},{2,-3}}"),
    ("ranks", "C3", "replica_groups=[2,4]<=[8], channel_id=3, ", "channel_id=3, "),
    ("ranks", "C3", "channel_id=3, ", ""),
    ("ranks", "groups", "[2,4]<=[8]", "[2,2]<=[4]"),
    ("ranks", "groups", GROUPS, "replica_groups={{0,1}}"),
    ("ranks", "C4", f"all-gather(a), {GROUPS}", "all-gather(a), replica_groups={{0,1},{2}}"),
    ("ranks", "groups", "f32[8] all-gather(", "f32[12] all-gather("),
    ("ranks", "groups", "f32[2] reduce-scatter", "f32[4] reduce-scatter"),
    ("ranks", "groups", "all-to-all(a, a)", "all-to-all(a)",
     "t = (f32[4], f32[4])", "t = (f32[4])"),
    ("ranks", "groups", "f32[4] all-to-all(a)", "f32[3] all-to-all(c)", "  o =",
     "  c = f32[3] slice(a), slice={[0:3]}\n  o ="),
    ("ranks", "C4", "{{0,1},{1,3}}", "{{0,1},{0,3}}"),
    ("ranks", "C4", "{{0,1},{1,3}}", "{{0,1},{1,1}}"),
    ("ranks", "C4", "{{0,1},{1,3}}", "{{0,1},{1,-3}}"),
    ("ranks", "groups", "{{0,1},{1,3}}", "{{0,1},{1,4}}"),
    ("ranks", "layout", "  f = f32[4] all-reduce(a)",
     "  f = f32[4] all-reduce(a), constrain_layout=true"),
    ("ranks", "C5", "b = (f32[4], f32[8])", "b = (f32[8], f32[8])"),
    ("fusion", "calls", "n = f32[2,3] negate(p)", "x = f32[2,3] abs(p)\n  n = f32[2,3] negate(p)"),
    ("fusion", "calls", "to_apply=add }", "to_apply=add\n  l = f32[2] negate(r) }"),
    ("fusion", "C3", "{{0}: (0, {})}", "{{2}: (0, {})}"),
    ("fusion", "C3", "{{0}: (0, {})}", "{{0}: (1, {})}"),
    ("fusion", "C3", "{{0}: (0, {})}", "{{0}: (0, {0})}"),
    ("fusion", "C3", "{{0}: (0, {})}", "{{}: (0, {})}"),
    ("custom", "C1", "{f32[2,3]{1,0}, f32[]}", "{f32[2,3]{1,0}}"),
    ("custom", "C1", "{f32[2,3]{1,0}, f32[]}", "{f32[2,3]{1,0}, s32[]}"),
    ("custom", "C2", "{{0}: (0, {})}", "{{1}: (0, {})}"),
    ("custom", "C3", '"foo"', '"GetRngSeed"'),
    ("custom", "C2", "outfeed_shape=f32[2,3]", "outfeed_shape=f32[3,2]"),
    ("custom", "composite", '"foo.bar"', '""'),
    ("custom", "composite", 'version="1"', 'version="-1"'),
    ("header", "attributes", "atol=0.1", "atol=-0.1"),
    ("header", "attributes", "tanh(a)", "negate(a)"),
    ("header", "entry_computation_layout", "(f32[2]{0}, (s32[]", "(f32[3]{0}, (s32[]"),
    ("header", "entry_computation_layout", "->(f32[2]{0}", "->(s32[2]{0}"),
    ("header", "entry_computation_layout", "(f32[2]{0}, (s32[], f32[3]{0}))", "(f32[2]{0})"),
    ("header", "input_output_alias", "{0}: (0,", "{2}: (0,"),
    ("header", "input_output_alias", "{0}: (0,", "{}: (0,"),
    ("header", "input_output_alias", "(0, {}, may", "(2, {}, may"),
    ("header", "input_output_alias", "(0, {}, may", "(1, {0}, may"),
    ("header", "input_output_alias", "(1, {0}, must", "(1, {2}, must"),
    ("header", "buffer_donor", "(1, {1})", "(1, {0})"),
    ("header", "buffer_donor", "(1, {1})", "(3, {1})"),
    ("header", "buffer_donor", "(1, {1})", "(1, {})"),
]  # fmt: skip

# What cannot be read: (module, attribute, what is replaced, by what)
UNREADABLE = [
    ("fusion", "output_to_operand_aliasing", "{{0}: (0, {})}", "{0}"),
    ("custom", "outfeed_shape", "outfeed_shape=f32[2,3]{1,0}", "outfeed_shape=f32[x]"),
    ("custom", "operand_layout_constraints", "{f32[2,3]{1,0}, f32[]}", "{f32[2,3]{1,0}, x}"),
    ("ranks", "replica_groups", GROUPS, "replica_groups={0,1}"),
    ("ranks", "replica_groups", "[2,4]<=[8]", "[8]<=[8]"),
    ("ranks", "source_target_pairs", "{{0,1},{1,3}}", "{{0,1,3}}"),
    ("header", "entry_computation_layout", "->(f32[2]{0}, s32[])}", "}"),
    ("header", "entry_computation_layout", "{(f32[2]{0}", "{(f32[2]{1}"),
    ("header", "input_output_alias", "{0}: (0, {}, may-alias)", "{0}: 0"),
    ("header", "buffer_donor", "(1, {1})", "{1}"),
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_modules_as_they_stand(name: str) -> None:
    module = hlo.parse(MODULES[name])
    hlo.verify(module)
    assert hlo.parse(hlo.format(module)) == module


@pytest.mark.parametrize(
    "change", CHANGES, ids=lambda change: f"{change[0]} {change[1]} {change[3]}"
)
def test_changed_modules(change: tuple[str, ...]) -> None:
    name, label, *pairs = change
    text = MODULES[name]
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(hlo.VerifyError) as error:
        hlo.verify(hlo.parse(text))
    assert re.match(rf"(\d+: %\S+ = [a-z-]+|HloModule m), {label}: .", str(error.value)), (
        error.value
    )


@pytest.mark.parametrize("change", UNREADABLE, ids=lambda change: f"{change[1]} {change[3]}")
def test_unreadable_changes(change: tuple[str, ...]) -> None:
    name, attribute, old, new = change
    assert old in MODULES[name]
    with pytest.raises(hlo.ParseError, match=rf"^\d+:\d+: {attribute}: ") as error:
        hlo.parse(MODULES[name].replace(old, new, 1))
    line = MODULES[name].splitlines()[error.value.line - 1]
    assert line[: error.value.column - 1].endswith((f"{attribute}=", ", "))  # value, or name


def test_threads_need_not_be_named_twice() -> None:
    text = ASYNC.replace(
        'async_execution_thread="host", calls=inner\n  ROOT', "calls=inner\n  ROOT"
    )
    hlo.verify(hlo.parse(text))
    hlo.verify(hlo.parse(ASYNC.replace(', execution_thread="host"', "")))


def test_what_runs_on_another_thread_may_be_longer() -> None:
    longer = "q = f32[4] abs(p)\n  ROOT r = f32[4] negate(q)"
    hlo.verify(hlo.parse(ASYNC.replace("ROOT r = f32[4] negate(p)", longer)))


THREADS = """HloModule m
f { p = s32[] parameter(0)
  ROOT n = s32[] negate(p) }, execution_thread="other"
c { q = s32[] parameter(0)
  ROOT l = pred[] compare(q, q), direction=LT }
h { x = s32[] parameter(0)
  ROOT w = s32[] CALL
}THREAD
ENTRY e { x = s32[] parameter(0)
  ROOT r = s32[] call(x), to_apply=h
}"""
IN_PLACE = {
    "fusion": "fusion(x), kind=kLoop, calls=f",
    "while": "while(x), condition=c, body=f",
    "conditional": "conditional(x, x), branch_computations={f}",
}


@pytest.mark.parametrize("call", IN_PLACE.values(), ids=IN_PLACE.keys())
def test_what_is_called_in_place_is_of_the_same_thread(call: str) -> None:
    text = THREADS.replace("CALL", call)
    with pytest.raises(hlo.VerifyError, match=r"thread: f is of thread 'other', its caller"):
        hlo.verify(hlo.parse(text.replace("THREAD", "")))
    if "while" not in call:
        hlo.verify(hlo.parse(text.replace("THREAD", ', execution_thread="other"')))
    started = (
        text.replace("THREAD", "")
        .replace("ROOT r = s32[] call(x), to_apply=h", "ROOT r = s32[] async-done(s)")
        .replace(
            "ENTRY e { x = s32[] parameter(0)",
            "ENTRY e { x = s32[] parameter(0)\n  s = ((s32[]), s32[]) async-start(x), calls=h",
        )
    )
    hlo.verify(hlo.parse(started))  # puts all that it calls on its own thread


def test_other_computations_may_be_of_other_threads() -> None:
    for call in ("call(x), to_apply=f", "map(x), dimensions={}, to_apply=f"):
        hlo.verify(hlo.parse(THREADS.replace("CALL", call).replace("THREAD", "")))


def test_fusions_may_have_unused_instructions_with_effects() -> None:
    """Others may not (a change of FUSION, above)."""
    for line in (
        'x = f32[2,3] custom-call(p), custom_call_target="x", custom_call_has_side_effect=true',
        "x = f32[3] rng(q, q), distribution=rng_uniform",
        "x = f32[2,3] all-reduce(p), channel_id=1, to_apply=add",
    ):
        changed = FUSION.replace("n = f32[2,3] negate(p)", f"{line}\n  n = f32[2,3] negate(p)")
        hlo.verify(hlo.parse(changed))


def test_order_of_what_a_host_transfer_says() -> None:
    first = 'send(a, t), channel_id=1, is_host_transfer=true, frontend_attributes={a="1", b="{,"}'
    text = HOST.replace("send(a, t), channel_id=1, is_host_transfer=true", first)
    second = first.replace('{a="1", b="{,"}', '{b="{,",a="1"}').replace("(a, t)", "(a, sd)")
    more = f"""q = (f32[4], u32[], token[]) {second}
  qd = token[] send-done(q), channel_id=1, is_host_transfer=true
  r = (f32"""
    hlo.verify(hlo.parse(text.replace("r = (f32", more, 1)))
    with pytest.raises(hlo.VerifyError, match="channel 1 is of another transfer"):
        hlo.verify(hlo.parse(text.replace("r = (f32", more.replace('a="1"', 'a="2"'), 1)))


def test_headers_need_not_say_which_dimensions_are_bounded() -> None:
    hlo.verify(
        hlo.parse(
            """HloModule m, entry_computation_layout={(f32[4]{0})->f32[4]{0}}
ENTRY e {
  p = f32[<=4] parameter(0)
  ROOT r = f32[<=4] custom-call(p), custom_call_target="x", operand_layout_constraints={f32[4]{0}}
}"""
        )
    )


def test_a_group_of_collectives_may_be_longer() -> None:
    text = ASYNC.replace(
        "ROOT r = f32[4] negate(p)", "q = f32[4] abs(p)\n  ROOT r = f32[4] negate(q)"
    ).replace('async_execution_thread="host", ', "")
    grouped = text.replace(
        "calls=inner\n  u", 'calls=inner, frontend_attributes={_collectives_group=""}\n  u'
    )
    hlo.verify(hlo.parse(grouped))
    with pytest.raises(hlo.VerifyError, match="more than one instruction"):
        hlo.verify(hlo.parse(text))

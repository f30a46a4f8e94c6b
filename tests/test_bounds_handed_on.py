"""Bounded dimensions handed on as static ones, and the other way round, by what computes nothing.

XLA's verifier accepts each (jaxlib 0.10.2). What is not there is zero where it is declared static;
declared bounded though static, all of it is there. The expected sizes are written by hand: a value
takes on the shape of each place that it goes through, and ``cosine`` makes ones of zeros there.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.passes import PASSES

S, D = "f32[5]", "f32[<=5]"
# The steps of each: z fills up with zeros, c is the cosine of what is there.
SIMPLE = {
    "copy": "copy(x)",
    "opt-barrier": "opt-barrier(x)",
    "domain": 'domain(x), domain={kind="sharding", entry={replicated}, exit={replicated}}',
    "add-dependency": "add-dependency(x, t)",
    "all-reduce": "all-reduce(x), replica_groups={}, to_apply=add",
    "collective-broadcast": "collective-broadcast(x), replica_groups={{0}}",
    "collective-permute": "collective-permute(x), source_target_pairs={{0,0}}",
    "all-gather": "all-gather(x), dimensions={0}, replica_groups={{0}}",
    "get-tuple-element": "get-tuple-element(pair), index=1",
    "copy-done": "copy-done(started)",
    "call": "call(x), to_apply=cosine",
    "fusion": "fusion(x), kind=kLoop, calls=cosine",
}
ADD = "add { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = f32[] add(x, y) }\n"


def cosine(taken: str, given: str, name: str = "cosine") -> str:
    return f"{name} {{ x = {taken} parameter(0)\n ROOT r = {given} cosine(x) }}\n"


def entry(given: str, root: str, others: str = "") -> str:
    return f"ENTRY e {{ x = {given} parameter(0)\n{others} ROOT r = {root}\n}}"


def simple(opcode: str, given: str, result: str) -> str:
    others = {
        "add-dependency": " t = token[] after-all()\n",
        "get-tuple-element": f" pair = ({given}, {given}) tuple(x, x)\n",
        "copy-done": f" started = ({given}, {given}, u32[]) copy-start(x)\n",
    }
    called = {"all-reduce": ADD, "call": cosine(given, given), "fusion": cosine(given, given)}
    root = f"{result} {SIMPLE[opcode]}"
    return called.get(opcode, "") + entry(given, root, others.get(opcode, ""))


def loop(init: str, condition: str, taken: str, given: str, result: str, *, turns: int) -> str:
    """A state of a number and an array; the condition looks at how much of the array there is."""
    return f"""condition {{ t = (s32[], {condition}) parameter(0)
  n = s32[] get-tuple-element(t), index=0
  turns = s32[] constant({turns})
  ROOT r = pred[] compare(n, turns), direction=LT }}
body {{ t = (s32[], {taken}) parameter(0)
  n = s32[] get-tuple-element(t), index=0
  x = {taken} get-tuple-element(t), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  y = {given} cosine(x)
  ROOT r = (s32[], {given}) tuple(m, y) }}
ENTRY e {{ x = {init} parameter(0)
  n = s32[] constant(0)
  i = (s32[], {init}) tuple(n, x)
  w = (s32[], {result}) while(i), condition=condition, body=body
  ROOT r = {result} get-tuple-element(w), index=1 }}"""


def branches(operand: str, taken: str, first: str, second: str, result: str) -> str:
    return (
        cosine(taken, first, "one")
        + cosine(taken, second, "other")
        + entry(
            operand,
            f"{result} conditional(s, x, x), true_computation=one, false_computation=other",
            " n = s32[] get-dimension-size(x), dimensions={0}\n"
            " t = s32[] constant(3)\n s = pred[] compare(n, t), direction=LT\n",
        )
    )


STARTED = {
    "copy": ("({result}, {operand}, u32[])", "(x)"),
    "all-reduce": ("{result}", "(x), replica_groups={{}}, to_apply=add"),
    "all-gather": ("({operand}, {result})", "(x), dimensions={{0}}, replica_groups={{{{0}}}}"),
    "collective-permute": ("({operand}, {result})", "(x), source_target_pairs={{{{0,0}}}}"),
}
SUM = """sum { x = f32[] parameter(0)
  c = f32[] parameter(1)
  ROOT r = (f32[], f32[]) tuple(x, x) }
"""


def started(opcode: str, given: str, operand: str, result: str, done: str) -> str:
    shape, rest = (text.format(operand=operand, result=result) for text in STARTED[opcode])
    start = f" s = {shape} {opcode}-start{rest}\n"
    return (ADD if "add" in rest else "") + entry(given, f"{done} {opcode}-done(s)", start)


def scanned(given: str, result: str) -> str:
    others = f""" z = f32[] constant(0)
 s = ({result}, f32[]) scan(x, z), dimensions={{0}}, num_carries=1, to_apply=sum\n"""
    return SUM + entry(given, f"{result} get-tuple-element(s), index=0", others)


PROGRAMS = [
    *(
        (
            started(opcode, given, operand, result, done),
            "z" if given == D and S in (result, done) else "",
        )
        for opcode in STARTED
        for given in (S, D)
        for operand in (S, D)
        for result in (S, D)
        for done in (S, D)
    ),
    *((scanned(given, result), "z" if (given, result) == (D, S) else "")
      for given in (S, D) for result in (S, D)),
    *((simple(op, D, S), "cz" if op in ("call", "fusion") else "z") for op in SIMPLE),
    *((simple(op, S, D), "c" if op in ("call", "fusion") else "") for op in SIMPLE),
    (entry(D, f"({S}, {D}) tuple(x, x)"), ("z", "")),
    (entry(S, f"({S}, {D}) tuple(x, x)"), ("", "")),
    (entry(D, f"(({D}), {S}) opt-barrier(t)", f" t = (({D}), {D}) tuple(u, x)\n").replace(
        " t =", f" u = ({D}) tuple(x)\n t ="), (("",), "z")),
    # two ways of handing one value on are two values
    (entry(D, f"({S}, {D}) tuple(y, z)", f" y = {S} copy(x)\n z = {D} copy(x)\n"), ("z", "")),
    (ADD + entry(D, f"({S}, {D}) all-reduce(x, x), replica_groups={{}}, to_apply=add"), ("z", "")),
    (entry(D, f"({S}, {D}) all-gather(x, x), dimensions={{0}}, replica_groups={{{{0}}}}"),
     ("z", "")),
    (cosine(S, S) + entry(D, f"{D} call(x), to_apply=cosine"), "zc"),
    (cosine(D, S) + entry(S, f"{D} call(x), to_apply=cosine"), "c"),
    (cosine(S, S) + entry(D, f"{D} fusion(x), kind=kLoop, calls=cosine"), "zc"),
    # a result that is less than all without an operand that is
    ("part { x = f32[5] parameter(0)\n n = s32[] constant(2)\n"
     f" ROOT r = {D} set-dimension-size(x, n), dimensions={{0}} }}\n"
     + entry(S, f"{S} call(x), to_apply=part"), "2"),
    *(
        (loop(*shapes, turns=turns), steps)
        for shapes, all_steps in (
            ((D, D, D, D, S), ("z", "cz", "ccz")),
            ((D, D, S, D, D), ("", "zc", "zcc")),
            ((D, S, D, D, D), ("", "c", "cc")),
            ((D, D, D, S, D), ("", "cz", "czc")),
            ((S, S, D, D, S), ("", "c", "cc")),
            ((S, S, S, D, D), ("", "c", "cc")),
            ((D, S, S, S, S), ("z", "zc", "zcc")),
        )
        for turns, steps in enumerate(all_steps)
    ),
    (branches(D, D, S, D, D), ("if", "cz", "c")),
    (branches(D, D, D, D, S), ("if", "cz", "cz")),
    (branches(D, S, S, D, D), ("if", "zc", "zc")),
    (branches(S, D, D, S, D), ("if", "c", "c")),
]  # fmt: skip


def expected(array: np.ndarray, steps: object) -> object:
    """The array after steps: z fills it up, c takes the cosine, 2 zeroes what is beyond 2."""
    if isinstance(steps, tuple) and steps[:1] == ("if",):
        return expected(array, steps[1] if len(array) < 3 else steps[2])
    if isinstance(steps, tuple):
        return tuple(expected(array, part) for part in steps)
    assert isinstance(steps, str)
    for step in steps:
        if step == "c":
            module = hlo.parse(f"HloModule m\n{entry(S, S + ' cosine(x)')}")
            array = interp.evaluate(module, np.resize(array, 5))[: len(array)]
        elif step == "2":
            array = np.where(np.arange(len(array)) < 2, array, 0).astype(np.float32)
        else:
            array = np.concatenate([array, np.zeros(5 - len(array), np.float32)])
    return array


def assert_same(one: object, other: object) -> None:
    if isinstance(one, tuple):
        assert isinstance(other, tuple) and len(one) == len(other)
        for parts in zip(one, other, strict=True):
            assert_same(*parts)
    else:
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize(("text", "steps"), PROGRAMS)
def test_interpreted(text: str, steps: object) -> None:
    module = hlo.parse("HloModule m\n" + text)
    bounded = module.entry.parameters[0].shape.dynamic
    changed = [PASSES[name](module) for name in ("inline", "simplify", "common_subexpressions")]
    for n in (0, 2, 3, 5) if bounded else (5,):
        x = np.arange(1, n + 1, dtype=np.float32)
        for one in (module, *changed):
            assert_same(interp.evaluate(one, x), expected(x, steps))


def merged() -> str:
    """One program that calls all of them: a compilation for each would take ten times as long."""
    texts, calls, names = [], [], []
    for number, (text, _) in enumerate(PROGRAMS):
        module = hlo.parse("HloModule m\n" + text)
        for name in {c.name for c in module.computations}:
            text = re.sub(rf"(^|=){name}\b(?! *\()", rf"\g<1>p{number}_{name}", text, flags=re.M)
        text = text.replace("ENTRY e {", f"p{number}_e {{")
        shape = module.entry.root_instruction.shape
        x = "x" if module.entry.parameters[0].shape.dynamic else "y"
        texts.append(text)
        calls.append(f" r{number} = {shape} call({x}), to_apply=p{number}_e\n")
        names.append((shape, f"r{number}"))
    shapes = ", ".join(str(shape) for shape, _ in names)
    root = f" ROOT r = ({shapes}) tuple({', '.join(name for _, name in names)}) }}"
    parameters = f" x = {D} parameter(0)\n y = {S} parameter(1)\n"
    return "\n".join(["HloModule m", *texts, f"ENTRY e {{\n{parameters}{''.join(calls)}{root}"])


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_compiled() -> None:
    executable = backend_c.compile(hlo.parse(merged()), numerics="exact")
    y = np.arange(1, 6, dtype=np.float32)
    for n in (0, 2, 3, 5):
        results = executable(y[:n], y)
        for (text, steps), result in zip(PROGRAMS, results, strict=True):
            assert_same(result, expected(y[:n] if f"ENTRY e {{ x = {D}" in text else y, steps))


@pytest.mark.parametrize("text", [
    f"{{ s = ({S}, u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true\n"
    " ROOT r = token[] send-done(s), channel_id=1, is_host_transfer=true }",
    f"{{ ROOT r = token[] outfeed(x, t), outfeed_shape={S} }}",
    f"{{ i = s32[1] iota(), iota_dimension=0\n"
    f" ROOT r = {S} ragged-all-to-all(x, x, i, i, i, i), replica_groups={{}} }}",
])  # fmt: skip
def test_accepted_like_xla(text: str) -> None:
    """An instruction that sends a bounded operand away may declare it static, as XLA accepts."""
    head = f"HloModule m\nENTRY e {{ x = {D} parameter(0)\n t = token[] after-all()\n"
    hlo.verify(hlo.parse(head + text.lstrip("{")))


def test_what_is_asynchronous_keeps_its_bounds() -> None:
    """XLA wants the parts of async-start to be what the computation takes and gives."""
    text = f"""HloModule m\n{cosine(D, D)}ENTRY e {{ x = {D} parameter(0)
 s = (({D}), {D}, s32[]) async-start(x), calls=cosine
 ROOT r = {D} async-done(s) }}"""
    hlo.verify(hlo.parse(text))
    for place, label in ((f"(({D})", "C1"), (f", {D}, s32", "C2")):
        with pytest.raises(hlo.VerifyError, match=f"async-start, {label}"):
            hlo.verify(hlo.parse(text.replace(place, place.replace(D, S))))

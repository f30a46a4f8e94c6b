"""The campaign that real compilers agree on nothing that is called wrong, in short."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
from fuzz.campaign.subject import Suspect, whole
from fuzz.peers.xla import XLA, Answer
from fuzz.reducer.search import Case
from hlo.module import Module
from hlo.types import ELEMENT_TYPES, TupleShape
from hlo.values import arrays_of
from interp.envelope.budget import EXACT, XLA_CPU
from selftest.agreement import ALONE, SHARED, UNDEFINED, specials
from selftest.legal_compilers.independent import (
    XLA_SETS,
    Compiler,
    of_answer,
    of_numpy,
    of_text,
    of_xla,
)
from selftest.legal_compilers.numpy_types import InType
from selftest.soundness import drawn
from selftest.soundness_of_compilers import (
    CompilersExaminer,
    SoundnessOfCompilers,
    examined,
    main,
)

LOGARITHM = """HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] sqrt(x)
  ROOT r = f32[4] log(y)
}
"""


def case(text: str, *arrays: Any) -> Case:
    return Case(hlo.parse(text), arrays)


def giving(name: str, family: str, *results: Any) -> Compiler:
    """A compiler of one program, that shows no values in between."""

    def run(module: Module, arrays: Sequence[Any]) -> Answer:
        if isinstance(module.entry.root_instruction.shape, TupleShape):
            return Answer(error="another program")
        return Answer(tuple(np.asarray(result, np.float32) for result in results))

    return Compiler(name, family, XLA_CPU, run)


ROOTS = case(
    "HloModule m\nENTRY main {\n  x = f32[2] parameter(0)\n  ROOT r = f32[2] sqrt(x)\n}\n",
    np.array([4, 9], np.float32),
)


def test_what_two_families_give_is_a_false_alarm() -> None:
    one, other = giving("a", "A", [2, 3.1]), giving("b", "B", [2, 3.1000001])
    found = examined(ROOTS, [one, other, giving("c", "C", [2, 3])])
    assert found.outside == {"a": {SHARED: 1, ALONE: 0}, "b": {SHARED: 1, ALONE: 0}}
    assert list(found.wrong()) == ["false alarm"]


@pytest.mark.parametrize(
    "others",
    [
        [("c", "C", [2, 3])],  # is legal
        [("b", "A", [2, 3.1])],  # shares the code
        [("b", "B", [2, 2.5])],  # is wrong in another way
        [("b", "B", [2.1, 3])],  # and elsewhere
    ],
)
def test_what_one_family_gives_is_its_fault(others: Sequence[tuple[str, str, Any]]) -> None:
    found = examined(ROOTS, [giving("a", "A", [2, 3.1]), *(giving(*x) for x in others)])
    assert found.outside["a"] == {SHARED: 0, ALONE: 1}
    assert "false alarm" not in found.wrong()
    assert list(found.wrong())[0].startswith("A alone: ")


def test_c_that_does_not_compile_is_a_fault_of_this_project() -> None:
    """It counted as refused, and a warning of the C compiler went unseen for 10,000 programs."""
    told = "gcc failed:\nunit_0.c:404:27: error: unused variable 'i1' [-Werror=unused-variable]"
    found = examined(ROOTS, [of_answer(ROOTS, Answer(crash=told)), giving("a", "A", [2, 3])])
    kind = "generated C fails: unused variable … [-Werror=unused-variable]"
    assert found.wrong() == {kind: told}
    refused = of_answer(ROOTS, Answer(error="not supported"))
    assert not examined(ROOTS, [refused]).wrong()


def test_fast_math_may_do_as_it_likes_with_infinities() -> None:
    infinite = case(hlo.format(ROOTS.module), np.array([4, np.inf], np.float32))
    fast = Compiler("f", "F", XLA_CPU, giving("f", "F", [2, 0]).run, is_fast=True, is_finite=True)
    assert examined(infinite, [fast]).outside["f"] == {SHARED: 0, UNDEFINED: 1}
    assert examined(infinite, [giving("a", "A", [2, 0])]).outside["a"] == {SHARED: 0, ALONE: 1}
    assert examined(ROOTS, [fast]).outside["f"] == {SHARED: 0, ALONE: 1}


def test_specials_are_seen_inside() -> None:
    text = """HloModule m
ENTRY main {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  q = f32[] divide(x, y)
  m = f32[] %s(x)
  ROOT r = pred[] compare(q, m), direction=LT
}
"""
    one, zero = np.float32(1), np.float32(0)
    plain = case(text % "sqrt", one, one)
    assert specials(plain.module, plain.arrays).has_infinities is False
    overflows = case(text % "sqrt", one, zero)
    assert specials(overflows.module, overflows.arrays).has_infinities
    signed = case(text % "negate", zero, one)
    assert specials(signed.module, signed.arrays).has_signs


def numpy_and_text(one: Case, seed: int) -> Iterator[Compiler]:
    yield from of_numpy(one.module)
    yield from of_text(seed)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("chunk", range(3))
def test_numpy_and_the_text_are_legal(chunk: int) -> None:
    for number, one in enumerate(drawn(700, chunk, 12)):
        try:
            found = examined(one, numpy_and_text(one, number))
        except hlo.Error:
            continue
        assert not found.wrong(), (hlo.format(one.module), found.wrong())


def test_an_envelope_too_narrow_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a budget without rewritings log(sqrt(x)) of 1 + 2^-23 is 0: what the reals and a compiler
    that rewrites it give is a false alarm."""
    one, near = 1.0, 1 + 2.0**-23
    rewritten = giving("r", "R", [0, np.log(near) / 2, 0, 0])
    x = np.array([one, near, one, one], np.float32)
    assert not examined(case(LOGARITHM, x), [rewritten, *of_text(0)]).outside
    monkeypatch.setattr("selftest.legal_compilers.independent.XLA_CPU", EXACT)
    narrow = replace(rewritten, budget=EXACT)
    found = examined(case(LOGARITHM, x), [narrow, *of_text(0)])
    assert found.outside["r"] == found.outside["over the reals"] == {SHARED: 1, ALONE: 0}
    assert "false alarm" in found.wrong()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
def test_numpy_stores_the_declared_type(dtype: Any) -> None:
    text = """HloModule m
add {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT s = bf16[] add(a, b)
}
ENTRY main {
  x = bf16[300] parameter(0)
  z = bf16[] constant(0)
  s = bf16[] reduce(x, z), dimensions={0}, to_apply=add
  ROOT r = (bf16[], bf16[300]) tuple(s, x)
}
"""
    x = np.ones(300).astype(ELEMENT_TYPES["bf16"].numpy)
    total, same = arrays_of(InType(dtype)(hlo.parse(text), x))
    assert (float(total), total.dtype) == (300.0, x.dtype)
    assert same.tobytes() == x.tobytes()


def test_the_campaign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jaxlib")
    words = ["--count", "6", "--chunk", "3", "--seed", "3", "--reduce", "1"]
    assert main([*words, "--state", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "6 programs" in told.err and "| C, fast | " in told.out
    chunks = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("chunks/*.json"))]
    assert len(chunks) == 2 and all("XLA" in chunk for chunk in chunks)


def test_a_defect_is_reduced_to_what_raises_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that is no Error, raised by a smaller program, ended the campaign."""

    def run(module: Module, arrays: Sequence[Any]) -> Answer:
        if any(i.opcode == "sqrt" for i in module.entry.instructions):
            raise RuntimeError("of a square root")
        if any(i.opcode == "log" for i in module.entry.instructions):
            raise KeyError("of a logarithm")
        return Answer(error="nothing")

    failing = Compiler("f", "F", XLA_CPU, run)
    monkeypatch.setattr("selftest.soundness_of_compilers.is_for_xla", lambda case: False)
    monkeypatch.setattr("selftest.soundness_of_compilers.of_numpy", lambda module: iter([failing]))
    examiner = CompilersExaminer(SoundnessOfCompilers(0), XLA(), lambda cases, number: [])
    kind, given = "defect: RuntimeError in test_soundness_of_compilers.py:run", np.ones(4, "f4")
    suspect = Suspect("an oracle", kind, "of a square root", 0, evidence=case(LOGARITHM, given))
    finding = examiner.reduced(suspect, 0, 5.0)
    assert finding.kind == kind and finding.opcodes == {"sqrt"}


def test_every_option() -> None:
    pytest.importorskip("jaxlib")
    with SoundnessOfCompilers(3, 1, XLA_SETS).examiner(None) as examiner:  # type: ignore[arg-type]
        found = whole(examiner.chunk(1)).tallies
    assert sum(name.startswith("XLA without ") for name in found) > 20


@pytest.mark.parametrize("most", [0, 1, 2, 3, 10, XLA_SETS])
def test_options_take_turns(most: int) -> None:
    """In as many programs as there are turns each set of options comes up, the default most
    often."""
    peer = XLA()
    turns = [[one.name for one in of_xla(peer, n, most)] for n in range(3 * 4 * 31)]
    assert all(len(set(names)) == len(names) <= most for names in turns)
    times = Counter(name for names in turns for name in names)
    assert len(times) == (XLA_SETS if most else 0)
    assert times["XLA"] == max(times.values(), default=0)


def test_powers_of_a_type_without_infinity() -> None:
    """A power beyond a type without infinity may be any number; its interval once ended at NaN, as
    if only NaN were legal."""
    text = """HloModule m
ENTRY main {
  x = f8e5m2fnuz[2] parameter(0)
  y = f8e5m2fnuz[2] parameter(1)
  m = f8e5m2fnuz[2] multiply(x, y)
  s = f8e5m2fnuz[2] sqrt(m)
  p = f8e5m2fnuz[2] power(y, s)
  c = f32[2] convert(p)
  z = f32[2] parameter(2)
  ROOT a = f32[2] add(c, z)
}
"""
    dtype = ELEMENT_TYPES["f8e5m2fnuz"].numpy
    given = np.array([320, 1], dtype), np.array([7.62939e-06, 1], dtype)
    one = case(text, *given, np.array([-0.95423406, 1], np.float32))
    assert not examined(one, of_text(0)).wrong()

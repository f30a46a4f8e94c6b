"""Reducing programs with a planted bug: the interpreter with one opcode evaluated wrongly."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest
from planted import Wrong, large, shows

import fuzz
import hlo
from fuzz.peers.synchronous_form import as_loops
from fuzz.reducer import cutting, in_processes
from fuzz.reducer.delta_debugging import minimal
from fuzz.reducer.numbers import complexity, simpler_numbers
from fuzz.reducer.search import Case, Progress
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.types import ELEMENT_TYPES

X, Y, Z = np.random.default_rng(0).standard_normal((3, 4, 4), dtype=np.float32)


def wrong_if_positive(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x * np.float32(1.5), x)


def reduced(text: str, name: str, *arrays: object, wrong: Wrong = wrong_if_positive) -> Module:
    module = hlo.parse(text)
    is_interesting = shows(name, wrong)
    small, values = fuzz.reduce(module, arrays, is_interesting, seconds=60)
    hlo.verify(small)
    assert is_interesting(small, values)
    return small


def test_a_large_program_becomes_two_lines() -> None:
    text = large(3000, 1, "multiply({x}, {y})")
    small = reduced(text, "multiply", X, Y, Z)
    assert hlo.format(small).splitlines()[2:] == [
        "ENTRY main {",
        "  p0 = f32[] parameter(0)",
        "  ROOT multiply = f32[] multiply(p0, p0)",
        "}",
    ]


INSIDE = """HloModule inside
fused { a = f32[4,4] parameter(0)
  b = f32[4,4] multiply(a, a)
  ROOT c = f32[4,4] tanh(b) }
yes { a = f32[4,4] parameter(0)
  ROOT f = f32[4,4] fusion(a), kind=kLoop, calls=fused }
no { ROOT a = f32[4,4] parameter(0) }
more { s = (s32[], f32[4,4]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(k, three), direction=LT }
turn { s = (s32[], f32[4,4]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  v = f32[4,4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(k, one)
  last = pred[] compare(k, one), direction=GT
  w = f32[4,4] conditional(last, v, v), true_computation=yes, false_computation=no
  ROOT t = (s32[], f32[4,4]) tuple(next, w) }
ENTRY main {
  x = f32[4,4] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[4,4]) tuple(zero, x)
  loop = (s32[], f32[4,4]) while(start), condition=more, body=turn
  y = f32[4,4] get-tuple-element(loop), index=1
  ROOT r = f32[4,4] negate(y)
}
"""


def test_in_a_fusion_in_a_branch_in_a_loop() -> None:
    small = reduced(INSIDE, "multiply", X)
    assert [i.opcode for i in small.entry.instructions] == ["parameter", "multiply"]


SUMMED = """HloModule summed
sum { a = f64[] parameter(0)
  b = f64[] parameter(1)
  ROOT s = f64[] add(a, b) }
ENTRY main {
  x = f64[6,7] parameter(0)
  i = s32[] parameter(1)
  zero = f64[] constant(0)
  part = f64[4,7] slice(x), slice={[1:5], [0:7]}
  wide = f64[4,7,5] broadcast(part), dimensions={0,1}
  flat = f64[28,5] reshape(wide)
  one = f64[1,5] dynamic-slice(flat, i, i), dynamic_slice_sizes={1,5}
  line = f64[5] reduce(flat, zero), dimensions={0}, to_apply=sum
  both = f64[1,5] broadcast(line), dimensions={1}
  ROOT r = f64[1,5] add(one, both)
}
"""


def test_sizes_types_and_numbers_become_small() -> None:
    x = np.random.default_rng(0).standard_normal((6, 7))
    small = reduced(SUMMED, "reduce", x, np.int32(3), wrong=lambda y: y + 1)
    text = hlo.format(small)
    assert "reduce(" in text and len(small.entry.instructions) == 3
    assert "f64" not in text and "f32[1]" in text
    again = reduced(SUMMED, "reduce", x, np.int32(3), wrong=lambda y: y + 1)
    assert hlo.format(again) == text


STARTED = """HloModule started
ENTRY main {
  x = f32[4] parameter(0)
  start = (f32[4], f32[4]) collective-permute-start(x), source_target_pairs={{0,0}}
  done = f32[4] collective-permute-done(start)
  y = f32[4] sine(done)
  low = f32[] constant(0)
  high = f32[] constant(1)
  unused = f32[2] rng(low, high), distribution=rng_uniform
  copy = (f32[4], f32[4], u32[]) copy-start(y)
  ROOT r = f32[4] copy-done(copy)
}
"""


def test_what_is_started_and_what_has_effects_is_no_obstacle() -> None:
    small = reduced(STARTED, "sine", np.ones(4, np.float32))
    assert [i.opcode for i in small.entry.instructions] == ["parameter", "sine"]


def test_what_is_too_large_to_be_kept_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_MOST_BYTES", 300)
    text = large(100, 1, "multiply({x}, {y})")
    small = reduced(text, "multiply", X, Y, Z)
    assert [i.opcode for i in small.entry.instructions] == ["parameter", "multiply"]


def test_every_item_of_a_minimal_part_is_needed() -> None:
    items = [str(n) for n in range(100)]
    needed = {"3", "4", "77"}
    found = minimal(
        items, lambda parts: next((n for n, p in enumerate(parts) if needed <= set(p)), None)
    )
    assert list(found) == ["3", "4", "77"]


def test_one_instruction_is_tried_before_halves() -> None:
    """A program of many instructions takes a compiler longest, and most often one is to blame."""
    taken = list[tuple[str, int]]()

    def progress(what: str, module: Module, tried: int) -> None:
        taken.append((what, module.instruction_count))

    module = hlo.parse(large(40, 1, "multiply({x}, {y})"))
    shown = shows("multiply", wrong_if_positive)
    fuzz.reduce(module, (X, Y, Z), shown, progress=progress, is_plain=False)
    cuts = [count for what, count in taken if what == "cut"]
    assert cuts == [3]  # the instruction and its two operands


def test_the_given_program_is_asked_once() -> None:
    """The given program is asked once: an answer to a large one may take seconds."""
    module, asked = hlo.parse(_ALIVE), list[Module]()
    shown = shows("multiply", wrong_if_positive)

    def counted(module: Module, arrays: tuple[object, ...]) -> bool:
        asked.append(module)
        return shown(module, arrays)

    fuzz.reduce(module, (X,), counted, is_plain=False)
    assert sum(one.entry == module.entry for one in asked) == 1


_ALIVE = """HloModule alive
ENTRY main {
  x = f32[4,4] parameter(0)
  y = f32[4,4] multiply(x, x)
  ROOT r = f32[4,4] add(y, x)
}
"""


def test_what_is_not_plain_keeps_sizes_and_numbers() -> None:
    module = hlo.parse(large(40, 1, "multiply({x}, {y})"))
    shown = shows("multiply", wrong_if_positive)
    small, arrays = fuzz.reduce(module, (X, Y, Z), shown, is_plain=False)
    assert [i.opcode for i in small.entry.instructions] == ["parameter", "parameter", "multiply"]
    assert all(np.shape(array) == (4, 4) for array in arrays)


def test_workers_do_not_change_the_result() -> None:
    shown, places = shows("multiply", wrong_if_positive), set[str]()
    module = hlo.parse(large(300, 1, "multiply({x}, {y})"))

    def asked(module: Module, arrays: tuple[object, ...]) -> bool:
        places.add(threading.current_thread().name)
        return shown(module, arrays)

    taken: list[list[object]] = []
    for workers in (0, 2, 3):
        taken.append([])
        steps: Progress = lambda *step: taken[-1].append((step[0], hlo.format(step[1]), step[2]))  # noqa: E731
        fuzz.reduce(module, (X, Y, Z), asked, at_once=[asked] * workers, progress=steps)
    assert len(taken[0]) > 5 and taken[1] == taken[0] and taken[2] == taken[0]
    assert len(places) > 2


def test_processes_do_not_change_the_result() -> None:
    module = hlo.parse(large(300, 1, "multiply({x}, {y})"))
    with in_processes(partial(shows, "multiply", wrong_if_positive), 2) as asked:
        found = [
            hlo.format(fuzz.reduce(module, (X, Y, Z), asked[0], at_once=several)[0])
            for several in ((), asked)
        ]
    assert found[0] == found[1] and found[0].count("\n") == 6


def test_what_does_not_fail_is_not_reduced() -> None:
    with pytest.raises(ArgumentError, match="nothing to reduce"):
        fuzz.reduce(hlo.parse(INSIDE), (X,), lambda module, arrays: False)


def test_time_ends_it() -> None:
    module = hlo.parse(INSIDE)
    is_interesting = shows("multiply", wrong_if_positive)
    assert fuzz.reduce(module, (X,), is_interesting, seconds=0)[0] == module


@pytest.mark.parametrize("kind", ["f32", "bf16", "f8e4m3fn", "c64"])
def test_a_zero_with_a_sign_becomes_one_without(kind: str) -> None:
    dtype = ELEMENT_TYPES[kind].numpy
    module = hlo.parse(f"HloModule m\nENTRY e {{ ROOT x = {kind}[2] parameter(0) }}")
    found = [x.arrays[0] for x in simpler_numbers(Case(module, (np.array([-0.0, 0], dtype),)))]
    assert any(not np.signbit(x.real.astype(np.float64)).any() and not x.any() for x in found)


def test_shorter_numbers_are_simpler() -> None:
    numbers = ([0.0], [1.0], [2.0], [-0.0], [0.5], [0.123456])
    measured = [complexity(np.array(each, np.float32)) for each in numbers]
    assert measured == sorted(measured)


def test_a_fusion_is_left_as_the_loop_that_fails() -> None:
    """The reduced program is to fail as it is, and not only when it is asked in another form."""
    module = hlo.parse("""HloModule m
f {
  x = f32[4] parameter(0)
  ROOT y = f32[4] negate(x)
}
ENTRY e {
  x = f32[4] parameter(0)
  ROOT r = f32[4] fusion(x), kind=kInput, calls=f
}
""")

    def fails(module: Module, arrays: object) -> bool:
        return "fusion(" in hlo.format(as_loops(module))

    small, _ = fuzz.reduce(module, [np.ones(4, np.float32)], fails)
    assert "kind=kLoop" in hlo.format(small)

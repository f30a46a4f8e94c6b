"""Whole programs: calls, loops, batches of scalar computations, arguments and errors."""

from __future__ import annotations

import inspect
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

import hlo
from hlo.errors import ArgumentError, OutOfFuel, Unsupported, VerifyError
from hlo.passes.dead_code import dead_code
from hlo.passes.simplify import simplify
from interp import evaluate

LOOP = """HloModule loop

below {
  p = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT lt = pred[] compare(i, n), direction=LT
}

step {
  p = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[3] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  twice = f32[3] add(x, x)
  ROOT t = (s32[], f32[3]) tuple(next, twice)
}

ENTRY main {
  x = f32[3] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[3]) tuple(zero, x)
  ROOT w = (s32[], f32[3]) while(init), condition=below, body=step
}
"""


def run(text: str, *arrays: object, **options: int) -> object:
    return evaluate(hlo.parse(text), *arrays, **options)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_while() -> None:
    count, x = run(LOOP, f32(1, 2, 3))  # type: ignore[misc]
    assert count == 5 and count.dtype == np.int32 and isinstance(count, np.ndarray)
    assert x.tolist() == [32, 64, 96]


def test_fuel_bounds_every_loop() -> None:
    run(LOOP, f32(1, 2, 3), fuel=100)
    with pytest.raises(OutOfFuel):
        run(LOOP, f32(1, 2, 3), fuel=40)
    forever = """HloModule forever
c { ROOT p = pred[] parameter(0) }
b { ROOT p = pred[] parameter(0) }
ENTRY main { x = pred[] parameter(0)
  ROOT w = pred[] while(x), condition=c, body=b }
"""
    with pytest.raises(OutOfFuel):
        run(forever, np.asarray(True), fuel=1000)


MAP = """HloModule map
f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  two = f32[] constant(2)
  bits = s32[] bitcast(a)
  zero = s32[] constant(0)
  negative = pred[] compare(bits, zero), direction=LT
  m = f32[] multiply(b, two)
  ROOT s = f32[] select(negative, m, a) }
ENTRY main { x = f32[2,2] parameter(0)
  y = f32[2,2] parameter(1)
  ROOT m = f32[2,2] map(x, y), dimensions={0,1}, to_apply=f }
"""


def test_every_instruction_takes_one_unit_of_fuel() -> None:
    """Every instruction takes one unit of fuel, constants and each run of a computation too; a
    batch takes as much as one element."""
    for text, arrays, needed in (
        (LOOP, [f32(1, 2, 3)], 63),
        (MAP, [f32(1, 2).reshape(2, 1)] * 2, 9),
    ):
        text = text.replace("f32[2,2]", "f32[2,1]")
        run(text, *arrays, fuel=needed)
        with pytest.raises(OutOfFuel):
            run(text, *arrays, fuel=needed - 1)


def test_values_are_dropped_after_their_last_use() -> None:
    lines = [f"  x{i + 1} = f32[262144] add(x{i}, x{i})" for i in range(40)]
    text = "HloModule chain\nENTRY main {\n  x0 = f32[262144] parameter(0)\n" + "\n".join(lines)
    module, ones = hlo.parse(text + "\n  ROOT r = f32[262144] negate(x40) }"), np.ones(1 << 18)
    ones = ones.astype(np.float32)
    tracemalloc.start()
    try:
        evaluate(module, ones)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * ones.nbytes


CONDITIONAL = """HloModule conditional
a { p = f32[] parameter(0)
  ROOT n = f32[] negate(p) }
b { ROOT p = f32[] parameter(0) }
ENTRY main { i = s32[] parameter(0)
  x = f32[] parameter(1)
  ROOT c = f32[] conditional(i, x, x, x), branch_computations={a, b, a} }
"""


@pytest.mark.parametrize(("index", "expected"), [(0, -3), (1, 3), (2, -3), (7, -3), (-1, -3)])
def test_conditional_out_of_range_takes_the_last(index: int, expected: float) -> None:
    assert run(CONDITIONAL, np.asarray(index, np.int32), np.float32(3)) == expected


def test_elementwise_computations_run_on_whole_arrays() -> None:
    x, y = f32(1, -1, -0.0, 4).reshape(2, 2), f32(5, 6, 7, 8).reshape(2, 2)
    assert run(MAP, x, y).tolist() == [[1, 12], [14, 4]]  # type: ignore[attr-defined]
    run(MAP, x, y, fuel=20)  # not once per element


def test_other_scalar_computations_run_once_per_element() -> None:
    text = """HloModule each
c { p = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  zero = s32[] constant(0)
  ROOT r = pred[] compare(i, zero), direction=GT }
b { p = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = s32[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] subtract(i, one)
  m = s32[] add(a, a)
  ROOT t = (s32[], s32[]) tuple(j, m) }
power { n = s32[] parameter(0)
  one = s32[] constant(1)
  t = (s32[], s32[]) tuple(n, one)
  w = (s32[], s32[]) while(t), condition=c, body=b
  ROOT r = s32[] get-tuple-element(w), index=1 }
ENTRY main { x = s32[4] parameter(0)
  ROOT m = s32[4] map(x), dimensions={0}, to_apply=power }
"""
    assert run(text, np.array([0, 1, 5, 3], np.int32)).tolist() == [1, 2, 32, 8]  # type: ignore[attr-defined]


def test_a_constant_computation_is_as_large_as_its_batch() -> None:
    text = """HloModule k
k { x = f32[] parameter(0)
  ROOT c = s32[] constant(7) }
ENTRY main { x = f32[3] parameter(0)
  ROOT m = s32[3] map(x), dimensions={0}, to_apply=k }
"""
    assert run(text, f32(1, 2, 3)).tolist() == [7, 7, 7]  # type: ignore[attr-defined]


ADD = """HloModule sum
ENTRY main { first = f32[2,2]{0,1} parameter(0)
  second = f32[2,2] parameter(1)
  ROOT s = f32[2,2] add(first, second) }
"""


def test_arguments_are_checked() -> None:
    good = np.ones((2, 2), np.float32)
    assert run(ADD, good, good).sum() == 8  # type: ignore[attr-defined]
    with pytest.raises(ArgumentError, match="2 arguments are expected, 1 was given"):
        run(ADD, good)
    with pytest.raises(ArgumentError, match=r"parameter 1 \(second\).*float64\[2,2\]"):
        run(ADD, good, good.astype(np.float64))
    with pytest.raises(ArgumentError, match=r"parameter 0 \(first\): expected f32\[2,2\]"):
        run(ADD, good[:1], good)
    with pytest.raises(ArgumentError):
        run(ADD, good, 3)


def test_bounded_arguments_take_any_size_up_to_the_bound() -> None:
    text = """HloModule bounded
ENTRY main { x = f32[<=4] parameter(0)
  ROOT n = s32[] get-dimension-size(x), dimensions={0} }
"""
    assert run(text, f32(1, 2)) == 2 and run(text, f32(1, 2, 3, 4)) == 4
    with pytest.raises(ArgumentError):
        run(text, f32(1, 2, 3, 4, 5))


def test_results_share_nothing_with_arguments() -> None:
    text = """HloModule identity
ENTRY main { x = f32[2] parameter(0)
  ROOT t = (f32[2], f32[2]) tuple(x, x) }
"""
    x = f32(1, 2)
    first, second = run(text, x)  # type: ignore[misc]
    assert first is not x and not np.shares_memory(first, x)
    first[0] = 9  # it is writeable
    assert x[0] == 1 and not np.shares_memory(first, second)


def test_results_share_nothing_with_parts_of_arguments_or_each_other() -> None:
    text = """HloModule parts
ENTRY main { p = (f32[2], f32[3]) parameter(0)
  x = f32[2] get-tuple-element(p), index=0
  n = f32[2] negate(x)
  ROOT t = (f32[2], f32[2], f32[2]) tuple(x, n, n) }
"""
    given = f32(1, 2)
    whole, first, second = run(text, (given, f32(1, 2, 3)))  # type: ignore[misc]
    assert whole.flags.writeable and not np.shares_memory(whole, given)
    assert not np.shares_memory(first, second)


def test_results_share_nothing_with_constants_that_passes_make() -> None:
    text = """HloModule made
ENTRY main { c = s32[3] constant({1,2,3})
  ROOT s = s32[2] slice(c), slice={[0:2]} }
"""
    module = dead_code(simplify(hlo.parse(text)))
    assert [i.opcode for i in module.entry.instructions] == ["constant"]
    for _ in range(2):
        result = evaluate(module)
        assert result.tolist() == [1, 2]
        result[:] = 99


def test_instructions_without_use_are_skipped() -> None:
    text = """HloModule unused
ENTRY main { x = f32[2] parameter(0)
  lost = f32[2] custom-call(x), custom_call_target="nobody"
  ROOT n = f32[2] negate(x) }
"""
    assert run(text, f32(1, 2)).tolist() == [-1, -2]  # type: ignore[attr-defined]


def test_an_unknown_custom_call_lists_those_registered() -> None:
    text = """HloModule unknown
ENTRY main { x = f32[2] parameter(0)
  ROOT c = f32[2] custom-call(x), custom_call_target="nobody" }
"""
    with pytest.raises(Unsupported, match=r"^3: %c = custom-call: .*'nobody'.*TopK"):
        run(text, f32(1, 2))


def test_an_elided_constant_matters_only_where_it_is_evaluated() -> None:
    text = """HloModule elided
a { p = f32[2] parameter(0)
  c = f32[2] constant({...})
  ROOT s = f32[2] add(p, c) }
b { ROOT p = f32[2] parameter(0) }
ENTRY main { i = pred[] parameter(0)
  x = f32[2] parameter(1)
  ROOT c = f32[2] conditional(i, x, x), true_computation=a, false_computation=b }
"""
    assert run(text, False, f32(1, 2)).tolist() == [1, 2]  # type: ignore[attr-defined]
    with pytest.raises(ArgumentError, match="3: %c = constant: .*was left out of the text"):
        run(text, True, f32(1, 2))


def test_an_elided_constant_says_how_to_dump_it() -> None:
    text = """HloModule elided
f { c = f32[100] constant({...})
  ROOT n = f32[100] negate(c) }
ENTRY main { ROOT r = f32[100] fusion(), kind=kLoop, calls=f }
"""
    with pytest.raises(ArgumentError, match=r"^2: %c = constant: .*xla_dump_large_constants"):
        run(text)


def test_deep_calls_are_an_error_of_ours() -> None:
    levels = ["c0 { p = f32[] parameter(0)\n  ROOT r = f32[] negate(p) }"]
    for i in range(1, 500):
        levels.append(
            f"c{i} {{ p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=c{i - 1} }}"
        )

    def nested(depth: int) -> str:
        entry = (
            f"ENTRY main {{ x = f32[] parameter(0)\n  ROOT r = f32[] call(x), to_apply=c{depth} }}"
        )
        return "HloModule deep\n" + "\n".join([*levels[: depth + 1], entry])

    assert run(nested(70), np.float32(2)) == -2
    with pytest.raises(VerifyError, match="nest deeper"):
        run(nested(499), np.float32(2))


def test_a_declared_shape_that_is_wrong_is_found() -> None:
    text = """HloModule wrong
ENTRY main { x = f32[2] parameter(0)
  ROOT n = f32[3] negate(x) }
"""
    with pytest.raises(VerifyError, match=r"3: %n = negate, shape: the result is f32\[2\]"):
        run(text, f32(1, 2))


def test_random_numbers_follow_the_seed() -> None:
    text = """HloModule random
ENTRY main { a = f32[] constant(0)
  b = f32[] constant(1)
  u = f32[4] rng(a, b), distribution=rng_uniform
  v = f32[4] rng(a, b), distribution=rng_uniform
  s = u64[2] rng-get-and-update-state(), delta=3
  ROOT t = (f32[4], f32[4], u64[2]) tuple(u, v, s) }
"""
    one, again, other = (run(text, seed=seed) for seed in (1, 1, 2))
    assert all(map(np.array_equal, one, again))  # type: ignore[arg-type]
    assert not np.array_equal(one[0], one[1]) and not np.array_equal(one[0], other[0])  # type: ignore[index]
    assert one[2].tolist() == [1, 0]  # type: ignore[index]


def test_effects_and_tokens() -> None:
    text = """HloModule tokens
ENTRY main { x = f32[2] parameter(0)
  t = token[] after-all()
  d = f32[2] add-dependency(x, t)
  b = f32[2] opt-barrier(d)
  ROOT r = (f32[2], token[]) tuple(b, t) }
"""
    value, token = run(text, f32(1, 2))  # type: ignore[misc]
    assert value.tolist() == [1, 2] and token is None


def test_sizes_go_with_the_data() -> None:
    text = """HloModule sizes
ENTRY main { x = f32[4] parameter(0)
  n = s32[] parameter(1)
  d = f32[<=4] set-dimension-size(x, n), dimensions={0}
  p = (f32[4], s32[]) custom-call(d), custom_call_target="PadToStatic"
  data = f32[4] get-tuple-element(p), index=0
  size = s32[] get-tuple-element(p), index=1
  s = f32[<=4] custom-call(data, size), custom_call_target="SliceToDynamic"
  ROOT r = (f32[4], f32[<=4]) tuple(data, s) }
"""
    data, again = run(text, f32(1, 2, 3, 4), np.asarray(3, np.int32))  # type: ignore[misc]
    assert data.tolist() == [1, 2, 3, 0] and again.tolist() == [1, 2, 3]


def test_an_array_too_large_for_memory_is_named() -> None:
    text = """HloModule large
ENTRY main { x = f32[] parameter(0)
  b = f32[4000000,4000000] broadcast(x), dimensions={}
  ROOT n = f32[4000000,4000000] negate(b) }
"""
    with pytest.raises(Unsupported, match="4: %n = negate: .* does not fit into memory"):
        run(text, np.float32(1))


@pytest.mark.parametrize("given", [1.0, [[1.0, 2.0]], [1.0], [], 1])
def test_arguments_of_other_ranks_are_refused(given: object) -> None:
    """A scalar for an array of a static shape was a ValueError."""
    text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[2] negate(x) }"
    with pytest.raises(ArgumentError, match=r"parameter 0 \(x\): expected f32\[2\], got "):
        evaluate(hlo.parse(text), np.asarray(given, np.float32))


def test_calls_deeper_than_the_stack_that_the_caller_leaves() -> None:
    calls = "".join(
        f"c{n} {{ x = f32[2] parameter(0)\n ROOT y = f32[2] call(x), to_apply=c{n - 1} }}\n"
        for n in range(1, 79)
    )
    text = "HloModule deep\nc0 { x = f32[2] parameter(0)\n ROOT y = f32[2] negate(x) }\n" + calls
    text += "ENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[2] call(x), to_apply=c78 }\n"
    module = hlo.parse(text)

    def from_depth(frames: int) -> Any:
        return from_depth(frames - 1) if frames else evaluate(module, f32(1, 2), watch=[])

    assert from_depth(0)[0].tolist() == [-1, -2]
    with pytest.raises(Unsupported, match="Python's stack"):
        from_depth(sys.getrecursionlimit() - len(inspect.stack()) - 300)

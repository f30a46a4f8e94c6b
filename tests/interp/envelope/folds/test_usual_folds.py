"""Folds as compilers do them: in f32, in the order written, or in blocks, rounded at each step."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import hlo
import interp
from hlo.values import Array
from interp.envelope.budget import XLA_CPU
from interp.envelope.judgement import Judge
from interp.envelope.sums_in_order import usual_budgets
from interp.envelope.verdict import EQUAL, OUTSIDE, UNDETERMINED, WITHIN

TYPES = {"bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16)}
SIZE = 300


def program(element_type: str, padding: str) -> hlo.Module:
    t = element_type
    return hlo.parse(f"""HloModule prefix_sums
add {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT s = {t}[] add(a, b)
}}
ENTRY e {{
  x = {t}[{SIZE}] parameter(0)
  z = {t}[] constant(0)
  ROOT r = {t}[{SIZE}] reduce-window(x, z), window={{size={SIZE} pad={padding}}}, to_apply=add
}}
""")


def in_f32(x: Array) -> Array:
    return np.add.accumulate(x.astype(np.float32)).astype(x.dtype)


def in_order(x: Array) -> Array:
    return np.add.accumulate(x)


def in_blocks(x: Array) -> Array:
    """Add up as XLA's ReduceWindowRewriter does: in blocks of 16, rounded at each step, and their
    sums in the same way."""
    sums, total = [], x.dtype.type(0)
    blocks = [x[start : start + 16] for start in range(0, len(x), 16)]
    before: list[Array] = []
    for first in range(0, len(blocks), 16):
        inner = x.dtype.type(0)
        for block in blocks[first : first + 16]:
            before.append(np.add(total, inner))
            inner = np.add(inner, np.add.accumulate(block)[-1])
        total = np.add(total, inner)
    for start, block in zip(before, blocks, strict=True):
        sums.append(np.add(np.add.accumulate(block), start))
    return np.concatenate(sums)


def in_blocks_from_the_end(x: Array) -> Array:
    """The blocks are the same; in each, every sum begins at its place."""
    if len(x) <= 16:
        return np.stack([np.add.accumulate(x[n:])[-1] for n in range(len(x))])
    blocks = [in_blocks_from_the_end(x[start : start + 16]) for start in range(0, len(x), 16)]
    running = in_blocks_from_the_end(np.stack([block[0] for block in blocks]))
    behind = [*running[1:], x.dtype.type(0)]
    return np.concatenate([np.add(*pair) for pair in zip(blocks, behind, strict=True)])


def counts(module: hlo.Module, x: Array, actual: Array) -> dict[str, int]:
    exact = [("", np.asarray(interp.evaluate(module, x)))]
    judge = Judge(module, (x,), exact, peer=XLA_CPU)
    return judge.judged([actual], lambda other: None).counts


@pytest.mark.parametrize("element_type", TYPES)
@pytest.mark.parametrize("algorithm", [in_f32, in_order, in_blocks])
def test_usual_prefix_sums_are_within(
    element_type: str, algorithm: Callable[[Array], Array]
) -> None:
    x = np.random.default_rng(5).standard_normal(SIZE).astype(TYPES[element_type])
    forwards = program(element_type, f"{SIZE - 1}_0")
    found = counts(forwards, x, algorithm(x))
    assert found[EQUAL] + found[WITHIN] == SIZE


@pytest.mark.parametrize("element_type", TYPES)
def test_usual_sums_from_the_end_are_within(element_type: str) -> None:
    x = np.random.default_rng(5).standard_normal(SIZE).astype(TYPES[element_type])
    backwards = program(element_type, f"0_{SIZE - 1}")
    as_written = np.stack([np.add.accumulate(x[n:])[-1] for n in range(SIZE)])
    for actual in (in_f32(x[::-1])[::-1], in_blocks_from_the_end(x), as_written):
        found = counts(backwards, x, actual)
        assert found[EQUAL] + found[WITHIN] == SIZE


def test_what_no_usual_order_gives_stays_undetermined() -> None:
    x = np.random.default_rng(5).standard_normal(SIZE).astype(TYPES["bf16"])
    actual = in_blocks(x)
    actual[-40:] += TYPES["bf16"].type(16)
    found = counts(program("bf16", f"{SIZE - 1}_0"), x, actual)
    assert found[UNDETERMINED] == 40 and not found[OUTSIDE]


SOFT_MAXIMA = f"""HloModule soft_maxima
add_exp {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  most = f32[] maximum(a, b)
  less = f32[] subtract(a, b)
  size = f32[] abs(less)
  below = f32[] negate(size)
  power = f32[] exponential(below)
  rest = f32[] log-plus-one(power)
  ROOT s = f32[] add(most, rest)
}}
ENTRY e {{
  x = f32[{SIZE}] parameter(0)
  z = f32[] constant(-inf)
  ROOT r = f32[{SIZE}] reduce-window(x, z), window={{size={SIZE} pad={SIZE - 1}_0}},
    to_apply=add_exp
}}
"""


def test_other_folds_in_order_and_in_blocks_are_within() -> None:
    """Prefix folds by logaddexp, which rounds, are within the envelope in the order written and in
    blocks; other orders are not known."""
    x = np.random.default_rng(8).standard_normal(SIZE).astype(np.float32)
    in_rows = np.logaddexp.accumulate(np.resize(x, (19, 16)), axis=1)
    before = np.logaddexp.accumulate(in_rows[:-1, -1])
    blocks = in_rows.copy()
    blocks[1:] = np.logaddexp(in_rows[1:], before[:, None])
    module = hlo.parse(SOFT_MAXIMA)
    for actual in (np.logaddexp.accumulate(x), blocks.reshape(-1)[:SIZE]):
        found = counts(module, x, actual)
        assert found[EQUAL] + found[WITHIN] == SIZE
    assert found[WITHIN] > SIZE / 4


GATES = """HloModule products_of_gates
multiply {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT p = bf16[] multiply(a, b)
}
ENTRY e {
  x = bf16[48] parameter(0)
  one = bf16[] constant(1)
  ones = bf16[48] broadcast(one), dimensions={}
  e = bf16[48] exponential(x)
  g = bf16[48] subtract(ones, e)
  r = bf16[48] reduce-window(g, one), window={size=48 pad=47_0}, to_apply=multiply
  ROOT t = (bf16[48]) tuple(r)
}
"""


def test_products_of_computed_numbers_in_blocks_are_within() -> None:
    """Prefix products that XLA computes in blocks, of rounded factors that it shows, are within the
    envelope; unrounded factors would hide the order."""
    bf16 = TYPES["bf16"]
    x = np.random.default_rng(9).uniform(-5, -3, 48).astype(bf16)
    values = {"e": np.exp(x.astype(np.float32)).astype(bf16)}
    values["g"] = bf16.type(1) - values["e"]
    rows = np.multiply.accumulate(values["g"].reshape(3, 16), axis=1)
    before = np.concatenate([np.ones(1, bf16), np.multiply.accumulate(rows[:2, -1])])
    values["r"] = actual = np.multiply(rows, before[:, None]).reshape(-1)
    module = hlo.parse(GATES)
    exact = [("", np.asarray(interp.evaluate(module, x)[0]))]

    def run(shown: hlo.Module) -> list[Array]:
        wanted = shown.entry.root_instruction.operands[1:]
        return [actual, *(values[name] for name in wanted)]

    found = Judge(module, (x,), exact, peer=XLA_CPU).judged([actual], run).counts
    assert found[EQUAL] + found[WITHIN] == 48 and found[WITHIN]


F8 = """HloModule f8_products
ENTRY e {
  x = f32[16,32] parameter(0)
  y = f32[32,16] parameter(1)
  a = f8e4m3fn[16,32] convert(x)
  b = f8e4m3fn[32,16] convert(y)
  ROOT r = f32[16,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize("is_rounded", [True, False])
def test_products_of_f8_that_is_rounded_as_written_are_within(is_rounded: bool) -> None:
    """Left in f32 the numbers may be off by a sixteenth: nothing tells such products apart."""
    x, y = np.random.default_rng(7).standard_normal((2, 16, 32)).astype(np.float32)
    given = (x, np.ascontiguousarray(y.T))
    f8 = [array.astype(ml_dtypes.float8_e4m3fn).astype(np.float32) for array in given]
    actual = np.matmul(*(f8 if is_rounded else given))
    module = hlo.parse(F8)
    exact = [("", np.asarray(interp.evaluate(module, *given)))]
    found = Judge(module, given, exact, peer=XLA_CPU).judged([actual], lambda other: None).counts
    assert not found[OUTSIDE]
    assert (found[UNDETERMINED] == 0) is is_rounded


def test_only_so_many_orders_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result of an order that is not tried any more is undetermined, not outside."""
    module = program("f16", f"{SIZE - 1}_0")
    x = np.random.default_rng(1).standard_normal(SIZE).astype(np.float16)
    monkeypatch.setattr("interp.envelope.open_results._MOST_FOLLOWED", 0)
    found = counts(module, x, in_blocks(x))
    assert found[OUTSIDE] == 0 and found[UNDETERMINED]


FOLDED = """HloModule m
fold {{
  a = {0}[] parameter(0)
  b = {0}[] parameter(1)
  n = {0}[] negate(a)
  ROOT s = {0}[] add(n, b)
}}
ENTRY e {{
  x = {0}[40] parameter(0)
  unused = f16[40] parameter(1)
  y = f16[40] reverse(unused), dimensions={{0}}
  z = {0}[] constant(0)
  r = {0}[] reduce(x, z), dimensions={{0}}, to_apply=fold
  ROOT t = ({0}[], f16[40]) tuple(r, y)
}}
"""


@pytest.mark.parametrize(
    ("element_type", "count"), [("s32", 2), ("f32", 3), ("f16", 10)], ids=["s32", "f32", "f16"]
)
def test_orders_are_tried_where_they_matter(element_type: str, count: int) -> None:
    """Sums of integers round in no type, and f16 that is only moved in none."""
    assert len(usual_budgets(hlo.parse(FOLDED.format(element_type)), XLA_CPU)) == count


LOG_SUMS = """HloModule cumlogsumexp
fold {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  d = bf16[] subtract(a, b)
  ne = pred[] compare(d, d), direction=NE
  sum = bf16[] add(a, b)
  max = bf16[] maximum(a, b)
  abs = bf16[] abs(d)
  neg = bf16[] negate(abs)
  exp = bf16[] exponential(neg)
  log = bf16[] log-plus-one(exp)
  both = bf16[] add(max, log)
  ROOT s = bf16[] select(ne, sum, both)
}
ENTRY e {
  x = bf16[64] parameter(0)
  z = bf16[] constant(-inf)
  ROOT r = bf16[64] reduce-window(x, z), window={size=64 pad=63_0}, to_apply=fold
}
"""


def added_exponentials(one: Array, other: Array) -> Array:
    with np.errstate(invalid="ignore"):
        difference = np.abs(one - other)
        both = np.maximum(one, other) + np.log1p(np.exp(-difference))
        return np.where(np.isnan(difference), one + other, both)


def log_sums(rows: Array) -> Array:
    """Fold along the last axis, rounded at each step."""
    state, found = np.full(rows.shape[:-1], -np.inf, rows.dtype), []
    for step in range(rows.shape[-1]):
        state = added_exponentials(state, rows[..., step])
        found.append(state)
    return np.stack(found, -1)


def test_long_folds_by_functions_of_narrow_types_are_within() -> None:
    """In intervals, a chance that an exponential is rounded the other way grows with each step."""
    bf16 = ml_dtypes.bfloat16
    x = np.random.default_rng(2).standard_normal(64).astype(np.float32).astype(bf16)
    inside = log_sums(x.reshape(4, 16))
    before = np.concatenate([np.full(1, -np.inf, bf16), log_sums(inside[:, -1])[:-1]])
    of_blocks = added_exponentials(inside, before[:, None]).reshape(-1)
    module = hlo.parse(LOG_SUMS)
    for actual in (log_sums(x), of_blocks):
        found = counts(module, x, actual)
        assert found[EQUAL] + found[WITHIN] == 64
    assert counts(module, x, of_blocks * bf16(1.125))[UNDETERMINED] > 32

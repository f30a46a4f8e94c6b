"""Programs of one instruction each on bounded arrays, and arguments of every size for them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np

BOUND = 4

ADD = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
"""

COMPUTATIONS = (
    f"HloModule bounded\n{ADD}"
    + """
mixed { a = f32[] parameter(0)
  b = f32[] parameter(1)
  m = f32[] multiply(a, b)
  ROOT r = f32[] subtract(m, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }
not_less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE }
both { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  s = f32[] add(a, c)
  m = f32[] maximum(b, d)
  ROOT t = (f32[], f32[]) tuple(s, m) }
by_first { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }

twice { a = f32[] parameter(0)
  ROOT r = f32[] add(a, a) }
step { a = f32[3] parameter(0)
  c = f32[3] parameter(1)
  s = f32[3] add(a, c)
  ROOT t = (f32[3], f32[3]) tuple(s, s) }
shorter { a = f32[3] parameter(0)
  c = f32[3] parameter(1)
  d = f32[1] slice(a), slice={[0:1]}
  e = f32[] reshape(d)
  n = s32[] convert(e)
  s = f32[<=3] set-dimension-size(a, n), dimensions={0}
  ROOT t = (f32[<=3], f32[3]) tuple(s, c) }
grow { s = (f32[<=4,3], s32[]) parameter(0)
  a = f32[<=4,3] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(n, one)
  b = f32[<=4,3] add(a, a)
  c = f32[<=4,3] set-dimension-size(b, next), dimensions={0}
  ROOT t = (f32[<=4,3], s32[]) tuple(c, next) }
below { s = (f32[<=4,3], s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=1
  three = s32[] constant(3)
  ROOT r = pred[] compare(n, three), direction=LT }
negated { a = f32[<=4,3] parameter(0)
  ROOT r = f32[<=4,3] negate(a) }
shrunk { a = f32[<=4,3] parameter(0)
  one = s32[] constant(1)
  ROOT r = f32[<=4,3] set-dimension-size(a, one), dimensions={0} }
"""
)

PARAMETERS = """
  x = f32[<=4,3] parameter(0)
  y = f32[<=4,3] parameter(1)
  w = f32[4,3] parameter(2)
  v = f32[3,<=4] parameter(3)
  i = s32[<=4,1] parameter(4)
  k = s32[] parameter(5)
  q = f32[<=4,5,6,2] parameter(6)
  u = f32[<=4,<=5,6] parameter(7)
  p = f32[<=4,<=4] parameter(8)
  c = f32[<=3] parameter(9)
  f = f32[2,3,2,3] parameter(10)
  g = f32[3,4] parameter(11)
"""

VALUES = """
  one = f32[] constant(1)
  two = s32[] constant(2)
  c3 = f32[3] constant({1,2,3})
  c4 = f32[4] constant({1,2,3,4})
  few = s32[] minimum(k, two)
  state = (f32[<=4,3], s32[]) tuple(x, k)
  g2 = f32[3,2] slice(g), slice={[0:3],[0:2]}
  g4 = f32[4,3] transpose(g), dimensions={1,0}
  g5 = f32[3,1,1] constant({{{1}},{{2}},{{-3}}})
  fs = f32[2,3,1,2] slice(f), slice={[0:2],[0:3],[0:1],[0:2]}
  fk = f32[2,3,2] reshape(fs)
  v1 = f32[3,<=4,1] reshape(v)
  v3 = f32[3,<=3] slice(v), slice={[0:3],[0:3]}
  p64 = f64[<=4,<=4] convert(p)
  pc = c64[<=4,<=4] complex(p, p)
  xc = c64[<=4,3] complex(x, x)
  xr = f32[<=4] reduce(x, one), dimensions={1}, to_apply=add
  square = f32[2,2] constant({{4,1},{1,3}})
  squares = f32[4,2,2] broadcast(square), dimensions={1,2}
  ones = f32[<=4,2,2] broadcast(xr), dimensions={0}
  zeros = f32[<=4,2,2] subtract(ones, ones)
  pb = f32[<=4,2,2] add(squares, zeros)
  none = bf16[] constant(1)
  g3 = f32[3,3] slice(g), slice={[0:3],[0:3]}
  x1 = f32[<=4,1] slice(y), slice={[0:4],[1:2]}
  y1 = f32[<=4,1] slice(y), slice={[0:4],[0:1]}
  i1 = s32[<=4] reshape(i)
  sizes = s32[<=4] abs(i1)
  pair = s32[2] constant({2,1})
  ones4 = s32[4] constant({1,1,1,1})
  pairs = s32[<=4,2] broadcast(sizes), dimensions={0}
  y2 = f32[<=4,3,2] broadcast(y), dimensions={0,1}
  x2 = f32[2,<=4,3] broadcast(x), dimensions={1,2}
  xb = f32[<=4,3,2] broadcast(x), dimensions={0,1}
  yb = f32[2,<=4,2,3] broadcast(y), dimensions={1,3}
"""

# What each program computes, by family: ``shape opcode(operands), attributes``.
ROWS: dict[str, str] = {
    "elementwise": """
f32[<=4,3] add(x, y)
f32[<=4,3] add(x, w)
f32[<=4,3] multiply(w, y)
f32[4,3] add(x, w)
f32[<=4,3] add(w, w)
pred[<=4,3] compare(x, y), direction=LT
f32[<=4,3] clamp(x, y, w)
f32[<=4,3] clamp(one, y, one)
f32[<=4,3] exponential(x)
s8[<=4,3] convert(x)
u32[<=4,3] bitcast-convert(x)
u8[<=4,3,4] bitcast-convert(x)
f32[<=4,3] reduce-precision(x), exponent_bits=5, mantissa_bits=3
""",
    "movement": """
f32[<=4,3,2] broadcast(x), dimensions={0,1}
f32[2,3,<=4] broadcast(x), dimensions={2,1}
f32[2,3,4] broadcast(x), dimensions={2,1}
f32[3,<=4] transpose(x), dimensions={1,0}
f32[<=4,3] reverse(x), dimensions={0,1}
f32[<=2,3] slice(x), slice={[0:4:2],[0:3]}
f32[<=2,3] slice(x), slice={[1:3],[0:3]}
f32[<=2,2] slice(x), slice={[0:3:2],[0:3:2]}
f32[2,3] slice(x), slice={[1:3],[0:3]}
f32[1,3] slice(x), slice={[2:3],[0:3]}
f32[<=9,5] pad(x, one), padding=1_1_1x1_1
f32[<=4,3] pad(x, one), padding=-1_1x0_0
f32[<=2,3] pad(x, one), padding=1_-3x0_0
f32[<=8,3] concatenate(x, y), dimensions={0}
f32[<=12,3] concatenate(x, w, y), dimensions={0}
f32[<=4,6] concatenate(x, y), dimensions={1}
f32[<=12] reshape(x)
f32[12] reshape(x)
f32[2,<=6] reshape(x)
f32[<=4,1,3] reshape(x)
f32[<=2,6] reshape(x)
f32[<=2,<=6] reshape(x), inferred_dimension=0
f32[2,2,3] reshape(x), inferred_dimension=1
f32[<=4,<=3] dynamic-reshape(x, k, two)
f32[<=4,3] set-dimension-size(x, k), dimensions={0}
f32[4,3] set-dimension-size(x, k), dimensions={0}
f32[<=4,<=3] set-dimension-size(x, k), dimensions={1}
f32[4,<=3] set-dimension-size(w, k), dimensions={1}
s32[] get-dimension-size(x), dimensions={0}
s32[] get-dimension-size(x), dimensions={1}
f32[<=4,4] iota(), iota_dimension=0
f32[<=4,3] bitcast(x)
f32[<=12] bitcast(x)
""",
    "folds": """
f32[3] reduce(x, one), dimensions={0}, to_apply=add
f32[<=4] reduce(x, one), dimensions={1}, to_apply=add
f32[4] reduce(x, one), dimensions={1}, to_apply=add
f32[3] reduce(x, one), dimensions={0}, to_apply=mixed
f32[] reduce(x, one), dimensions={0,1}, to_apply=add
(f32[3], f32[3]) reduce(x, y, one, one), dimensions={0}, to_apply=both
(f32[<=4], f32[4]) reduce(x, w, one, one), dimensions={1}, to_apply=both
f32[<=4,3] reduce-window(x, one), window={size=3x1 pad=1_1x0_0}, to_apply=add
f32[<=3,3] reduce-window(x, one), window={size=2x1 stride=2x1 pad=1_1x0_0}, to_apply=mixed
f32[<=4,3] reduce-window(x, one), window={size=4x1 pad=3_0x0_0}, to_apply=add
f32[<=7,3] reduce-window(x, one),
  window={size=2x2 pad=0_1x1_0 lhs_dilate=2x1 rhs_dilate=1x1}, to_apply=mixed
f32[<=4,3] select-and-scatter(x, y, one), window={size=3x1 pad=1_1x0_0}, select=not_less,
  scatter=add
f32[<=4,3] select-and-scatter(x, w, one), window={size=3x1 pad=1_1x0_0}, select=not_less,
  scatter=mixed
f32[4,3] select-and-scatter(w, y, one), window={size=3x1 pad=1_1x0_0}, select=not_less,
  scatter=add
(f32[<=4,3], f32[<=4,3]) sort(x, y), dimensions={0}, to_apply=by_first, is_stable=true
(f32[4,3], f32[<=4,3]) sort(w, y), dimensions={0}, to_apply=by_first, is_stable=true
f32[<=4,3] sort(x), dimensions={1}, to_apply=less, is_stable=true
(f32[<=4,2], s32[<=4,2]) topk(x), k=2, largest=true
(f32[3,3], s32[3,3]) topk(v), k=3, largest=true
(f32[<=4,3], f32[3], f32[3]) batch-norm-training(x, c3, c3), epsilon=0.1, feature_index=1
(f32[3,<=4], f32[<=4], f32[<=4]) batch-norm-training(v, c4, c4), epsilon=0.1, feature_index=1
(f32[<=4,3], f32[3], f32[3]) batch-norm-grad(x, c3, c3, c3, y), epsilon=0.1, feature_index=1
f32[3,<=4] batch-norm-inference(v, c4, c4, c4, c4), epsilon=0.1, feature_index=1
""",
    "products": """
f32[<=4,<=4] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
f32[3,3] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
f32[3,3] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}
f32[3,3] dot(v, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
f64[3,3] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
s32[3,3] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
f32[<=4] dot(x, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1},
  rhs_contracting_dims={1}
f32[4,3,3] dot(x, w), lhs_batch_dims={0}, rhs_batch_dims={0}
f32[<=4,2] ragged-dot(x, y2, sizes), lhs_contracting_dims={1}, rhs_contracting_dims={1},
  lhs_ragged_dims={0}, rhs_group_dims={0}
f32[3,3] ragged-dot(v, x2, pair), lhs_contracting_dims={1}, rhs_contracting_dims={1},
  lhs_ragged_dims={0}, rhs_group_dims={0}
f32[<=4,3,3] ragged-dot(x, y, sizes), lhs_contracting_dims={0}, rhs_contracting_dims={0},
  lhs_ragged_dims={0}
f32[2,3,3] ragged-dot(x, w, pair), lhs_contracting_dims={0}, rhs_contracting_dims={0},
  lhs_ragged_dims={0}
f32[<=4,3,3] ragged-dot(w, w, sizes), lhs_contracting_dims={0}, rhs_contracting_dims={0},
  lhs_ragged_dims={0}
f32[4,2] ragged-dot(w, y2, ones4), lhs_contracting_dims={1}, rhs_contracting_dims={1},
  lhs_ragged_dims={0}, rhs_group_dims={0}
f32[<=4] ragged-dot(x, y, sizes), lhs_batch_dims={0}, rhs_batch_dims={0},
  lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}
f32[<=4,3,3] ragged-dot(xb, yb, pairs), lhs_batch_dims={0}, rhs_batch_dims={1},
  lhs_contracting_dims={2}, rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={0}
f32[<=4,3] scaled-dot(x, g3, x1, none), lhs_contracting_dims={1}, rhs_contracting_dims={0}
f32[3,3] scaled-dot(x, w, y, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}
f32[3,3] scaled-dot(x, w, none, y1), lhs_contracting_dims={0}, rhs_contracting_dims={0}
f32[<=4] scaled-dot(x, y, none, w), lhs_batch_dims={0}, rhs_batch_dims={0},
  lhs_contracting_dims={1}, rhs_contracting_dims={1}
f32[<=4,4,6,3] convolution(q, f), window={size=2x3 pad=0_0x1_1}, dim_labels=b01f_01io->b01f
f32[6,4,<=3,3] convolution(q, f), window={size=2x3 stride=1x2 pad=0_0x2_2},
  dim_labels=10bf_01io->b01f
f32[<=4,4] convolution(x, g), window={}, dim_labels=bf_io->bf
f32[<=2,2] convolution(x, g2), window={}, dim_labels=bf_io->bf, batch_group_count=2
f32[3,3] convolution(v, g4), window={}, dim_labels=bf_io->bf
f32[3,3] convolution(v, y), window={}, dim_labels=bf_io->bf
f32[<=4,<=9,2] convolution(u, fk), window={size=2 lhs_dilate=2 pad=0_1},
  dim_labels=b0f_0io->b0f, feature_group_count=2
f32[3,<=4,1] convolution(v1, g5), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
""",
    "indexing": """
f32[<=4,3] dynamic-slice(x, k, k), dynamic_slice_sizes={4,3}
f32[2,3] dynamic-slice(x, k, k), dynamic_slice_sizes={2,3}
f32[<=2,2] dynamic-slice(x, k, k), dynamic_slice_sizes={2,2}
f32[<=4,3] dynamic-update-slice(x, y, k, k)
f32[4,3] dynamic-update-slice(w, y, k, k)
f32[<=4,3] dynamic-update-slice(x, w, k, k)
f32[<=4,3] gather(w, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
  index_vector_dim=1, slice_sizes={1,3}
f32[<=4,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
  index_vector_dim=1, slice_sizes={1,3}
f32[<=4,2,3] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0},
  index_vector_dim=1, slice_sizes={2,3}
f32[<=4,<=4,3] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0},
  index_vector_dim=1, slice_sizes={4,3}
f32[4,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={}, start_index_map={1},
  index_vector_dim=1, slice_sizes={1,3}, operand_batching_dims={0},
  start_indices_batching_dims={0}
f32[<=4,3] scatter(x, i, y), update_window_dims={1}, inserted_window_dims={0},
  scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
f32[4,3] scatter(w, i, y), update_window_dims={1}, inserted_window_dims={0},
  scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=mixed
f32[<=4,3] scatter(x, i, w), update_window_dims={1}, inserted_window_dims={0},
  scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=mixed
""",
    "algebra": """
c64[<=4,2] fft(x), fft_type=RFFT, fft_length={3}
f32[<=4,<=4] cholesky(p), lower=true
f32[<=4,<=4] cholesky(p)
f32[4,4] cholesky(p)
f64[<=4,<=4] cholesky(p64)
c64[<=4,<=4] cholesky(pc), lower=true
f32[<=4,2,2] cholesky(pb), lower=true
f32[<=4,3] triangular-solve(p, x), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
f32[<=4,3] triangular-solve(p, x), left_side=true, lower=false, transpose_a=TRANSPOSE
f32[<=4,3] triangular-solve(p, x), left_side=true, lower=false, transpose_a=NO_TRANSPOSE
f32[3,<=4] triangular-solve(p, v), left_side=false, lower=false, transpose_a=NO_TRANSPOSE
f32[3,<=4] triangular-solve(p, v), left_side=false, lower=true, transpose_a=TRANSPOSE,
  unit_diagonal=true
c64[<=4,3] triangular-solve(pc, xc), left_side=true, lower=true, transpose_a=ADJOINT
""",
    "control": """
(f32[4,3], f32[3]) scan(x, c3), dimensions={0}, num_carries=1, to_apply=step, is_reverse=true
(f32[4,3], f32[3]) scan(w, c), dimensions={0}, num_carries=1, to_apply=step
f32[<=4,3] map(x, y), dimensions={0,1}, to_apply=add
f32[4,3] map(w, y), dimensions={0,1}, to_apply=add
f32[<=4,3] copy(x)
f32[<=4,3] opt-barrier(x)
(f32[4,3], s32[], s32[]) custom-call(x), custom_call_target="PadToStatic"
f32[<=4,<=3] custom-call(w, k, two), custom_call_target="SliceToDynamic"
f32[<=4,3] custom-call(x), custom_call_target="Sharding"
(f32[4,3], f32[3]) scan(x, c3), dimensions={0}, num_carries=1, to_apply=step
(f32[4,3], f32[3]) scan(x, c3), dimensions={0}, num_carries=1, to_apply=shorter
(f32[3,3], f32[3]) scan(v3, c3), dimensions={0}, num_carries=1, to_apply=step
(f32[<=4,3], s32[]) while(state), condition=below, body=grow
f32[<=4,3] conditional(few, x, y), branch_computations={negated, shrunk}
f32[<=4,3] call(x), to_apply=shrunk
f32[<=4,3] fusion(x), kind=kLoop, calls=negated
""",
}


def rows(family: str) -> list[str]:
    """The instructions of a family, one a line."""
    return re.sub(r"\n  +", " ", ROWS[family].strip()).splitlines()


def result_shape(row: str) -> str:
    return row[: row.index(") ") + 1] if row.startswith("(") else row.split(" ", 1)[0]


def program(chosen: list[str]) -> str:
    """A program whose results are those of the rows."""
    lines = [f"  r{n} = {row}" for n, row in enumerate(chosen)]
    names = ", ".join(f"r{n}" for n in range(len(chosen)))
    root = f"  ROOT all = ({', '.join(map(result_shape, chosen))}) tuple({names})"
    return "\n".join((COMPUTATIONS, "ENTRY main {", PARAMETERS, VALUES, *lines, root, "}"))


Sizes = tuple[int, int, int, int, int]  # of x, y, v, i; and the number k


def every_size() -> Iterator[Sizes]:
    """All pairs of actual sizes, and all sizes with all numbers from -2 on to beyond the bound."""
    sizes = range(BOUND + 1)
    for one, other in itertools.product(sizes, sizes):
        yield one, other, (2 * one + other) % 5, (one + 3 * other) % 5, (one + other) % 7 - 1
        yield one, other, other, other, 1
    for one, number in itertools.product(sizes, range(-2, BOUND + 3)):
        yield one, BOUND - one, number % 5, (number + one) % 5, number


_SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.1, 1e30, -1e-30, 3.3], np.float32)
_POSITIVE = np.array(
    [[4, 2, 1, 0.5], [2, 5, 0.25, 1], [1, 0.25, 3, 0.1], [0.5, 1, 0.1, 6]], np.float32
)


def arguments(sizes: Sizes) -> tuple[np.ndarray, ...]:
    """Arrays of these sizes, a tenth of them special numbers."""
    x, y, v, i, k = sizes
    random = np.random.default_rng(list(np.add(sizes, 2)))

    def floats(*dims: int) -> np.ndarray:
        plain = random.integers(-8, 9, dims).astype(np.float32) / 4
        special = _SPECIAL[random.integers(0, len(_SPECIAL), dims)]
        return np.where(random.random(dims) < 0.1, special, plain).astype(np.float32)

    return (
        *(floats(x, 3), floats(y, 3), floats(4, 3), floats(3, v)),
        random.integers(-1, 6, (i, 1)).astype(np.int32),
        np.array(k, np.int32),
        *(floats(x, 5, 6, 2), floats(x, y, 6), np.array(_POSITIVE[:x, :x]), floats(min(x, 3))),
        *(floats(2, 3, 2, 3), floats(3, 4)),
    )

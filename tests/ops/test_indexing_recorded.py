"""Results at the edges of windows, indices, sorts and convolutions, recorded from jaxlib 0.10.2 on
the CPU. Each program is text; the interpreter and the C backend give what its comment says.
"""

import os

import pytest
from conftest import has_c_compiler

import hlo
import interp
from backend_c.native.executable import Executable
from fuzz.compilers import combined_programs
from fuzz.compilers.quick_compilers import thorough

RECORDED = (
    """// windows skip padding and holes
// expect: [3, 4, 4, 5, 9, 9]
largest {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT result = s32[] maximum(x, y)
}
ENTRY main {
  x = s32[6] constant({3, 1, 4, 1, 5, 9})
  init = s32[] constant(-7)
  ROOT result = s32[6] reduce-window(x, init),
    window={size=3 stride=2 pad=2_3 lhs_dilate=2 rhs_dilate=2}, to_apply=largest
}
""",
    """// a window of negative padding
// expect: [10, 15, 14]
sum {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT result = s32[] add(x, y)
}
ENTRY main {
  x = s32[6] constant({3, 1, 4, 1, 5, 9})
  init = s32[] constant(0)
  ROOT result = s32[3] reduce-window(x, init), window={size=3 pad=-2_1}, to_apply=sum
}
""",
    """// the first of equals is selected
// expect: [[10, 20, 0, 30], [0, 0, 0, 0]]
stays {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT result = pred[] compare(x, y), direction=GE
}
sum {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT result = s32[] add(x, y)
}
ENTRY main {
  x = s32[2,4] constant({{3, 3, 1, 2}, {3, 0, 2, 2}})
  y = s32[1,3] constant({{10, 20, 30}})
  init = s32[] constant(0)
  ROOT result = s32[2,4] select-and-scatter(x, y, init), window={size=2x2}, select=stays,
    scatter=sum
}
""",
    """// starts beyond both ends
// expect: [3, 1, 4, 1, 4, 1, 5, 9]
ENTRY main {
  x = s32[6] constant({3, 1, 4, 1, 5, 9})
  low = s64[] constant(-5)
  high = s64[] constant(9223372036854775807)
  one = s32[4] dynamic-slice(x, low), dynamic_slice_sizes={4}
  other = s32[4] dynamic-slice(x, high), dynamic_slice_sizes={4}
  ROOT result = s32[8] concatenate(one, other), dimensions={0}
}
""",
    """// an unsigned start beyond the sign
// expect: [3, 1, 4, 1, 70, 80]
ENTRY main {
  x = s32[6] constant({3, 1, 4, 1, 5, 9})
  start = u32[] constant(4294967295)
  update = s32[2] constant({70, 80})
  ROOT result = s32[6] dynamic-update-slice(x, update, start)
}
""",
    """// gathered slices are brought into bounds
// expect: [[0, 2, 2], [1, 3, 3]]
ENTRY main {
  x = s32[3,4] iota(), iota_dimension=1
  i = s32[3,2] constant({{0, 0}, {-3, 2}, {9, 9}})
  ROOT result = s32[2,3] gather(x, i), offset_dims={0}, collapsed_slice_dims={0},
    start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,2}
}
""",
    """// a gather along batches
// expect: [[0, 5, 10], [3, 7, 8]]
ENTRY main {
  x = s32[3,4] constant({{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}})
  i = s32[2,3] constant({{0, 1, 2}, {3, 9, -9}})
  ROOT result = s32[2,3] gather(x, i), offset_dims={}, collapsed_slice_dims={1},
    start_index_map={1}, index_vector_dim=2, slice_sizes={1,1}, operand_batching_dims={0},
    start_indices_batching_dims={1}
}
""",
    """// windows out of bounds are left out
// expect: [1, 2, 0, 3, 4]
sum {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT result = s32[] add(x, y)
}
ENTRY main {
  x = s32[5] constant({0, 0, 0, 0, 0})
  i = s32[4,1] constant({{0}, {3}, {4}, {-1}})
  u = s32[4,2] constant({{1, 2}, {3, 4}, {5, 6}, {7, 8}})
  ROOT result = s32[5] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
}
""",
    """// a scatter along batches
// expect: [[1, 5, 0], [8, 0, 11]]
sum {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT result = s32[] add(x, y)
}
ENTRY main {
  x = s32[2,3] constant({{0, 0, 0}, {0, 0, 0}})
  i = s32[2,4,1] constant({{{0}, {1}, {1}, {7}}, {{2}, {2}, {-1}, {0}}})
  u = s32[2,4] constant({{1, 2, 3, 4}, {5, 6, 7, 8}})
  ROOT result = s32[2,3] scatter(x, i, u), update_window_dims={}, inserted_window_dims={1},
    scatter_dims_to_operand_dims={1}, index_vector_dim=2, input_batching_dims={0},
    scatter_indices_batching_dims={0}, to_apply=sum
}
""",
    """// a stable sort of pairs
// expect: [[1, 3, 0, 2], [1, 3, 0, 2]]
less {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  k = s32[] parameter(2)
  l = s32[] parameter(3)
  ROOT result = pred[] compare(x, y), direction=LT
}
ENTRY main {
  x = s32[2,4] constant({{2, 1, 2, 1}, {0, -1, 0, -1}})
  k = s32[2,4] iota(), iota_dimension=1
  sorted = (s32[2,4], s32[2,4]) sort(x, k), dimensions={1}, is_stable=true, to_apply=less
  ROOT result = s32[2,4] get-tuple-element(sorted), index=1
}
""",
    """// places of the largest
// expect: [1, 4, 5, 3, 0]
ENTRY main {
  x = f32[6] constant({1, nan, -0, 2, 7, 7})
  found = (f32[5], s32[5]) topk(x), k=5
  ROOT result = s32[5] get-tuple-element(found), index=1
}
""",
    """// a convolution of everything
// expect: [[[1, 2, 3, 4], [0, 0, 0, 0], [37, 46, 55, 64], [0, 0, 0, 0]]]
ENTRY main {
  x = s32[1,7,2] iota(), iota_dimension=1
  k = s32[3,1,4] constant({{{1, 2, 3, 4}}, {{5, 6, 7, 8}}, {{9, 10, 11, 12}}})
  ROOT result = s32[1,4,4] convolution(x, k),
    window={size=3 stride=3 pad=2_-1 lhs_dilate=2 rhs_dilate=2 rhs_reversal=1},
    dim_labels=b0f_0io->b0f, feature_group_count=2
}
""",
    """// groups of batches
// expect: [[[0, 60], [0, 60]], [[3, 90], [3, 90]]]
ENTRY main {
  x = s32[4,3,1] iota(), iota_dimension=0
  k = s32[2,1,2] constant({{{1, 10}}, {{2, 20}}})
  ROOT result = s32[2,2,2] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f,
    batch_group_count=2
}
""",
    """// reduced in row-major order
// expect: 120
twice {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  both = s32[] add(x, x)
  ROOT result = s32[] add(both, y)
}
ENTRY main {
  x = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})
  init = s32[] constant(0)
  ROOT result = s32[] reduce(x, init), dimensions={1,0}, to_apply=twice
}
""",
)


def _expected(text: str) -> str:
    return text.splitlines()[1].removeprefix("// expect: ")


@pytest.mark.parametrize("text", RECORDED, ids=lambda text: text.splitlines()[0][3:])
def test_recorded(text: str) -> None:
    result = interp.evaluate(hlo.parse(text))
    assert str(result.tolist()) == _expected(text)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_recorded_in_c() -> None:
    modules = [hlo.parse(text) for text in RECORDED]
    executables = combined_programs.compiled(modules, thorough(os.environ))
    for text, executable in zip(RECORDED, executables, strict=True):
        assert isinstance(executable, Executable), executable
        assert str(executable().tolist()) == _expected(text)

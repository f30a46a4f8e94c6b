"""The constraints of ops that read and write at computed places."""

from verdicts import label, rows

GATHER = (
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,"
    " slice_sizes={1,4}"
)
POINTS = (
    "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0}, index_vector_dim=1,"
    " slice_sizes={1,0}"
)
ROW = (
    "offset_dims={0,1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=0,"
    " slice_sizes={1,4}"
)
SCATTER = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},"
    " index_vector_dim=1"
)
ALL = (
    "update_window_dims={{}}, inserted_window_dims={{{}}}, scatter_dims_to_operand_dims={{0}},"
    " index_vector_dim=1"
)
NONE = (
    "update_window_dims={{{}}}, inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0}},"
    " index_vector_dim=0"
)
PAIRED = (
    "offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1,"
    " slice_sizes={1,1,4}, operand_batching_dims={0}, start_indices_batching_dims={0}"
)
UNPAIRED = PAIRED.replace("indices_batching_dims={0}", "indices_batching_dims={}")
BEYOND = SCATTER.replace("{0},", "{1},")
TWO = "f32[9,4] s32[9,4] s32[7,1] f32[7,4] s32[7,4]"


@rows("""
 | f32[5,4] s32[] s32[] | f32[2,4] dynamic-slice(a, b, c), dynamic_slice_sizes={2,4}
 | f32[5,<=4] u8[] u8[] | f32[2,<=4] dynamic-slice(a, b, c), dynamic_slice_sizes={2,4}
C1 | f32[5,4] s32[] | f32[2,4] dynamic-slice(a, b), dynamic_slice_sizes={2,4}
C1 | f32[5,4] s32[] s64[] | f32[2,4] dynamic-slice(a, b, c), dynamic_slice_sizes={2,4}
C1 | f32[5,4] f32[] f32[] | f32[2,4] dynamic-slice(a, b, c), dynamic_slice_sizes={2,4}
 | f32[5] s32[1] | f32[2] dynamic-slice(a, b), dynamic_slice_sizes={2}
 | f32[5,4] u8[2] | f32[2,4] dynamic-slice(a, b), dynamic_slice_sizes={2,4}
C1 | f32[5,4] s32[3] | f32[2,4] dynamic-slice(a, b), dynamic_slice_sizes={2,4}
C1 | f32[5,4] s32[<=2] | f32[2,4] dynamic-slice(a, b), dynamic_slice_sizes={2,4}
C1 | f32[5,4] f32[2] | f32[2,4] dynamic-slice(a, b), dynamic_slice_sizes={2,4}
C1 | f32[5] (s32[]) | f32[2] dynamic-slice(a, b), dynamic_slice_sizes={2}
C2 | f32[5,4] s32[] s32[] | f32[2,4] dynamic-slice(a, b, c), dynamic_slice_sizes={2}
C2 | f32[5] s32[] | f32[6] dynamic-slice(a, b), dynamic_slice_sizes={6}
C2 | f32[5] s32[] | f32[0] dynamic-slice(a, b), dynamic_slice_sizes={-1}
attributes | f32[5] s32[] | f32[5] dynamic-slice(a, b)
 | f32[5,4] f32[5,1] s32[] s32[] | f32[5,4] dynamic-update-slice(a, b, c, d)
 | f32[<=5] f32[2] s32[] | f32[<=5] dynamic-update-slice(a, b, c)
C1 | f32[5,4] f32[5,1] s32[] | f32[5,4] dynamic-update-slice(a, b, c)
C2 | f32[5] f32[6] s32[] | f32[5] dynamic-update-slice(a, b, c)
C2 | f32[5] f16[2] s32[] | f32[5] dynamic-update-slice(a, b, c)
C2 | f32[5] f32[] s32[] | f32[5] dynamic-update-slice(a, b, c)
C2 | f32[5] (f32[2]) s32[] | f32[5] dynamic-update-slice(a, b, c)
shape | f32[5] f32[2] s32[] | f32[2] dynamic-update-slice(a, b, c)
""")
def test_dynamic_slices(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows(f"""
 | f32[9,4] s32[7,1] | f32[7,4] gather(a, b), {GATHER}
 | f32[9,4] s32[7] | f32[7,4] gather(a, b), {GATHER}
 | f32[9,4] s64[<=7,1] | f32[<=7,4] gather(a, b), {GATHER}, indices_are_sorted=true
 | f32[9,<=4] s32[7,1] | f32[7,<=4] gather(a, b), {GATHER}
 | f32[7,9,4] s32[7,1] | f32[7,4] gather(a, b), {PAIRED}
C1 | f32[9,4] (s32[7,1]) | f32[7,4] gather(a, b), {GATHER}
C1 | f32[9] s32[7,1] | f32[7,1] gather(a, b), {GATHER.replace("map={0}", "map={1}")}
C1 | f32[9,4] s32[7,1] | f32[7,4] gather(a, b), {GATHER.replace("dims={0}", "dims={0,0}")}
C1 | f32[9,4] s32[7,1] | f32[7] gather(a, b), {POINTS.replace("{0,1}", "{1,0}")}
C4 | f32[9,4] s32[1] | f32[1,4] gather(a, b), {ROW.replace("{0,1}", "{1,0}")}
 | f32[9,4] s32[7,1] | f32[7] gather(a, b), {POINTS}
 | f32[9,4] s32[1] | f32[1,4] gather(a, b), {ROW}
C2 | f32[9,4] f32[7,1] | f32[7,4] gather(a, b), {GATHER}
C2 | f32[9,4] s32[7,2] | f32[7,4] gather(a, b), {GATHER}
C2 | f32[9,4] s32[7,1] | f32[7,4] gather(a, b), {GATHER.replace("vector_dim=1", "vector_dim=3")}
C3 | f32[9,4] s32[7,1] | f32[7,5] gather(a, b), {GATHER.replace("{1,4}", "{1,5}")}
C3 | f32[9,4] s32[7,1] | f32[7,4] gather(a, b), {GATHER.replace("{1,4}", "{2,4}")}
C3 | f32[9,4] s32[7,1] | f32[7,4] gather(a, b), {GATHER.replace("{1,4}", "{1}")}
C4 | f32[9,4] s32[7,1] | f32[7] gather(a, b), {GATHER.replace("ims={1}", "ims={}")}
C4 | f32[9,4] s32[7,1] | f32[7,4] gather(a, b), {GATHER.replace("ims={1}", "ims={2}")}
C5 | f32[6,9,4] s32[7,1] | f32[7,4] gather(a, b), {PAIRED}
C5 | f32[7,9,4] s32[7,1] | f32[7,4] gather(a, b), {UNPAIRED}
shape | f32[9,4] s32[7,1] | f32[4,7] gather(a, b), {GATHER}
attributes | f32[9,4] s32[7,1] | f32[7,4] gather(a, b), offset_dims={{1}}
""")
def test_gather(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows(f"""
 | f32[9,4] s32[7,1] f32[7,4] | f32[9,4] scatter(a, b, c), {SCATTER}, to_apply=add
 | f32[9,4] s32[7,1] f32[7,3] | f32[9,4] scatter(a, b, c), {SCATTER}, to_apply=add
 | {TWO} | (f32[9,4], s32[9,4]) scatter(a, b, c, d, e), to_apply=both, {SCATTER}
C1 | f32[9,4] s32[7,1] | f32[9,4] scatter(a, b), {SCATTER}, to_apply=add
C1 | f32[9] s32[7,1] f32[7] | f32[9] scatter(a, b, c), {BEYOND}, to_apply=add
C1 | f32[9,4] s32[7,1] (f32[7,4]) | f32[9,4] scatter(a, b, c), {SCATTER}, to_apply=add
C2 | f32[9,4] f32[7,1] f32[7,4] | f32[9,4] scatter(a, b, c), {SCATTER}, to_apply=add
C2 | f32[9,4] s32[7,2] f32[7,4] | f32[9,4] scatter(a, b, c), {SCATTER}, to_apply=add
C3 | f32[9,4] s32[7,1] f32[6,4] | f32[9,4] scatter(a, b, c), {SCATTER}, to_apply=add
C3 | f32[9,4] s32[7,1] f32[7,5] | f32[9,4] scatter(a, b, c), {SCATTER}, to_apply=add
C3 | f32[9,4] s32[7,1] f32[7] | f32[9,4] scatter(a, b, c), {SCATTER}, to_apply=add
C3 | f32[9,4] s32[7,1] f32[7,4,1] | f32[9,4] scatter(a, b, c), {SCATTER}, to_apply=add
C1 | f32[9,4] s32[7,1] f32[7] | f32[9,4] scatter(a, b, c), {ALL.format("1,0")}, to_apply=add
 | f32[9,4] s32[7,1] f32[7] | f32[9,4] scatter(a, b, c), {ALL.format("0,1")}, to_apply=add
C3 | f32[4,4] s32[1] f32[1,4] | f32[4,4] scatter(a, b, c), {NONE.format("1,0")}, to_apply=add
 | f32[4,4] s32[1] f32[1,4] | f32[4,4] scatter(a, b, c), {NONE.format("0,1")}, to_apply=add
C4 | f32[9,4] s32[7,1] s32[7,4] | f32[9,4] scatter(a, b, c), {SCATTER}, to_apply=add
C4 | f32[9,4] s32[7,1] f32[7,4] | f32[9,4] scatter(a, b, c), {SCATTER}, to_apply=less
""")
def test_scatter(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows("""
 | f32[3,<=4] | f32[3,<=4] sort(a), dimensions={1}, to_apply=less
 | f32[4] s32[4] | (f32[4], s32[4]) sort(a, b), dimensions={0}, is_stable=true, to_apply=less_of_two
C1 | | f32[4] sort(), dimensions={0}, to_apply=less
C1 | f32[4] s32[3] | (f32[4], s32[4]) sort(a, b), dimensions={0}, to_apply=less_of_two
C2 | f32[4] | f32[4] sort(a), dimensions={1}, to_apply=less
C2 | f32[4] | f32[4] sort(a), dimensions={}, to_apply=less
C3 | f32[4] | f32[4] sort(a), dimensions={0}, to_apply=add
C3 | s32[4] | s32[4] sort(a), dimensions={0}, to_apply=less
C3 | f32[4] s32[4] | (f32[4], s32[4]) sort(a, b), dimensions={0}, to_apply=less
 | f32[3,4] | (f32[3,2], s32[3,2]) topk(a), k=2
 | f32[<=3,<=4] | (f32[<=3,4], s32[<=3,4]) topk(a), k=4, largest=false
C1 | f32[] | (f32[1], s32[1]) topk(a), k=1
C2 | f32[3,4] | (f32[3,5], s32[3,5]) topk(a), k=5
C2 | f32[3,4] | (f32[3,0], s32[3,0]) topk(a), k=-1
attributes | f32[3,4] | (f32[3,2], s32[3,2]) topk(a)
""")
def test_order(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected

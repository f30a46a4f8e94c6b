"""The constraints of reductions, and of what their computations take and give."""

from verdicts import label, rows

SUM = "dimensions={0}, to_apply=add"
PAIRS = "window={size=2 stride=2}"
TWO = "window={size=2}"
SCATTER = "select-and-scatter(a, b, c)"
CHOICE = "select=less, scatter=add"
ALONG = "to_apply=step, dimensions={0}"
NORM = "epsilon=0.001, feature_index=1"


@rows(f"""
 | f32[2,3] f32[] | f32[3] reduce(a, b), {SUM}
 | f32[2,<=3] f32[] | f32[<=3] reduce(a, b), {SUM}
 | f32[2,3] f32[] | f32[] reduce(a, b), dimensions={{1,0}}, to_apply=add
 | f32[2,3] f32[] | f32[2,3] reduce(a, b), dimensions={{}}, to_apply=add
 | f32[2] s32[2] f32[] s32[] | (f32[], s32[]) reduce(a, b, c, d), dimensions={{0}}, to_apply=both
C1 | f32[2,3] | f32[3] reduce(a), {SUM}
C1 | f32[2,3] f32[1] | f32[3] reduce(a, b), {SUM}
C1 | f32[2,3] s32[] | f32[3] reduce(a, b), {SUM}
C1 | f32[2] s32[3] f32[] s32[] | (f32[], s32[]) reduce(a, b, c, d), dimensions={{0}}, to_apply=both
C1 | f32[2,3] (f32[]) | f32[3] reduce(a, b), {SUM}
C2 | f32[2,3] f32[] | f32[2] reduce(a, b), dimensions={{2}}, to_apply=add
C2 | f32[2,3] f32[] | f32[2] reduce(a, b), dimensions={{1,1}}, to_apply=add
C3 | f32[2,3] f32[] | f32[3] reduce(a, b), dimensions={{0}}, to_apply=add_s32
C3 | f32[2,3] f32[] | f32[3] reduce(a, b), dimensions={{0}}, to_apply=twice
C3 | f32[2,3] f32[] | f32[3] reduce(a, b), dimensions={{0}}, to_apply=less
C3 | f32[2,3] f32[] | f32[3] reduce(a, b), dimensions={{0}}, to_apply=both
attributes | f32[2,3] f32[] | f32[3] reduce(a, b), dimensions={{0}}
shape | f32[2,3] f32[] | f32[2] reduce(a, b), {SUM}
""")
def test_reduce(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows(f"""
 | f32[5,<=4] f32[] | f32[3,<=4] reduce-window(a, b), window={{size=3x1}}, to_apply=add
 | f32[5] f32[] | f32[5] reduce-window(a, b), window={{size=5 pad=4_0}}, to_apply=add
 | f32[] f32[] | f32[] reduce-window(a, b), to_apply=add
 | f32[4] f32[] | f32[0] reduce-window(a, b), window={{size=1 pad=-2_-2}}, to_apply=add
C3 | f32[3] f32[] | f32[0] reduce-window(a, b), window={{size=1 pad=-2_-2}}, to_apply=add
 | f32[5] s32[5] f32[] s32[] | (f32[4], s32[4]) reduce-window(a, b, c, d), {TWO}, to_apply=both
C1 | f32[5] f32[5] | f32[4] reduce-window(a, b), window={{size=2}}, to_apply=add
C2 | f32[5] f32[] | f32[4] reduce-window(a, b), window={{size=2x2}}, to_apply=add
C2 | f32[5] f32[] | f32[4] reduce-window(a, b), to_apply=add
C3 | f32[5] f32[] | f32[4] reduce-window(a, b), window={{size=0}}, to_apply=add
C3 | f32[5] f32[] | f32[4] reduce-window(a, b), window={{size=2 stride=0}}, to_apply=add
C3 | f32[5] f32[] | f32[4] reduce-window(a, b), window={{size=2 lhs_dilate=0}}, to_apply=add
C3 | f32[5] f32[] | f32[4] reduce-window(a, b), window={{size=2 rhs_dilate=-1}}, to_apply=add
C4 | f32[5] f32[] | f32[4] reduce-window(a, b), window={{size=2}}, to_apply=less
 | f32[6] f32[3] f32[] | f32[6] {SCATTER}, {PAIRS}, {CHOICE}
C1 | f32[6] f16[3] f32[] | f32[6] {SCATTER}, {PAIRS}, {CHOICE}
C1 | f32[6] f32[3] f32[1] | f32[6] {SCATTER}, {PAIRS}, {CHOICE}
C2 | f32[6] f32[2] f32[] | f32[6] {SCATTER}, {PAIRS}, {CHOICE}
C2 | f32[6] f32[3] f32[] | f32[6] {SCATTER}, window={{size=2x2}}, {CHOICE}
C3 | f32[6] f32[3] f32[] | f32[6] {SCATTER}, {PAIRS}, select=add, scatter=add
C4 | f32[6] f32[3] f32[] | f32[6] {SCATTER}, {PAIRS}, select=less, scatter=less
""")
def test_windows(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows(f"""
 | f32[8,2] f32[2] | (f32[8,2], f32[2]) scan(a, b), {ALONG}, num_carries=1
 | f32[2,8] f32[2] | (f32[2,8], f32[2]) scan(a, b), to_apply=step, dimensions={{1}}, num_carries=1
C1 | f32[8,2] f32[2] | (f32[8,2], f32[2]) scan(a, b), {ALONG}, num_carries=2
C1 | f32[8,2] f32[2] | (f32[8,2], f32[2]) scan(a, b), {ALONG}, num_carries=-1
C2 | f32[8,2] f32[2] | (f32[8,2], f32[2]) scan(a, b), to_apply=step, dimensions={{2}}, num_carries=1
C3 | f32[8,3] f32[2] | (f32[8,2], f32[2]) scan(a, b), {ALONG}, num_carries=1
C4 | f32[8] f32[] | (f32[8], f32[]) scan(a, b), to_apply=less, dimensions={{0}}, num_carries=1
shape | f32[8] f32[] | (f32[8], f32[]) scan(a, b), to_apply=add, dimensions={{0}}, num_carries=1
   | f32[8] f32[] | f32[] scan(a, b), to_apply=add, dimensions={{0}}, num_carries=1
 | f32[2,3] f32[3] f32[3] | (f32[2,3], f32[3], f32[3]) batch-norm-training(a, b, c), {NORM}
C1 | s32[2,3] s32[3] s32[3] | (s32[2,3], s32[3], s32[3]) batch-norm-training(a, b, c), {NORM}
C2 | f32[3] f32[3] f32[3] | (f32[3], f32[3], f32[3]) batch-norm-training(a, b, c), {NORM}
C3 | f32[2,3] f32[2] f32[3] | (f32[2,3], f32[3], f32[3]) batch-norm-training(a, b, c), {NORM}
C3 | f32[2,3] f32[3] f16[3] | (f32[2,3], f32[3], f32[3]) batch-norm-training(a, b, c), {NORM}
 | f32[2,3] f32[3] f32[3] | f32[2,3] batch-norm-inference(a, b, c, b, c), {NORM}
C3 | f32[2,3] f32[3] f32[2] | f32[2,3] batch-norm-inference(a, b, b, b, c), {NORM}
 | f32[2,3] f32[3] | (f32[2,3], f32[3], f32[3]) batch-norm-grad(a, b, b, b, a), {NORM}
C3 | f32[2,3] f32[2] | (f32[2,3], f32[3], f32[3]) batch-norm-grad(a, b, b, b, a), {NORM}
C4 | f32[2,3] f32[3] | (f32[2,3], f32[3], f32[3]) batch-norm-grad(a, b, b, b, b), {NORM}
attributes | f32[2,3] f32[3] | f32[2,3] batch-norm-inference(a, b, b, b, b), epsilon=0.1
""")
def test_scan_and_batch_norms(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected

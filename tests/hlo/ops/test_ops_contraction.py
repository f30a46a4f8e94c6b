"""The constraints of dots and convolutions."""

from verdicts import label, rows

DIMS = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
BATCH = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"
LABELS = "dim_labels=b01f_01io->b01f"
CONV = "convolution(a, b)"
ROW = "dim_labels=b0f_0io->b0f"
LINE = f"window={{size=3}}, {ROW}"
SPREAD = f"window={{size=2 pad=1_2 lhs_dilate=2 rhs_dilate=3}}, {ROW}"
RAGGED = "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}"
ROWS = "lhs_ragged_dims={1}, rhs_group_dims={0}"
INNER = f"{DIMS}, lhs_ragged_dims={{1}}"


@rows(f"""
 | f32[2,3] f32[3,4] | f32[2,4] dot(a, b), {DIMS}
 | f32[2,3] f32[3,4] | f32[2,3,3,4] dot(a, b)
 | f32[2] f32[2] | f32[] dot(a, b), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
 | bf16[2,3] bf16[3,4] | f32[2,4] dot(a, b), {DIMS}
 | s8[2,3] u8[3,4] | s32[2,4] dot(a, b), {DIMS}
 | f8e5m2[2,3] f8e4m3fn[3,4] | f16[2,4] dot(a, b), {DIMS}
 | f32[<=2,3] f32[3,<=4] | f32[<=2,<=4] dot(a, b), {DIMS}, operand_precision={{highest,default}}
C1 | f32[2,3] (f32[3,4]) | f32[2,4] dot(a, b), {DIMS}
C2 | f32[2,3] f32[3,4] | f32[2,4] dot(a, b), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
C2 | f32[2,2] f32[2,2] | f32[] dot(a, b), lhs_contracting_dims={{1,1}}, rhs_contracting_dims={{0,1}}
C2 | f32[3,3] f32[3,4] | f32[2,4] dot(a, b), {DIMS}, lhs_batch_dims={{1}}, rhs_batch_dims={{1}}
C3 | f32[2,3] f32[3,4] | f32[2,4] dot(a, b), lhs_contracting_dims={{1}}
C3 | f32[2,3] f32[3,4] | f32[2,4] dot(a, b), {DIMS}, lhs_batch_dims={{0}}
C4 | f32[2,3] f32[4,4] | f32[2,4] dot(a, b), {DIMS}
C4 | f32[7,2,3] f32[6,3,4] | f32[7,2,4] dot(a, b), {BATCH}
 | f32[7,2,3] f32[7,3,4] | f32[7,2,4] dot(a, b), {BATCH}
 | f32[2,3] f32[3,4] | s32[2,4] dot(a, b), {DIMS}
C5 | f32[2,3] f32[3,4] | (f32[2,4]) dot(a, b), {DIMS}
shape | f32[2,3] f32[3,4] | f32[4,2] dot(a, b), {DIMS}
""")
def test_dot(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows(f"""
 | f32[11,5] f32[3,5,7] s32[3] | f32[11,7] ragged-dot(a, b, c), {RAGGED}, rhs_group_dims={{0}}
 | f32[5,11] f32[11,7] s32[3] | f32[3,5,7] ragged-dot(a, b, c), {INNER}
 | f32[7,2,3] f32[7,3,4] s32[3] | f32[7,2,4] ragged-dot(a, b, c), {BATCH}, lhs_ragged_dims={{0}}
C2 | f32[3,5] f32[3,5] s32[2,3] | f32[3] ragged-dot(a, b, c), lhs_batch_dims={{7}}, {ROWS}
C6 | f32[11,5] f32[3,5,7] s32[3] | f32[11,7] ragged-dot(a, b, c), {DIMS}
C6 | f32[11,5] f32[3,5,7] s32[3] | f32[11,7] ragged-dot(a, b, c), {DIMS}, lhs_ragged_dims={{2}}
C7 | f32[11,5] f32[3,5,7] s32[3] | f32[11,7] ragged-dot(a, b, c), {RAGGED}
C7 | f32[11,5] f32[3,5,7] s32[4] | f32[11,7] ragged-dot(a, b, c), {RAGGED}, rhs_group_dims={{0}}
C7 | f32[11,5] f32[3,5,7] s32[5] | f32[11,7] ragged-dot(a, b, c), {RAGGED}, rhs_group_dims={{1}}
C7 | f32[5,11] f32[11,7] s32[3] | f32[3,5,7] ragged-dot(a, b, c), {INNER}, rhs_group_dims={{0}}
C8 | f32[5,11] f32[11,7] f32[3] | f32[3,5,7] ragged-dot(a, b, c), {INNER}
 | bf16[8,64] bf16[64,8] bf16[8,2] bf16[2,8] | f32[8,8] scaled-dot(a, b, c, d), {DIMS}
C7 | bf16[8,64] bf16[64,8] bf16[] bf16[] | f32[8,8] scaled-dot(a, b, c, d), {DIMS}
C4 | bf16[8,64] bf16[32,8] bf16[8,2] bf16[] | f32[8,8] scaled-dot(a, b, c, d), {DIMS}
C6 | bf16[8,64] bf16[64,8] bf16[8,3] bf16[] | f32[8,8] scaled-dot(a, b, c, d), {DIMS}
C6 | bf16[8,64] bf16[64,8] bf16[8] bf16[] | f32[8,8] scaled-dot(a, b, c, d), {DIMS}
C6 | bf16[8,64] bf16[64,8] s8[] bf16[] | f32[8,8] scaled-dot(a, b, c, d), {DIMS}
""")
def test_relatives_of_dot(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows(f"""
 | f32[2,8,8,3] f32[3,3,3,5] | f32[2,6,6,5] {CONV}, window={{size=3x3}}, {LABELS}
 | f32[2,3] f32[3,5] | f32[2,5] {CONV}, dim_labels=bf_io->bf
 | f32[2,3] f32[3,5] | f32[5,2] {CONV}, dim_labels=bf_io->fb
 | f32[<=2,<=9,3] f32[3,3,5] | f32[<=2,<=4,5] {CONV}, window={{size=3 stride=2}}, {ROW}
 | f32[2,9,6] f32[3,3,4] | f32[2,7,4] {CONV}, {LINE}, feature_group_count=2
 | f32[4,9,3] f32[3,3,4] | f32[2,7,4] {CONV}, {LINE}, batch_group_count=2
 | f32[2,2,3] f32[3,3,5] | f32[2,0,5] {CONV}, {LINE}
 | f32[2,4,3] f32[2,3,5] | f32[2,7,5] {CONV}, {SPREAD}
C1 | f32[2,8,3] f32[3,3,3,5] | f32[2,6,6,5] {CONV}, window={{size=3x3}}, {LABELS}
C2 | f32[2,8,8,3] f32[3,3,3,5] | f32[2,6,6,5] {CONV}, window={{size=3}}, {LABELS}
C2 | f32[2,8,8,3] f32[3,3,3,5] | f32[2,6,6,5] {CONV}, window={{size=3x2}}, {LABELS}
C3 | f32[2,9,3] f32[3,3,5] | f32[2,4,5] {CONV}, window={{size=3 stride=0}}, {ROW}
C3 | f32[2,9,3] f32[3,3,4] | f32[2,7,4] {CONV}, {LINE}, feature_group_count=0
C3 | f32[4,9,6] f32[3,3,4] | f32[2,7,4] {CONV}, {LINE}, feature_group_count=2, batch_group_count=2
C4 | f32[2,9,6] f32[3,3,4] | f32[2,7,4] {CONV}, {LINE}
C4 | f32[2,9,6] f32[3,3,5] | f32[2,7,5] {CONV}, {LINE}, feature_group_count=2
C4 | f32[3,9,3] f32[3,3,4] | f32[2,7,4] {CONV}, {LINE}, batch_group_count=2
 | f32[2,3] f32[3,5] | s32[2,5] {CONV}, dim_labels=bf_io->bf
attributes | f32[2,3] f32[3,5] | f32[2,5] convolution(a, b)
""")
def test_convolution(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected

"""The constraints of ops that move elements."""

from verdicts import label, rows


@rows("""
 | | f32[2]{0} constant({1, 2})
 | | (f32[], s32[2]) constant((1, {2, 3}))
operands | f32[] | f32[] iota(a), iota_dimension=0
 | | s32[2,3] iota(), iota_dimension=1
 | | c64[2,3] iota(), iota_dimension=1
C1 | | token[] iota(), iota_dimension=0
C1 | | (f32[2]) iota(), iota_dimension=0
C2 | | s32[2,3] iota(), iota_dimension=2
C2 | | s32[] iota(), iota_dimension=0
C3 | | pred[2,3] iota(), iota_dimension=0
attributes | | s32[2,3] iota()
attributes | | s32[2,3] iota(), iota_dimension=0, dimensions={0}
""")
def test_from_nothing(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows("""
 | f32[] | f32[2,3] broadcast(a), dimensions={}
 | f32[] | f32[2,3] broadcast(a)
 | f32[2] | f32[2,3] broadcast(a), dimensions={0}
 | f32[2,3] | f32[3,4,2] broadcast(a), dimensions={2,0}
 | f32[2] | f32[2,<=3] broadcast(a), dimensions={0}
C1 | f32[2] | f32[2,3] broadcast(a), dimensions={}
C1 | f32[2] | f32[2,3] broadcast(a), dimensions={2}
C1 | f32[2,2] | f32[2,2] broadcast(a), dimensions={0,0}
C1 | f32[2] | f32[2,3] broadcast(a), dimensions={-1}
C1 | f32[] | (f32[2]) broadcast(a), dimensions={}
C2 | f32[1] | f32[2,3] broadcast(a), dimensions={0}
C3 | f32[2] | f16[2,3] broadcast(a), dimensions={0}
 | f32[2,3] | f32[3,2] reshape(a)
 | f32[2,0] | f32[0] reshape(a)
C1 | f32[2,3] | f32[5] reshape(a)
C1 | f32[2,3] | (f32[6]) reshape(a)
C2 | f32[2,3] | f16[6] reshape(a)
 | f32[6] s32[] s32[] | f32[<=2,<=3] dynamic-reshape(a, b, c)
C1 | f32[6] s32[] | f32[<=2,<=3] dynamic-reshape(a, b)
C1 | f32[6] s32[] s64[] | f32[<=2,<=3] dynamic-reshape(a, b, c)
C1 | f32[6] s32[] (s32[]) | f32[<=2,<=3] dynamic-reshape(a, b, c)
C2 | f32[6] s32[] s32[] | f32[<=2,<=4] dynamic-reshape(a, b, c)
 | f32[2,3] | f32[3,2] transpose(a), dimensions={1,0}
 | f32[<=2,3] | f32[3,<=2] transpose(a), dimensions={1,0}
 | f32[] | f32[] transpose(a), dimensions={}
C1 | f32[2,3] | f32[3,2] transpose(a), dimensions={1,1}
C1 | f32[2,3] | f32[3,2] transpose(a), dimensions={0}
shape | f32[2,3] | f32[2,3] transpose(a), dimensions={1,0}
 | f32[2,3] | f32[2,3] reverse(a), dimensions={1}
C1 | f32[2,3] | f32[2,3] reverse(a), dimensions={2}
C1 | f32[2,3] | f32[2,3] reverse(a), dimensions={1,1}
C1 | (f32[2]) | (f32[2]) reverse(a), dimensions={0}
""")
def test_same_elements_elsewhere(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows("""
 | f32[5,4] | f32[2,4] slice(a), slice={[1:5:2], [0:4]}
 | f32[<=5,<=4] | f32[<=5,2] slice(a), slice={[0:5:1], [0:4:2]}
 | f32[<=5,<=4] | f32[3,<=4] slice(a), slice={[0:3], [0:4]}
 | f32[5] | f32[0] slice(a), slice={[5:5]}
C1 | f32[5,4] | f32[2] slice(a), slice={[1:5:2]}
C2 | f32[5] | f32[5] slice(a), slice={[0:6]}
C2 | f32[5] | f32[1] slice(a), slice={[-1:0]}
C2 | f32[5] | f32[0] slice(a), slice={[3:2]}
C3 | f32[5] | f32[5] slice(a), slice={[0:5:0]}
shape | f32[5] | f32[5] slice(a), slice={[0:5:2]}
 | f32[2,3] f32[] | f32[6,2] pad(a, b), padding=1_1_2x0_-1
 | f32[0] f32[] | f32[2] pad(a, b), padding=1_1_5
 | f32[<=2] f32[] | f32[<=3] pad(a, b), padding=1_0
C1 | f32[2] f16[] | f32[3] pad(a, b), padding=1_0
C1 | f32[2] f32[1] | f32[3] pad(a, b), padding=1_0
C2 | f32[2] f32[] | f32[3] pad(a, b), padding=1_0x0_0
C3 | f32[2] f32[] | f32[3] pad(a, b), padding=1_0_-1
C4 | f32[2] f32[] | f32[0] pad(a, b), padding=-1_-2
 | f32[2,3] f32[2,1] | f32[2,4] concatenate(a, b), dimensions={1}
 | f32[2] f32[<=1] | f32[<=3] concatenate(a, b), dimensions={0}
 | f32[2] | f32[2] concatenate(a), dimensions={0}
C1 | | f32[0] concatenate(), dimensions={0}
C1 | f32[2] (f32[2]) | f32[4] concatenate(a, b), dimensions={0}
C2 | f32[2] | f32[2] concatenate(a), dimensions={}
C2 | f32[2,2] | f32[2,2] concatenate(a), dimensions={0,1}
C2 | f32[2] | f32[2] concatenate(a), dimensions={1}
C3 | f32[2,3] f32[3,1] | f32[2,4] concatenate(a, b), dimensions={1}
C3 | f32[2] f16[2] | f32[4] concatenate(a, b), dimensions={0}
C3 | f32[2] f32[2,1] | f32[4] concatenate(a, b), dimensions={0}
""")
def test_slices_and_joins(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows("""
 | f32[2]{0} | f32[2] copy(a)
 | (f32[2],s32[]) | (f32[2],s32[]) copy(a)
chain | f32[2] | (f32[2],f32[2],u32[]) copy-start(a)
C1 | (f32[2]) | (f32[2],f32[2],u32[]) copy-start(a)
shape | f32[2] | (f32[2],f32[2]) copy-start(a)
chain | (f32[2],f32[2],u32[]) | f32[2] copy-done(a)
C1 | (f32[2],f32[2]) | f32[2] copy-done(a)
C1 | f32[2] | f32[2] copy-done(a)
 | f32[<=2] | s32[] get-dimension-size(a), dimensions={0}
C1 | f32[<=2] | s32[] get-dimension-size(a), dimensions={1}
C1 | f32[<=2] | s32[] get-dimension-size(a), dimensions={}
 | f32[2,3] s32[] | f32[2,<=3] set-dimension-size(a, b), dimensions={1}
 | f32[<=2,<=3] s32[] | f32[<=2,3] set-dimension-size(a, b), dimensions={1}
C1 | f32[2,3] s32[] | f32[2,<=3] set-dimension-size(a, b), dimensions={2}
C2 | f32[2,3] s64[] | f32[2,<=3] set-dimension-size(a, b), dimensions={1}
C2 | f32[2,3] (s32[]) | f32[2,<=3] set-dimension-size(a, b), dimensions={1}
 | f32[2,3] s32[] | f32[<=2,3] set-dimension-size(a, b), dimensions={1}
C3 | f32[2,3] s32[] | f32[2,<=4] set-dimension-size(a, b), dimensions={1}
 | f32[2,3]{0,1} | f32[3,2]{1,0} bitcast(a)
 | f32[2] | s8[2,4] bitcast(a)
C1 | f32[2] | s8[2] bitcast(a)
C1 | (f32[2]) | f32[2] bitcast(a)
 | f32[2] | s32[2] bitcast-convert(a)
 | f32[2] | u8[2,4] bitcast-convert(a)
 | u8[2,4] | f32[2] bitcast-convert(a)
 | s4[2] | u4[2] bitcast-convert(a)
C1 | c64[2] | f32[2,2] bitcast-convert(a)
C2 | f32[2] | s32[3] bitcast-convert(a)
C3 | f32[2] | u8[2,3] bitcast-convert(a)
C3 | f32[2] | u8[2] bitcast-convert(a)
C3 | u8[4] | f32[4] bitcast-convert(a)
C3 | u8[1] | f6e2m3fn[1,1] bitcast-convert(a)
""")
def test_copies_sizes_and_bits(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected

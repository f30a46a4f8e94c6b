"""The constraints of tuples, calls and control flow."""

from verdicts import label, rows


@rows("""
 | f32[2] s32[] | (f32[2], s32[]) tuple(a, b)
 | | () tuple()
shape | f32[2] s32[] | (s32[], f32[2]) tuple(a, b)
 | (f32[2],(s32[],pred[])) | (s32[], pred[]) get-tuple-element(a), index=1
C1 | f32[2] | f32[2] get-tuple-element(a), index=0
C2 | (f32[2]) | f32[2] get-tuple-element(a), index=1
C2 | (f32[2]) | f32[2] get-tuple-element(a), index=-1
shape | (f32[2],s32[]) | f32[2] get-tuple-element(a), index=1
attributes | (f32[2]) | f32[2] get-tuple-element(a)
 | f32[] f32[] | f32[] call(a, b), to_apply=add
composite | f32[] f32[] | f32[] call(a, b), to_apply=add, is_composite=true
C1 | f32[] | f32[] call(a), to_apply=add
C1 | f32[] s32[] | f32[] call(a, b), to_apply=add
attributes | f32[] f32[] | f32[] call(a, b)
 | f32[] f32[] | f32[] fusion(a, b), kind=kLoop, calls=add
C1 | f32[2] f32[2] | f32[2] fusion(a, b), kind=kLoop, calls=add
parse | f32[] f32[] | f32[] fusion(a, b), kind=kSomething, calls=add
calls | f32[] f32[] | f32[] fusion(a, b), kind=kLoop, calls={add, twice}
 | f32[2,3] f32[2,<=3] | f32[2,<=3] map(a, b), dimensions={0,1}, to_apply=add
 | f32[3] | s32[3] map(a), dimensions={0}, to_apply=rounds
C1 | | f32[3] map(), dimensions={0}, to_apply=twice
C1 | f32[2] f32[3] | f32[2] map(a, b), dimensions={0}, to_apply=add
C2 | f32[2,3] f32[2,3] | f32[2,3] map(a, b), dimensions={0}, to_apply=add
C3 | s32[3] | s32[3] map(a), dimensions={0}, to_apply=rounds
C3 | f32[3] s32[3] f32[3] s32[3] | f32[3] map(a, b, c, d), dimensions={0}, to_apply=both
""")
def test_tuples_and_calls(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows("""
 | f32[] | f32[] while(a), condition=positive, body=twice
C1 | f32[] | f32[] while(a), condition=twice, body=twice
C1 | s32[] | s32[] while(a), condition=positive, body=twice
C2 | f32[] | f32[] while(a), condition=positive, body=rounds
attributes | f32[] | f32[] while(a), condition=positive
 | pred[] f32[] f32[] | f32[] conditional(a, b, c), true_computation=twice, false_computation=twice
 | s32[] f32[] f32[] | f32[] conditional(a, b, c), branch_computations={twice, twice}
 | s32[] f32[] | s32[] conditional(a, b), branch_computations={rounds}
C1 | s32[] | s32[] conditional(a), branch_computations={}
C1 | pred[] f32[] | f32[] conditional(a, b), true_computation=twice
C1 | u8[] f32[] f32[] | f32[] conditional(a, b, c), branch_computations={twice, twice}
C1 | s32[1] f32[] f32[] | f32[] conditional(a, b, c), branch_computations={twice, twice}
C1 | pred[] f32[] f32[] | f32[] conditional(a, b, c), branch_computations={twice, twice}
C1 | s32[] f32[] f32[] | f32[] conditional(a, b, c), true_computation=twice, false_computation=twice
C2 | s32[] f32[] | f32[] conditional(a, b), branch_computations={twice, twice}
C3 | s32[] f32[] s32[] | f32[] conditional(a, b, c), branch_computations={twice, twice}
C4 | s32[] f32[] f32[] | f32[] conditional(a, b, c), branch_computations={twice, rounds}
 | token[] token[] | token[] after-all(a, b)
 | | token[] after-all()
 | f32[] | token[] after-all(a)
 | (f32[2]) token[] | (f32[2]) add-dependency(a, b)
C1 | f32[2] f32[2] | f32[2] add-dependency(a, b)
 | (f32[2],token[]) | (f32[2], token[]) opt-barrier(a)
 | f32[2] | f32[2] domain(a), domain={kind="sharding", entry={}, exit={}}
 | f32[2] | (f32[2], s32[7]) custom-call(a), custom_call_target="anything"
 | f32[2] | f32[2] custom-call(a), custom_call_target=""
attributes | f32[2] | f32[2] custom-call(a)
attributes | f32[2] | f32[2] custom-call(a), custom_call_target="x", dimensions={0}
chain | f32[] | ((f32[]), f32[], s32[]) async-start(a), calls=twice
C1 | f32[] | (f32[], f32[]) async-start(a), calls=twice
C2 | f32[] | ((f32[]), s32[]) async-start(a), calls=twice
chain | ((f32[]),f32[]) | ((f32[]), f32[]) async-update(a)
chain | ((f32[]),f32[]) | f32[] async-done(a)
C1 | (f32[],f32[]) | f32[] async-done(a)
""")
def test_flow(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected

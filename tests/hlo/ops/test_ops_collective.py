"""The constraints of what crosses the border of a replica."""

from verdicts import label, rows


@rows("""
 | f32[2,3] | f32[8,3] all-gather(a), dimensions={0}, replica_groups={{0,1,2,3}}
 | f32[2] s32[3] | (f32[4], s32[6]) all-gather(a, b), dimensions={0}
C1 | (f32[2]) | f32[4] all-gather(a), dimensions={0}
C1 | f32[2] f32[2] | f32[4] all-gather(a, b), dimensions={0}
C2 | f32[2] | f32[4] all-gather(a), dimensions={1}
C2 | f32[2] | f32[4] all-gather(a), dimensions={}
C3 | f32[2] | f32[5] all-gather(a), dimensions={0}
C3 | f32[2,3] | f32[4,6] all-gather(a), dimensions={0}
C3 | f32[2] s32[3] | (f32[4], s32[9]) all-gather(a, b), dimensions={0}
C1 | f32[2] | (f32[4]) all-gather(a), dimensions={0}
C1 | f32[2] | (f32[2], (f32[4])) all-gather-start(a), dimensions={0}
C1 | f32[4] | (f32[2]) reduce-scatter(a), dimensions={0}, to_apply=add
chain | f32[2] | (f32[2], f32[8]) all-gather-start(a), dimensions={0}
C5 | f32[2] | f32[8] all-gather-start(a), dimensions={0}
C5 | f32[2] | (f32[8], f32[8]) all-gather-start(a), dimensions={0}
chain | (f32[2],f32[8]) | f32[8] all-gather-done(a)
C1 | f32[8] | f32[8] all-gather-done(a)
 | f32[2] f32[3] | (f32[2], f32[3]) all-reduce(a, b), replica_groups={}, to_apply=add
channel | f32[2] | f32[2] all-reduce(a), channel_id=-1, to_apply=add
channel | f32[2] | f32[2] all-reduce(a), channel_id=0, to_apply=add
 | f32[2] | f32[2] all-reduce(a), channel_id=1, to_apply=add
C3 | f32[2] | f32[2] all-reduce-start(a), channel_id=1, use_global_device_ids=true, to_apply=add
chain | f32[2] | f32[2] all-reduce-done(a)
C1 | | f32[2] all-reduce(), to_apply=add
C2 | s32[2] | s32[2] all-reduce(a), to_apply=add
C2 | f32[2] | f32[2] all-reduce(a), to_apply=less
 | f32[8] | f32[2] reduce-scatter(a), dimensions={0}, to_apply=add
C3 | f32[8] | f32[3] reduce-scatter(a), dimensions={0}, to_apply=add
C4 | s32[8] | s32[2] reduce-scatter(a), dimensions={0}, to_apply=add
 | f32[8] | f32[8] all-to-all(a), dimensions={0}
 | f32[8] f32[8] | (f32[8], f32[8]) all-to-all(a, b), replica_groups={{0,1}}
C2 | f32[8] f32[8] | (f32[8], f32[8]) all-to-all(a, b), dimensions={0}
C2 | f32[8] f32[7] | (f32[8], f32[7]) all-to-all(a, b)
 | f32[8] | f32[8] collective-broadcast(a), replica_groups={{0,1}}
 | f32[8] s32[] | f32[8] collective-broadcast(a, b), has_dynamic_root=true
 | f32[8] | f32[8] collective-permute(a), source_target_pairs={{0,1},{1,0}}
attributes | f32[8] | f32[8] collective-permute(a)
chain | f32[8] | (f32[8], f32[8], u32[], u32[]) collective-permute-start(a), source_target_pairs={}
C5 | f32[8] | (f32[8], f32[7]) collective-permute-start(a), source_target_pairs={}
chain | (f32[8],f32[8],u32[],u32[]) | f32[8] collective-permute-done(a)
 | f32[8,2] f32[9,2] s32[4] | f32[9,2] ragged-all-to-all(a, b, c, c, c, c)
C1 | f32[8,2] f32[9,3] s32[4] | f32[9,3] ragged-all-to-all(a, b, c, c, c, c)
C2 | f32[8,2] f32[9,2] f32[4] | f32[9,2] ragged-all-to-all(a, b, c, c, c, c)
 | | u32[] replica-id()
 | | u32[] partition-id()
""")
def test_collectives(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows("""
chain | f32[2] token[] | (f32[2], u32[], token[]) send(a, b), channel_id=1
C1 | f32[2] f32[2] | (f32[2], u32[], token[]) send(a, b), channel_id=1
chain | (f32[2],u32[],token[]) | token[] send-done(a), channel_id=1
C1 | (f32[2],token[]) | token[] send-done(a), channel_id=1
chain | token[] | (f32[2], u32[], token[]) recv(a), channel_id=1
C1 | token[] | (f32[2], token[]) recv(a), channel_id=1
chain | (f32[2],u32[],token[]) | (f32[2], token[]) recv-done(a), channel_id=1
C1 | f32[2] | (f32[2], token[]) recv-done(a), channel_id=1
 | token[] | ((f32[2]), token[]) infeed(a)
C1 | f32[] | ((f32[2]), token[]) infeed(a)
C2 | token[] | f32[2] infeed(a)
 | f32[2] token[] | token[] outfeed(a, b)
C1 | f32[2] f32[] | token[] outfeed(a, b)
""")
def test_hosts_and_channels(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected

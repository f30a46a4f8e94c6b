"""Ranks taking turns: branches, loops, channels, deadlocks, feeds, and what does not fit."""

from __future__ import annotations

import queue
import threading
from collections import deque
from typing import Any

import numpy as np
import pytest
from rank_programs import f32, program, run

import hlo
import interp

PAIRS = "frontend_attributes={_xla_send_recv_source_target_pairs=%s}"
# Computations for branches by rank: each takes and gives f32[2].
BRANCHES = """
same {
  p = f32[2] parameter(0)
  ROOT r = f32[2] copy(p)
}
reduced {
  p = f32[2] parameter(0)
  ROOT r = f32[2] all-reduce(p), to_apply=add
}
of_channel {
  p = f32[2] parameter(0)
  ROOT r = f32[2] all-reduce(p), to_apply=add, channel_id=7
}
others_of_channel {
  p = f32[2] parameter(0)
  ROOT r = f32[2] all-reduce(p), to_apply=add, channel_id=7
}
"""


def branched(first: str, other: str) -> str:
    """Rank 0 does one thing, the others another."""
    return f"""
        p = f32[2] parameter(0)
        i = u32[] replica-id()
        z = u32[] constant(0)
        first = pred[] compare(i, z), direction=EQ
        r = f32[2] conditional(first, p, p), true_computation={first}, false_computation={other}"""


def message(body: str, per_rank: Any, computations: str = BRANCHES, **options: Any) -> str:
    with pytest.raises(hlo.CollectiveError) as found:
        run(body, per_rank, computations, **options)
    assert "\n" not in str(found.value)
    return str(found.value)


def test_a_rank_that_never_comes() -> None:
    text = message(branched("reduced", "same"), f32([1, 2], [3, 4], [5, 6]), replicas=3)
    assert text.startswith("deadlock: rank 0 waits at %r = all-reduce (line ")
    assert text.endswith(") for ranks 1, 2 of its group {0,1,2}; ended: rank 1, rank 2")


def test_two_that_wait_for_each_other() -> None:
    text = message(branched("reduced", "of_channel"), f32([1, 2], [3, 4]), replicas=2)
    assert "rank 0 waits at %r = all-reduce" in text and "for rank 1 of its group {0,1}" in text
    assert "rank 1 waits at %r = all-reduce" in text and "for rank 0 of its group {0,1}" in text


def test_a_channel_joins_different_instructions() -> None:
    body = branched("of_channel", "others_of_channel")
    results = run(body, f32([1, 2], [3, 4]), BRANCHES, replicas=2)
    assert [result.tolist() for result in results] == [[4, 6]] * 2


def test_different_operations_on_a_channel() -> None:
    gathered = """
gathered {
  p = f32[2] parameter(0)
  q = f32[4] all-gather(p), dimensions={0}, channel_id=7
  ROOT r = f32[2] slice(q), slice={[1:3]}
}
"""
    body = branched("of_channel", "gathered")
    text = message(body, f32([1, 2], [3, 4]), BRANCHES + gathered, replicas=2)
    assert "rank 0 and rank 1 meet with different operations: all-reduce at" in text


# Of the same instruction, what may differ between ranks is the actual size of a dimension.
def test_different_shapes() -> None:
    body = "p = f32[<=3] parameter(0)\nr = f32[<=3] all-reduce(p), to_apply=add"
    text = message(body, f32([1, 2], [3, 4, 5]), replicas=2)
    assert "different shapes: (float32[2]) at" in text and "(float32[3]) at" in text
    results = run(body, f32([1, 2], [3, 4]), replicas=2)
    assert [result.tolist() for result in results] == [[4, 6]] * 2


def test_a_rank_of_no_group() -> None:
    body = "p = f32[2] parameter(0)\nr = f32[2] all-reduce(p), to_apply=add, replica_groups={{0}}"
    module = program(body)  # whose header does not say how many ranks there are
    with pytest.raises(hlo.CollectiveError, match=r"%r = all-reduce: rank 1 is in none of the gro"):
        interp.evaluate(module, *((p,) for p in f32([1, 2], [3, 4])), replicas=2)
    with pytest.raises(hlo.CollectiveError, match="a group has replica 1, and there is 1"):
        interp.evaluate(program(body.replace("{{0}}", "{{0,1}}")), f32([1, 2])[0])


@pytest.mark.parametrize(("channel", "what"), [("", "replica"), (", channel_id=1", "partition")])
def test_ranks_that_are_not_there(channel: str, what: str) -> None:
    pairs = f"source_target_pairs={{{{0,2}}}}{channel}"
    module = program(f"p = f32[2] parameter(0)\nr = f32[2] collective-permute(p), {pairs}")
    with pytest.raises(hlo.CollectiveError, match=f"rank 0: a group has {what} 2, and there are 2"):
        interp.evaluate(module, *((p,) for p in f32([1, 2], [3, 4])), **{f"{what}s": 2})


def test_groups_that_differ_between_branches() -> None:
    pairs = """
left {
  p = f32[2] parameter(0)
  ROOT r = f32[2] all-reduce(p), to_apply=add, channel_id=1, replica_groups={{0,1},{2}}
}
right {
  p = f32[2] parameter(0)
  ROOT r = f32[2] all-reduce(p), to_apply=add, channel_id=1, replica_groups={{1,2},{0}}
}
"""
    text = message(branched("left", "right"), f32([1, 2], [3, 4], [5, 6]), pairs, replicas=3)
    assert "rank 0 waits" in text and "for rank 1 of its group {0,1}" in text


COUNTED = """
turn {
  s = (s32[], s32[], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  last = s32[] get-tuple-element(s), index=1
  x = f32[2] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(n, one)
  y = f32[2] all-reduce(x), to_apply=add, replica_groups=%s
  ROOT r = (s32[], s32[], f32[2]) tuple(next, last, y)
}
goes_on {
  s = (s32[], s32[], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  last = s32[] get-tuple-element(s), index=1
  ROOT r = pred[] compare(n, last), direction=LT
}
"""
LOOP = """
    x = f32[2] parameter(0)
    last = s32[] parameter(1)
    z = s32[] constant(0)
    s = (s32[], s32[], f32[2]) tuple(z, last, x)
    w = (s32[], s32[], f32[2]) while(s), condition=goes_on, body=turn
    r = f32[2] get-tuple-element(w), index=2"""


def test_loops_of_different_lengths() -> None:
    """The n-th time of each is the same for all of a group, not for all ranks."""
    turns = [3, 3, 1, 1]
    given = [(np.full(2, k, np.float32), np.int32(n)) for k, n in enumerate(turns)]
    results = run(LOOP, given, COUNTED % "{{0,1},{2,3}}", replicas=4)
    assert [result[0] for result in results] == [4, 4, 5, 5]
    text = message(LOOP, given, COUNTED % "{{0,2},{1,3}}", replicas=4)
    assert "rank 0 waits at %y = all-reduce" in text and "for rank 2" in text
    assert "ended: rank 2, rank 3" in text


def channel_program(send: str, receive: str, attributes: str = "") -> str:
    return f"""
        p = {send} parameter(0)
        t = token[] after-all()
        s = ({send}, u32[], token[]) send(p, t), channel_id=2{attributes}
        sd = token[] send-done(s), channel_id=2
        c = ({receive}, u32[], token[]) recv(t), channel_id=2{attributes}
        cd = ({receive}, token[]) recv-done(c), channel_id=2
        r = {receive} get-tuple-element(cd), index=0"""


def test_send_and_receive() -> None:
    """Partitions send and receive in a ring with a gap; a partition that receives nothing has
    zeros."""
    body = channel_program("f32[2]", "f32[2]", f", {PAIRS % '{{0,1},{1,2}}'}")
    results = run(body, f32([1, 2], [3, 4], [5, 6]), partitions=3)
    assert [result.tolist() for result in results] == [[0, 0], [1, 2], [3, 4]]
    two = run(body, f32(*([k, k] for k in range(1, 7))), replicas=2, partitions=3)
    assert [int(result[0]) for result in two] == [0, 1, 2, 0, 4, 5]


def test_send_and_receive_of_different_shapes() -> None:
    body = channel_program("f32[2]", "f32[3]", f", {PAIRS % '{{0,1},{1,0}}'}")
    text = message(body, f32([1, 2], [3, 4]), partitions=2)
    assert "sends float32[2] at %s = send (line " in text
    assert "receives f32[3] at %c = recv (line " in text


def test_channels_without_pairs() -> None:
    """One rank sends, one receives: here in the branches of a conditional."""
    branches = """
giver {
  p = f32[2] parameter(0)
  t = token[] after-all()
  s = (f32[2], u32[], token[]) send(p, t), channel_id=3
  sd = token[] send-done(s), channel_id=3
  ROOT r = f32[2] negate(p)
}
taker {
  p = f32[2] parameter(0)
  t = token[] after-all()
  c = (f32[2], u32[], token[]) recv(t), channel_id=3
  cd = (f32[2], token[]) recv-done(c), channel_id=3
  ROOT r = f32[2] get-tuple-element(cd), index=0
}
same {
  p = f32[2] parameter(0)
  ROOT r = f32[2] copy(p)
}
"""
    for first, other in (("giver", "taker"), ("taker", "giver")):
        results = run(branched(first, other), f32([1, 2], [3, 4]), branches, replicas=2)
        expected = {"giver": [[-1, -2], [1, 2]], "taker": [[3, 4], [-3, -4]]}
        assert [result.tolist() for result in results] == expected[first]
    given = f32([1, 2], [3, 4])
    text = message(branched("giver", "same"), given, branches, replicas=2)
    assert text.startswith("nobody receives what rank 0 sends at %s = send (line ")
    text = message(branched("taker", "same"), given, branches, replicas=2)
    assert "rank 0 waits at %cd = recv-done" in text and "for a send through channel 3" in text
    text = message(branched("taker", "giver"), f32([1, 2], [3, 4], [5, 6]), branches, replicas=3)
    assert "ranks 1, 2 all send through channel 3" in text


FED = """
    t = token[] after-all()
    a = ((f32[2], s32[]), token[]) infeed(t)
    d = (f32[2], s32[]) get-tuple-element(a), index=0
    x = f32[2] get-tuple-element(d), index=0
    u = token[] get-tuple-element(a), index=1
    b = (f32[2], token[]) infeed(u)
    y = f32[2] get-tuple-element(b), index=0
    o = token[] outfeed(d, t)
    r = f32[2] subtract(x, y)"""
ITEMS = [(np.array([5, 7], np.float32), np.int32(1)), np.array([1, 1], np.float32)]


def test_feeds() -> None:
    out: list[Any] = []
    assert run(FED, [()], infeed=ITEMS, outfeed=out)[0].tolist() == [4, 6]
    assert [part.tolist() for part in out[0]] == [[5, 7], 1]
    items = deque([ITEMS, ITEMS[::-1]])
    with pytest.raises(hlo.ArgumentError, match=r"rank 1: .*%a = infeed: \(f32\[2\], s32\[\]\) is"):
        run(FED, [(), ()], replicas=2, infeed=items, outfeed=[[], []])
    outs: list[list[Any]] = [[], []]
    results = run(FED, [(), ()], replicas=2, infeed=[ITEMS, ITEMS], outfeed=outs)
    assert [result.tolist() for result in results] == [[4, 6]] * 2
    assert [len(out) for out in outs] == [1, 1]


def test_a_feed_may_answer() -> None:
    """Items are asked for when they are needed: a host that computes is a generator."""
    body = """
        p = f32[2] parameter(0)
        t = token[] after-all()
        o = token[] outfeed(p, t)
        a = (f32[2], token[]) infeed(o)
        r = f32[2] get-tuple-element(a), index=0"""
    out: list[Any] = []
    answers = (-item for item in out)
    assert run(body, f32([1, 2]), infeed=answers, outfeed=out)[0].tolist() == [-1, -2]
    box: queue.SimpleQueue[Any] = queue.SimpleQueue()
    box.put(f32([8, 9])[0])
    items = (box.get() for _ in range(1))
    assert run(body, f32([1, 2]), infeed=items, outfeed=deque())[0].tolist() == [8, 9]


@pytest.mark.parametrize(
    ("feeds", "complaint"),
    [
        ({}, r"%a = infeed: \(f32\[2\], s32\[\]\) is to be infed: pass infeed=\[…\]"),
        ({"infeed": ITEMS[:1]}, r"%b = infeed: f32\[2\] is to be infed, and nothing is left"),
        ({"infeed": ITEMS[1:]}, r"is to be infed, the next item is float32\[2\]"),
        ({"infeed": ITEMS}, r"%o = outfeed: a value is outfed: pass outfeed=\[\]"),
    ],
)
def test_feeds_that_do_not_fit(feeds: dict[str, Any], complaint: str) -> None:
    with pytest.raises(hlo.ArgumentError, match=complaint):
        run(FED, [()], **feeds)


REDUCED = "p = f32[2] parameter(0)\nr = f32[2] all-reduce(p), to_apply=add"


@pytest.mark.parametrize(
    ("header", "ranks", "complaint"),
    [
        (", replica_count=2", {}, "made for replicas=2, partitions=1, not for replicas=1"),
        (", num_partitions=4", {"partitions": 2}, "made for replicas=1, partitions=4"),
        ("", {"replicas": 0}, "0 replicas × 1 partitions"),
        ("", {"replicas": 3}, "3 ranks need 3 arguments, 1 are given"),
    ],
)
def test_ranks_that_do_not_fit(header: str, ranks: dict[str, int], complaint: str) -> None:
    module = program(REDUCED, header=header)
    with pytest.raises(hlo.ArgumentError, match=complaint):
        interp.evaluate(module, *f32([1, 2]), **ranks)


def test_too_many_ranks() -> None:
    with pytest.raises(hlo.Unsupported, match="at most 1024 are simulated"):
        interp.evaluate(program(REDUCED), replicas=10**6)


def test_a_module_that_does_not_ask_runs_on_one() -> None:
    module = program("p = f32[2] parameter(0)\nr = f32[2] negate(p)", header=", num_partitions=8")
    assert interp.evaluate(module, *f32([1, 2])).tolist() == [-1, -2]


def test_an_argument_of_one_rank() -> None:
    module = program(REDUCED, header=", replica_count=2")
    given = [(p,) for p in f32([1, 2], [3, 4, 5])]
    with pytest.raises(hlo.ArgumentError, match=r"parameter 0 \(p\): expected f32\[2\], got"):
        interp.evaluate(module, *given, replicas=2)


def test_an_error_names_its_rank_and_ends_the_others() -> None:
    """An error names its rank, ends the other ranks, and leaves no thread behind."""
    before = threading.active_count()
    body = branched("reduced", "loops")
    loops = """
goes_on {
  p = f32[2] parameter(0)
  ROOT r = pred[] constant(true)
}
turn {
  p = f32[2] parameter(0)
  ROOT r = f32[2] negate(p)
}
loops {
  p = f32[2] parameter(0)
  ROOT r = f32[2] while(p), condition=goes_on, body=turn
}
"""
    with pytest.raises(hlo.OutOfFuel, match="rank 1: the evaluation used up its fuel"):
        run(body, f32([1, 2], [3, 4]), BRANCHES + loops, replicas=2, fuel=100)
    with pytest.raises(hlo.OutOfFuel, match=r"rank 1 \(replica 0, partition 1\): "):
        body = body.replace("replica-id", "partition-id")
        run(body, f32(*[[1, 2]] * 4), BRANCHES + loops, replicas=2, partitions=2, fuel=100)
    assert threading.active_count() == before


def test_the_same_at_every_run() -> None:
    """Turns are taken in order, whatever the threads do: fuel runs out at the same place."""
    given = [(np.full(2, k, np.float32), np.int32(3)) for k in range(4)]
    outcomes = set()
    for _ in range(5):
        try:
            run(LOOP, given, COUNTED % "{{0,1},{2,3}}", replicas=4, fuel=35)
        except hlo.OutOfFuel as error:
            outcomes.add(str(error))
    assert len(outcomes) == 1


def test_results_are_the_callers_own() -> None:
    one, two = run(REDUCED, f32([1, 2], [3, 4]), replicas=2)
    one[0] = 99
    assert two.tolist() == [4, 6]
    given = f32([1, 2], [3, 4])
    body = "p = f32[2] parameter(0)\nr = f32[2] collective-permute(p), source_target_pairs={{0,1}}"
    run(body, given, replicas=2)[1][0] = 99
    assert given[0].tolist() == [1, 2]


def test_random_numbers_are_those_of_each_rank() -> None:
    """Every rank draws from the same seed."""
    body = """
        a = f32[] constant(0)
        b = f32[] constant(1)
        r = f32[4] rng(a, b), distribution=rng_uniform"""
    one = run(body, [()], seed=5)[0]
    for other in run(body, [(), ()], replicas=2, seed=5):
        assert np.array_equal(one, other)

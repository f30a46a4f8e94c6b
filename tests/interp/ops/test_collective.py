"""Collectives by their definitions, over groups, modes, types and shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from fraction_sums import exact_sum, hard_arrays, same_bits
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_programs import computation, f32, program, run

import hlo
import interp
from hlo.types import ELEMENT_TYPES
from hlo.values import Array

TWO = f32([1, 2], [3, 4])
FOUR = f32([1, 2], [3, 4], [5, 6], [7, 8])


def rows(results: Any) -> list[Any]:
    """Results as lists, to compare with what is written."""
    return [
        [part.tolist() for part in result] if isinstance(result, tuple) else result.tolist()
        for result in results
    ]


# What a program of f32[2] on four replicas gives, by the definition.
KNOWN = [
    ("f32[2] all-reduce(p), to_apply=add", [[16, 20]] * 4),
    ("f32[2] all-reduce(p), to_apply=add, replica_groups={{0},{1,2,3}}", [[1, 2]] + [[15, 18]] * 3),
    ("f32[2] all-reduce(p), to_apply=subtract, replica_groups={{3,1},{0,2}}",
     [[-4, -4], [4, 4], [-4, -4], [4, 4]]),
    ("f32[4] all-gather(p), dimensions={0}, replica_groups={{1,0},{2,3}}",
     [[3, 4, 1, 2]] * 2 + [[5, 6, 7, 8]] * 2),
    ("f32[1] reduce-scatter(p), dimensions={0}, to_apply=add, replica_groups=[2,2]<=[2,2]T(1,0)",
     [[6], [10], [8], [12]]),
    ("f32[2] all-to-all(p), dimensions={0}, replica_groups={{0,1},{3,2}}",
     [[1, 3], [2, 4], [8, 6], [7, 5]]),
    ("(f32[2], f32[2]) all-to-all(p, n), replica_groups={{0,1},{3,2}}",
     [[[1, 2], [3, 4]], [[-1, -2], [-3, -4]], [[-7, -8], [-5, -6]], [[7, 8], [5, 6]]]),
    ("f32[2] collective-broadcast(p), replica_groups={{2,1,0}}",
     [[5, 6]] * 3 + [[0, 0]]),
    ("f32[2] collective-permute(p), source_target_pairs={{0,1},{1,2},{3,3}}",
     [[0, 0], [1, 2], [3, 4], [7, 8]]),
    ("(f32[2], f32[2]) collective-permute(p, n), source_target_pairs={{0,3}}",
     [[[0, 0], [0, 0]]] * 3 + [[[1, 2], [-1, -2]]]),
    ("(f32[2], f32[2]) all-reduce(p, n), to_apply=add, replica_groups={{0,3},{1,2}}",
     [[[8, 10], [-8, -10]]] * 4),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "expected"), KNOWN)
def test_known_answers(instruction: str, expected: list[Any]) -> None:
    body = f"p = f32[2] parameter(0)\nn = f32[2] negate(p)\nr = {instruction}"
    assert rows(run(body, FOUR, computation("subtract", "subtract"), replicas=4)) == expected


# Which ranks are in the group of each, by the mode: 2 replicas × 2 partitions, groups {{1,0}}.
MODES = [
    ("all-gather", "", "{{1,0}}", [[2, 0], [3, 1], [2, 0], [3, 1]]),
    ("all-gather", ", channel_id=1", "{{1,0}}", [[2, 3, 0, 1]] * 4),
    ("all-gather", ", channel_id=1", "{}", [[0, 1, 2, 3]] * 4),
    ("all-gather", ", channel_id=1, use_global_device_ids=true", "{{1,0},{3,2}}",
     [[1, 0], [1, 0], [3, 2], [3, 2]]),
    ("all-gather", ", channel_id=0", "{{1,0}}", [[2, 3, 0, 1]] * 4),
    ("all-gather", ", channel_id=0, use_global_device_ids=true", "{{1,0},{3,2}}",
     [[1, 0], [1, 0], [3, 2], [3, 2]]),
    ("all-to-all", "", "{{1,0}}", [[2, 0], [3, 1], [2, 0], [3, 1]]),
    ("all-to-all", ", channel_id=1", "{{1,0}}", [[1, 0], [1, 0], [3, 2], [3, 2]]),
    ("all-to-all", ", channel_id=0", "{{1,0}}", [[1, 0], [1, 0], [3, 2], [3, 2]]),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "ids", "groups", "expected"), MODES)
def test_group_modes(opcode: str, ids: str, groups: str, expected: list[Any]) -> None:
    """XLA's collective_ops_utils.h; the order of all replicas and partitions is XLA:CPU's."""
    size = len(expected[0])
    shapes = (1, size) if opcode == "all-gather" else (size, size)
    body = f"""
        p = f32[{shapes[0]}] parameter(0)
        r = f32[{shapes[1]}] {opcode}(p), dimensions={{0}}, replica_groups={groups}{ids}"""
    given_ = [np.full(shapes[0], rank, np.float32) for rank in range(4)]
    assert rows(run(body, given_, replicas=2, partitions=2)) == expected


@pytest.mark.parametrize("channel", [0, 1])
def test_permutations_are_among_partitions_with_a_channel(channel: int) -> None:
    body = f"""
        p = f32[2] parameter(0)
        a = f32[2] collective-permute(p), source_target_pairs={{{{0,1}}}}
        b = f32[2] collective-permute(p), source_target_pairs={{{{0,1}}}}, channel_id={channel}
        r = (f32[2], f32[2]) tuple(a, b)"""
    none = [0, 0]
    expected = [[none, none], [none, [1, 2]], [[1, 2], none], [[3, 4], [5, 6]]]
    assert rows(run(body, FOUR, replicas=2, partitions=2)) == expected


@pytest.mark.parametrize(
    ("instruction", "partitions", "expected"),
    [
        ("(f32[2], f32[2]) all-to-all(p, p)", 1, [[[1, 2], [5, 6]]] * 2),
        ("f32[1] reduce-scatter(p), dimensions={0}, to_apply=add, channel_id=1", 1, [[6], [8]]),
        ("f32[1] reduce-scatter(p), dimensions={0}, to_apply=add, replica_groups={{0},{1}},"
         " channel_id=1", 2, [[4], [6], [12], [14]]),
        ("f32[8] all-gather(p), dimensions={0}, replica_groups={{0,1}}, channel_id=1", 2,
         [[1, 2, 3, 4, 5, 6, 7, 8]] * 4),
    ],
)  # fmt: skip
def test_the_header_need_not_count_ranks(
    instruction: str, partitions: int, expected: list[Any]
) -> None:
    module = program(f"p = f32[2] parameter(0)\nr = {instruction}")
    given_ = [(array,) for array in FOUR[:: 2 // partitions]]
    results = interp.evaluate(module, *given_, replicas=2, partitions=partitions)
    assert rows(results) == expected


def test_ids() -> None:
    body = "a = u32[] replica-id()\nb = u32[] partition-id()\nr = (u32[], u32[]) tuple(a, b)"
    found = run(body, [()] * 6, replicas=2, partitions=3)
    assert [(int(a), int(b)) for a, b in found] == [(r, p) for r in range(2) for p in range(3)]


def test_started_forms_are_the_same() -> None:
    body = """
        p = f32[2] parameter(0)
        a = f32[2] all-reduce-start(p), to_apply=add
        b = (f32[2], f32[4]) all-gather-start(p), dimensions={0}
        c = (f32[2], f32[2], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1}}
        d = ((f32[2]), f32[1]) reduce-scatter-start(p), dimensions={0}, to_apply=add
        ad = f32[2] all-reduce-done(a)
        bd = f32[4] all-gather-done(b)
        cd = f32[2] collective-permute-done(c)
        dd = f32[1] reduce-scatter-done(d)
        r = (f32[2], f32[4], f32[2], f32[1]) tuple(ad, bd, cd, dd)"""
    first, second = run(body, TWO, replicas=2)
    assert rows([first]) == [[[4, 6], [1, 2, 3, 4], [0, 0], [4]]]
    assert rows([second]) == [[[4, 6], [1, 2, 3, 4], [1, 2], [6]]]


def test_generic_async() -> None:
    body = """
        p = f32[2] parameter(0)
        s = ((f32[2]), f32[2], s32[]) async-start(p), calls=f, async_execution_thread="other"
        u = ((f32[2]), f32[2], s32[]) async-update(s)
        r = f32[2] async-done(u)"""
    inside = """f {
  p = f32[2] parameter(0)
  ROOT r = f32[2] all-to-all(p), dimensions={0}
}, execution_thread="other"
"""
    assert rows(run(body, TWO, inside, replicas=2)) == [[1, 3], [2, 4]]


def test_dynamic_root() -> None:
    body = """
        p = f32[2] parameter(0)
        i = s32[] parameter(1)
        r = f32[2] collective-broadcast(p, i), has_dynamic_root=true, replica_groups={{1,0}}"""
    for place, expected in ((0, [3, 4]), (1, [1, 2])):
        given_ = [(p, np.int32(place)) for p in TWO]
        assert rows(run(body, given_, replicas=2)) == [expected] * 2
    with pytest.raises(hlo.CollectiveError, match="different roots: 0 at .*, 1 at"):
        run(body, [(TWO[0], np.int32(0)), (TWO[1], np.int32(1))], replicas=2)
    with pytest.raises(hlo.CollectiveError, match="root 2 of a group of 2 ranks"):
        run(body, [(p, np.int32(2)) for p in TWO], replicas=2)


def test_slices_of_a_permutation() -> None:
    """The example of XLA's parser test, smaller: two slices of one array, clamped."""
    body = """
        p = f32[4] parameter(0)
        z = f32[] constant(9)
        o = f32[6] broadcast(z), dimensions={}
        i = s32[] parameter(1)
        j = s32[] parameter(2)
        a = (s32[]) tuple(i)
        b = (s32[]) tuple(j)
        ab = ((s32[]), (s32[])) tuple(a, b)
        r = f32[6] collective-permute(p, o, ab, ab), source_target_pairs={{0,1}}, \
slice_sizes={{2},{1}}"""
    arrays = f32([0, 1, 2, 3], [10, 11, 12, 13])
    given_ = [(p, np.int32(1 - k), np.int32(5)) for k, p in enumerate(arrays)]
    found = run(body, given_, replicas=2)
    # sender 0 takes [1:3] and, clamped, [3:4]; receiver 1 puts them at 0 and at 5
    assert rows(found) == [[9] * 6, [1, 2, 9, 9, 9, 3]]


RAGGED = """
    x = s32[3] parameter(0)
    y = s32[4] parameter(1)
    a = s32[2] parameter(2)
    b = s32[2] parameter(3)
    c = s32[2] parameter(4)
    d = s32[2] parameter(5)
    r = s32[4] ragged-all-to-all(x, y, a, b, c, d), replica_groups={{0,1}}"""


def ragged(sizes: list[int], expected: list[int]) -> list[tuple[Array, ...]]:
    """The example in the documentation of jax.lax.ragged_all_to_all."""
    first = ([1, 2, 2], [0] * 4, [0, 1], [1, 2], [0, 0], [1, expected[0]])
    second = ([3, 4, 0], [0] * 4, [0, 1], [sizes[0], 1], [1, 2], [2, 1])
    return [tuple(np.array(part, np.int32) for part in rank) for rank in (first, second)]


def test_ragged_all_to_all() -> None:
    assert rows(run(RAGGED, ragged([1], [1]), replicas=2)) == [[1, 3, 0, 0], [2, 2, 4, 0]]
    with pytest.raises(hlo.CollectiveError, match="rank 1 sends 2 rows to rank 0, which expects 1"):
        run(RAGGED, ragged([2], [1]), replicas=2)
    with pytest.raises(hlo.ArgumentError, match="rank 1 sends 4 rows from 0 of 3 to 1 of 4"):
        run(RAGGED, ragged([4], [4]), replicas=2)


# Properties

NUMBERS = ["f32", "f64", "bf16", "f16", "f8e5m2", "f8e4m3fn"]


@st.composite
def groups_of_ids(draw: st.DrawFn, count: int, uniform: bool = False) -> list[list[int]]:
    """All ids, each in one group."""
    ids = draw(st.permutations(range(count)))
    if uniform:
        size = draw(st.sampled_from([n for n in range(1, count + 1) if count % n == 0]))
        return [ids[start : start + size] for start in range(0, count, size)]
    cuts = sorted(draw(st.sets(st.integers(1, count - 1)))) if count > 1 else []
    return [ids[a:b] for a, b in zip([0, *cuts], [*cuts, count])]


def text_of(groups: list[list[int]]) -> str:
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


@settings(deadline=None)
@given(st.data(), st.sampled_from(NUMBERS))
def test_sums_are_rounded_once(data: st.DataObject, name: str) -> None:
    element_type = ELEMENT_TYPES[name]
    count = data.draw(st.integers(1, 5))
    dims = data.draw(st.lists(st.integers(0, 3), max_size=2).map(tuple))
    stacked = data.draw(hard_arrays(element_type, (count, *dims)))
    groups = data.draw(groups_of_ids(count))
    shape = f"{name}[{','.join(map(str, dims))}]"
    body = f"""
        p = {shape} parameter(0)
        r = {shape} all-reduce(p), to_apply=sum, replica_groups={text_of(groups)}"""
    results = run(body, list(stacked), computation("sum", "add", name), replicas=count)
    for group in groups:
        for index in np.ndindex(*dims):
            expected = exact_sum([stacked[(rank, *index)] for rank in group], element_type)
            for rank in group:
                assert same_bits(np.asarray(results[rank][index]), np.asarray(expected))


@settings(deadline=None)
@given(st.data(), st.sampled_from(["subtract", "multiply", "maximum", "add"]))
def test_folds_are_in_the_order_of_the_group(data: st.DataObject, opcode: str) -> None:
    """An all-reduce folds integers, and floats by anything but addition, in the order of the
    group."""
    name = "f32" if opcode in ("subtract", "multiply") else "s32"
    count = data.draw(st.integers(1, 6))
    stacked = data.draw(hard_arrays(ELEMENT_TYPES["f32"], (count, 3), finite=True))
    stacked = stacked if name == "f32" else np.clip(stacked, -1e9, 1e9).astype(np.int32)
    groups = data.draw(groups_of_ids(count))
    body = f"""
        p = {name}[3] parameter(0)
        r = {name}[3] all-reduce(p), to_apply=fold, replica_groups={text_of(groups)}"""
    results = run(body, list(stacked), computation("fold", opcode, name), replicas=count)
    functions = {"subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum}
    for group in groups:
        value = stacked[group[0]]
        for rank in group[1:]:
            with np.errstate(all="ignore"):
                value = functions.get(opcode, np.add)(value, stacked[rank])
        assert all(same_bits(results[rank], value) for rank in group)


@st.composite
def meshes(draw: st.DrawFn) -> tuple[int, int, str, list[list[int]]]:
    """Replicas, partitions, the attributes of groups in any mode, and the groups as ranks."""
    replicas, partitions = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    mode = draw(st.sampled_from(["replicas", "both", "all"]))
    count = replicas * partitions if mode == "all" else replicas
    groups = draw(groups_of_ids(count, uniform=True))
    text = f"replica_groups={text_of(groups)}"
    each = range(partitions)
    if mode == "replicas":
        ranks = [[i * partitions + p for i in group] for group in groups for p in each]
        return replicas, partitions, text, ranks
    if mode == "both":
        ranks = [[i * partitions + p for i in group for p in each] for group in groups]
        return replicas, partitions, f"{text}, channel_id=2", ranks
    return replicas, partitions, f"{text}, channel_id=2, use_global_device_ids=true", groups


@settings(deadline=None)
@given(st.data(), meshes())
def test_gathered_and_scattered(data: st.DataObject, mesh: Any) -> None:
    """all-gather is the concatenation; reduce-scatter gives the parts of all-reduce; gathered
    again they are the whole."""
    replicas, partitions, attributes, groups = mesh
    size, ranks = len(groups[0]), replicas * partitions
    dims = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=3))
    dimension = data.draw(st.integers(0, len(dims) - 1))
    part = list(dims)
    dims[dimension] *= size
    whole, piece = (f"s32[{','.join(map(str, d))}]" for d in (dims, part))
    body = f"""
        p = {whole} parameter(0)
        a = {whole} all-reduce(p), to_apply=sum, {attributes}
        b = {piece} reduce-scatter(p), to_apply=sum, dimensions={{{dimension}}}, {attributes}
        c = {whole} all-gather(b), dimensions={{{dimension}}}, {attributes}
        r = ({whole}, {piece}, {whole}) tuple(a, b, c)"""
    given_ = [np.arange(math.prod(dims), dtype=np.int32).reshape(dims) * 7**k for k in range(ranks)]
    options = {"replicas": replicas, "partitions": partitions}
    results = run(body, given_, computation("sum", "add", "s32"), **options)
    for group in groups:
        total = np.sum([given_[rank] for rank in group], axis=0, dtype=np.int32)
        parts = np.split(total, size, axis=dimension)
        for place, rank in enumerate(group):
            reduced, scattered, gathered = results[rank]
            assert np.array_equal(reduced, total)
            assert np.array_equal(scattered, parts[place])
            assert np.array_equal(gathered, total)


@settings(deadline=None)
@given(st.data())
def test_all_to_all_is_its_own_inverse(data: st.DataObject) -> None:
    """An all-to-all is its own inverse in both forms; the tuple form is the array form of the
    parts."""
    replicas, partitions = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    channel = data.draw(st.sampled_from(["", ", channel_id=3"]))
    groups = data.draw(groups_of_ids(partitions if channel else replicas, uniform=True))
    size, ranks = len(groups[0]), replicas * partitions
    shape, part = f"s32[2,{3 * size}]", "s32[2,3]"
    attributes = f"replica_groups={text_of(groups)}{channel}"
    parts = "\n".join(
        f"p{k} = {part} slice(p), slice={{[0:2], [{3 * k}:{3 * k + 3}]}}" for k in range(size)
    )
    names, dimension = ", ".join(f"p{k}" for k in range(size)), "dimensions={1}"
    elements = "\n".join(f"g{k} = {part} get-tuple-element(t), index={k}" for k in range(size))
    joined = names.replace("p", "g")
    body = f"""
        p = {shape} parameter(0)
        a = {shape} all-to-all(p), {dimension}, {attributes}
        b = {shape} all-to-all(a), {dimension}, {attributes}
        {parts}
        t = ({", ".join([part] * size)}) all-to-all({names}), {attributes}
        {elements}
        c = {shape} concatenate({joined}), {dimension}
        r = ({shape}, {shape}, {shape}) tuple(a, b, c)"""
    given_ = [np.arange(6 * size, dtype=np.int32).reshape(2, -1) + 1000 * k for k in range(ranks)]
    results = run(body, given_, replicas=replicas, partitions=partitions)
    for rank, (once, twice, in_parts) in enumerate(results):
        assert np.array_equal(twice, given_[rank])
        assert np.array_equal(once, in_parts)
        if size == 1:
            assert np.array_equal(once, given_[rank])


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6).flatmap(lambda n: st.permutations(range(n))), st.booleans())
def test_permuted_there_and_back(targets: list[int], is_partitioned: bool) -> None:
    count = len(targets)
    there = text_of([[source, target] for source, target in enumerate(targets)])
    back = text_of([[target, source] for source, target in enumerate(targets)])
    channel = ", channel_id=1" if is_partitioned else ""
    body = f"""
        p = f32[2] parameter(0)
        a = f32[2] collective-permute(p), source_target_pairs={there}{channel}
        b = f32[2] collective-permute(a), source_target_pairs={back}{channel}
        r = (f32[2], f32[2]) tuple(a, b)"""
    given_ = f32(*([k, k + 0.5] for k in range(count)))
    options = {"partitions" if is_partitioned else "replicas": count}
    results = run(body, given_, **options)
    for source, target in enumerate(targets):
        assert np.array_equal(results[target][0], given_[source])
        assert np.array_equal(results[source][1], given_[source])

"""Groups and pairs of ranks: their texts, the ids that they stand for, and which numbers fit."""

from __future__ import annotations

import math
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
from hlo.replica_groups import (
    MOST_IDS,
    AxisPart,
    Iota,
    IotaGroups,
    ListedGroups,
    MeshGroups,
    ReplicaGroups,
    SourceTargetPairs,
    check,
    expanded,
    group_size,
    id_count,
)
from hlo.text.replica_groups import read_groups, read_pairs, send_recv_pairs, show_written

# The last ones are printed by XLA's parser and read by hand as mesh_and_axis.h says.
GROUPS = [
    ("{}", ()),
    ("{{}}", ()),
    ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
    ("{ {0, 1}, {2} }", ((0, 1), (2,))),
    ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
    ("[2,4]<=[4,2]T(1,0)", ((0, 2, 4, 6), (1, 3, 5, 7))),
    ("[4,2]<=[2,2,2]T(2,1,0)", ((0, 4), (2, 6), (1, 5), (3, 7))),
    ("[4,2]<=[2,1,2,1,2]T(4,1,2,3,0)", ((0, 4), (2, 6), (1, 5), (3, 7))),
    (f"[2,1]<=[{'1,' * 100}2]T({','.join(map(str, range(101)))})", ((0,), (1,))),
    ("mesh['x'=2,'y'=4] {'x'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
    ("mesh['x'=2,'y'=4] {'y'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
    ("mesh['x'=2,'y'=4] {'x','y'}", ((0, 1, 2, 3, 4, 5, 6, 7),)),
    ("mesh['x'=2,'y'=4] {'y','x'}", ((0, 4, 1, 5, 2, 6, 3, 7),)),
    ("mesh['y'=4] {'y':(1)2}", ((0, 2), (1, 3))),
    ("mesh['y'=4] {'y':(2)2}", ((0, 1), (2, 3))),
    ("mesh['x'=2,'y'=2], device_ids=(3,1,2,0) {'x'}", ((3, 2), (1, 0))),
    ("mesh['x'=2,'y'=4], device_ids=([2,4]T(1,0)) {'x'}", ((0, 2), (4, 6), (1, 3), (5, 7))),
]
UNREADABLE = [
    "",
    "{",
    "{0,1}",
    "{{0,1}",
    "{{0,1}} {}",
    "{{0,1},}",
    "{{0,,1}}",
    "[8]<=[8]",
    "[2,4]<=8",
    "[2,4]<=[8]T()",
    "mesh['x'=4] {'x':(0)2}",
    "mesh['x'=1], device_ids=(99999999999999999999) {'x'}",
    "mesh['x'=1], device_ids=(0,) {'x'}",
    "x",
]
UNFIT = [
    "[3,2]<=[8]",
    "[0,2]<=[0]",
    "[2,4]<=[8]T(1,0)",
    "[2,4]<=[4,2]T(1,1)",
    f"[1,{MOST_IDS + 1}]<=[{MOST_IDS + 1}]",
    "[999999999,999999999]<=[999999999,999999999]",
    "mesh[] {'x'}",
    "mesh['x'=4] {'y'}",
    "mesh['x'=4,'x'=2] {'x'}",
    "mesh['x'=4] {'x':(3)2}",
    "mesh['x'=4] {'x':(4)2}",
    "mesh['x'=0] {'x'}",
    "mesh['x'=4] {'x','x'}",
    "mesh['x'=4], device_ids=(0,1,2) {'x'}",
    "mesh['x'=4], device_ids=([2]) {'x'}",
    "mesh['x'=4], device_ids=([2,2]T(0,0)) {'x'}",
]
# What no text gives.
BUILT = [
    IotaGroups(-2, -4, Iota((8,))),
    IotaGroups(1, 1, Iota((-1, -1))),
    MeshGroups((("x", 4),), (AxisPart("x", 0, 2),)),
    MeshGroups((("x", 4),), (AxisPart("x", 1, -2),)),
    MeshGroups((("x", 4),), (AxisPart("x", -2),)),
    MeshGroups((("x", -4),), (AxisPart("x"),)),
]


@pytest.mark.parametrize(("text", "groups"), GROUPS)
def test_groups(text: str, groups: Any) -> None:
    found = read_groups(text)
    check(found)
    assert expanded(found) == groups
    assert group_size(found) == (len(groups[0]) if groups else 0)
    assert id_count(found) == sum(map(len, groups))


def test_errors_tell_sizes_of_axes_from_names() -> None:
    with pytest.raises(ValueError, match="expected a size of at least 1 of each axis"):
        check(read_groups("mesh['x'=0] {'x'}"))
    with pytest.raises(ValueError, match="expected axes of different names"):
        check(read_groups("mesh['x'=4,'x'=2] {'x'}"))


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_is_no_group(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_groups(text)


@pytest.mark.parametrize("text", UNFIT)
def test_numbers_that_do_not_fit(text: str) -> None:
    found = read_groups(text)
    with pytest.raises(ValueError, match="expected"):
        check(found)
    body = f"ENTRY e {{\n  p = f32[2] parameter(0)\n  ROOT r = f32[2] collective-broadcast(p), \
replica_groups={text}\n}}"
    with pytest.raises(
        hlo.VerifyError, match=r"3: %r = collective-broadcast, C2: replica_groups: "
    ):
        hlo.verify(hlo.parse(body))


@pytest.mark.parametrize("groups", BUILT, ids=str)
def test_built_numbers_that_do_not_fit(groups: ReplicaGroups) -> None:
    with pytest.raises(ValueError, match="expected"):
        check(groups)


def test_a_million_ids_are_not_expanded_before_they_are_asked_for() -> None:
    body = f"""ENTRY e {{
  p = f32[2] parameter(0)
  ROOT r = f32[2] collective-broadcast(p), replica_groups=[{MOST_IDS // 4},4]<=[{MOST_IDS}]
}}"""
    hlo.verify(hlo.parse(body))  # imports what it needs
    tracemalloc.start()
    hlo.verify(hlo.parse(body))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST_IDS


# Drawn values, and spellings of them

NAMES = st.text(st.characters(categories=["L", "N"], include_characters="_. ,=:"), max_size=4)
SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@st.composite
def iotas(draw: st.DrawFn, sizes: list[int] | None = None) -> Iota:
    dims = tuple(draw(SIZES) if sizes is None else draw(st.permutations(sizes)))
    return Iota(dims, tuple(draw(st.just(()) | st.permutations(range(len(dims))))))


@st.composite
def iota_groups(draw: st.DrawFn) -> IotaGroups:
    ids = draw(iotas())
    total = math.prod(ids.dims)
    size = draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0]))
    return IotaGroups(total // size, size, ids)


@st.composite
def listed_groups(draw: st.DrawFn) -> ListedGroups:
    ids = draw(st.permutations(range(draw(st.integers(0, 9)))))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(ids) - 1)), max_size=3)))
    ends = [0, *cuts, len(ids)] if ids else [0]
    return ListedGroups(tuple(tuple(ids[a:b]) for a, b in zip(ends, ends[1:]) if a < b))


@st.composite
def mesh_groups(draw: st.DrawFn) -> MeshGroups:
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    factors = [draw(st.tuples(*[st.integers(1, 3)] * 3)) for _ in names]
    axes = tuple((name, math.prod(row)) for name, row in zip(names, factors, strict=True))
    along = []
    for name, (before, size, _) in zip(names, factors, strict=True):
        kind = draw(st.sampled_from(["none", "all", "part"]))
        if kind != "none":
            along.append(AxisPart(name) if kind == "all" else AxisPart(name, before, size))
    total = math.prod(size for _, size in axes)
    devices = draw(
        st.none() | iotas([size for _, size in axes]) | st.permutations(range(total)).map(tuple)
    )
    return MeshGroups(axes, tuple(draw(st.permutations(along))), devices)


DRAWN = listed_groups() | iota_groups() | mesh_groups()


@settings(deadline=None)
@given(DRAWN)
def test_groups_read_back(groups: ReplicaGroups) -> None:
    found = read_groups(str(groups))
    assert found == groups and found.spelling == ""
    assert show_written(found) == str(groups)


@settings(deadline=None)
@given(DRAWN, st.data())
def test_groups_print_as_they_were_written(groups: ReplicaGroups, data: st.DataObject) -> None:
    text = spelled(str(groups), data)
    found = read_groups(text)
    assert found == groups and hash(found) == hash(groups)
    assert show_written(found) == text
    assert str(found) == str(groups)


def spelled(text: str, data: st.DataObject) -> str:
    """The text with white space and zeros where they change nothing; not in names of axes."""
    pieces = re.split(r"('[^']*')", text)
    for n in range(0, len(pieces), 2):
        pieces[n] = re.sub(r"(?<=[\[{,]) ?", lambda _: data.draw(WHITE), pieces[n])
        pieces[n] = re.sub(r"\d+", lambda m: data.draw(ZEROS) + m[0], pieces[n])
    return "".join(pieces)


WHITE = st.sampled_from(["", "", " ", "\n\t"])
ZEROS = st.sampled_from(["", "", "0", "00"])


@settings(deadline=None)
@given(DRAWN)
def test_drawn_groups_have_each_id_once(groups: ReplicaGroups) -> None:
    check(groups)
    found = expanded(groups)
    assert sorted(id for group in found for id in group) == list(range(id_count(groups)))
    uniform = not isinstance(groups, ListedGroups)
    assert {*map(len, found)} == {group_size(groups)} or not uniform


@settings(deadline=None)
@given(st.data())
def test_axes_of_a_mesh_are_an_iota(data: st.DataObject) -> None:
    """Groups along axes are a transposed iota; what is written twice is read alike."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    axes = data.draw(st.permutations(range(len(sizes))))
    chosen = axes[: data.draw(st.integers(1, len(axes)))]
    others = [axis for axis in range(len(sizes)) if axis not in chosen]
    size = math.prod(sizes[axis] for axis in chosen)
    groups = math.prod(sizes) // size
    mesh = ",".join(f"'a{axis}'={extent}" for axis, extent in enumerate(sizes))
    names = ",".join(f"'a{axis}'" for axis in chosen)
    turned = ",".join(map(str, (*others, *chosen)))
    iota = f"[{groups},{size}]<=[{','.join(map(str, sizes))}]T({turned})"
    found = expanded(read_groups(f"mesh[{mesh}] {{{names}}}"))
    assert found == expanded(read_groups(iota))
    assert sorted(np.ravel(found)) == list(range(math.prod(sizes)))
    assert found == expanded(read_groups(str(ListedGroups(found))))


@settings(deadline=None)
@given(st.text("mesh[]{}()<=T,:'x0129 device_ids", max_size=60))
def test_any_text_is_groups_or_an_error(text: str) -> None:
    for read in (read_groups, read_pairs, send_recv_pairs):
        try:
            read(text)
        except ValueError as error:
            assert "expected" in str(error)


PAIRS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=5).map(
    lambda pairs: SourceTargetPairs(tuple(pairs))
)


@given(PAIRS, st.data())
def test_pairs_read_back(pairs: SourceTargetPairs, data: st.DataObject) -> None:
    assert read_pairs(str(pairs)) == pairs and read_pairs(str(pairs)).spelling == ""
    text = spelled(str(pairs), data)
    assert read_pairs(text) == pairs and show_written(read_pairs(text)) == text


def test_pairs() -> None:
    assert read_pairs("{{0,1},{1,2}}").pairs == ((0, 1), (1, 2))
    assert read_pairs("{}") == SourceTargetPairs()
    for text in ("{{0,1,2}}", "{0,1}", "[1,2]<=[2]"):
        with pytest.raises(ValueError, match=r"expected {{source,target},…}"):
            read_pairs(text)
    key = "_xla_send_recv_source_target_pairs"
    assert send_recv_pairs(f'{{a="b",{key}={{{{0,1}},{{1,2}}}},c="{{{{3,4}}}}"}}') == (
        (0, 1),
        (1, 2),
    )
    assert send_recv_pairs(f'{{{key}="{{{{0,1}}}}"}}') == ((0, 1),)
    assert send_recv_pairs('{_xla_send_recv_pipeline="0"}') is None

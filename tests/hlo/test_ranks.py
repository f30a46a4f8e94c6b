"""Groups and pairs of ranks as text."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
from hlo.ranks import MOST_IDS, declared, replica_groups, send_recv_pairs, source_target_pairs

# The last ones are printed by XLA's parser and read by hand as mesh_and_axis.h says.
GROUPS = [
    ("", ()),
    ("{}", ()),
    ("{{}}", ()),
    ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
    ("{ {0, 1}, {2} }", ((0, 1), (2,))),
    ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
    ("[2,4]<=[4,2]T(1,0)", ((0, 2, 4, 6), (1, 3, 5, 7))),
    ("[4,2]<=[2,2,2]T(2,1,0)", ((0, 4), (2, 6), (1, 5), (3, 7))),
    ("mesh['x'=2,'y'=4] {'x'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
    ("mesh['x'=2,'y'=4] {'y'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
    ("mesh['x'=2,'y'=4] {'x','y'}", ((0, 1, 2, 3, 4, 5, 6, 7),)),
    ("mesh['x'=2,'y'=4] {'y','x'}", ((0, 4, 1, 5, 2, 6, 3, 7),)),
    ("mesh['y'=4] {'y':(1)2}", ((0, 2), (1, 3))),
    ("mesh['y'=4] {'y':(2)2}", ((0, 1), (2, 3))),
    ("mesh['x'=2,'y'=2], device_ids=(3,1,2,0) {'x'}", ((3, 2), (1, 0))),
    ("mesh['x'=2,'y'=4], device_ids=([2,4]T(1,0)) {'x'}", ((0, 2), (4, 6), (1, 3), (5, 7))),
]
WRONG = [
    "{",
    "{0,1}",
    "{{0,1}",
    "{{-1,0}}",
    "{{0,1}} {}",
    "[3,2]<=[8]",
    "[8]<=[8]",
    "[0,2]<=[0]",
    "[2,4]<=[8]T(1,0)",
    f"[1,{MOST_IDS + 1}]<=[{MOST_IDS + 1}]",
    "mesh[] {'x'}",
    "mesh['x'=4] {'y'}",
    "mesh['x'=4,'x'=2] {'x'}",
    "mesh['x'=4] {'x':(3)2}",
    "mesh['x'=4] {'x':(4)2}",
    "mesh['x'=4] {'x':(0)2}",
    "mesh['x'=0] {'x'}",
    "mesh['x'=4] {'x','x'}",
    "mesh['x'=4], device_ids=(0,1,2) {'x'}",
    "x",
]


@pytest.mark.parametrize(("text", "groups"), GROUPS)
def test_groups(text: str, groups: Any) -> None:
    assert replica_groups(text) == groups


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_group(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        replica_groups(text)


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
    found = replica_groups(f"mesh[{mesh}] {{{names}}}")
    assert found == replica_groups(iota)
    assert sorted(np.ravel(found)) == list(range(math.prod(sizes)))
    rows = ",".join("{" + ",".join(map(str, group)) + "}" for group in found)
    assert found == replica_groups(f"{{{rows}}}")


@settings(deadline=None)
@given(st.text("mesh[]{}()<=T,:'x0129 device_ids", max_size=60))
def test_any_text_is_groups_or_an_error(text: str) -> None:
    for read in (replica_groups, source_target_pairs, send_recv_pairs):
        try:
            read(text)
        except ValueError as error:
            assert "expected" in str(error) or "T(" in text


def test_pairs() -> None:
    assert source_target_pairs("{{0,1},{1,2}}") == ((0, 1), (1, 2))
    assert source_target_pairs("{}") == ()
    with pytest.raises(ValueError, match="expected"):
        source_target_pairs("{{0,1,2}}")
    key = "_xla_send_recv_source_target_pairs"
    assert send_recv_pairs(f'{{a="b",{key}={{{{0,1}},{{1,2}}}},c="{{{{3,4}}}}"}}') == (
        (0, 1),
        (1, 2),
    )
    assert send_recv_pairs(f'{{{key}="{{{{0,1}}}}"}}') == ((0, 1),)
    assert send_recv_pairs('{_xla_send_recv_pipeline="0"}') is None


def test_declared() -> None:
    body = "ENTRY e {\n  ROOT r = u32[] replica-id()\n}\n"
    assert declared(hlo.parse(f"HloModule m\n{body}")) == (1, 1)
    assert declared(hlo.parse(f"HloModule m, replica_count=2, num_partitions=4\n{body}")) == (2, 4)
    module = hlo.parse(f"HloModule m\n{body}")
    for wrong in ("x", "0", "99999999999"):
        with pytest.raises(hlo.ArgumentError, match="not a number of ranks"):
            declared(replace(module, attributes={"replica_count": wrong}))

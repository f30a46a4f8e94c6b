"""Stack of chains of calls, from call graphs as gcc writes them."""

import pytest

from selftest.microcontrollers.stack import deepest_chain

RUN = r"""graph: { title: "f.c"
node: { title: "f_run" label: "f_run\nf.c:9:5\n32 bytes (static)" }
edge: { sourcename: "f_run" targetname: "f.c:kernel_0" label: "f.c:9:5" }
edge: { sourcename: "f_run" targetname: "f.c:kernel_1" label: "f.c:9:6" }
node: { title: "f.c:kernel_0" label: "kernel_0\nf.c:1:20\n120 bytes (static)" }
node: { title: "f.c:kernel_1" label: "kernel_1\nf.c:2:20\n100 bytes (static)" }
edge: { sourcename: "f.c:kernel_1" targetname: "scale" }
edge: { sourcename: "f.c:kernel_1" targetname: "memcpy" }
node: { title: "memcpy" label: "memcpy\n<built-in>" shape : ellipse }
}
"""
SCALE = r'node: { title: "scale" label: "scale\ng.c:1:5\n24 bytes (static)" }'


def test_the_deepest_chain_is_not_the_one_of_the_largest_frame() -> None:
    assert deepest_chain([RUN]) == 32 + 120
    assert deepest_chain([RUN, SCALE]) == 32 + 100 + 24
    assert deepest_chain([]) == 0


def test_what_has_no_bound_is_an_error() -> None:
    back = '\nedge: { sourcename: "scale" targetname: "f.c:kernel_1" }'
    with pytest.raises(ValueError, match="calls itself: its stack has no bound"):
        deepest_chain([RUN, SCALE + back])
    with pytest.raises(ValueError, match="of scale is dynamic, not static"):
        deepest_chain([SCALE.replace("static", "dynamic")])

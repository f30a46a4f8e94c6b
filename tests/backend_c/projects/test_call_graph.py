"""Stack of chains of calls, from call graphs as gcc writes them."""

import pytest

from backend_c.projects.call_graph import call_graph, stack_depths
from hlo.errors import ToolchainError

RUN = r"""graph: { title: "f.c"
node: { title: "f_run" label: "f_run\nf.c:9:5\n32 bytes (static)" }
edge: { sourcename: "f_run" targetname: "f.c:kernel_0" label: "f.c:9:5" }
edge: { sourcename: "f_run" targetname: "f.c:kernel_1.constprop.0" label: "f.c:9:6" }
node: { title: "f.c:kernel_0" label: "kernel_0\nf.c:1:20\n120 bytes (static)" }
node: { title: "f.c:kernel_1.constprop.0" label: "kernel_1\nf.c:2:20\n100 bytes (static)" }
edge: { sourcename: "f.c:kernel_1.constprop.0" targetname: "scale" }
edge: { sourcename: "f.c:kernel_1.constprop.0" targetname: "memcpy" }
node: { title: "memcpy" label: "memcpy\n<built-in>" shape : ellipse }
}
"""
SCALE = r'node: { title: "scale" label: "scale\ng.c:1:5\n24 bytes (static)" }'


def test_the_deepest_chain_is_not_the_one_of_the_largest_frame() -> None:
    alone = {"f_run": 32 + 120, "kernel_0": 120, "kernel_1": 100}
    assert stack_depths(call_graph([RUN])) == alone
    deeper = {"f_run": 32 + 100 + 24, "kernel_0": 120, "kernel_1": 124, "scale": 24}
    assert stack_depths(call_graph([RUN, SCALE])) == deeper
    assert stack_depths(call_graph([])) == {}


def test_functions_without_a_frame_are_of_a_library() -> None:
    assert call_graph([RUN]).library_functions() == ("memcpy", "scale")
    assert call_graph([RUN, SCALE]).library_functions() == ("memcpy",)


def test_what_has_no_bound_is_an_error() -> None:
    back = '\nedge: { sourcename: "scale" targetname: "f.c:kernel_1.constprop.0" }'
    with pytest.raises(ToolchainError, match="calls itself: its stack has no bound"):
        stack_depths(call_graph([RUN, SCALE + back]))
    with pytest.raises(ToolchainError, match="of scale is dynamic, not static"):
        call_graph([SCALE.replace("static", "dynamic")])

"""Which tests are slow, of what pytest says of durations."""

from __future__ import annotations

from selftest.slow_tests import slow

_LINES = """
============================= slowest durations =============================
0.40s call     tests/hlo/test_walk.py::test_order[a b]
0.05s setup    tests/hlo/test_walk.py::test_order[c]
0.10s teardown tests/hlo/test_walk.py::test_order[c]
0.50s call     tests/hlo/test_types.py::test_names
0.51s setup    tests/hlo/test_types.py::TestSizes::test_bytes
7.00s call     nothing of ours
"""


def test_all_cases_of_a_function_count_together() -> None:
    assert slow(_LINES.splitlines()) == [
        "tests/hlo/test_types.py::TestSizes::test_bytes",
        "tests/hlo/test_walk.py::test_order",
    ]

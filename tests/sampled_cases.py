"""A plugin of pytest: run few of the many cases of a test, so that the suite takes minutes.

A test with ``@pytest.mark.sampled(N)`` that has more than N cases runs N of them, and all of them
under ``pytest --thorough``: first every value of every parameter, then every pair of values. Each
run leaves out the same ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations

import pytest

Case = tuple[Hashable, ...]  # one value for each parameter


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="run all cases of sampled tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--thorough") and (out := _left_out(items)):
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]


def _left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return the cases that an ordinary run leaves out, of those that were collected."""
    functions: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sampled"):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    out: set[pytest.Item] = set()
    for cases in functions.values():
        marker = cases[0].get_closest_marker("sampled")
        assert marker is not None
        values = [tuple(sorted(case.callspec.indices.items())) for case in cases]
        kept = chosen(values, *marker.args)
        out.update(case for number, case in enumerate(cases) if number not in kept)
    return out


def chosen(cases: Sequence[Case], count: int) -> set[int]:
    """Choose ``count`` cases by number: next is always the one that has most that none has had.

    What counts are single values first, pairs of values next (all-pairs testing, as in Cohen et
    al., "The AETG system", 1997). Among equals it is the one farthest from those chosen.
    """
    had: set[Hashable] = set()
    kept: set[int] = set()
    distances = [len(cases)] * len(cases)  # to the nearest that is chosen

    def worth(number: int) -> tuple[int, int, int, int]:
        values = sum(value not in had for value in cases[number])
        pairs = sum(pair not in had for pair in combinations(cases[number], 2))
        return values, pairs, distances[number], -number

    while len(kept) < min(count, len(cases)):
        best = max((n for n in range(len(cases)) if n not in kept), key=worth)
        kept.add(best)
        had.update(cases[best], combinations(cases[best], 2))
        distances = [min(far, abs(n - best)) for n, far in enumerate(distances)]
    return kept

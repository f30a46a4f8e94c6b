"""Provide what all tests share: golden files, the corpus, checks for compilers."""

from __future__ import annotations

import shlex
import shutil
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import sampled_cases
from hypothesis import settings

from backend_c.native.toolchain import links, takes

# The same examples at every run: what is green stays green until the code changes. Campaigns draw
# other examples (pytest --hypothesis-profile=default). How long one takes is no property of it.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("thorough", settings.get_profile("repeatable"), max_examples=100)
settings.load_profile("repeatable")

# A script's commands in the background ignore Ctrl-C, and so does what they start: without this,
# tests that interrupt a program would fail in `make test &`.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
ROOT = TESTS.parent  # of the project: nothing above it is read
GOLDEN = TESTS / "golden"
CORPUS = TESTS / "corpus"
# Functions of tests that took long, all cases together: see CONTRIBUTING.md.
SLOW = frozenset((TESTS / "slow_tests.txt").read_text("utf-8").split())


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden")
    pluginmanager.register(sampled_cases)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--thorough"):
        settings.load_profile("thorough")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests, and begin with them: so no worker is left with the longest at the end."""
    for item in items:
        if item.nodeid.partition("[")[0] in SLOW:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)``: the text is that of tests/golden/name."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: run pytest --update-golden and read the diff"
        assert text == path.read_text(), (
            f"{path} differs: run pytest --update-golden, read the diff"
        )

    return check


def has_c_compiler() -> bool:
    return any(map(shutil.which, ("gcc", "clang", "cc")))


def require_compiler(command: str) -> None:
    """Skip a test whose compiler is not installed, or not with the library of OpenMP."""
    if why := _missing(command):
        pytest.skip(why)


@pytest.fixture
def choose_compiler(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """``choose_compiler(command)``: compile by it in this test, or skip the test without it. It is
    not asked for known answers first, which takes six seconds: the test itself looks at bits."""

    def choose(command: str) -> None:
        require_compiler(command)
        monkeypatch.setenv("HLO_CC", command)
        monkeypatch.setattr("backend_c.pipeline.trusted", lambda compiler, cache: compiler)

    return choose


@cache
def _missing(command: str) -> str:
    words = shlex.split(command)
    if shutil.which(words[0]) is None:
        return f"no {words[0]}"
    has_threads = takes(words, ["-fopenmp"])  # tcc has none
    return f"no OpenMP of {words[0]}" if has_threads and not links(words, ["-fopenmp"]) else ""

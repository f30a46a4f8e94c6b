"""What all tests share: golden files, the corpus, and where compiled libraries go."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples at every run: what is green stays green until the code changes. Campaigns draw
# other examples (pytest --hypothesis-profile=default). How long one takes is no property of it.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

TESTS = Path(__file__).parent
ROOT = TESTS.parent  # of the project: nothing above it is read
GOLDEN = TESTS / "golden"
CORPUS = TESTS / "corpus"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden")


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

"""CONTRIBUTING.md is true: the files that it names are there, and commands are those of make."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
_PATH = re.compile(r"`((?:[\w.<>-]+/)+[\w.<>-]*|[\w<>]+\.(?:md|toml|py))`")
_MODULE = re.compile(r"`(?:\$ )?python -m ([\w.]+)")


def paths() -> list[str]:
    """Every path in the text. ``<family>`` stands for a name."""
    return sorted(set(_PATH.findall(PAGE)))


@pytest.mark.parametrize("path", paths())
def test_a_path_is_there(path: str) -> None:
    assert list(ROOT.glob(re.sub(r"<\w+>", "*", path)))


def test_the_text_names_paths() -> None:
    assert {"hlo/opcodes.py", "hlo/ops/<family>.py", "tests/golden", "pyproject.toml"} <= set(
        paths()
    )


@pytest.mark.parametrize("module", sorted(set(_MODULE.findall(PAGE))))
def test_a_command_is_there(module: str) -> None:
    assert list(ROOT.glob(f"{module.replace('.', '/')}*"))


def test_what_make_is_asked_for_is_a_rule() -> None:
    makefile = (ROOT / "Makefile").read_text()
    asked = set(re.findall(r"`make ([\w-]+)", PAGE))
    assert asked >= {"test", "check", "hooks"}
    for rule in asked:
        assert f"\n{rule}:" in makefile


def test_slow_tests_are_tests() -> None:
    """A name that no test has any more would leave its successor among the fast ones."""
    for name in (ROOT / "tests/slow_tests.txt").read_text("utf-8").split():
        path, *_, function = name.split("::")
        assert f"def {function}(" in (ROOT / path).read_text("utf-8"), name

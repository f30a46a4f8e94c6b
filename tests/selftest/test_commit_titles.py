"""The rules of commit messages, on histories made here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from selftest.commit_titles import faults, is_exempt, written

BODY = "\n\nIt was slow: 3 s, now 1 s.\n"
GOOD = [
    "kernels: sum rows in 32 lanes",
    "docs/found: run every report by one script",
    "hlo, interp: pass sizes as values",
    "backend_c: embed constants",
    "f8-types: bring back a sign",
    "a: " + "x" * 69,
]


@pytest.mark.parametrize("title", GOOD)
def test_a_good_message(title: str) -> None:
    assert list(faults(title + BODY)) == []


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("", "not `area: imperative`"),
        ("sum rows in 32 lanes" + BODY, "not `area: imperative`"),
        (": sum rows" + BODY, "not `area: imperative`"),
        ("kernels:sum rows" + BODY, "not `area: imperative`"),
        ('Revert "kernels: sum rows"' + BODY, "not `area: imperative`"),
        ("fixup! kernels: sum rows" + BODY, "not `area: imperative`"),
        ("kernels: Sum rows" + BODY, "lower case"),
        ("kernels: sums rows" + BODY, "'sums' is no imperative"),
        ("kernels: summed rows" + BODY, "'summed' is no imperative"),
        ("kernels: summing rows" + BODY, "'summing' is no imperative"),
        ("kernels: no sums of rows" + BODY, "'no' is no imperative"),
        ("kernels: sum rows; bench: less" + BODY, "a semicolon"),
        ("kernels: sum rows." + BODY, "a full stop"),
        ("a: " + "x" * 70 + BODY, "73 characters"),
        ("kernels: sum rows", "there is no body"),
        ("kernels: sum rows\n\n  \n", "there is no body"),
        ("kernels: sum rows\n\nSigned-off-by: A <a@b>", "there is no body"),
        ("kernels: sum rows\nwhich was slow", "the second line"),
    ],
)
def test_a_message_with_a_fault(message: str, said: str) -> None:
    (fault,) = (fault for fault in faults(message) if said in fault)
    assert fault


def test_what_an_author_did_not_write_is_left_out() -> None:
    text = "a: b\n\nwhy\n# comment\n# ------------------------ >8 ------------------------\ndiff\n"
    assert written(f"\n# comment\n{text}") == "a: b\n\nwhy"
    assert is_exempt("Merge branch 'b'") and is_exempt("fixup! a: b") and not is_exempt("a: b")


class Project:
    """A project with the check, a history before it, and the commit that brings it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("What came before the rule; and more.")
        for name in ("selftest/__init__.py", "selftest/commit_titles.py", ".githooks/commit-msg"):
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        shutil.copy(ROOT / "Makefile", root)
        self.git("add", "--all")
        self.commit("The rule itself, in the old way")

    def git(self, *words: str) -> subprocess.CompletedProcess[str]:
        author = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        return self.run("git", *author, *words)

    def commit(self, message: str) -> subprocess.CompletedProcess[str]:
        return self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def check(self) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "selftest.commit_titles")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(
            command,
            cwd=self.root,
            capture_output=True,
            text=True,
            env={**outside, "GIT_CONFIG_GLOBAL": os.devnull, "PYTHONPATH": ""},
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    if shutil.which("git") is None:
        pytest.skip("no git")
    return Project(tmp_path / "project")


def test_commits_after_the_rule_are_checked(project: Project) -> None:
    assert project.check().returncode == 0  # not what came before
    project.commit(GOOD[0] + BODY)
    assert project.check().returncode == 0
    project.commit("kernels: sums; of rows" + BODY)
    found = project.check()
    assert found.returncode == 1
    assert "'kernels: sums; of rows': the title has a semicolon" in found.stderr
    assert "'sums' is no imperative" in found.stderr and "before the rule" not in found.stderr


def test_commits_before_the_last_tag_are_not_checked(project: Project) -> None:
    project.commit("Published as it is")
    project.git("tag", "v1")
    assert project.check().returncode == 0
    project.commit("And after it")
    assert "And after it" in project.check().stderr


def test_a_tag_before_the_rule_does_not_reach_back(project: Project) -> None:
    project.git("tag", "v0", "HEAD~1")
    assert project.check().returncode == 0


def test_merges_are_not_checked(project: Project) -> None:
    project.git("checkout", "--quiet", "-b", "side")
    project.commit(GOOD[0] + BODY)
    project.git("checkout", "--quiet", "main")
    project.commit(GOOD[1] + BODY)
    project.git("merge", "--quiet", "--no-edit", "side")
    assert len(project.git("log", "-1", "--format=%p").stdout.split()) == 2
    assert project.check().returncode == 0


def test_without_a_history_there_is_nothing_to_check(project: Project, tmp_path: Path) -> None:
    project.commit("Not as it should be")
    source = f"file://{project.root}"
    project.git("clone", "--quiet", "--depth=1", source, str(tmp_path / "shallow"))
    shutil.copytree(project.root, tmp_path / "archive", ignore=shutil.ignore_patterns(".git"))
    shutil.copytree(tmp_path / "archive", project.root / "third_party")  # in another's history
    for root in (tmp_path / "shallow", tmp_path / "archive", project.root / "third_party"):
        project.root = root
        assert project.check().returncode == 0, root


def test_the_hook_refuses_a_message(project: Project) -> None:
    if shutil.which("make") is None:
        pytest.skip("no make")
    assert project.run("make", "hooks").returncode == 0
    refused = project.commit("Sums of rows")
    assert refused.returncode != 0 and "not `area: imperative`" in refused.stderr
    assert "The rule itself" in project.git("log", "-1", "--format=%s").stdout
    assert project.commit(GOOD[0] + BODY).returncode == 0
    assert project.commit("fixup! " + GOOD[0]).returncode == 0
    assert project.check().returncode == 1  # but it may not stay

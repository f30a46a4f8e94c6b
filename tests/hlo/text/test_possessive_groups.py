"""Possessive groups as atomic ones: for the Pythons that match the first wrongly."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from conftest import CORPUS, ROOT

from hlo.text.patterns import with_atomic_groups

MODULES = [
    *(f"hlo.text.{path.stem}" for path in sorted((ROOT / "hlo" / "text").glob("*.py"))),
    *("bisect_dump.dump", "bisect_dump.matching", "hlo_oracle.loading.recognition"),
]
_POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[0-9,]*\})\+")


def compiled() -> list[re.Pattern[str]]:
    """All regular expressions of these modules that have possessive groups."""
    found = []
    for name in MODULES:
        for value in vars(import_module(name)).values():
            many = value.values() if isinstance(value, dict) else [value]
            many = value if isinstance(value, list) else many
            found += [x for x in many if isinstance(x, re.Pattern) and isinstance(x.pattern, str)]
    return [one for one in dict.fromkeys(found) if _POSSESSIVE_GROUP.search(one.pattern)]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("(?:a|b)*+c", "(?>(?:a|b)*)c"),
        (r"(a)?+\)*+", r"(?>(a)?)\)*+"),
        ("[)]*+(?:[^])]++)++", "[)]*+(?>(?:[^])]++)+)"),
        ("(?:x(?:y)*+){2,3}+", "(?>(?:x(?>(?:y)*)){2,3})"),
        (r"(?=(?:[\]\\)]|\))?+)", r"(?=(?>(?:[\]\\)]|\))?))"),
    ],
)
def test_groups_that_are_repeated(text: str, made: str) -> None:
    assert with_atomic_groups(text) == made
    re.compile(made)


@pytest.mark.parametrize("one", compiled(), ids=lambda one: one.pattern[:40])
def test_all_of_ours_match_the_same(one: re.Pattern[str]) -> None:
    """Patterns with possessive groups, and their form with atomic groups, match the same at places
    of texts of the corpus."""
    other = re.compile(with_atomic_groups(one.pattern), one.flags)
    assert not _POSSESSIVE_GROUP.search(other.pattern)
    for name in ("argmax", "attention"):
        text = (CORPUS / "jax" / f"{name}.cpu_after_optimizations.txt").read_text()[:6000]
        for place in range(0, len(text), 3):
            mine, its = one.match(text, place), other.match(text, place)
            assert (mine and (mine.span(), mine.groups())) == (its and (its.span(), its.groups()))


PROGRAM = """
import sys
from pathlib import Path
import hlo
for name in sys.argv[1:]:
    hlo.verify(hlo.parse(Path(name).read_text()))
"""


def wrong_pythons() -> list[str]:
    """Pythons of this machine that match possessive groups wrongly, as that of Debian 12."""
    asked = "import sys; print(*sys.version_info[:3])"
    found = []
    for path in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(path).exists():
            done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False)
            if done.stdout.split()[:2] == ["3", "11"] and int(done.stdout.split()[2]) < 5:
                found.append(path)
    return found


@pytest.mark.skipif(not wrong_pythons(), reason="no Python from 3.11.0 to 3.11.4")
def test_debian_s_own_python_reads_the_corpus() -> None:
    files = sorted(map(str, CORPUS.glob("*/*.txt")))[::3]
    packages = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    if sys.version_info[:2] != (3, 11):
        pytest.skip("NumPy here is another Python's")
    done = subprocess.run(
        [wrong_pythons()[0], "-c", PROGRAM, *files],
        env={"PYTHONPATH": ":".join(packages)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

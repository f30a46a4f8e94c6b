"""Conditions that are decided before a compiler sees them: what the preprocessor makes of both."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend_c.projects.conditions import decided

_MACROS = ("A", "B", "C")
_TERMS = [f"{sign}{atom}" for m in _MACROS for sign in ("", "!") for atom in (m, f"defined({m})")]


@st.composite
def _texts(draw: st.DrawFn, depth: int = 3) -> str:
    """Draw numbered lines under conditions."""
    parts = [f"line {draw(st.integers(0, 999))}\n"]
    for _ in range(draw(st.integers(0, 2)) if depth else 0):
        terms = draw(st.lists(st.sampled_from(_TERMS), min_size=1, max_size=3))
        sign = draw(st.sampled_from([" && ", " || ", " && \\\n "]))
        conditions = [
            *(f"#if{n}def {m}" for m in _MACROS for n in ("", "n")),
            *[f"#if {sign.join(terms)} /* why */"] * 6,
            f"#if ({terms[0]} || A) && B",
        ]
        parts += [f"{draw(st.sampled_from(conditions))}\n", draw(_texts(depth=depth - 1))]
        for term in draw(st.lists(st.sampled_from(_TERMS), max_size=2)):
            parts += [f"#elif {term}\n", draw(_texts(depth=depth - 1))]
        if draw(st.booleans()):
            parts += ["#else\n", draw(_texts(depth=depth - 1))]
        parts += ["#endif\n", f"line {draw(st.integers(0, 999))}\n"]
    return "".join(parts)


def _preprocessed(text: str, defined: dict[str, bool]) -> list[str]:
    """Return the lines that the preprocessor leaves; a macro that is not defined counts as 0."""
    words = [f"-D{name}=1" for name, is_defined in defined.items() if is_defined]
    command = ["cc", "-E", "-P", "-w", *words, "-x", "c", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@settings(max_examples=20)
@given(
    _texts(),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.sets(st.sampled_from(_MACROS)),
)
def test_what_is_left_means_the_same(
    text: str, values: tuple[bool, bool, bool], told: set[str]
) -> None:
    defined = dict(zip(_MACROS, values, strict=True))
    left = decided(text, {name: defined[name] for name in sorted(told)})
    assert _preprocessed(left, defined) == _preprocessed(text, defined)
    if len(told) == len(_MACROS) and "(A" not in text and "(!" not in text and "(d" not in text:
        assert "#" not in left
    assert decided(text, {}) == text


def test_branches_become_the_first_and_the_last() -> None:
    text = "#if A\n1\n#elif B /* why */\n2\n#elif defined(C)\n3\n#else\n4\n#endif\n"
    assert (
        decided(text, {"A": False}) == "#if B /* why */\n2\n#elif defined(C)\n3\n#else\n4\n#endif\n"
    )
    assert decided(text, {"B": True}) == "#if A\n1\n#else\n2\n#endif\n"
    assert decided(text, {"A": True}) == "1\n"
    assert decided(text, {"A": False, "B": False, "C": False}) == "4\n"


def test_the_last_line_needs_no_end() -> None:
    assert decided("#if A\n1\n#endif\nint x;", {"A": False}) == "int x;"

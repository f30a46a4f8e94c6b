"""Evaluate preprocessor conditions that are known for a target (partial evaluation)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# With those that a backslash continues; the last line may have no end.
_LINE = re.compile(r"(?:[^\n]*\\\n)*(?:[^\n]*\n|[^\n]+\Z)")
_DIRECTIVE = re.compile(r"#(if|ifdef|ifndef|elif|else|endif)\b(.*)", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ATOM = re.compile(r"defined\((\w+)\)|(\w+)")


def decided(text: str, known: Mapping[str, bool]) -> str:
    """Remove the branches of conditions that are known to fail, and known conditions themselves.

    ``known`` says of macros whether they are defined and not zero. A condition with other macros,
    too, is removed if the known ones alone decide it, and else left whole.
    """
    return "".join(_kept(text, known))


def _kept(text: str, known: Mapping[str, bool]) -> Iterator[str]:
    """Yield the lines that remain."""
    # For each condition around a line: whether the branch is left out, whether one that holds was
    # met, and whether a line of the condition is left.
    around: list[tuple[bool, bool, bool]] = []
    for line in _LINE.findall(text):
        directive = _DIRECTIVE.match(line)
        outer = any(out for out, _, _ in (around[:-1] if directive else around))
        if directive is None:
            if not outer:
                yield line
            continue
        word, holds = directive[1], _holds(directive, known)
        if word.startswith("if"):
            outer = any(out for out, _, _ in around)
            around.append((holds is False, holds is True, holds is None))
            if holds is None and not outer:
                yield line
            continue
        _, done, is_left = around.pop()
        if word == "endif":
            if is_left and not outer:
                yield line
            continue
        out = done or holds is False
        around.append((out, done or holds is True, is_left or (holds is None and not out)))
        if not out and not outer and (is_left or holds is None):
            yield _continued(line, directive, is_left, holds)


def _continued(line: str, directive: re.Match[str], is_left: bool, holds: bool | None) -> str:
    """Return the line for a further branch, which may be the first that remains, or the last."""
    if directive[1] == "else" or (is_left and holds is None):
        return line
    return "#else\n" if is_left else f"#if{directive[2]}"


def _holds(directive: re.Match[str], known: Mapping[str, bool]) -> bool | None:
    """Evaluate a condition; None where it is unknown."""
    word, rest = directive[1], _COMMENT.sub("", directive[2]).replace("\\\n", " ").strip()
    if word == "else":
        return True
    if word in ("ifdef", "ifndef"):
        defined = known.get(rest)
        return defined if word == "ifdef" or defined is None else not defined
    return _value(rest, known)


def _value(expression: str, known: Mapping[str, bool]) -> bool | None:
    """Evaluate ``||`` of ``&&`` of perhaps negated macros in Kleene's three-valued logic.

    None stands for unknown.
    """
    for sign, decisive in (("||", True), ("&&", False)):
        parts = expression.split(sign)
        if len(parts) > 1:
            # The sign is in parentheses, as in ``(A || B) && C``: left undecided.
            if any(part.count("(") != part.count(")") for part in parts):
                return None
            values = [_value(part.strip(), known) for part in parts]
            if decisive in values:
                return decisive
            return None if None in values else not decisive
    negated = expression.startswith("!")
    atom = _ATOM.fullmatch(expression.removeprefix("!"))
    found = known.get(atom[1] or atom[2]) if atom else None
    return found if found is None else found != negated

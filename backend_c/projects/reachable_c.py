"""Extract from the runtime headers what generated code reaches (dead code elimination of C text).

Headers are text of ours in one style: what begins in the first column is a declaration, which ends
with a brace there, a semicolon or the parenthesis of a macro. Macros that define functions are
expanded, so that each function is kept or left out for itself; a macro with several definitions,
one for each processor, is left to the preprocessor. What is not understood is kept.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINE = re.compile(r"#define (\w+)(\(([^)]*)\))?[ \t]*")
_PARAMETER = re.compile(r"\w+|\.\.\.")
_PASTED = re.compile(r"\w+(?:\s*##\s*\w+)+")
_UNDEFINE = re.compile(r"#undef (\w+)")
_FUNCTION = re.compile(r"HLO_[A-Z_]+ [^(;={]*?(\w+)\(")
_PROTOTYPE = re.compile(r'(?:extern "C" )?\w+ (\w+)\([^)]*\);\Z')
_TYPE = re.compile(r"typedef .*?(\w+)(\[\w*\])?(\s+__attribute__\(\(.*\)\))?;\Z", re.DOTALL)
_ENUMERATION = re.compile(r"enum \{(.*)\};\Z", re.DOTALL)
_TABLE = re.compile(r"static const [^(={]*?(\w+)(\[\w*\])* = ")
_CALL = re.compile(r"(\w+)\((.*)\);?\Z", re.DOTALL)
_PIECE = re.compile(r'"[^"]*"|.', re.DOTALL)
_CONDITION = re.compile(r"#(if|ifdef|ifndef|elif|else|endif)\b")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MOST_EXPANSIONS = 8  # of macros within macros


class _Part(NamedTuple):
    """Hold a declaration or a preprocessor line, with the comments before it.

    ``names`` are those that it defines; a part without any is always kept.
    """

    text: str
    names: tuple[str, ...] = ()


class _Macro(NamedTuple):
    """Hold the parameters and the body of a function-like macro."""

    parameters: tuple[str, ...]
    body: str


# The definitions of each function-like macro, one after the other; none before #undef.
_Macros = dict[str, list[_Macro]]


def with_reachable_parts(headers: str, code: str) -> str:
    """Return the parts of ``headers`` that ``code`` reaches, in order, without empty
    conditionals."""
    # What only a condition around nothing needs is left out in the next round.
    while (kept := _once(headers, code)) != headers:
        headers = kept
    return headers


def words_reached(text: str, name: str) -> set[str]:
    """Return all identifiers that a name in a text reaches through definitions."""
    parts = list(_parts(_lines(text), {}))
    return _reached([name], _by_name(parts))


def _once(headers: str, code: str) -> str:
    """Remove the parts whose names neither ``code`` nor a reached part mentions."""
    parts = list(_parts(_lines(headers), {}))
    unnamed = [part.text for part in parts if not part.names]
    reached = _reached([code, *unnamed], _by_name(parts))
    kept = [part for part in parts if not part.names or reached.intersection(part.names)]
    texts = _without_empty_conditions([part.text for part in kept])
    # As in the headers: an empty line after what has several lines, but for the preprocessor's.
    return "".join(f"{text}\n\n" if text.endswith("}") else f"{text}\n" for text in texts)


def _by_name(parts: Sequence[_Part]) -> dict[str, list[_Part]]:
    """Map each name to all parts that define it, alternatives included."""
    by_name: dict[str, list[_Part]] = {}
    for part in parts:
        for name in part.names:
            by_name.setdefault(name, []).append(part)
    return by_name


def _reached(texts: list[str], by_name: Mapping[str, Sequence[_Part]]) -> set[str]:
    """Return the identifiers in texts and, transitively, in the parts that define them."""
    reached: set[str] = set()
    while texts:
        words = _named(texts.pop(), by_name) - reached
        reached |= words
        texts += [part.text for word in words for part in by_name.get(word, ())]
    return reached


def _named(text: str, names: Iterable[str]) -> set[str]:
    """Return the identifiers in a text, and those of ``names`` that its macro may paste
    together."""
    text = _COMMENT.sub("", text)
    words = set(_WORD.findall(text))
    defined = _DEFINE.match(text.lstrip())
    parameters = _PARAMETER.findall(defined[3] or "") if defined else []
    for pasted in _PASTED.findall(text):
        pieces = re.split(r"\s*##\s*", pasted)
        form = "".join(r"\w+" if one in parameters else re.escape(one) for one in pieces)
        words.update(filter(re.compile(form).fullmatch, names))
    return words


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def _parts(lines: Sequence[str], macros: _Macros, depth: int = 0) -> Iterator[_Part]:
    """Parse lines into parts; ``macros`` collects the function-like macros met so far."""
    comments: list[str] = []
    at = 0
    while at < len(lines):
        end = _end(lines, at)
        text, at = "\n".join(lines[at:end]), end
        if not text:
            comments = []  # a comment with nothing below it is on the file
        elif text.startswith("/*"):
            comments.append(text)
        else:
            yield from _declared(text, comments, macros, depth)
            comments = []


def _end(lines: Sequence[str], start: int) -> int:
    """Return the line after the part that begins at line ``start``."""
    first, end = lines[start], start + 1
    if not first:
        return end
    if first.startswith("#"):
        while lines[end - 1].endswith("\\"):
            end += 1
        return end
    if first.startswith("/*"):
        while "*/" not in lines[end - 1]:
            end += 1
        return end
    while not _is_whole("\n".join(lines[start:end])):
        if lines[end - 1].endswith("{"):
            while not lines[end].startswith("}"):
                end += 1
            return end + 1
        end += 1
    return end


def _is_whole(text: str) -> bool:
    """Return whether a text is a complete declaration, with balanced parentheses and braces."""
    is_closed = text.count("(") == text.count(")") and text.count("{") == text.count("}")
    return is_closed and text.endswith((";", "}", ")"))


def _declared(text: str, comments: Sequence[str], macros: _Macros, depth: int) -> Iterator[_Part]:
    """Yield the parts of a declaration, a preprocessor line, or a macro call (expanded)."""
    whole = "\n".join([*comments, text])
    if text.startswith("#"):
        yield _Part(whole, _preprocessed(text, macros))
        return
    call = _CALL.fullmatch(text)
    if call and call[1] in macros and depth < _MOST_EXPANSIONS:
        expansions = [
            list(_parts(_lines(_expanded(call[2], *one)), macros, depth + 1))
            for one in macros[call[1]]
        ]
        if len(expansions) > 1:
            names = (name for parts in expansions for part in parts for name in part.names)
            yield _Part(whole, tuple(dict.fromkeys(names)))
            return
        for first in expansions[0][:1]:
            yield first._replace(text="\n".join([*comments, first.text]))
        yield from expansions[0][1:]
        return
    enumeration = _ENUMERATION.match(text)
    if enumeration:
        constants = _COMMENT.sub("", enumeration[1]).split(",")
        yield _Part(whole, tuple(one.split("=")[0].strip() for one in constants))
        return
    matches = (form.match(text) for form in (_FUNCTION, _PROTOTYPE, _TYPE, _TABLE))
    yield _Part(whole, tuple(found[1] for found in matches if found)[:1])


def _preprocessed(text: str, macros: _Macros) -> tuple[str, ...]:
    """Note what a preprocessor line defines in ``macros``; return its name, if there is one."""
    defined, undefined = _DEFINE.match(text), _UNDEFINE.match(text)
    if undefined:
        macros.pop(undefined[1], None)
        return (undefined[1],)
    if defined and defined[2]:
        macro = _Macro(tuple(_PARAMETER.findall(defined[3])), text[defined.end() :])
        macros.setdefault(defined[1], []).append(macro)
    return (defined[1],) if defined else ()


def _expanded(arguments: str, parameters: Sequence[str], body: str) -> str:
    """Expand a macro, to lines that begin in the first column."""
    given = dict(zip(parameters, _split(arguments), strict=True))
    body = "\n".join(line.rstrip("\\").rstrip() for line in body.split("\n"))
    body = textwrap.dedent(body.lstrip("\n"))
    body = _WORD.sub(lambda word: given.get(word[0], word[0]), body)
    return re.sub(r"\s*##\s*", "", body)


def _split(arguments: str) -> list[str]:
    """Split the arguments of a macro at the commas outside of parentheses and strings."""
    found, level = [""], 0
    for piece in _PIECE.findall(arguments):
        level += (piece == "(") - (piece == ")")
        if piece == "," and not level:
            found.append("")
        else:
            found[-1] += piece
    return [one.strip() for one in found]


def _without_empty_conditions(texts: Sequence[str]) -> list[str]:
    """Remove preprocessor conditionals with nothing in them."""
    kept: list[str] = []
    for text in texts:
        line = _CONDITION.match(_COMMENT.sub("", text).lstrip())
        if line and line[1] == "endif":
            start = len(kept) - 1
            while _is_condition(kept[start], "else", "elif"):
                start -= 1
            if _is_condition(kept[start], "if", "ifdef", "ifndef"):
                del kept[start:]
                continue
        kept.append(text)
    return kept


def _is_condition(text: str, *words: str) -> bool:
    line = _CONDITION.match(_COMMENT.sub("", text).lstrip())
    return line is not None and line[1] in words

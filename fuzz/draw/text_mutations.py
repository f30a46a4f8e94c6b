"""Generate hostile texts: mutations of programs, by token and by byte."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import hlo
from fuzz.draw.choices import examples
from fuzz.draw.programs import program
from hlo.opcodes import OPCODES
from hlo.types import ELEMENT_TYPES

LARGEST = 20_000  # characters; longer files are read in windows of so many
_PARTS = 0.1

TOKEN = re.compile(r"""\s+|"[^"\n]*"|[A-Za-z_][\w.\-]*|-?\d+|->|<=|.""", re.ASCII)
_NUMBERS = (
    *("0", "1", "-1", "2", "3", "63", "64", "65", "127", "255", "1000000", "2147483647"),
    *("2147483648", "4294967296", "9223372036854775807", "9223372036854775808", "1e308", "-0"),
    *("18446744073709551616", "99999999999999999999999999999999", "1e99999", "nan", "inf"),
)
_PIECES = (
    *("(", ")", "{", "}", "[", "]", ",", "=", "%", '"', "'", "/*", "*/", "//", "<=", "->", "\\"),
    *("ROOT ", "ENTRY ", "HloModule ", "f32[]", "token[]", "()", "{...}", "\n", "\0", "\x85", "é"),
    *("{1,0}", "s4[0]", "pred[2]{0}", "to_apply=", "calls=", "metadata={", "sharding={", "#0", "?"),
)


_KINDS = sorted(ELEMENT_TYPES), sorted(OPCODES)


def _at(rng: random.Random, tokens: Sequence[str]) -> int:
    return rng.randrange(len(tokens))


def _removed(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    start = _at(rng, tokens)
    del tokens[start : start + rng.choice((1, 1, 2, 3, 20))]


def _repeated(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    start = _at(rng, tokens)
    piece = tokens[start : start + rng.choice((1, 2, 5, 30))]
    tokens[start:start] = piece * rng.choice((1, 1, 2, 10, 100))


def _exchanged(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    one, other = _at(rng, tokens), _at(rng, tokens)
    tokens[one], tokens[other] = tokens[other], tokens[one]


def _replaced(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    tokens[_at(rng, tokens)] = rng.choice(rng.choice((tokens, others)))


def _renumbered(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    places = [n for n, token in enumerate(tokens) if token.lstrip("-").isdigit()]
    if places:
        tokens[rng.choice(places)] = rng.choice(_NUMBERS)


def _renamed(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    """Rename a word to another one of its kind: types, opcodes, or names and keys of the text."""
    places = [n for n, token in enumerate(tokens) if token[0].isalpha()]
    if not places:
        return
    place = rng.choice(places)
    words = next((kind for kind in _KINDS if tokens[place] in kind), None)
    if words is None:
        words = [tokens[n] for n in places if not any(tokens[n] in kind for kind in _KINDS)]
    tokens[place] = rng.choice(words)


def _inserted(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    tokens.insert(_at(rng, tokens), rng.choice(_PIECES))


def _spliced(rng: random.Random, tokens: list[str], others: Sequence[str]) -> None:
    start, length = rng.randrange(len(others)), rng.choice((3, 10, 50, 300))
    # An empty slice, as its end is not after its start: Python inserts there.
    tokens[_at(rng, tokens) : 0] = others[start : start + length]


# Half of the programs with another number or name still parse, of those changed otherwise at most
# one in five: these two kinds are drawn most often, as they reach the verifier and the ops.
_BYTOKEN: tuple[Callable[[random.Random, list[str], Sequence[str]], None], ...] = (
    _removed, _repeated, _exchanged, _replaced, _inserted, _spliced,
    _renumbered, _renumbered, _renumbered, _renamed, _renamed, _renamed, _renamed, _renamed,
)  # fmt: skip


def _by_byte(rng: random.Random, text: str) -> str:
    """Change, insert or delete some bytes, or truncate the text."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        place = rng.randrange(len(data) + 1)
        if rng.random() < 0.3:
            del data[place : place + rng.choice((1, 1, 4))]
        elif rng.random() < 0.5:
            data[place:place] = bytes([rng.randrange(256)])
        else:
            data[place : place + 1] = bytes([rng.randrange(256)])
    if rng.random() < 0.1:
        del data[rng.randrange(len(data) + 1) :]
    # Lone surrogates, of the latter, are in strings but in no UTF-8: what prints them may fail.
    return data.decode("utf-8", rng.choice(("replace", "surrogateescape")))


def mutated(rng: random.Random, text: str, other: str) -> str:
    """Apply one to eight mutations to a text; pieces of ``other`` may be inserted."""
    if rng.random() < 0.2:
        return _by_byte(rng, text)
    tokens, others = TOKEN.findall(text), TOKEN.findall(other)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if tokens and others:
            rng.choice(_BYTOKEN)(rng, tokens, others)
    return "".join(tokens)


def drawn(count: int, seed: int) -> list[str]:
    """Draw texts of modules by :func:`fuzz.draw.programs.program`, determined by the seed."""
    return examples(lambda choices: hlo.format(program(choices)), count, seed)


def pieces(text: str) -> list[str]:
    """Split a text into pieces of at most LARGEST characters, of whole lines where these are short
    enough; each begins with the first line."""
    lines = text.splitlines(keepends=True)
    first = "".join(lines[:1])[: LARGEST // 2]
    found, piece = [], first
    for whole in lines[1:]:
        line = whole[: LARGEST - len(first)]
        if len(piece) + len(line) > LARGEST:
            found.append(piece)
            piece = first
        piece += line
    return [*found, piece]


def texts_of(paths: Sequence[Path]) -> list[str]:
    """Read HLO files, and those in directories."""
    files: list[Path] = []
    for path in paths:
        names = ("*.hlo", "*.txt")
        found = [f for name in names for f in path.rglob(name)] if path.is_dir() else [path]
        files += sorted(found)
    return [file.read_text("utf-8") for file in files]


@dataclass(frozen=True, slots=True)
class Sources:
    """Hold the texts to mutate: mostly whole programs, else pieces of long ones."""

    whole: tuple[str, ...]
    parts: tuple[str, ...]

    def choice(self, rng: random.Random) -> str:
        of_parts = self.parts and (not self.whole or rng.random() < _PARTS)
        rest = self.parts if of_parts else self.whole
        return rng.choice(rest)


def sources(texts: Sequence[str]) -> Sources:
    long = [text for text in texts if len(text) > LARGEST]
    whole = tuple(text for text in texts if len(text) <= LARGEST)
    return Sources(whole, tuple(piece for text in long for piece in pieces(text)))


def mutations(texts: Sources, seed: int, numbers: Sequence[int]) -> Iterator[str]:
    """Yield text n of a seed, for each number n."""
    for number in numbers:
        rng = random.Random(f"{seed} {number}")
        # One repetition may add 100 times 30 tokens.
        yield mutated(rng, texts.choice(rng), texts.choice(rng))[: 2 * LARGEST]

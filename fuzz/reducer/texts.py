"""Reduce a text that breaks a reader to the lines, tokens and characters that matter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from fuzz.draw.text_mutations import TOKEN
from fuzz.reducer.delta_debugging import minimal


def shortest(text: str, is_wrong: Callable[[str], bool], seconds: float) -> str:
    """Minimise a failing text, for at most ``seconds``."""
    end = time.monotonic() + seconds

    def in_time(shorter: str) -> bool:
        return time.monotonic() < end and is_wrong(shorter)

    for split in (partial(str.splitlines, keepends=True), TOKEN.findall, list):
        text = _shorter(split(text), in_time)
    return text


def _shorter(parts: Sequence[str], is_wrong: Callable[[str], bool]) -> str:
    """Minimise the list of a failing text's parts."""

    def first(candidates: Iterable[Sequence[int]]) -> int | None:
        texts = ("".join(parts[n] for n in numbers) for numbers in candidates)
        return next((n for n, text in enumerate(texts) if is_wrong(text)), None)

    return "".join(parts[n] for n in minimal(range(len(parts)), first))

"""Answer questions of another process: JSON objects, a line each, on standard input and output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from hlo.errors import Error

# What libraries raise for a program that they do not take.
_REFUSALS = (
    *(Error, RuntimeError, ValueError, TypeError, LookupError, NotImplementedError, OSError),
    *(AssertionError, AttributeError),
)


def serve(questions: Mapping[str, Callable[..., dict[str, Any]]]) -> None:
    """Answer questions until the input ends: ``do`` names the function, the other fields are its
    arguments. An exception becomes an answer with ``error``."""
    # What libraries print must not be taken for an answer.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        channel.write(json.dumps(_answer(questions[asked.pop("do")], asked)) + "\n")
        channel.flush()


def _answer(function: Callable[..., dict[str, Any]], asked: dict[str, Any]) -> dict[str, Any]:
    try:
        return function(**asked)
    except _REFUSALS as error:
        return {"error": _first_line(error)}
    except MemoryError:
        return {"error": "out of memory"}


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__

"""Write backend_c/probe/answers.txt from the interpreter: python -m selftest.probe_answers.

The C backend, which asks compilers for them, does not know the interpreter.
"""

from __future__ import annotations

from pathlib import Path

import backend_c.probe
import interp
from backend_c.probe import inputs
from backend_c.probe.questions import Question, questions
from backend_c.probe.trial import module_of
from hlo.types import ArrayShape
from hlo.values import Array, placed_arrays

FILE = Path(backend_c.probe.__file__).parent / "answers.txt"


def text() -> str:
    """Write a line for each question: the digest of its answer, and its name."""
    asked = tuple(questions())
    module = module_of(asked)
    names = [(question, n) for question in asked for n, _ in enumerate(question.parameters)]
    given = [
        inputs.filled(_array(parameter.shape), inputs.seed(question.name, n))
        for (question, n), parameter in zip(names, module.entry.parameters, strict=True)
    ]
    results = (array for _, array in placed_arrays(interp.evaluate(module, *given)))
    return "".join(map(_line, asked, results))


def _array(shape: object) -> ArrayShape:
    assert isinstance(shape, ArrayShape)
    return shape


def _line(question: Question, answer: Array) -> str:
    return f"{inputs.digest(answer):016x} {question.name}\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")

"""Check that the verifier agrees with XLA's on thousands of instructions.

``xla_verdicts.txt`` says how it was recorded. Where we differ on purpose, the reason is here.
"""

from __future__ import annotations

import re
import string
from collections import defaultdict
from pathlib import Path

import pytest
from verdicts import CALLEES

import hlo
from fuzz.oracles.known_differences import STRICTER
from hlo.ops.element_types import TAKES
from hlo.types import ELEMENT_TYPES

ARRAYS = [name for name, t in ELEMENT_TYPES.items() if t.is_array]
_HEAD, _TYPES, _VERDICTS = re.split(
    r"\n\[(?:types|verdicts)\]\n", (Path(__file__).parent / "xla_verdicts.txt").read_text()
)
_NAMED = {text.split(" ", 1)[0]: f"{text} }}\n" for text in CALLEES.strip().split(" }\n")}
_NAMED = {name: text.replace("} }", "}") for name, text in _NAMED.items()}
_TYPED = {
    "add": "T[] add(x, y)",
    "less": "pred[] compare(x, y), direction=LT",
    "twice": "T[] add(x, x)",
}
_OPCODE = re.compile(r"(?:\S+|\(.*?\)) ([a-z][a-z0-9-]*)\(")

# XLA's verifier takes these element types, but no backend of it gives them a meaning.
MEANINGLESS_TYPES = {
    "clamp": "complex numbers have no order",
    "maximum": "complex numbers have no order",
    "minimum": "complex numbers have no order",
    "topk": "complex numbers have no order",
    "sort": "complex numbers have no order",
    "select-and-scatter": "complex numbers have no order",
    "remainder": "complex numbers have no remainder",
    "mulhi": "only integers have a high half",
    "shift-left": "only integers have bits to shift",
    "shift-right-arithmetic": "only integers have bits to shift",
    "shift-right-logical": "only integers have bits to shift",
    "rng-bit-generator": "random bits are of whole bytes, and not of pairs",
}
# XLA dies of literals of these, and of comparing them.
UNFINISHED = {(op, t) for op in ("constant", "sort") for t in ("f6e2m3fn", "f6e3m2fn")}
# What their rows accept depends on more than the element type: literals, computations, widths.
_OF_OTHER_THINGS = {"constant", "conditional", "map", "scan", "stochastic-convert", "while"}
LAXER = {
    "triangular-solve": "without transpose_a nothing is transposed",
    "collective-broadcast": "has_dynamic_root is newer than this XLA",
    "copy": "shardings are kept as text",
    "all-to-all": "a header that counts no ranks says nothing of how many there are",
}


def callee(name: str) -> str:
    """A computation by its name: one of CALLEES, or ``add_f64`` and the like."""
    if name in _NAMED:
        return _NAMED[name]
    stem, t = name.split("_")
    second = "" if stem == "twice" else "\n  y = T[] parameter(1)"
    body = f"{name} {{ x = T[] parameter(0){second}\n  ROOT z = {_TYPED[stem]} }}\n"
    return body.replace("T[]", f"{t}[]")


def program(operands: str, instruction: str) -> str:
    """Return the text of ``verdicts.module`` with only those computations that are called."""
    called = re.findall(
        r"[={ ]((?:add|both|less|twice|rounds|positive|step)[a-z0-9_]*)\b", instruction
    )
    found = "".join(map(callee, dict.fromkeys(called)))
    names = string.ascii_lowercase
    lines = [f"  {names[n]} = {shape} parameter({n})" for n, shape in enumerate(operands.split())]
    return "\n".join(
        ["HloModule m", found + "ENTRY main {", *lines, f"  ROOT r = {instruction}", "}"]
    )


def label(operands: str, instruction: str) -> str:
    """The label of what is wrong with the instruction; callee: with what it calls; parse: it cannot
    be read."""
    try:
        hlo.verify(hlo.parse(program(operands, instruction)))
    except hlo.ParseError:
        return "parse"
    except hlo.VerifyError as error:
        found = re.match(r"\d+: %r = [a-z0-9-]+, ([\w-]+): ", str(error))
        return found[1] if found else "callee"
    return ""


def accepted(operands: str, instruction: str) -> bool:
    return not label(operands, instruction)


def of_type(text: str, t: str) -> str:
    return re.sub(r"_T\b", f"_{t}", text.replace("T[", f"{t}["))


TYPE_ROWS = {
    line.split(" | ", 1)[0]: [cell.strip() for cell in line.split("|")[1:]]
    for line in _TYPES.strip().splitlines()
}


@pytest.mark.parametrize("opcode", TYPE_ROWS)
def test_element_types(opcode: str) -> None:
    operands, instruction, listed = TYPE_ROWS[opcode]
    names = set(listed.removeprefix("all but ").split()) - {"all"}
    xla = set(ARRAYS) - names if listed.startswith("all") else names
    ours = {t for t in ARRAYS if accepted(of_type(operands, t), of_type(instruction, t))}
    different = {t for t in xla ^ ours if (opcode, t) not in UNFINISHED}
    if opcode in MEANINGLESS_TYPES:
        assert different and different <= xla
    else:
        assert not different


@pytest.mark.parametrize("opcode", sorted({*TYPE_ROWS} - _OF_OTHER_THINGS))
def test_the_table_of_types_is_what_the_verifier_does(opcode: str) -> None:
    operands, instruction, _ = TYPE_ROWS[opcode]
    depends = {"sort", "select-and-scatter", "complex", "abs", "real", "imag", "fft"}
    for t in ARRAYS:
        takes = ELEMENT_TYPES[t] in TAKES[opcode].types
        does = accepted(of_type(operands, t), of_type(instruction, t))
        assert does <= takes if opcode in depends else does == takes, t


ROWS: dict[str, list[list[str]]] = defaultdict(list)
for _line in _VERDICTS.strip().splitlines():
    _cells = [cell.strip() for cell in _line.split("|")]
    _found = _OPCODE.search(_cells[3])
    assert _found, _line
    ROWS[_found[1]].append(_cells)


@pytest.mark.parametrize("opcode", ROWS)
def test_verdicts(opcode: str) -> None:
    for xla, expected, operands, instruction in ROWS[opcode]:
        assert label(operands, instruction) == expected, (operands, instruction)
        if xla == "+":
            assert not expected or (opcode, expected) in STRICTER, (operands, instruction)
        else:
            assert expected or opcode in LAXER, (operands, instruction)


def test_reasons_are_needed() -> None:
    needed = {(op, row[1]) for op, rows in ROWS.items() for row in rows if row[0] == "+" and row[1]}
    assert set(STRICTER) == needed
    assert set(LAXER) == {op for op, rows in ROWS.items() for r in rows if r[0] == "-" and not r[1]}

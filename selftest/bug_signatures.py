"""Match failures to the bugs of docs/found by the signatures in docs/found/signatures.toml.

A bug has alternatives, each of which a failure may meet. Regular expressions have to match all of
``oracle``, ``kind`` and ``blamed``, and to be found in ``detail``, in the ``program`` as nested
expressions (:func:`expressions`; a list if several have to be found) and in the ``values`` that the
report shows (:func:`shown_values`); ``opcodes`` have to occur. ``<name>`` in an expression stands
for one of the table ``fragments``; the oracle is one of XLA unless a signature says otherwise. An
alternative with ``part = true`` is of programs in which a bug is met somewhere, but may not be what
is wrong: it only tells where to look.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlo.errors import ArgumentError
from hlo.module import Computation, Instruction, Module
from hlo.text.printer import instruction_parts
from hlo.walk import called

FOUND = Path(__file__).resolve().parents[1] / "docs" / "found"
FILE = FOUND / "signatures.toml"

_FULL = ("oracle", "kind", "blamed")
_SEARCHED = ("detail", "program", "values")
_DEPTH = 4  # instructions within each other
_LONGEST = 600  # characters of an operand


@dataclass(frozen=True, slots=True)
class Failure:
    """Describe a failure as signatures see it. ``program`` has a line for each instruction."""

    oracle: str
    kind: str
    detail: str
    blamed: str
    opcodes: frozenset[str]
    program: str
    values: str


@dataclass(frozen=True, slots=True)
class Signature:
    """Describe one alternative of a bug's failures."""

    bug: str
    patterns: tuple[tuple[str, re.Pattern[str]], ...]
    opcodes: frozenset[str]
    is_part: bool

    @property
    def conditions(self) -> int:
        """Return how much is asked for: of two that match, the one with more is more specific."""
        return len(self.patterns) + len(self.opcodes)


@dataclass(frozen=True, slots=True)
class Signatures:
    """Hold the signatures of all bugs, the most specific first, and the bugs found first."""

    all: tuple[Signature, ...]
    first: tuple[str, ...]

    @property
    def bugs(self) -> frozenset[str]:
        """Return the names of the bugs that have signatures."""
        return frozenset(signature.bug for signature in self.all)

    def matching(self, failure: Failure) -> tuple[str, ...]:
        """Return the bugs that a failure may be, the most specific signature's first."""
        return self._met(failure, are_parts=False)

    def parts(self, failure: Failure) -> tuple[str, ...]:
        """Return the bugs that a failing program meets somewhere."""
        return self._met(failure, are_parts=True)

    def _met(self, failure: Failure, *, are_parts: bool) -> tuple[str, ...]:
        some = (one for one in self.all if one.is_part == are_parts)
        return tuple(dict.fromkeys(one.bug for one in some if _is_met(one, failure)))


def read(path: Path = FILE) -> Signatures:
    """Read signatures; raise ArgumentError for what is none."""
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError(f"{path} is no TOML: {error}") from None
    first, fragments = tuple(tables.pop("first", ())), tables.pop("fragments", {})
    found = [
        _signature(bug, alternative, fragments)
        for bug, alternatives in tables.items()
        for alternative in alternatives
    ]
    found.sort(key=lambda one: -one.conditions)
    return Signatures(tuple(found), first)


def _signature(bug: str, table: Mapping[str, Any], fragments: Mapping[str, str]) -> Signature:
    asked = {"oracle": "xla.*", **table}
    opcodes, is_part = frozenset(asked.pop("opcodes", ())), bool(asked.pop("part", False))
    patterns = []
    for field, texts in asked.items():
        if field not in (*_FULL, *_SEARCHED):
            raise ArgumentError(f"signature of {bug}: {field} is no field of a failure")
        for text in [texts] if isinstance(texts, str) else texts:
            whole = re.sub(r"<(\w+)>", lambda found: _fragment(bug, found[1], fragments), text)
            patterns.append((field, _compiled(bug, field, whole)))
    if "kind" not in asked and not is_part:
        raise ArgumentError(f"signature of {bug}: one of any kind would hide other bugs")
    return Signature(bug, tuple(patterns), opcodes, is_part)


def _compiled(bug: str, field: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        raise ArgumentError(f"signature of {bug}: {field} {text!r}: {error}") from None


def _fragment(bug: str, name: str, fragments: Mapping[str, str]) -> str:
    if name not in fragments:
        raise ArgumentError(f"signature of {bug}: no fragment {name}")
    return f"(?:{fragments[name]})"


def _is_met(signature: Signature, failure: Failure) -> bool:
    if not signature.opcodes <= failure.opcodes:
        return False
    return all(
        (pattern.fullmatch if field in _FULL else pattern.search)(getattr(failure, field))
        for field, pattern in signature.patterns
    )


def shown_values(facts: Mapping[str, Any]) -> str:
    """Format what a report's facts show of wrong elements, a line each."""
    return "\n".join(
        f"actual {one['actual']} expected {one['expected']} legal {one['legal']}"
        for one in facts.get("wrong") or ()
    )


def expressions(module: Module) -> str:
    """Format each instruction on a line, with its operands as expressions in place of their names.

    ``s32[] divide(s32[] parameter(0); s32[] power(s32[] parameter(1), s32[] parameter(2)))``: the
    operands of the instruction itself are separated by ``;``. Its attributes follow, and after
    ``where`` the roots of the computations that it calls; operands have no attributes. What is
    nested deeper than four instructions, or is longer than 600 characters, is written ``…``.
    """
    return "\n".join(
        line for computation in module.computations for line in _lines(module, computation)
    )


def _lines(module: Module, computation: Computation) -> Iterator[str]:
    there = {instruction.name: instruction for instruction in computation.instructions}
    for instruction in computation.instructions:
        yield " where ".join((_whole(instruction, there), *_called(module, instruction)))


def _called(module: Module, instruction: Instruction) -> Iterator[str]:
    """Yield the roots of the computations that an instruction calls, in the order it names them."""
    for name in called(instruction):
        computation = module.computation(name)
        there = {one.name: one for one in computation.instructions}
        yield _whole(computation.root_instruction, there)


def _whole(instruction: Instruction, there: Mapping[str, Instruction]) -> str:
    """Format an instruction with its attributes."""
    _, shape, rest = instruction_parts(instruction._replace(operands=()))
    inside = "; ".join(_operands(instruction.operands, there, _DEPTH - 1))
    if not inside:
        return _leaf(instruction)
    return f"{shape} {instruction.opcode}({inside}){rest.removeprefix('()')}"


def _leaf(instruction: Instruction) -> str:
    """Format an instruction without operands."""
    _, shape, rest = instruction_parts(instruction)
    return f"{shape} {instruction.opcode}{rest}"


def _nested(instruction: Instruction, there: Mapping[str, Instruction], depth: int) -> str:
    """Format an instruction as an operand, ``depth`` instructions within each other."""
    if not instruction.operands:
        return _leaf(instruction)
    if depth == 0:
        return "…"
    _, shape, _ = instruction_parts(instruction)
    inside = ", ".join(_operands(instruction.operands, there, depth - 1))
    return f"{shape} {instruction.opcode}({inside})"


def _operands(names: Sequence[str], there: Mapping[str, Instruction], depth: int) -> Iterator[str]:
    for name in names:
        text = _nested(there[name], there, depth) if name in there else "…"
        yield text if len(text) <= _LONGEST else "…"

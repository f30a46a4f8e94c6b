"""Verify annotations: control predecessors, result accuracy, and the names of composite calls."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from hlo.module import Instruction
from hlo.opcodes import APPROXIMATED, having
from hlo.text.scanning import fields, plain_name, without_comments
from hlo.verification.async_chains import Fault

_APPROXIMATED = having(APPROXIMATED)
_NEGATIVE = re.compile(r"(atol|rtol|ulps)\s*+=\s*+-", re.ASCII)
_COMPOSITE = re.compile(r"""composite\.name\s*+=\s*+["'][^"']""", re.ASCII)
_VERSION = re.compile(r"""composite\.version\s*+=\s*+["'](?!\d++["'])""", re.ASCII)


_RULED = frozenset(("control-predecessors", "result_accuracy"))


def is_ruled(instruction: Instruction) -> bool:
    """Return whether an instruction has annotations that are verified."""
    composite = instruction.opcode == "call" and instruction.attributes.get("is_composite")
    return bool(composite) or not _RULED.isdisjoint(instruction.annotations)


def annotation_faults(instruction: Instruction, above: Container[str]) -> Iterator[Fault]:
    """Yield the faults of an instruction's annotations; ``above`` has the names before it."""
    annotations = instruction.annotations
    if "control-predecessors" in annotations:
        text = without_comments(annotations["control-predecessors"]).strip()
        for name in map(plain_name, fields(text[1:-1])):
            if name not in above:
                message = f"control-predecessors: there is no {name!r} above"
                yield Fault(instruction, "control-predecessors", message)
    accuracy = annotations.get("result_accuracy")
    if accuracy is not None:
        if instruction.opcode not in _APPROXIMATED:
            message = f"unexpected result_accuracy: {instruction.opcode} does not approximate"
            yield Fault(instruction, "attributes", message)
        if negative := _NEGATIVE.search(accuracy):
            yield Fault(instruction, "attributes", f"result_accuracy: {negative[1]} is negative")
    if instruction.attributes.get("is_composite"):
        given = annotations.get("frontend_attributes", "")
        if not _COMPOSITE.search(given):
            message = 'a composite call needs frontend_attributes={composite.name="…"}'
            yield Fault(instruction, "composite", message)
        if _VERSION.search(given):
            yield Fault(instruction, "composite", "composite.version is not a number")

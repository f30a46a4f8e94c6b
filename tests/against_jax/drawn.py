"""Drawn programs of one instruction, evaluated here and by XLA.

    cd tests && python -m against_jax.drawn OPCODE… [--count 2000] [--seed 0] [--values any]

prints the programs on which the two differ by more than XLA's errors may be, and how XLA ended
where it crashed. Numbers are small integers unless ``--values any``, so that sums and products of
them are exact in most types, whatever their order: a difference is one of meaning.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import hypothesis
import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from against_jax.case import ALL, SUM, Bound
from against_jax.judge import complaints
from fuzz.peers.xla import XLA, Answer
from hlo.module import Computation, Instruction, Module
from hlo.types import ELEMENT_TYPES, ArrayShape, ElementType, Shape, leaves
from hlo_tools.verdict import outputs

Arrays = tuple[np.ndarray, ...]
_MOST_ELEMENTS = 512
_EXAMPLES, _ROUNDS = 200, 1000
_EMPTY = 8  # of results without elements, one in so many is kept
_MONOIDS = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
# XLA:CPU crashes too often on two bits and less, and on f6; its sums of f8e8m0fnu, which has no
# zero to start with, are NaN.
_LEFT_OUT = ("s2", "u2", "f8e8m0fnu")
_TYPES = tuple(ELEMENT_TYPES[name] for name in ALL if name not in _LEFT_OUT)
# The attribute that says what is done with an init.
_REDUCTIONS = {
    "reduce": "to_apply",
    "reduce-window": "to_apply",
    "select-and-scatter": "scatter",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """``kind`` is "differs", "crash", "refused" or "ours refused"."""

    kind: str
    text: str
    arguments: Arrays
    what: str


def programs(opcode: str, count: int, seed: int, values: str) -> list[tuple[Module, Arrays]]:
    """``count`` different programs; the same for the same seed."""
    kept: dict[str, tuple[Module, Arrays]] = {}
    rounds, empty = iter(range(seed * _ROUNDS, (seed + 1) * _ROUNDS)), 0
    while len(kept) < count and (number := next(rounds, None)) is not None:
        for module, arrays in _drawn(opcode, number, values, min(_EXAMPLES, 3 * count)):
            shape = module.entry.root_instruction.shape
            is_empty = not any(leaf.elements for leaf in arrays_of(shape))
            empty += is_empty
            sound = _judged(module, arrays) if _survives(module) else None
            if sound is not None and not (is_empty and empty % _EMPTY):
                kept[hlo.format(module, "long")] = sound
    return list(kept.values())[:count]


def _survives(module: Module) -> bool:
    """Whether XLA:CPU is known to end its process on the program, or to have lost some of it on its
    way through StableHLO, whose select_and_scatter knows no dilation."""
    root = module.entry.root_instruction
    known = all(i.shape.element_type in _TYPES for i in module.entry.parameters)
    if root.opcode == "select-and-scatter":
        window = root.attributes["window"].dimensions
        plain = all(d.base_dilation == d.window_dilation == 1 for d in window)
        return known and plain and root.shape.rank > 0
    return known


def arrays_of(shape: Shape) -> list[ArrayShape]:
    return [leaf for leaf in leaves(shape) if isinstance(leaf, ArrayShape)]


def _drawn(opcode: str, seed: int, values: str, count: int) -> list[tuple[Module, Arrays]]:
    """What Hypothesis makes in one go."""
    drawn: list[tuple[Module, Arrays]] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, database=None, deadline=None, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(st.data())
    def draw(data: st.DataObject) -> None:
        strategy = fuzz.single_op(opcode, element_types=_TYPES, max_elements=_MOST_ELEMENTS)
        module = data.draw(strategy)
        if values == "any":
            drawn.append((module, data.draw(fuzz.arguments(module))))
        else:
            drawn.append((module, _small(module, data.draw(st.integers(0, 2**32 - 1)))))

    draw()
    return drawn


def _judged(module: Module, arrays: Arrays) -> tuple[Module, Arrays] | None:
    """Reductions with a monoid and its neutral element in place of what was drawn: XLA may do
    others in any order, with any number of inits (operation_semantics.md, Reduce)."""
    root = module.entry.root_instruction
    if root.opcode not in _REDUCTIONS:
        return module, arrays
    if len(root.operands) > 2 + (root.opcode == "select-and-scatter"):
        return None
    folded = module.computation(str(root.attributes[_REDUCTIONS[root.opcode]]))
    init = next(i for i in module.entry.instructions if i.name == root.operands[-1])
    assert isinstance(init.shape, ArrayShape)
    kind = init.shape.element_type
    monoids = [m for m in _MONOIDS if neutral(m, kind) is not None]
    monoid = monoids[zlib.crc32(hlo.format(module).encode()) % len(monoids)]
    names = [p.name for p in folded.parameters]
    operation = Instruction("result", init.shape, monoid, tuple(names))
    simple = Computation(folded.name, (*folded.parameters, operation), "result")
    computations = tuple(simple if c is folded else c for c in module.computations)
    number = np.full(init.shape.dims, neutral(monoid, kind)).astype(kind.numpy)
    position = module.entry.parameters.index(init)
    arguments = (*arrays[:position], number, *arrays[position + 1 :])
    return Module(module.name, computations, module.entry_name), arguments


def neutral(opcode: str, element_type: ElementType) -> object:
    """The neutral element of a monoid; None where there is none."""
    if element_type.is_complex and opcode not in ("add", "multiply"):
        return None
    if element_type.is_float and opcode in ("and", "or", "xor"):
        return None
    low, high = -np.inf, np.inf
    if element_type.kind == "pred":
        low, high = False, True
    elif element_type.is_float and np.isnan(np.array(high).astype(element_type.numpy)):
        limits = ml_dtypes.finfo(element_type.numpy)
        low, high = limits.min, limits.max
    elif element_type.is_integer:
        signed = element_type.kind == "signed"
        low = -(2 ** (element_type.bits - 1)) if signed else 0
        high = 2 ** (element_type.bits - signed) - 1
    ones = -1 if element_type.kind == "signed" else high
    numbers: dict[str, object] = {
        "add": 0, "multiply": 1, "maximum": low, "minimum": high, "and": ones, "or": 0, "xor": 0
    }  # fmt: skip
    return numbers.get(opcode)


def _small(module: Module, seed: int) -> Arrays:
    random = np.random.default_rng(seed)
    return tuple(_small_array(random, p.shape) for p in module.entry.parameters)


def _small_array(random: np.random.Generator, shape: object) -> np.ndarray:
    assert isinstance(shape, ArrayShape)
    kind = shape.element_type
    low = 0 if kind.kind in ("unsigned", "pred") or kind.name == "f8e8m0fnu" else -2
    high = 1 if kind.bits < 3 else 3
    numbers = random.integers(low, high, shape.dims, endpoint=True)
    if kind.is_complex:
        numbers = numbers + 1j * random.integers(low, high, shape.dims, endpoint=True)
    return np.asarray(numbers).astype(kind.numpy)


def compared(
    drawn: Sequence[tuple[Module, Arrays]], bound: Bound, xla: XLA
) -> Iterator[Finding | None]:
    """A finding for each program, or None where the results agree."""
    texts = [hlo.format(module, "long") for module, _ in drawn]
    calls = ((text, arrays) for text, (_, arrays) in zip(texts, drawn, strict=True))
    for number, answer in xla.map(calls):
        module, arrays = drawn[number]
        yield _finding(module, texts[number], arrays, answer, bound)


def _finding(
    module: Module, text: str, arrays: Arrays, answer: Answer, bound: Bound
) -> Finding | None:
    if answer.crash is not None:
        return Finding("crash", text, arrays, answer.crash)
    if answer.error is not None:
        return Finding("refused", text, arrays, answer.error)
    try:
        ours = [array for _, array in outputs(interp.evaluate(module, *arrays))]
    except hlo.Error as error:
        return Finding("ours refused", text, arrays, str(error))
    assert answer.outputs is not None
    found = list(complaints(ours, list(answer.outputs), bound))
    return Finding("differs", text, arrays, "; ".join(found)) if found else None


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m against_jax.drawn")
    parser.add_argument("opcodes", nargs="+")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--values", choices=("small", "any"), default="small")
    chosen = parser.parse_args(words)
    different = 0
    with XLA() as xla:
        for opcode in chosen.opcodes:
            drawn = programs(opcode, chosen.count, chosen.seed, chosen.values)
            totals, reasons = Counter[str](), Counter[str]()
            for finding in compared(drawn, SUM, xla):
                totals[finding.kind if finding else "equal"] += 1
                if finding is not None and finding.kind == "refused":
                    reasons[" ".join(finding.what.split()[:12])] += 1
                elif finding is not None:
                    print(f"// {finding.kind}: {finding.what}\n{finding.text}")
                    print(*(f"// {str(a.tolist())[:400]}" for a in finding.arguments), sep="\n")
                different += finding is not None and finding.kind == "differs"
            for reason, times in reasons.most_common(20):
                print(f"// refused {times}: {reason}")
            print(f"=== {opcode}: {len(drawn)} programs, {dict(totals)}", flush=True)
    return min(different, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

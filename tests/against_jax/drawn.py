"""Drawn programs of one instruction, evaluated here and by XLA.

    cd tests && python -m against_jax.drawn OPCODE… [--count 2000] [--seed 0] [--values any]

prints the programs on which the two differ by more than XLA's errors may be, and how XLA ended
where it crashed. Numbers are small integers unless ``--values any``, so that sums and products of
them are exact in most types, whatever their order: a difference is one of meaning.

Those of jaxlib 0.10 that remain: XLA reads constant unsigned starts of dynamic-slice as signed
ones, and takes subnormals for zeros where a sort compares.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

import hlo
import interp
from against_jax.case import ALL, SUM, Bound
from against_jax.judge import complaints
from against_jax.merged import merged
from fuzz.draw.choices import Choices, examples
from fuzz.draw.programs import single_op
from fuzz.draw.values import arguments
from fuzz.peers.xla import XLA, Answer
from hlo.attributes import Window
from hlo.module import Computation, Instruction, Module
from hlo.passes.rewriting import with_computation, with_entry
from hlo.types import ELEMENT_TYPES, PRED, ArrayShape, ElementType, TupleShape, leaves
from hlo.values import arrays_of

Arrays = tuple[np.ndarray, ...]
_MOST_ELEMENTS = 512
_EXAMPLES, _ROUNDS = 200, 1000
_TOGETHER = 16  # programs in one that XLA compiles
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
    number, empty, before = seed * _ROUNDS, 0, -1
    while before < len(kept) < count:  # as long as there are others
        before = len(kept)
        for module, arrays in once(opcode, number, values, min(_EXAMPLES, 3 * count)):
            shape = module.entry.root_instruction.shape
            is_empty = not any(leaf.elements for leaf in leaves(shape))
            empty += is_empty
            if not (is_empty and empty % _EMPTY):
                kept[hlo.format(module, "long")] = module, arrays
        number += 1
    return list(kept.values())[:count]


def _survives(module: Module) -> bool:
    """Whether XLA:CPU takes such programs: it is known to end its process on others, to refuse
    them, or to lose a part of them on their way through StableHLO."""
    root = module.entry.root_instruction
    shapes = [one for i in module.entry.instructions for one in leaves(i.shape)]
    known = all(shape.element_type in _TYPES for shape in shapes)
    asked = _ASKED.get(root.opcode)
    if root.opcode in _INDEXED and _has_unsigned_constants(module):
        return False
    if root.opcode in ("dot", "convolution") and _is_of_another_kind(module):
        return False
    return known and (asked is None or asked(root))


_INDEXED = ("gather", "scatter", "dynamic-slice", "dynamic-update-slice")


def _has_unsigned_constants(module: Module) -> bool:
    """Whether there are constants of an unsigned type: XLA:CPU takes such indices for signed."""
    constants = [i.shape for i in module.entry.instructions if i.opcode == "constant"]
    return any(
        leaf.element_type.kind == "unsigned" for shape in constants for leaf in leaves(shape)
    )


def _is_of_another_kind(module: Module) -> bool:
    """Whether a contraction of floats has an integer result: it is the sum in the wider type of the
    factors here, and in f32 with XLA:CPU (docs/numerics.md)."""
    shapes = [leaf for i in module.entry.instructions for leaf in leaves(i.shape)]
    of_integers = {leaf.element_type.is_integer or leaf.element_type is PRED for leaf in shapes}
    return len(of_integers) > 1


def _is_plain(root: Instruction) -> bool:
    """select_and_scatter of StableHLO knows no dilation; that of scalars ends the process."""
    window = root.attributes["window"]
    assert isinstance(window, Window)
    dilations = [d.base_dilation * d.window_dilation for d in window.dimensions]
    return bool(dilations) and max(dilations) == 1


def _is_no_slice(root: Instruction) -> bool:
    """A window of size 1 and less than no padding ends the process."""
    window = root.attributes["window"]
    assert isinstance(window, Window)
    cropped = any(min(d.padding_low, d.padding_high) < 0 for d in window.dimensions)
    return not cropped or any(d.size > 1 for d in window.dimensions)


def _takes_elements(root: Instruction) -> bool:
    """Slices of nothing in a collapsed dimension end the process."""
    sizes, collapsed = root.attributes["slice_sizes"], root.attributes["collapsed_slice_dims"]
    assert isinstance(sizes, tuple) and isinstance(collapsed, tuple)
    return all(sizes[d] != 0 for d in collapsed)


def _has_places(root: Instruction) -> bool:
    """XLA:CPU keeps the last update only where index vectors have no components."""
    return bool(root.attributes["scatter_dims_to_operand_dims"])


def _has_dimensions(root: Instruction) -> bool:
    """StableHLO's text of this op for scalars is not read back."""
    return isinstance(root.shape, ArrayShape) and root.shape.rank > 0


_ASKED: dict[str, Callable[[Instruction], bool]] = {
    "select-and-scatter": _is_plain,
    "reduce-window": _is_no_slice,
    "dynamic-slice": _has_dimensions,
    "gather": _takes_elements,
    "scatter": _has_places,
}


def once(opcode: str, seed: int, values: str, count: int) -> list[tuple[Module, Arrays]]:
    """Draw programs of an opcode, and keep those that XLA takes and that have one result."""

    def program(choices: Choices) -> tuple[Module, Arrays]:
        module = single_op(choices, opcode, element_types=_TYPES, max_elements=_MOST_ELEMENTS)
        if values == "any":
            return module, arguments(choices, module)
        return module, _small(module, choices.integer(0, 2**32 - 1))

    drawn = examples(program, count, seed)
    judged = (_judged(module, arrays) for module, arrays in drawn if _survives(module))
    return [program for program in judged if program is not None]


def _judged(module: Module, arrays: Arrays) -> tuple[Module, Arrays] | None:
    """Make the result of a program unique: sorts are stable, and reductions fold a monoid from its
    neutral element (XLA may do others in any order, with any number of inits:
    operation_semantics.md, Reduce). None for reductions of several arrays."""
    root = module.entry.root_instruction
    if root.opcode == "sort":
        return _stable(module, root), arrays
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
    number = np.full(init.shape.dims, neutral(monoid, kind)).astype(kind.numpy)
    position = module.entry.parameters.index(init)
    arguments = (*arrays[:position], number, *arrays[position + 1 :])
    return with_computation(module, simple), arguments


def _stable(module: Module, root: Instruction) -> Module:
    stable = root._replace(attributes={**root.attributes, "is_stable": True})
    instructions = tuple(stable if i is root else i for i in module.entry.instructions)
    return with_entry(module, Computation(module.entry.name, instructions, root.name))


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
    for (module, arrays), answer in _answers(drawn, xla):
        yield _finding(module, hlo.format(module, "long"), arrays, answer, bound)


def _answers(
    drawn: Sequence[tuple[Module, Arrays]], xla: XLA
) -> Iterator[tuple[tuple[Module, Arrays], Answer]]:
    """XLA's, for many programs at once; where it has none, for each half of them."""
    waiting = [drawn[n : n + _TOGETHER] for n in range(0, len(drawn), _TOGETHER)]
    while waiting:
        some = waiting.pop()
        modules = [module for module, _ in some]
        text = hlo.format(merged(modules) if len(some) > 1 else modules[0], "long")
        if len(some) > 1 and any(map(_is_tuple, modules)):
            waiting += [[one] for one in some]
            continue
        answer = xla(text, [array for _, arrays in some for array in arrays])
        if len(some) == 1:
            yield some[0], answer
        elif answer.outputs is None:
            middle = len(some) // 2
            waiting += [some[:middle], some[middle:]]
        else:
            for program, output in zip(some, answer.outputs, strict=True):
                yield program, Answer((output,))


def _is_tuple(module: Module) -> bool:
    return isinstance(module.entry.root_instruction.shape, TupleShape)


def _finding(
    module: Module, text: str, arrays: Arrays, answer: Answer, bound: Bound
) -> Finding | None:
    if answer.crash is not None:
        return Finding("crash", text, arrays, answer.crash)
    if answer.error is not None:
        return Finding("refused", text, arrays, answer.error)
    try:
        ours = list(arrays_of(interp.evaluate(module, *arrays)))
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
                    print(f"// {finding.kind}: {finding.what}\n{finding.text}", flush=True)
                    print(*(f"// {str(a.tolist())[:400]}" for a in finding.arguments), sep="\n")
                different += finding is not None and finding.kind == "differs"
            for reason, times in reasons.most_common(20):
                print(f"// refused {times}: {reason}")
            print(f"=== {opcode}: {len(drawn)} programs, {dict(totals)}", flush=True)
    return min(different, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

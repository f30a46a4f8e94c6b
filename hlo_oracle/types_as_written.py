"""Judge results of PyTorch by other programs of its function than the decompositions alone.

PyTorch's decompositions compute composite operations (``logsumexp``, ``prod``, the gradients of
``layer_norm``) in f32, where its kernels round in between, or add up partial results in the type of
the tensors. That is legal, too. So a result of f16 or bf16 with elements outside by the
decompositions is judged by the same program without f32, too; and where there are other programs
(:mod:`hlo_oracle.frontends.torch.sequences`, :mod:`hlo_oracle.frontends.torch.formulas`), by those:
elements are proven wrong only if they are outside by all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

import hlo
import interp
from hlo.errors import Error
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.passes.dead_code import dead_code
from hlo.passes.rewriting import Rebuilt
from hlo.types import BF16, F16, F32, ArrayShape, ElementType, Shape, TupleShape, leaves
from hlo.values import Array, arrays_of
from hlo_oracle.peer_verdicts import Examination
from interp.envelope.budget import Budget
from interp.envelope.judgement import Judge
from interp.envelope.open_results import restricted
from interp.envelope.trying import Output
from interp.envelope.verdict import KINDS, OUTSIDE, UNDETERMINED, WITHIN, Verdict, kinds, summary

_NARROW = (BF16, F16)
_OUTSIDE, _UNDETERMINED, _WITHIN = (
    np.int8(KINDS.index(k)) for k in (OUTSIDE, UNDETERMINED, WITHIN)
)


def on_other_readings(
    examined: Examination,
    module: Module,
    arrays: Sequence[Array],
    budget: Budget,
    seed: int,
    others: Callable[[], Iterable[tuple[Module, Sequence[Array]]]],
) -> Examination:
    """Judge results of f16 or bf16 that have elements outside by ``module`` on the program without
    f32, and all that have some on the ``others`` of the same function, with their arguments."""
    found = examined.found
    if found is None or found.mismatch is not None or not found.counts.get(OUTSIDE):
        return examined

    def readings(number: int) -> Iterator[tuple[Module | None, Sequence[Array]]]:
        yield narrowed(restricted(module, [number])), arrays
        for other, values in others():
            one = restricted(other, [number])
            yield one, values
            yield narrowed(one), values

    def judged(number: int, one: Output) -> Iterator[Output]:
        for read, values in readings(number):
            if read is not None:
                (exact,) = arrays_of(interp.evaluate(read, *values, seed=seed))
                judge = Judge(read, values, [(one.place, exact)], peer=budget, seed=seed)
                yield from judge.judged([one.actual], lambda module: None).outputs

    outputs = [
        _outside_by_all(one, judged(number, one)) if one.verdict.counts[OUTSIDE] else one
        for number, one in enumerate(found.outputs)
    ]
    return replace(examined, found=replace(found, outputs=tuple(outputs)))


def narrowed(module: Module) -> Module | None:
    """Replace f32 by the type of a program's one result, if that is f16 or bf16; parameters of f32
    are converted first. Return None for any other program."""
    results = leaves(module.entry.root_instruction.shape)
    narrow = results[0].element_type
    if len(results) != 1 or narrow not in _NARROW:
        return None
    live = dead_code(module)
    others = (_computation(one, narrow) for one in live.computations if one is not live.entry)
    computations = (*others, _entry(live.entry, narrow))
    made = replace(live, computations=computations, text="", preamble="")
    try:
        hlo.verify(made)
    except Error:  # of an instruction that takes f32 alone
        return None
    return made


def _entry(computation: Computation, narrow: ElementType) -> Computation:
    rebuilt = Rebuilt(computation)
    for one in computation.instructions:
        if one.opcode != "parameter":
            rebuilt.add(_instruction(rebuilt.resolved(one), narrow))
            continue
        name, shape = rebuilt.add(one), _shape(one.shape, narrow)
        if shape != one.shape:
            converted = Instruction(rebuilt.names.fresh(name), shape, "convert", (name,))
            rebuilt.forward(name, rebuilt.add(converted))
    return rebuilt.done()


def _computation(computation: Computation, narrow: ElementType) -> Computation:
    instructions = tuple(_instruction(one, narrow) for one in computation.instructions)
    return replace(computation, instructions=instructions)


def _instruction(instruction: Instruction, narrow: ElementType) -> Instruction:
    literal = instruction.attributes.get("literal")
    if isinstance(literal, Literal):
        attributes = {**instruction.attributes, "literal": _literal(literal, narrow)}
        instruction = instruction._replace(attributes=attributes)
    return instruction._replace(shape=_shape(instruction.shape, narrow))


def _literal(literal: Literal, narrow: ElementType) -> Literal:
    value = literal.value
    if isinstance(value, tuple):
        value = tuple(_literal(one, narrow) for one in value)
    elif value is not None and value.dtype == F32.numpy:
        with np.errstate(over="ignore"):  # a kernel of that type would have infinity, too
            value = value.astype(narrow.numpy)
    return Literal(_shape(literal.shape, narrow), value)


def _shape(shape: Shape, narrow: ElementType) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(_shape(one, narrow) for one in shape.elements))
    is_wide = isinstance(shape, ArrayShape) and shape.element_type is F32
    return replace(shape, element_type=narrow) if is_wide else shape


def _outside_by_all(one: Output, others: Iterable[Output]) -> Output:
    """Return an output with only those elements outside that all others have outside, too. The next
    of these is asked for while there are some."""
    found = kinds(one.actual, one.exact, one.legal)
    if not one.verdict.counts[OUTSIDE] or not (found == _OUTSIDE).any():
        return one
    was_outside = found == _OUTSIDE
    for other in others:
        second = kinds(other.actual, other.exact, other.legal)
        is_open = (found == _OUTSIDE) & (second == _UNDETERMINED)
        is_legal = was_outside & (second != _OUTSIDE) & (second != _UNDETERMINED)
        found = np.where(is_legal, _WITHIN, np.where(is_open, _UNDETERMINED, found))
        if not (found == _OUTSIDE).any():
            break
    counts = dict(one.verdict.counts)
    counts[OUTSIDE] = 0
    for number, kind in ((_OUTSIDE, OUTSIDE), (_UNDETERMINED, UNDETERMINED), (_WITHIN, WITHIN)):
        counts[kind] += int((was_outside & (found == number)).sum())
    first = summary(np.where(found == _OUTSIDE, found, np.int8(0))).first_outside
    return replace(one, verdict=Verdict(counts, first))

"""Judge results of PyTorch in the types of its function's tensors, f16 or bf16, all through.

PyTorch's decompositions compute composite operations (``logsumexp``, ``prod``, the gradients of
``layer_norm``) in f32, where its kernels round in between, or add up partial results in the type of
the tensors. That is legal, too. So a result of such a type with elements outside by the
decompositions is judged by the same program without f32, too: they are proven wrong only if they
are outside by both.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def on_types_as_written(
    examined: Examination, module: Module, arrays: Sequence[Array], budget: Budget, seed: int
) -> Examination:
    """Judge results of f16 or bf16 that have elements outside by ``module`` on the program without
    f32."""
    found = examined.found
    if found is None or found.mismatch is not None or not found.counts.get(OUTSIDE):
        return examined
    outputs = list(found.outputs)
    for number, one in enumerate(outputs):
        narrow = None
        if one.verdict.counts[OUTSIDE]:
            narrow = narrowed(restricted(module, [number]))
        if narrow is not None:
            exact = arrays_of(interp.evaluate(narrow, *arrays, seed=seed))
            places = [(one.place, array) for array in exact]
            judge = Judge(narrow, arrays, places, peer=budget, seed=seed)
            (other,) = judge.judged([one.actual], lambda module: None).outputs
            outputs[number] = _outside_both(one, other)
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
        value = value.astype(narrow.numpy)
    return Literal(_shape(literal.shape, narrow), value)


def _shape(shape: Shape, narrow: ElementType) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(_shape(one, narrow) for one in shape.elements))
    is_wide = isinstance(shape, ArrayShape) and shape.element_type is F32
    return replace(shape, element_type=narrow) if is_wide else shape


def _outside_both(one: Output, other: Output) -> Output:
    """Return an output with only those elements outside that the other one has outside, too."""
    if not one.verdict.counts[OUTSIDE]:
        return one
    outside, undetermined = KINDS.index(OUTSIDE), KINDS.index(UNDETERMINED)
    first, second = (kinds(o.actual, o.exact, o.legal) for o in (one, other))
    proven = (first == outside) & (second == outside)
    open_ = (first == outside) & (second == undetermined)
    counts = dict(one.verdict.counts)
    legal = counts[OUTSIDE] - int(proven.sum()) - int(open_.sum())
    counts |= {
        OUTSIDE: int(proven.sum()),
        UNDETERMINED: counts[UNDETERMINED] + int(open_.sum()),
        WITHIN: counts[WITHIN] + legal,
    }
    found = np.where(proven, np.int8(outside), np.int8(0))
    return replace(one, verdict=Verdict(counts, summary(found).first_outside))

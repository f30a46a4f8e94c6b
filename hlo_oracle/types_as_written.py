"""Judge results of PyTorch in the types of its function's tensors, f16 or bf16, all through.

PyTorch's decompositions compute composite operations (``logsumexp``, ``prod``, the gradients of
``layer_norm``) in f32, where its kernels round in between, or add up partial results in the type of
the tensors. That is legal, too. So what is outside by the decompositions is judged by the same
program without f32, and is proven wrong only if it is outside by both.
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
from hlo.types import BF16, F16, F32, ArrayShape, ElementType, Shape, TupleShape, leaves
from hlo.values import Array, arrays_of
from hlo_oracle.peer_verdicts import Examination
from interp.envelope.budget import Budget
from interp.envelope.judgement import Judge
from interp.envelope.trying import Output
from interp.envelope.verdict import KINDS, OUTSIDE, UNDETERMINED, WITHIN, Verdict, kinds, summary

_NARROW = (BF16, F16)


def on_types_as_written(
    examined: Examination, module: Module, arrays: Sequence[Array], budget: Budget, seed: int
) -> Examination:
    """Judge elements outside by ``module`` on the program without f32, if it has f32 inside
    alone."""
    found = examined.found
    if found is None or found.mismatch is not None or not found.counts.get(OUTSIDE):
        return examined
    narrow = narrowed(module)
    if narrow is None:
        return examined
    exact = arrays_of(interp.evaluate(narrow, *arrays, seed=seed))
    places = [(one.place, array) for one, array in zip(found.outputs, exact, strict=True)]
    judge = Judge(narrow, arrays, places, peer=budget, seed=seed)
    other = judge.judged([one.actual for one in found.outputs], lambda module: None)
    outputs = tuple(map(_outside_both, found.outputs, other.outputs))
    return replace(examined, found=replace(found, outputs=outputs))


def narrowed(module: Module) -> Module | None:
    """Replace f32 by the one type of floats that a program's parameters and results have, if that
    is f16 or bf16; return None for any other program."""
    shapes = [*(p.shape for p in module.entry.parameters), module.entry.root_instruction.shape]
    outside = {leaf.element_type for shape in shapes for leaf in leaves(shape)}
    floats = [one for one in outside if one.is_inexact]
    if len(floats) != 1 or floats[0] not in _NARROW:
        return None
    computations = tuple(_computation(one, floats[0]) for one in module.computations)
    narrow = replace(module, computations=computations, text="", preamble="")
    try:
        hlo.verify(narrow)
    except Error:  # of an instruction that takes f32 alone
        return None
    return narrow


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

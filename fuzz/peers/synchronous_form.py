"""Rewrite programs to equivalent ones that StableHLO, jaxlib's only way into XLA, can express."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import hlo
from hlo.errors import Error
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import ASYNC, IN_TWO_STEPS, having
from hlo.passes.dead_code import dead_code
from hlo.passes.inline import inline
from hlo.passes.layouts import layouts
from hlo.passes.rewriting import Rebuilt, array, each
from hlo.types import S16, S32, S64, U16, U32, U64, ArrayShape, ElementType, TupleShape
from hlo.values import Array

if TYPE_CHECKING:
    from fuzz.peers.xla import Answer

Forms = Callable[[Module], Iterable[tuple[Module, str]]]

# Replaced by their first operand. StableHLO has the third such opcode, opt-barrier.
_SAME = frozenset(("add-dependency", "domain"))
# Attributes that the parser of jaxlib 0.10.2 does not know, nor the algorithm ``dot_unset``, which
# is the default.
_NEWER = {"topk": ("is_stable",), "convolution": ("convolution_kind", "sparsity_config")}
_NO_ALGORITHM = "dot_unset"
_ASYNCHRONOUS = having(ASYNC)
# Of copy-start; copy has no such attribute.
_ONLY_OF_STARTS = frozenset(("cross_program_prefetch_index",))


def asked_again(
    run: Callable[[str, Sequence[Array]], Answer],
    module: Module,
    arrays: Sequence[Array],
    refusal: Answer,
    forms: Forms,
) -> tuple[Module, Answer, str | None]:
    """Run a program that was refused in its equivalent forms, one after the other, until one is
    not. Return the program that counts, the answer, and what that form is: the one given, its
    refusal and None, if it has no other form or each is refused, too."""
    for other, what in forms(module):
        if other != module:
            answer = run(hlo.format(other), arrays)
            if answer.error is None:
                return other, answer, what
    return module, refusal, None


def equivalent_forms(module: Module) -> Iterator[tuple[Module, str]]:
    """Yield programs equivalent to one that XLA refuses, with what they are, nearest first."""
    yield as_loops(module), "with fusions as loops, and without attributes that it does not read"
    yield without_layouts(module), "without fusions, calls and layouts"


def as_loops(module: Module) -> Module:
    """Rewrite a program without attributes that mean nothing, but for which XLA:CPU refuses it: the
    kinds of fusions other than loops, aliasing of what runs asynchronously, and newer ones."""
    return each(module, _as_loops)


def _as_loops(computation: Computation) -> Computation:
    return replace(computation, instructions=tuple(map(_as_loop, computation.instructions)))


def _as_loop(instruction: Instruction) -> Instruction:
    """Drop an instruction's attributes of :func:`as_loops`."""
    plain = _by_default(instruction)
    if plain.opcode in _ASYNCHRONOUS:
        kept = {k: v for k, v in plain.attributes.items() if k != "output_to_operand_aliasing"}
        return plain._replace(attributes=kept)
    if plain.opcode == "fusion":
        return plain._replace(attributes={**plain.attributes, "kind": "kLoop"})
    return plain


def without_layouts(module: Module) -> Module:
    """Rewrite a program as :func:`synchronous` does, and without layouts, which StableHLO does not
    carry: what XLA writes after its passes is refused by XLA else."""
    try:
        return synchronous(layouts(module))
    except Error:
        return synchronous(module)


def synchronous(module: Module) -> Module:
    """Rewrite a program without what StableHLO lacks; the module itself if that is impossible.

    Calls, fusions and async computations are inlined; a start and its done become one op; control
    dependences are dropped; permutations and reduce-scatters have one operand each; ``mulhi`` uses
    wider integers; slices of scalars and attributes newer than jaxlib are removed.
    """
    try:
        return dead_code(each(inline(module), _synchronous))
    except Error:
        return module


def _synchronous(computation: Computation) -> Computation:
    users = Counter(name for i in computation.instructions for name in set(i.operands))
    rebuilt = Rebuilt(computation)
    for instruction in computation.instructions:
        now = rebuilt.resolved(instruction)
        if now.opcode in _SAME or _is_of_scalar(now):
            rebuilt.forward(now.name, now.operands[0])
            continue
        if now.opcode in _OTHERWISE:
            rebuilt.forward(now.name, _OTHERWISE[now.opcode](rebuilt, now))
            continue
        start = rebuilt.definitions.get(now.operands[0]) if now.operands else None
        at_once = _at_once(now, start, users)
        if at_once is None:
            rebuilt.add(_by_default(now))
        elif at_once.opcode in _OTHERWISE:
            rebuilt.forward(now.name, _OTHERWISE[at_once.opcode](rebuilt, at_once))
        else:
            rebuilt.add(at_once)
    return rebuilt.done()


def _at_once(
    done: Instruction, start: Instruction | None, users: Counter[str]
) -> Instruction | None:
    """Merge a start and its done into the synchronous op, if nothing else refers to them."""
    opcode = done.opcode.removesuffix("-done")
    if start is None or opcode not in IN_TWO_STEPS or start.opcode != f"{opcode}-start":
        return None
    if users[start.name] > 1:
        return None
    attributes = {k: v for k, v in start.attributes.items() if k not in _ONLY_OF_STARTS}
    return done._replace(
        opcode=opcode, operands=start.operands, attributes=attributes, annotations={}
    )


def _by_default(instruction: Instruction) -> Instruction:
    """Drop attributes that jaxlib does not know yet, where they change nothing."""
    newer = _NEWER.get(instruction.opcode, ())
    attributes = {
        k: v for k, v in instruction.attributes.items() if k not in newer and v != _NO_ALGORITHM
    }
    return instruction._replace(attributes=attributes)


def _is_of_scalar(instruction: Instruction) -> bool:
    return instruction.opcode == "dynamic-slice" and instruction.shape == ArrayShape(
        array(instruction.shape).element_type, ()
    )


def _each(rebuilt: Rebuilt, instruction: Instruction) -> str:
    """Split an op with several operands into one per operand."""
    shape = instruction.shape
    if not isinstance(shape, TupleShape):
        return rebuilt.add(instruction)
    parts = tuple(
        rebuilt.add(
            instruction._replace(
                name=rebuilt.names.fresh(instruction.name), shape=element, operands=(operand,)
            )
        )
        for element, operand in zip(shape.elements, instruction.operands, strict=True)
    )
    return rebuilt.add(Instruction(rebuilt.names.fresh("tuple"), shape, "tuple", parts))


def _by_wider(rebuilt: Rebuilt, instruction: Instruction) -> str:
    """Compute mulhi as the high half of a product with twice as many bits."""
    shape = array(instruction.shape)
    narrow = shape.element_type
    wide = _WIDER.get(narrow.name)
    if wide is None:
        return rebuilt.add(instruction)

    def made(opcode: str, kind: ElementType, *operands: str) -> str:
        result = replace(shape, element_type=kind, layout=None)
        return rebuilt.add(Instruction(rebuilt.names.fresh(opcode), result, opcode, operands))

    product = made("multiply", wide, *(made("convert", wide, x) for x in instruction.operands))
    scalar = ArrayShape(wide)
    bits = Literal(scalar, np.array(narrow.bits, wide.dtype))
    one = rebuilt.add(
        Instruction(rebuilt.names.fresh("bits"), scalar, "constant", (), {"literal": bits})
    )
    whole = replace(shape, element_type=wide, layout=None)
    every = rebuilt.add(
        Instruction(rebuilt.names.fresh("all"), whole, "broadcast", (one,), {"dimensions": ()})
    )
    shift = "shift-right-arithmetic" if narrow.name.startswith("s") else "shift-right-logical"
    return made("convert", narrow, made(shift, wide, product, every))


_WIDER = {"s8": S16, "s16": S32, "s32": S64, "u8": U16, "u16": U32, "u32": U64}
# StableHLO's collectives with a single operand, and what it has no opcode for.
_OTHERWISE = {
    **dict.fromkeys(("collective-permute", "reduce-scatter"), _each),
    "mulhi": _by_wider,
}

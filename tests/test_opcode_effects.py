"""Check which opcodes have effects besides their result, and which hand on values without reading
them."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pytest

import hlo
import interp
from fuzz.draw.choices import Seeded
from fuzz.draw.programs import GENERATORS, single_op
from fuzz.draw.values import arguments
from hlo.bit_equality import differences
from hlo.errors import ArgumentError, CollectiveError, Error, Unsupported, VerifyError
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import (
    BY_PARTITION,
    CALLS,
    DONE,
    EFFECT,
    IDENTITY,
    OPAQUE,
    PENDING,
    RANKS,
    STATEFUL,
    having,
)
from hlo.types import F32, ArrayShape, TupleShape
from hlo.walk import column, function_name

DRAWN = sorted(GENERATORS)
PROGRAMS = 5  # of each opcode


def twice(module: Module) -> Module:
    """The program with its root a second time, and both as its result."""
    root, text = module.entry.root_instruction, hlo.format(module)
    pattern = rf"( +)ROOT ({re.escape(root.name)})( .*)"
    both = rf"\1\2\3\n\1again\3\n\1ROOT both = ({root.shape}, {root.shape}) tuple(\2, again)"
    return hlo.parse(re.sub(pattern, both, text, count=1))


# What is under way has one end, so that neither comes twice.
@pytest.mark.parametrize("opcode", sorted(set(DRAWN) - having(PENDING) - having(DONE)))
def test_again(opcode: str) -> None:
    """A stateful instruction gives something else the second time; an instruction with an effect
    changes the result of the one after it."""
    other, changed = [], []
    for seed in range(PROGRAMS):
        module = single_op(Seeded(f"{opcode} {seed}"), opcode, max_elements=64)
        given = arguments(Seeded(seed), module)
        try:
            alone, (first, second) = (interp.evaluate(m, *given) for m in (module, twice(module)))
        except Error:
            continue
        other.append(bool(differences(first, second)))
        changed.append(bool(differences(alone, second)))
    assert other
    assert any(other) == (opcode in having(STATEFUL))
    assert any(changed) == (opcode in having(EFFECT))


class Host(NamedTuple):
    """Hold what a program sends to the host."""

    outfeed: list[Any]
    to_host: dict[int, list[Any]]


HOST = {
    "infeed": """  i = ((f32[]), token[]) infeed(t), infeed_config=""
  r = (f32[]) get-tuple-element(i), index=0""",
    "outfeed": "  r = token[] outfeed(x, t), outfeed_shape=f32[]",
    "send": """  sent = (f32[], u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true
  r = token[] send-done(sent), channel_id=1, is_host_transfer=true""",
    "recv": """  begun = (f32[], u32[], token[]) recv(t), channel_id=2, is_host_transfer=true
  done = (f32[], token[]) recv-done(begun), channel_id=2, is_host_transfer=true
  r = f32[] get-tuple-element(done), index=0""",
}


def run(count: int, opcode: str) -> tuple[Any, Host]:
    """The result of as many, one after the other, and what the host got."""
    names = set(re.findall(r"^  (\w+) =", HOST[opcode], re.M))
    lines = []
    for number in range(count):
        pattern = rf"\b({'|'.join(names)})\b(?! *\()(?!\w*=)"
        lines.append(re.sub(pattern, rf"\g<1>{number}", HOST[opcode]))
    shape = {"infeed": "(f32[])", "recv": "f32[]"}.get(opcode, "token[]")
    results = ", ".join(f"r{n}" for n in range(count))
    root = f"  ROOT all = ({', '.join([shape] * count)}) tuple({results})"
    given = "  x = f32[] parameter(0)\n  t = token[] after-all()"
    text = "\n".join(("HloModule m", "ENTRY e {", given, *lines, root, "}"))
    host = Host([], {1: []})
    numbers = [np.float32(n) for n in range(1, 4)]
    result = interp.evaluate(
        hlo.parse(text),
        np.float32(7),
        infeed=iter([(n,) for n in numbers]),
        outfeed=host.outfeed,
        from_host={2: iter(numbers)},
        to_host=host.to_host,
    )
    return result, host


@pytest.mark.parametrize("opcode", HOST)
def test_the_host_sees_it(opcode: str) -> None:
    """Each one takes an item, or gives one."""
    one, two = run(1, opcode), run(2, opcode)
    gets = {"outfeed": lambda host: host.outfeed, "send": lambda host: host.to_host[1]}
    if opcode in gets:
        assert [len(gets[opcode](host)) for _, host in (one, two)] == [1, 2]
    else:
        assert one[0][0] == two[0][0] != two[0][1]
    assert opcode in having(EFFECT)
    assert (opcode in having(STATEFUL)) == (opcode not in gets)


def test_every_effect_is_seen() -> None:
    """Ends of chains are effects as their starts are (tests/hlo/test_opcodes.py)."""
    ends = {opcode for opcode in having(EFFECT) if opcode.endswith("-done")}
    assert having(EFFECT) - ends <= {*DRAWN, *HOST}


def apart(module: Module, seeds: tuple[int, int], ranks: str) -> bool:
    """Whether two ranks, which are ``replicas`` or ``partitions``, give something else than each
    does alone, or cannot meet."""
    given = [arguments(Seeded(seed), module) for seed in seeds]
    alone = [interp.evaluate(module, *one) for one in given]
    try:
        both = interp.evaluate(module, *given, **{ranks: 2})
    except (ArgumentError, CollectiveError, VerifyError):
        return True
    return any(map(differences, alone, both))


@pytest.mark.sampled(50)
# Each rank has a generator of its own.
@pytest.mark.parametrize("opcode", sorted(set(DRAWN) - having(DONE) - having(STATEFUL)))
def test_ranks(opcode: str) -> None:
    told = []
    for seed in range(PROGRAMS):
        module = single_op(Seeded(f"{opcode} {seed}"), opcode, max_elements=64)
        with suppress(Unsupported):
            told.append(apart(module, (seed, seed + 1), ("replicas", "partitions")[seed % 2]))
    assert told
    assert any(told) == (opcode in having(RANKS))


CHANNELS = {
    "all-gather": "f32[4] all-gather(x), replica_groups={{0,1}}, dimensions={0}",
    "all-reduce": "f32[2] all-reduce(x), replica_groups={{0,1}}, to_apply=add",
    "all-to-all": "f32[2] all-to-all(x), replica_groups={{0,1}}, dimensions={0}",
    "collective-broadcast": "f32[2] collective-broadcast(x), replica_groups={{0,1}}",
    "collective-permute": "f32[2] collective-permute(x), source_target_pairs={{0,1},{1,0}}",
    "reduce-scatter": "f32[1] reduce-scatter(x), replica_groups={{0,1}}, dimensions={0},"
    " to_apply=add",
}


@pytest.mark.parametrize("opcode", CHANNELS)
def test_by_partition(opcode: str) -> None:
    """With a channel the second of a pair is a partition, or there is no such replica."""
    text = f"""HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[2] parameter(0)
  ROOT r = {CHANNELS[opcode]}, channel_id=1
}}
"""
    given = [np.arange(2, dtype=np.float32) + n for n in range(2)]
    taken = True
    try:
        interp.evaluate(hlo.parse(text), *[(x,) for x in given], partitions=2)
    except (ArgumentError, CollectiveError):
        taken = False
    assert taken == (opcode in having(BY_PARTITION))


def made(*operands: object) -> object:
    """Stands for a computation."""
    return ("made of", *operands)


A, B, C = object(), object(), object()
F32_SCALAR = ArrayShape(F32)
STARTED = TupleShape((TupleShape((F32_SCALAR,)), F32_SCALAR))


class Calls:
    """A computation of one parameter, called with values that are no arrays."""

    computation = Computation(
        "made", (Instruction("p", F32_SCALAR, "parameter", (), {"parameter_number": 0}),), "p"
    )

    def __call__(self, *operands: object) -> object:
        return made(*operands)


class Case(NamedTuple):
    operands: tuple[object, ...]
    result: object
    attributes: dict[str, Any] = {}


OPAQUE_CASES = {
    "tuple": Case((A, B), (A, B)),
    "get-tuple-element": Case(((A, B),), B, {"index": 1}),
    "call": Case((A, B), made(A, B), {"to_apply": made}),
    "fusion": Case((A, B), made(A, B), {"calls": made, "kind": "kLoop"}),
    "map": Case((A, B), made(A, B), {"to_apply": made}),
    "add-dependency": Case((A, None), A),
    "domain": Case((A,), A, {"domain": ""}),
    "opt-barrier": Case((A,), A),
    "after-all": Case((None, None), None),
    "copy-start": Case((A,), (A, A, 0)),  # and a context
    "copy-done": Case(((A, B, C),), A),
    "async-start": Case((A,), ((A,), made(A)), {"calls": Calls(), "shape": STARTED}),
    "async-update": Case((((A,), B),), ((A,), B), {"shape": STARTED, "operand_shape": STARTED}),
    "async-done": Case((((A,), B),), B),
    "all-gather-done": Case(((A, B),), B),
    "all-reduce-done": Case((A,), A),
    "collective-permute-done": Case(((A, B),), B),
}


def test_every_opaque_opcode_has_a_case() -> None:
    assert set(OPAQUE_CASES) == having(OPAQUE)


@pytest.mark.parametrize("opcode", OPAQUE_CASES)
def test_opaque(opcode: str) -> None:
    """The interpreter's function takes values of which it can know nothing."""
    function = column("interp.ops")[function_name(opcode)].function
    operands, result, attributes = OPAQUE_CASES[opcode]
    assert function(*operands, **attributes) == result
    is_operand = result is operands[0] is not None and opcode not in having(DONE)
    assert (opcode in having(IDENTITY)) == is_operand
    assert (opcode in having(CALLS) | {"map"}) == (result == made(*operands))

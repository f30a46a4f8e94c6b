"""The table of opcodes fits what else the language says of them: families, signatures, chains."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

from hlo import elementary
from hlo.opcodes import (
    ASYNC,
    BY_PARTITION,
    CALLS,
    COLLECTIVE,
    DECLARED,
    DONE,
    EFFECT,
    ELEMENTARY,
    ELEMENTWISE,
    EXCHANGES,
    GIVEN,
    IDENTITY,
    IN_TWO_STEPS,
    OPAQUE,
    OPCODES,
    PENDING,
    RANKS,
    ROUNDS,
    SIZED,
    STATEFUL,
    STRUCTURAL,
    Trait,
    having,
    of_family,
)
from hlo.verification.async_chains import LINKS
from hlo.walk import column, function_name

FAMILIES = {row.family for row in OPCODES.values()}
COLUMNS = ("hlo.ops", "interp.ops", "backend_c.elemental")


def test_each_opcode_has_one_row() -> None:
    rows = list(OPCODES.values())
    assert [row.name for row in rows] == list(OPCODES)
    assert len({function_name(name) for name in OPCODES}) == len(OPCODES) == 133


@pytest.mark.parametrize("package", COLUMNS)
def test_a_file_that_is_named_as_a_family_has_ops_of_that_family(package: str) -> None:
    opcode_of = {function_name(name): name for name in OPCODES}
    wrong = [
        f"{name} of {OPCODES[opcode_of[name]].family} is in {package}.{info.name}"
        for info in pkgutil.iter_modules(importlib.import_module(package).__path__)
        if info.name in FAMILIES
        for name in getattr(importlib.import_module(f"{package}.{info.name}"), "__all__", ())
        if name in opcode_of and OPCODES[opcode_of[name]].family != info.name
    ]
    assert not wrong, "\n".join(wrong)


def test_a_family_is_a_file_of_the_language() -> None:
    homes = {name: op.home.rpartition(".")[2] for name, op in column("hlo.ops").items()}
    for name, row in OPCODES.items():
        assert row.family == homes.get(function_name(name), "control"), name
    assert set(OPCODES) - {o for o in OPCODES if function_name(o) in homes} == {"parameter"}


def test_traits_have_names_of_their_own() -> None:
    """``from hlo.opcodes import MOVES`` is ``Trait.MOVES``."""
    table = importlib.import_module("hlo.opcodes")
    for name, trait in Trait.__members__.items():
        assert name == "NONE" or getattr(table, name) is trait
    assert all(having(trait) for trait in Trait)


def test_chains() -> None:
    """Opcodes that are PENDING or DONE are the links of the chains that the verifier follows."""
    begun = {opcode for opcode, link in LINKS.items() if link.behind}
    assert having(PENDING) == begun
    assert having(DONE) == set(LINKS) - begun
    assert having(ASYNC) == {o for o in LINKS if o.startswith("async-")}
    assert {f"{opcode}-start" for opcode in IN_TWO_STEPS} | {"async-start"} == {
        opcode for opcode in OPCODES if opcode.endswith("-start")
    }
    # What ends an effect is one, too: else the chain would lose its end.
    links = {o: link for o, link in LINKS.items() if not link.behind}
    assert all(
        (opcode in having(EFFECT)) == (set(link.before) <= having(EFFECT))
        for opcode, link in links.items()
    )


def test_ranks() -> None:
    """Opcodes that exchange are those with groups or pairs of ranks; all others that depend on
    ranks are collectives, too."""
    groups = {"replica_groups", "source_target_pairs"}
    signatures = {
        opcode: set(inspect.signature(column("hlo.ops")[function_name(opcode)].function).parameters)
        for opcode in set(OPCODES) - {"parameter"}
    }
    assert having(EXCHANGES) == {o for o, names in signatures.items() if names & groups}
    assert having(BY_PARTITION) < having(EXCHANGES) < having(RANKS) < of_family(COLLECTIVE)
    assert {o for o in of_family(COLLECTIVE) if "channel_id" in signatures[o]} - having(DONE) <= (
        having(RANKS)
    )


def test_sizes_are_operands() -> None:
    """The signature names them: ``size``, or ``*sizes``."""
    ops = {opcode: column("hlo.ops").get(function_name(opcode)) for opcode in OPCODES}
    names = {o: list(inspect.signature(op.function).parameters) for o, op in ops.items() if op}
    assert having(SIZED) == {o for o, given in names.items() if {"size", "sizes"} & set(given)}
    assert all(names[opcode][1] in ("size", "sizes") for opcode in having(SIZED))


def test_whole_values() -> None:
    assert having(GIVEN) == {"parameter", "constant"}
    assert having(STRUCTURAL) == having(GIVEN) | {"tuple", "get-tuple-element"}
    assert having(IDENTITY) | having(CALLS) | having(ASYNC) < having(OPAQUE)
    assert having(STATEFUL) < having(EFFECT)
    assert having(STATEFUL) | having(EFFECT) < having(DECLARED)


def test_elementary_functions_are_those_with_a_sequence() -> None:
    """sqrt is one of IEEE 754's operations, with a sequence for double-double; atan is a part of
    atan2, and no opcode."""
    sequences = {name for name in elementary.FUNCTIONS if not name.endswith("_f64")}
    assert set(map(function_name, having(ELEMENTARY))) == sequences - {"sqrt", "atan"}
    assert having(ELEMENTARY) < having(ROUNDS) < of_family(ELEMENTWISE)

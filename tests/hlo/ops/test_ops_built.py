"""Values of attributes that no text has: modules that Python makes are verified, too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from verdicts import module

import hlo
from hlo.aliasing import Alias, Donor
from hlo.attributes import Attribute, EntryLayout, HeaderAttribute
from hlo.replica_groups import (
    AxisPart,
    Iota,
    IotaGroups,
    ListedGroups,
    MeshGroups,
    SourceTargetPairs,
)
from hlo.types import F32, ArrayShape

GATHER = "f32[2] all-gather(a), dimensions={0}, replica_groups={{0}}"
COMPARE = "pred[2] compare(a, a), direction=LT, type=FLOAT"
CALL = 'f32[2] custom-call(a), custom_call_target="x"'
CONVOLUTION = "f32[2,2] convolution(b, b), dim_labels=bf_io->bf"
ROWS: list[tuple[str, str, str, Attribute]] = [
    ("C2", COMPARE, "direction", "XX"),
    ("C3", COMPARE, "type", "PARTIAL"),
    ("C1", "c64[2] fft(c), fft_length={2}, fft_type=FFT", "fft_type", "DCT"),
    ("C3", "f32[2,2] triangular-solve(b, b), transpose_a=ADJOINT", "transpose_a", "SIDEWAYS"),
    ("C2", "f32[] fusion(d, d), calls=add, kind=kLoop", "kind", "kSomething"),
    ("C6", f"{CONVOLUTION}, convolution_kind=fprop", "convolution_kind", "sprop"),
    ("C4", GATHER, "replica_groups", IotaGroups(2, 4, Iota((4, 3)))),
    ("C4", GATHER, "replica_groups", IotaGroups(-1, -1, Iota(()))),
    ("C4", GATHER, "replica_groups", MeshGroups((("x", 2),), (AxisPart("y"),))),
    ("C4", GATHER, "replica_groups", MeshGroups((("x", 2),), (AxisPart("x"),), (0, -1))),
    ("C4", GATHER, "replica_groups", MeshGroups((("x", 2),), (AxisPart("x"),), (1, 1))),
    ("C4", GATHER, "replica_groups", ListedGroups(((0, -1),))),
    (
        "C4",
        "f32[2] collective-permute(a), source_target_pairs={{0,0}}",
        "source_target_pairs",
        SourceTargetPairs(((-1, 0),)),
    ),
    ("C1", CALL, "operand_layout_constraints", ()),
    ("C2", CALL, "output_to_operand_aliasing", (Alias((), -1, ()),)),
    (
        "C2",
        '(f32[2]) custom-call(a), custom_call_target="x"',
        "output_to_operand_aliasing",
        (Alias((-1,), 0, ()),),
    ),
]


def program(instruction: str) -> hlo.Module:
    return hlo.parse(module("f32[2] f32[2,2] c64[2] f32[]", instruction))


@pytest.mark.parametrize(("label", "instruction", "name", "value"), ROWS)
def test_values_that_mean_nothing(
    label: str, instruction: str, name: str, value: Attribute
) -> None:
    legal = program(instruction)
    hlo.verify(legal)
    root = legal.entry.root_instruction
    changed = root._replace(attributes={**root.attributes, name: value})
    entry = replace(legal.entry, instructions=(*legal.entry.instructions[:-1], changed))
    built = replace(legal, computations=(*legal.computations[:-1], entry))
    with pytest.raises(hlo.VerifyError, match=rf"%r = [a-z-]+, {label}: ."):
        hlo.verify(built)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("entry_computation_layout", "{(f32[2])->f32[2]}"),
        ("entry_computation_layout", EntryLayout((), ArrayShape(F32, (2,)))),
        ("input_output_alias", "{ {}: (0, {}) }"),
        ("input_output_alias", (Alias((), -1, ()),)),
        ("buffer_donor", (Donor(0, (-1,)),)),
    ],
)
def test_headers_that_mean_nothing(name: str, value: HeaderAttribute) -> None:
    built = replace(program("f32[2] negate(a)"), attributes={name: value})
    with pytest.raises(hlo.VerifyError, match=f"HloModule m, {name}: ."):
        hlo.verify(built)

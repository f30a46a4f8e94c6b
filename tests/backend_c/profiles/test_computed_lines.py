"""Each instruction of a kernel has its lines of code in every target; marks change no code."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import count

import pytest
from conftest import CORPUS, ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import backend_c
import fuzz
import hlo
from backend_c.ir.loop_ir import Let, every
from backend_c.pipeline import lowered, settings_for
from backend_c.render.dialect import DIALECTS
from backend_c.render.distinct_kernels import DistinctKernels
from backend_c.render.marked_statements import MarkedBody, unmarked
from backend_c.render.statements import kernel_text
from hlo.errors import Unsupported
from hlo.module import Computation, Instruction, Module
from hlo.passes.rewriting import with_entry
from hlo.types import TupleShape

TARGETS = sorted(DIALECTS)
SMALL = 2_000  # bytes of text
few = settings(suppress_health_check=list(HealthCheck), max_examples=15)


def lines_by_name(module: Module, target: str, instruction: str) -> dict[str, list[str]]:
    """Return the lines of each instruction of the step that computes one."""
    found = backend_c.listing(module, target)
    (step,) = [s for s in found.steps if instruction in [n.instruction for n in s.computes]]
    text = found.texts[step.function].split("\n")
    return {n.instruction: [text[k].strip() for k in own] for n, own in step.lines.items()}


@few
@given(fuzz.modules(), st.sampled_from(TARGETS), st.sampled_from(["exact", "fast"]))
def test_every_instruction_has_lines(drawn: Module, target: str, numerics: str) -> None:
    with suppress(Unsupported):
        found = backend_c.listing(drawn, target, numerics)
        for step in found.steps:
            if not step.function:
                assert not step.lines
                continue
            text = found.texts[step.function].split("\n")
            assert {n for n in step.computes if n not in step.lines} == set()
            for own in step.lines.values():
                assert [*own] == sorted(set(own))
                assert all(text[number].strip() not in ("", "}") for number in own)


@few
@given(fuzz.modules(), st.sampled_from(TARGETS))
def test_marks_are_of_each_value_and_change_no_code(drawn: Module, target: str) -> None:
    dialect = DIALECTS[target]
    with suppress(Unsupported):
        for kernel in lowered(drawn, settings_for("fast", dialect)).kernels:
            plain = kernel_text(kernel, "kernel_0", dialect)
            text, names = unmarked(kernel_text(kernel, "kernel_0", dialect, MarkedBody))
            assert text == plain and len(names) == len(text.split("\n"))
            lets = {s.variable.name for s in every(kernel.body) if isinstance(s, Let)}
            assert lets <= {name for own in names for name in own}


def doubled(module: Module) -> Module:
    """Return a program that does the same on arguments of its own once more: kernels are equal."""
    entry, instructions, numbers = module.entry, list[Instruction](), count()
    for copy in ("first", "second"):
        names = [f"{copy}.{n}" for n, _ in enumerate(entry.parameters)]
        for name, parameter in zip(names, entry.parameters, strict=True):
            number = {"parameter_number": next(numbers)}
            instructions.append(Instruction(name, parameter.shape, "parameter", (), number))
        callee, shape = {"to_apply": entry.name}, entry.root_instruction.shape
        instructions.append(Instruction(copy, shape, "call", tuple(names), callee))
    both = Instruction("both", TupleShape((shape, shape)), "tuple", ("first", "second"))
    whole = Computation("doubled.entry", (*instructions, both), "both")
    given = replace(module, computations=(*module.computations, whole), entry_name=whole.name)
    return with_entry(given, whole)


def same_numbers(module: Module, target: str) -> None:
    """Compare the functions of a doubled program with those of its text with marks, which is what
    explanations number functions by."""
    dialect = DIALECTS[target]
    plan = lowered(doubled(module), settings_for("fast", dialect))
    plain, marked = DistinctKernels(dialect), DistinctKernels(dialect, MarkedBody)
    names = plain.names(plan)
    assert names == marked.names(plan)
    assert all(plain.text(name) == unmarked(marked.text(name))[0] for name in names)


@pytest.mark.parametrize("target", TARGETS)
def test_functions_of_small_programs_have_the_same_numbers_with_marks(target: str) -> None:
    for path in sorted(CORPUS.rglob("*.txt")):
        if path.stat().st_size < SMALL:
            with suppress(Unsupported):
                same_numbers(hlo.parse(path.read_text("utf-8")), target)


@pytest.mark.parametrize("target", TARGETS)
def test_functions_have_the_same_numbers_if_other_values_are_folded_into_them(target: str) -> None:
    """Both copies are the same code, of a value and of none."""
    same_numbers(
        hlo.parse("""HloModule m
ENTRY e {
  x = pred[1] parameter(0)
  copied = pred[1] custom-call(x), custom_call_target="Sharding"
  flat = pred[] dynamic-reshape(copied)
  y = c64[] parameter(1)
  negative = c64[] negate(y)
  ROOT both = (pred[], c64[]) tuple(flat, negative)
}"""),
        target,
    )


@few
@given(fuzz.modules(max_instructions=20), st.sampled_from(TARGETS))
def test_functions_have_the_same_numbers_with_marks(drawn: Module, target: str) -> None:
    with suppress(Unsupported):
        same_numbers(drawn, target)


@pytest.mark.parametrize("target", TARGETS)
def test_the_parts_of_a_softmax_have_lines_of_their_own(target: str) -> None:
    module = hlo.parse((ROOT / "examples" / "attention.hlo").read_text())
    lines = lines_by_name(module, target, "exp.1")
    assert [line for line in lines["exp.1"] if "hlo_exponential" in line]
    assert not [line for line in lines["exp.1"] if "maximum" in line]
    assert [line for line in lines["reduce_max.7"] if "hlo_maximum" in line]
    assert not [line for line in lines["reduce_max.7"] if "hlo_exponential" in line]
    stores = ("r0[", "hlo_line_store_16_4(r0")
    assert any(line.startswith(stores) for line in lines["div.11"])
    assert not any(line.startswith(stores) for line in lines["exp.1"])


MERGED = """HloModule merged
ENTRY main {
  x = f32[4096] parameter(0)
  y = f32[4096] parameter(1)
  moved = f32[4096] add(x, y)
  kept = f32[4096] tanh(moved)
  other = f32[4096] sine(y)
  both = f32[4096] multiply(other, y)
  ROOT pair = (f32[4096], f32[4096]) tuple(kept, both)
}
"""
TWICE = """HloModule twice
ENTRY main {
  x = f32[64,64] parameter(0)
  first = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  one = f32[64,64] tanh(first)
  second = f32[64,64] dot(one, one), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  two = f32[64,64] tanh(second)
  third = f32[64,64] dot(two, two), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT three = f32[64,64] negate(third)
}
"""


def test_loops_that_were_merged_know_whose_lines_are_whose() -> None:
    lines = lines_by_name(hlo.parse(MERGED), "openmp", "other")
    assert lines.keys() >= {"moved", "kept", "other", "both"}  # one kernel
    for name, function in (("kept", "hlo_tanh"), ("other", "hlo_sine")):
        assert any(function in line for line in lines[name])
    assert not set(lines["kept"]) & set(lines["other"])


def test_equal_kernels_have_the_names_of_each_launch() -> None:
    module = hlo.parse(TWICE)
    assert any("hlo_tanh" in line for line in lines_by_name(module, "embedded", "one")["one"])
    assert any("hlo_tanh" in line for line in lines_by_name(module, "embedded", "two")["two"])

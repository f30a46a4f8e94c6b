"""Blocks of CUDA threads sort: the interpreter's bits for every order, in blocks of any size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.ir.settings import Settings
from backend_c.kernels.parts.sorting import block_radix_sort, block_selection
from backend_c.native.cuda_emulation import Schedule
from backend_c.pipeline import emulated
from fuzz.oracles.cuda_emulated import SIZES
from hlo.bit_equality import differences
from hlo.module import Module
from hlo_oracle.arguments import from_seed

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

TOTAL = ", type=TOTALORDER"


def sort(dims: str, types: Sequence[str], comparison: str) -> Module:
    """A sort of rows by the first of several operands."""
    pairs = "".join(
        f"c{n} = {t}[] parameter({2 * n})\n d{n} = {t}[] parameter({2 * n + 1})\n"
        for n, t in enumerate(types)
    )
    shapes = [f"{t}[{dims}]" for t in types]
    parameters = "".join(f"p{n} = {s} parameter({n})\n" for n, s in enumerate(shapes))
    result = shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"
    names = ", ".join(f"p{n}" for n in range(len(shapes)))
    made = hlo.parse(f"""
        HloModule m
        before {{ {pairs} ROOT b = pred[] compare(c0, d0), direction={comparison} }}
        ENTRY e {{ {parameters} ROOT r = {result} sort({names}), dimensions={{1}},
            to_apply=before }}""")
    hlo.verify(made)
    return made


def topk(dims: str, k: int, element_type: str = "f32") -> Module:
    rows = dims.split(",")[0]
    made = hlo.parse(f"""
        HloModule m
        ENTRY e {{ a = {element_type}[{dims}] parameter(0)
            ROOT r = ({element_type}[{rows},{k}], s32[{rows},{k}]) topk(a), k={k} }}""")
    hlo.verify(made)
    return made


# By blocks: of one tile and of several; words, packed, beside their positions; merges, in rounds.
PROGRAMS = {
    "keys": sort("2,1030", ["bf16"], f"LT{TOTAL}"),
    "keys of a tile": sort("3,60", ["f64"], f"GT{TOTAL}"),
    "packed": sort("2,1100", ["s16", "f32", "u8"], "GT"),
    "ordered": sort("1,1100", ["s64", "bf16"], "LT"),
    "columns": sort("2,60,5", ["u8", "s32"], "LT"),
    "few of few": topk("3,70", 9),
    "few of many": topk("2,2100", 10, "bf16"),
    "many of many": topk("1,1100", 400),
    "merged": sort("3,130", ["f32", "s32"], "LT"),
    "merged, not strictly": sort("2,70", ["s32", "s32"], "LE"),
    "not by the value": sort("1,100", ["f32"], "NE"),
}


def test_every_sort_in_blocks_of_every_size() -> None:
    programs = emulated(list(PROGRAMS.values()), Settings(grain=1, has_blocks=True))
    pairs = zip(PROGRAMS.items(), programs, strict=True)
    for which, ((name, module), program) in enumerate(pairs):
        arguments = from_seed(module, 0)
        expected = interp.evaluate(module, *arguments)
        # Every third size of each: all with the programs beside it.
        for number, threads in list(enumerate(SIZES))[which % 3 :: 3]:
            found = program(*arguments, schedule=Schedule(threads, 2, seed=number))
            assert not differences(expected, found), (name, threads)


def test_few_of_parts_and_of_equal_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """TopK in parts takes the first of equal elements, and orders NaN and signed zeros totally."""
    monkeypatch.setattr(block_selection, "_PART", 70)
    monkeypatch.setattr(block_selection, "MULTIPROCESSORS", 3)
    modules = [topk("1,777", 33), topk("2,150", 149), topk("2,290", 9, "s8")]
    programs = emulated(modules, Settings(grain=1, has_blocks=True))
    for module, program in zip(modules, programs, strict=True):
        (keys,) = (np.array(a) for a in from_seed(module, 0))
        others = keys.copy()
        others[:, ::2], others[:, 1::3] = 1, -0.0
        if others.dtype.kind == "f":
            others[:, 5::7] = np.nan
        for given in (keys, others, np.zeros_like(keys)):
            expected = interp.evaluate(module, given)
            for schedule in (Schedule(50, 2, seed=1), Schedule(256, 1)):
                assert not differences(expected, program(given, schedule=schedule))


def test_merges_by_what_is_no_order_are_those_of_one_thread() -> None:
    """ "Less than" of NaN leads bisections astray, and one thread's merges somewhere else."""
    module = sort("2,300", ["f32", "s32"], "LT")
    keys, values = from_seed(module, 0)
    assert isinstance(keys, np.ndarray)
    keys[:, ::7] = np.nan
    expected = backend_c.compile(module, "exact")(keys, values)
    made = backend_c.emulate(module)
    for threads in (1, 96):
        found = made(keys, values, schedule=Schedule(threads, 2, seed=threads))
        assert not differences(expected, found)


def test_blocks_of_several_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that is given several tiles of an array sorts them one after the other."""
    monkeypatch.setattr(block_radix_sort, "_ENOUGH", 2)
    modules = [sort("1,3100", ["s16", "f32", "u8"], "GT"), sort("2,2500", ["s64"], "LT")]
    programs = emulated(modules, Settings(grain=1, has_blocks=True))
    for module, program in zip(modules, programs, strict=True):
        arguments = from_seed(module, 0)
        for threads in (96, 256):
            found = program(*arguments, schedule=Schedule(threads, 2, seed=threads))
            assert not differences(interp.evaluate(module, *arguments), found), threads

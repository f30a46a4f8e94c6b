"""Every program that JAX makes is read, printed, verified and evaluated, and agrees with XLA.

The tables in tests/against_jax name a function of JAX, its arguments and element types. JAX
lowers each to HLO; the texts before and after XLA's optimisation are read and evaluated, and the
results are XLA's, within the bound that the row states. The C backend gives the interpreter's bits.

One variant of each function of lax is tried, with one element type, and a part of the others;
``AGAINST_JAX=all pytest tests/test_against_jax.py`` tries all (more than two hours of one core).
"""

from __future__ import annotations

import importlib
import inspect
import os
import zlib
from collections.abc import Iterator

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.bit_equality import differences
from hlo.errors import Unsupported
from hlo_oracle.frontends.jax_internals import with_x64

jax = pytest.importorskip("jax")

from against_jax import known  # noqa: E402
from against_jax.case import Case  # noqa: E402
from against_jax.merged import can_merge, merged  # noqa: E402
from against_jax.program import Program, findings, parsed, program  # noqa: E402

_EVERYTHING = os.environ.get("AGAINST_JAX") == "all"
_TABLES = (
    "elementwise",
    "data_movement",
    "reduction",
    "contraction",
    "indexing",
    "control",
    "linear_algebra",
    "random_bits",
    "numpy_functions",
    "numpy_arrays",
    "scipy_functions",
)
_BATCH = 12  # programs in one run of the C compiler
# When not everything is tried: of the functions that are not lax's own, and of all the functions
# for C, one in so many.
_OTHERS, _IN_C = 12, 18


def tables() -> Iterator[Case]:
    for name in _TABLES:
        yield from importlib.import_module(f"against_jax.{name}").CASES


def by_subject() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in tables():
        found.setdefault(case.subject, []).append(case)
    return found


with with_x64(True):
    SUBJECTS = by_subject()


@pytest.fixture(autouse=True)
def _with_64_bits() -> Iterator[None]:
    """Let JAX have types of 64 bits here, and leave them off for all other tests."""
    with with_x64(True):
        yield


def is_lax(subject: str) -> bool:
    return subject.startswith("lax.") and not subject.startswith("lax.linalg.")


def part(subject: str, one_in: int) -> bool:
    return _EVERYTHING or zlib.crc32(subject.encode()) % one_in == 0


def order(text: str, length: int) -> list[int]:
    """0 … length − 1, starting at a place that the text decides."""
    first = zlib.crc32(text.encode()) % max(length, 1)
    return [(first + i) % length for i in range(length)]


def chosen(subject: str) -> list[tuple[Case, str]]:
    """Return the cases of a function and their types in the order to try, until one was: all of
    them, or one variant."""
    cases = SUBJECTS[subject]
    if not _EVERYTHING:
        cases = [cases[order(subject, len(cases))[0]]]
    return [(c, c.types[n]) for c in cases for n in order(c.name, len(c.types))]


@pytest.fixture(autouse=True)
def few_executables() -> Iterator[None]:
    """JAX keeps all that it compiled."""
    yield
    if _EVERYTHING:
        jax.clear_caches()


@pytest.mark.sampled(24)
@pytest.mark.filterwarnings("ignore")  # what JAX warns of is its own affair
@pytest.mark.parametrize("subject", [s for s in SUBJECTS if is_lax(s) or part(s, _OTHERS)])
def test_agrees_with_xla(subject: str) -> None:
    """Equal results within the bound of the row."""
    wrong, tried = [], 0
    for case, type_name in chosen(subject):
        run = not known.find(known.CRASHES, case.name, type_name)
        made = program(case, type_name, run, fast=not _EVERYTHING)
        if made is None:
            continue
        tried += 1
        if not known.find(known.DEVIATIONS, case.name, type_name):
            wrong += [f"{case.name} {type_name}: {text}" for text in complaints(made)]
        if not _EVERYTHING:
            break
    assert tried, "JAX takes none of the types"
    assert not wrong, "\n".join(wrong)


def complaints(made: Program) -> list[str]:
    """List how a program's results differ from XLA's, or why it is not supported."""
    try:
        return list(findings(made))
    except Unsupported as error:
        return [str(error)]


def batches() -> list[list[str]]:
    subjects = [s for s in SUBJECTS if part(s, _IN_C)]
    size = 1 if _EVERYTHING else _BATCH
    return [subjects[n : n + size] for n in range(0, len(subjects), size)]


@pytest.mark.sampled(1)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("subjects", batches(), ids=lambda subjects: subjects[0])
def test_c_gives_the_same_bits(subjects: list[str]) -> None:
    """The programs before optimisation, a dozen to a library."""
    modules, arguments = [], []
    for subject in subjects:
        for case, type_name in chosen(subject):
            if known.find(known.MEANINGLESS, case.name, type_name):
                continue
            made = program(case, type_name, run=False)
            module = None if made is None else parsed(made.text)
            if module is not None and can_merge(module):
                modules.append(module)
                arguments.append(made.arguments)
                if not _EVERYTHING:
                    break
    for n in range(0, len(modules), _BATCH):
        same_bits(modules[n : n + _BATCH], arguments[n : n + _BATCH])


def same_bits(modules: list[hlo.Module], arguments: list[tuple[np.ndarray, ...]]) -> None:
    """One by one where there is no C for some of them."""
    try:
        executable = backend_c.compile(merged(modules), numerics="exact", threads=1)
    except Unsupported as error:
        if len(modules) == 1:
            assert any(phrase in str(error) for phrase in known.NOT_YET_IN_C), error
            return
        for module, arrays in zip(modules, arguments, strict=True):
            same_bits([module], [arrays])
        return
    results = executable(*(array for arrays in arguments for array in arrays))
    for module, arrays, result in zip(modules, arguments, results, strict=True):
        wrong = differences(interp.evaluate(module, *arrays), result)
        assert not wrong, f"{wrong[0]}\n{hlo.format(module)}"


def functions(module: object) -> list[str]:
    """The public functions of a module of JAX, without primitives."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not name.endswith("_p")
        and callable(value)
        and not inspect.isclass(value)
    ]


@pytest.mark.parametrize("name", known.EXCLUDED)
def test_every_function_has_a_case(name: str) -> None:
    """Every function of JAX has a case, or a reason for having none."""
    module = importlib.import_module(f"jax.{name}")
    excluded = " ".join(known.EXCLUDED[name].values()).split()
    missing = [f for f in functions(module) if f"{name}.{f}" not in SUBJECTS and f not in excluded]
    assert not missing, f"add cases to tests/against_jax, or reasons to known.py: {missing}"

"""A module that was compiled before runs from the cache; whatever matters makes it another one."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import backend_c
import hlo
from backend_c.native.cache import copy_parts, default_directory, open_cache
from backend_c.native.kept_programs import module_digest
from backend_c.native.toolchain import known_compiler
from backend_c.probe.verdict import trusted
from fuzz.draw.seeded_programs import programs
from hlo.errors import ToolchainError
from hlo.literal import Literal
from hlo.module import Module

_TEXT = """HloModule m
ENTRY e {
  x = f32[12] parameter(0), metadata={op_name="f/x"}
  c = f32[12] constant({nan, -0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
  ROOT s = f32[12] subtract(x, c)
}
"""
_X = np.linspace(-2, 2, 12, dtype=np.float32)


def run(module: Module, directory: Path, numerics: str = "fast") -> Any:
    return backend_c.compile(module, numerics, cache=directory)(_X).tobytes()


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Return a cache directory with what is compiled once per machine, but no program."""
    own = open_cache(default_directory(os.environ))
    trusted(known_compiler(os.environ, own), own)
    copy_parts(own, tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def directory(empty: Path) -> Path:
    """Return a cache directory in which a program was compiled."""
    run(hlo.parse(_TEXT), empty)
    return empty


@pytest.fixture
def without_rendering(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing more be rendered, so that only kept programs run."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("rendered")

    monkeypatch.setattr("backend_c.programs.render_plan", refused)


@pytest.mark.usefixtures("without_rendering")
@pytest.mark.parametrize("change", ["", "f/x", "metadata", "\n"])
def test_a_module_compiled_before_is_not_rendered_again(directory: Path, change: str) -> None:
    """A compiled module is not rendered again, also by another process, with other metadata, or
    with other line breaks."""
    text = {
        "f/x": _TEXT.replace("f/x", "g/other"),
        "metadata": _TEXT.replace(', metadata={op_name="f/x"}', ""),
        "\n": _TEXT.replace("\n", "\n\n"),
    }.get(change, _TEXT)
    result = run(hlo.parse(text), directory)
    constant = np.array([np.nan, -0.0, *range(2, 12)], np.float32)
    assert result == (_X - constant).tobytes()


def test_a_kept_program_renders_its_source_when_it_is_read(directory: Path) -> None:
    module = hlo.parse(_TEXT)
    kept = backend_c.compile(module, cache=directory)
    (program,) = directory.glob("*.program")
    program.unlink()
    fresh = backend_c.compile(module, cache=directory)
    assert len(kept.source) == len(fresh.source) > 0
    assert dict(kept.source) == dict(fresh.source)


@pytest.mark.usefixtures("without_rendering")
@pytest.mark.parametrize(
    "change",
    [
        ("-0, 2", "0, 2"),
        ("subtract(x, c)", "subtract(c, x)"),
        ("{nan,", "{nan(0x1),"),
        ("11}", "9}"),
    ],
)
def test_another_module_is_rendered(directory: Path, change: tuple[str, str]) -> None:
    with pytest.raises(AssertionError, match="rendered"):
        run(hlo.parse(_TEXT.replace(*change)), directory)


def test_what_a_custom_call_is_configured_to_do_makes_another_module(empty: Path) -> None:
    """The lower and the upper triangle of a matrix have other factors."""
    text = """HloModule m
    ENTRY e {
      x = f32[2,2] parameter(0)
      f = (f32[2,2], s32[]) custom-call(x), custom_call_target="lapack_spotrf_ffi",
        backend_config={uplo = 76 : ui8}
      ROOT r = f32[2,2] get-tuple-element(f), index=0
    }
    """
    x = np.array([[4, 8], [2, 36]], np.float32)
    for uplo, offset in (("76", 1), ("85", 4)):
        module = hlo.parse(text.replace("76", uplo))
        factor = backend_c.compile(module, cache=empty)(x)
        assert np.trace(factor) != 0 and offset in (factor[0, 1], factor[1, 0])


@pytest.mark.usefixtures("without_rendering")
def test_other_numerics_are_rendered(directory: Path) -> None:
    with pytest.raises(AssertionError, match="rendered"):
        run(hlo.parse(_TEXT), directory, "exact")


@pytest.mark.usefixtures("without_rendering")
def test_nothing_kept_is_used_by_changed_code(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing kept is used if the generator differs, or if its files have changed since they were
    loaded: which of them is running is unknown."""
    with monkeypatch.context() as patch, pytest.raises(AssertionError, match="rendered"):
        patch.setattr("backend_c.native.kept_programs.generator_digest", lambda _: "other")
        run(hlo.parse(_TEXT), directory)
    monkeypatch.setattr("backend_c.native.kept_programs.is_as_loaded", lambda: False)
    with pytest.raises(AssertionError, match="rendered"):
        run(hlo.parse(_TEXT), directory)


@pytest.mark.parametrize("suffix", [".program", ".so"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_what_is_damaged_is_made_again(directory: Path, suffix: str, damage: str) -> None:
    expected = run(hlo.parse(_TEXT), directory)
    for file in directory.glob(f"*{suffix}"):
        if damage == "gone":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:-1])
    assert run(hlo.parse(_TEXT), directory) == expected


@pytest.mark.parametrize(("most", "count"), [(1 << 20, 1), (1 << 10, 0)])
def test_programs_with_many_constants_are_not_kept(
    empty: Path, monkeypatch: pytest.MonkeyPatch, most: int, count: int
) -> None:
    monkeypatch.setattr("backend_c.native.kept_programs._MOST", most)
    numbers = ", ".join(map(str, range(4096)))
    text = _TEXT.replace("f32[12]", "f32[4096]")
    text = text.replace("nan, -0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11", numbers)
    x = np.ones(4096, np.float32)
    result = backend_c.compile(hlo.parse(text), cache=empty)(x)
    assert result.tolist() == [1 - n for n in range(4096)]
    assert len([*empty.glob("*.program")]) == count


def test_where_no_program_can_be_kept_it_is_compiled(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise ToolchainError("no space left on device")

    monkeypatch.setattr("backend_c.native.kept_programs.publish", refused)
    assert run(hlo.parse(_TEXT), empty)
    assert not [*empty.glob("*.program")]


# ---- what is hashed of a module ----


def test_modules_have_one_digest_if_they_compute_the_same() -> None:
    """Equal modules have equal digests, however they were made, and others have others: 400 drawn
    modules, also with one bit of a constant changed."""
    drawn = [module for module, _ in islice(programs(20261127), 400)]
    found: dict[str, Module] = {}
    changed = 0
    for module in drawn:
        key = module_digest(module)
        assert module_digest(hlo.parse(hlo.format(module))) == key
        assert found.setdefault(key, module) == module
        other = _other_bit(module)
        changed += other is not None
        assert other is None or module_digest(other) != key
    assert changed > 40


def _other_bit(module: Module) -> Module | None:
    """Return a module with another bit in the entry's first constant that is no tuple."""
    entry = module.entry
    for place, instruction in enumerate(entry.instructions):
        literal = instruction.attributes.get("literal")
        if not isinstance(literal, Literal) or not isinstance(literal.value, np.ndarray):
            continue
        if not literal.value.size:
            continue
        value = literal.value.copy()
        value.reshape(-1).view(np.uint8)[-1] ^= 1
        attributes = {**instruction.attributes, "literal": Literal(literal.shape, value)}
        instructions = list(entry.instructions)
        instructions[place] = instruction._replace(attributes=attributes)
        changed = replace(entry, instructions=tuple(instructions))
        others = (changed if c is entry else c for c in module.computations)
        return replace(module, computations=tuple(others))
    return None

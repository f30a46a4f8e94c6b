"""Compilers with defects planted in them are found out, and get flags with which they are right."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from backend_c.native.cache import Cache, open_cache
from backend_c.native.toolchain import Compiler, find_compiler
from backend_c.probe.questions import questions
from backend_c.probe.trial import Failure, answers, failure, sources
from backend_c.probe.verdict import TO_BE_RIGHT, Verdict, search, trusted
from fuzz.compilers.processors import refusal
from hlo.errors import CompilerWarning, ToolchainError
from hlo_oracle.command.main import main

ASKED = tuple(questions())
# NaN and subnormals, which -ffast-math loses, and a loop over vectors of bytes.
FEW = tuple(q for q in ASKED if q.name in ("is-finite of f32", "sign of f32", "add of u64"))
_FAST_MATH_UNLESS_GENERIC = (
    'case "$*" in *-mtune=generic*|*-O0*) ;; *) set -- "$@" -ffast-math ;; esac'
)
_PLAIN = Compiler(("cc",), "cc 1.0", ("-O3", "-march=native", "-fopenmp", "-Werror"))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return open_cache(tmp_path / "cache")


def planted(directory: Path, script: str) -> Compiler:
    """The compiler of this machine behind a script, which sees its arguments first."""
    path = directory / "cc"
    real = find_compiler(os.environ).command[0]
    path.write_text(f'#!/bin/sh\necho "$*" >> {directory}/calls\n{script}\nexec {real} "$@"\n')
    path.chmod(0o755)
    return find_compiler({**os.environ, "HLO_CC": str(path)})


def test_every_question_has_a_name_and_an_answer() -> None:
    names = [question.name for question in ASKED]
    assert names == list(answers())
    assert len({*names}) == len(names) > 200


@pytest.mark.parametrize(
    ("flag", "question"),
    [
        ("-ffp-contract=fast", "multiply and add of f64"),
        ("-freciprocal-math", "divide f32 by a scalar"),
        ("-fassociative-math -fno-signed-zeros", "add and subtract of f32"),
        ("-ffinite-math-only", "convert f64 to s32"),
        ("-fno-signed-zeros", "f64 by way of s32"),
        ("-funsafe-math-optimizations", "f64 by way of f32"),
    ],
)
def test_what_a_compiler_may_not_do_has_a_question(flag: str, question: str, cache: Cache) -> None:
    """Each permission that -ffast-math gives a compiler is noticed where the processor and the
    compiler make use of it."""
    compiler = find_compiler(os.environ)
    if not compiler.version.startswith("gcc") or refusal(compiler.command, "haswell"):
        pytest.skip("no gcc, or no processor with fused multiply-add")
    asked = [q for q in ASKED if q.name == question]
    loose = replace(compiler, flags=(*compiler.flags, *flag.split()))
    found = failure(loose, sources(asked), cache)
    assert found and found.told == f"gets 1 known answers wrong ({question})"


def test_the_compiler_of_this_machine_is_right(cache: Cache) -> None:
    compiler = find_compiler(os.environ)
    with warnings.catch_warnings(action="ignore"):
        found = trusted(compiler, cache, ASKED[::8])  # who builds anything here asks them all
    assert found == compiler or found.instead
    # The verdict, and the hash of the files that decide what is asked.
    assert sorted(path.suffix for path in cache.directory.iterdir()) == [".known", ".note"]


def test_a_compiler_that_is_wrong_when_it_tunes(tmp_path: Path, cache: Cache) -> None:
    compiler = planted(tmp_path, _FAST_MATH_UNLESS_GENERIC)
    message = r"wrong \(.*is-finite of f32.*\) with -O3 .*compiled with .*-mtune=generic instead"
    with pytest.warns(CompilerWarning, match=message):
        found = trusted(compiler, cache, FEW)
    assert found.flags == (*compiler.flags, "-mtune=generic")
    assert "-mtune=generic" in found.instead
    asked = (tmp_path / "calls").read_text()
    with pytest.warns(CompilerWarning, match=message):
        assert trusted(compiler, cache, FEW) == found
    assert (tmp_path / "calls").read_text() == asked  # the verdict was kept


def test_a_compiler_of_crashing_programs(tmp_path: Path, cache: Cache) -> None:
    crash = tmp_path / "crash.h"
    crash.write_text("static void __attribute__((constructor)) boom(void) { __builtin_trap(); }\n")
    script = f'case "$*" in *-O3*) set -- "$@" -include {crash} ;; esac'
    with pytest.warns(CompilerWarning, match=r"crashes \(signal \d+\)"):
        found = trusted(planted(tmp_path, script), cache, FEW[:1])
    assert "-O2" in found.flags and "-O3" not in found.flags


def test_a_compiler_without_a_library_for_threads(tmp_path: Path, cache: Cache) -> None:
    """It knows the flag, but does not link: clang without libomp."""
    script = 'case "$*" in *-fopenmp*-o\\ probe) echo no libomp >&2; exit 1 ;; esac'
    with pytest.warns(CompilerWarning, match=r"does not link questions \(no libomp\)"):
        found = trusted(planted(tmp_path, script), cache, FEW[:1])
    assert "-fopenmp" not in found.flags and "-O3" in found.flags


def test_a_compiler_that_is_never_right(tmp_path: Path, cache: Cache) -> None:
    compiler = planted(tmp_path, 'set -- "$@" -ffast-math')
    with pytest.raises(
        ToolchainError, match="nor is it right with other flags.*name another in HLO_CC"
    ):
        trusted(compiler, cache, FEW)


def test_gathers_that_leave_elements_out(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """gcc 12.2 for AVX2, where nothing keeps it from gathers: the defect that was met first.

    It is one of loops over i that load at (i + 1) / 8, which are strip-mined by now.
    """
    monkeypatch.setattr("backend_c.ir.digits._periods_of", lambda loop, extent: set())
    compiler = find_compiler(os.environ)
    if not re.search(r"^gcc.* 12\.2", compiler.version) or refusal(compiler.command, "haswell"):
        pytest.skip("no gcc 12.2, or no AVX2")
    words = f"{compiler.command[0]} -march=haswell -DHLO_GATHERS"
    gathering = find_compiler({**os.environ, "HLO_CC": words})
    asked = tuple(q for q in ASKED if q.name.startswith("repeat 8") and q.name.endswith("cut"))
    with pytest.warns(CompilerWarning, match=r"wrong \(repeat 8"):
        found = trusted(gathering, cache, asked)
    assert found.flags == (*gathering.flags, "-mtune=generic")


def test_a_damaged_verdict_is_made_again(tmp_path: Path, cache: Cache) -> None:
    compiler = planted(tmp_path, "")
    assert trusted(compiler, cache, FEW[:1]) == compiler
    (note,) = cache.directory.glob("*.note")
    for damage in (b"", b"[0, 1, 2]", note.read_bytes()[:-2]):
        note.write_bytes(damage)
        (tmp_path / "calls").unlink()
        assert trusted(compiler, cache, FEW[:1]) == compiler
        assert (tmp_path / "calls").exists()


def test_the_command_line_says_so_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line reports a wrong compiler in one line, and compiles programs with the flags
    that make it right."""
    monkeypatch.setattr("backend_c.probe.verdict.questions", lambda: FEW)
    compiler = planted(tmp_path, _FAST_MATH_UNLESS_GENERIC)
    monkeypatch.setenv("HLO_CC", compiler.command[0])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = tmp_path / "program.hlo"
    program.write_text("HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[2] sign(x) }")
    with warnings.catch_warnings(action="always"):
        assert main(["run", str(program), "--on", "c"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and re.match(r"hlo: .* known answers wrong .* instead \(kept in", told[0])
    calls = (tmp_path / "calls").read_text().splitlines()
    libraries = [call for call in calls if "-shared" in call]
    assert libraries and all("-mtune=generic" in call for call in libraries)


# ---- the order of the steps ----


def _asked(*passing: str) -> Verdict:
    """The verdict on a compiler, with its flags as shipped, that is right only with all these."""
    name = find_compiler(os.environ).command[0]  # words after it, in HLO_CC, win over those flags
    shipped = find_compiler({**os.environ, "HLO_CC": name})

    def ask(compiler: Compiler) -> Failure | None:
        return None if {*passing} <= {*compiler.flags} else Failure(True, "is wrong")

    return search(shipped, ask)


def test_steps_go_from_what_costs_least() -> None:
    assert _asked() == Verdict()
    places = [_asked(flag).right for flag in ("-mtune=generic", "-march=x86-64-v3", "-O2", "-O1")]
    assert None not in places and places == sorted(places)
    assert _asked("-never").right is None


def test_a_user_s_own_processor_is_left_alone() -> None:
    own = replace(_PLAIN, flags=("-O3", "-march=haswell"))
    for step in TO_BE_RIGHT:
        assert "-march=haswell" in step.flags(own.flags)
        assert not any(flag.startswith("-march=x86") for flag in step.flags(own.flags))

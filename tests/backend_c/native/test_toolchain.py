"""Compilers are found or missed with a helpful word; the cache trusts only what it wrote."""

from __future__ import annotations

import ctypes
import hashlib
import os
import pwd
import stat
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import backend_c
import hlo
from backend_c.ir.settings import Settings
from backend_c.native import cache as cache_module
from backend_c.native.cache import Cache, default_directory, open_cache, publish, workspace
from backend_c.native.libraries import build
from backend_c.native.linked_runtime import linked_headers
from backend_c.native.toolchain import Compiler, build_in, find_compiler, is_gcc, known_compiler
from backend_c.native.unit_objects import headers_read
from backend_c.pipeline import lowered
from backend_c.probe.questions import questions
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from fuzz.compilers.quick_compilers import thorough
from hlo.errors import ArgumentError, CompilerWarning, ToolchainError

_SOURCE = {"unit_0.c": "int answer(void) { return 42; }\n"}
_TWICE = """#include "answer.h"
int twice(void);
int twice(void) { return 2 * answer(); }
"""


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return find_compiler(os.environ)


@pytest.fixture(scope="module")
def unoptimised() -> Compiler:
    """The compiler for what is only kept and found again: objects of the runtime take a second of
    it, and several of the one that optimises. Its libraries have no threads."""
    return _serial(thorough(os.environ))


@pytest.fixture(scope="module")
def serial(compiler: Compiler) -> Compiler:
    """The compiler for libraries that nothing is linked with."""
    return _serial(compiler)


def _serial(compiler: Compiler) -> Compiler:
    simd = {"-fopenmp": "-fopenmp-simd"}
    return replace(compiler, flags=tuple(simd.get(flag, flag) for flag in compiler.flags))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return open_cache(tmp_path / "cache")


def test_flags_keep_every_result(compiler: Compiler) -> None:
    assert "-ffp-contract=off" in compiler.flags
    assert not {"-ffast-math", "-Ofast"} & set(compiler.flags)


def test_no_compiler_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"no C compiler.*apt install gcc.*HLO_CC"):
        find_compiler({"PATH": str(tmp_path)})


@pytest.mark.parametrize("command", ["/no/such/compiler", "false", "'unbalanced"])
def test_hlo_cc_must_run(command: str) -> None:
    with pytest.raises(ToolchainError, match="HLO_CC="):
        find_compiler({"PATH": os.environ["PATH"], "HLO_CC": command})


def test_hlo_cc_may_have_arguments(compiler: Compiler) -> None:
    found = find_compiler({"PATH": os.environ["PATH"], "HLO_CC": f"{compiler.command[0]} -g"})
    assert found.command == (compiler.command[0], "-g")


def test_unaccepted_flags_are_left_out(tmp_path: Path) -> None:
    script = tmp_path / "cc"
    script.write_text('#!/bin/sh\ncase "$*" in *-fopenmp*) exit 1;; esac\nexit 0\n')
    script.chmod(0o755)
    found = find_compiler({"PATH": os.environ["PATH"], "HLO_CC": str(script)})
    assert "-fopenmp" not in found.flags
    assert "-march=native" in found.flags


def _counting(directory: Path, compiler: Compiler) -> tuple[Path, Path]:
    """Write a script that notes each start of the compiler; return it and the file of starts."""
    script, starts = directory / "counting", directory / "starts"
    script.write_text(f'#!/bin/sh\necho >> {starts}\nexec {compiler.command[0]} "$@"\n', "utf-8")
    script.chmod(0o755)
    return script, starts


def test_a_compiler_that_takes_all_flags_is_started_twice(
    tmp_path: Path, compiler: Compiler
) -> None:
    """A compiler is started once for its version and once for all flags together; if it does not
    take all, more often."""
    script, starts = _counting(tmp_path, compiler)
    environ = {"PATH": os.environ["PATH"], "HLO_CC": f"{script} {' '.join(compiler.command[1:])}"}
    assert find_compiler(environ).flags == compiler.flags
    assert len(starts.read_text().splitlines()) == 2


def test_what_is_cached_starts_no_process(
    tmp_path: Path, compiler: Compiler, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cached program starts no process: not to find the compiler, to ask it questions, or to
    build."""
    few = tuple(questions())[:3]
    monkeypatch.setattr("backend_c.probe.verdict.questions", lambda: few)
    script, starts = _counting(tmp_path, compiler)
    monkeypatch.setenv("HLO_CC", str(script))
    module = hlo.parse("HloModule m\nENTRY e { x = s32[2] parameter(0)\n ROOT y = s32[2] not(x) }")

    def compiled() -> list[int]:
        with warnings.catch_warnings(action="ignore", category=CompilerWarning):
            executable = backend_c.compile(module, cache=cache.directory)
        result: list[int] = executable(np.array([0, 5], np.int32)).tolist()
        return result

    assert compiled() == [-1, -6]
    assert starts.exists()
    starts.unlink()
    assert compiled() == [-1, -6]
    assert not starts.exists()


def test_a_changed_compiler_is_asked_again(
    tmp_path: Path, compiler: Compiler, cache: Cache
) -> None:
    script, starts = _counting(tmp_path, compiler)
    environ = {"PATH": os.environ["PATH"], "HLO_CC": f"{script} -g"}
    found = known_compiler(environ, cache)
    assert found == find_compiler(environ)
    starts.unlink()
    assert known_compiler(environ, cache) == found
    assert not starts.exists()
    script.write_text(script.read_text().replace('"$@"', '"$@" '), "utf-8")
    assert known_compiler(environ, cache) == found
    assert starts.exists()
    starts.unlink()
    assert known_compiler({**environ, "HLO_CC": str(script)}, cache).command == (str(script),)
    assert starts.exists()


def test_a_compiler_is_found_where_no_note_can_be_kept(compiler: Compiler, cache: Cache) -> None:
    gone = Cache(cache.directory / "gone")
    assert known_compiler(os.environ, gone) == compiler


_REAL = {
    "unit_0.c": '#include "hlo_kernels.h"\nfloat f(float x);\nfloat f(float x) { return -x; }\n'
}


def test_headers_are_read_once(serial: Compiler, cache: Cache) -> None:
    """Headers are precompiled once, by GCC, and give the same library as their text does."""
    library = build(_REAL, serial, cache)
    kept = [path.suffix for path in cache.directory.iterdir()]
    assert kept.count(".gch") == is_gcc(serial)
    with workspace(cache) as directory:
        assert build_in(directory, _REAL, serial).read_bytes() == library.read_bytes()


def test_damaged_headers_are_read_again(compiler: Compiler, cache: Cache) -> None:
    build(_REAL, compiler, cache)
    for path in cache.directory.glob("*.gch"):
        path.write_bytes(path.read_bytes()[:-100])
        headers_read.cache_clear()  # as in another process
        build({**_REAL, "other.h": ""}, compiler, cache)
        told = path.with_suffix(".sha256").read_text().strip()
        assert hashlib.sha256(path.read_bytes()).hexdigest() == told
        path.unlink()  # it goes while this process counts on it
        build({**_REAL, "another.h": ""}, compiler, cache)


def _transposing(element_bytes: int) -> dict[str, str]:
    call = f"hlo_transpose_{element_bytes}(from, 3, to, 2, 2, 3, 0)"
    head = "void f(const void *from, void *to)"
    body = f"{head};\n{head} {{ {call}; }}\n"
    return {"unit_0.c": f'#include "hlo_kernels.h"\n#include "hlo_transpose.h"\n{body}'}


def _transposed(library: Path, dtype: str) -> list[list[int]]:
    matrix, result = np.arange(6, dtype=dtype).reshape(2, 3), np.zeros((3, 2), dtype)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (matrix, result)]
    ctypes.CDLL(str(library)).f(*pointers)
    return [list(map(int, row)) for row in result]


def test_procedures_of_the_runtime_are_compiled_once(unoptimised: Compiler, cache: Cache) -> None:
    """Procedures of the runtime are compiled once, and again when their object is missing or
    damaged."""
    expected = [[0, 3], [1, 4], [2, 5]]
    assert _transposed(build(_transposing(4), unoptimised, cache), "int32") == expected
    (kept,) = cache.directory.glob("*.o")
    written = kept.stat().st_ino
    assert _transposed(build(_transposing(8), unoptimised, cache), "int64") == expected
    assert kept.stat().st_ino == written
    kept.write_bytes(kept.read_bytes()[:-100])
    assert _transposed(build(_transposing(2), unoptimised, cache), "int16") == expected
    kept.unlink()
    assert _transposed(build(_transposing(1), unoptimised, cache), "int8") == expected
    assert kept.exists()


def test_exact_sums_are_compiled_once(unoptimised: Compiler, cache: Cache) -> None:
    """A dot and a sum in superaccumulators have neither tile nor accumulator of their own."""
    dot = "ROOT r = f32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    given = "a = f32[64,96] parameter(0) b = f32[96,64] parameter(1)"
    text = f"HloModule m\nENTRY e {{ {given} {dot} }}"
    sources = render_plan(lowered(hlo.parse(text), Settings()), OPENMP).sources
    assert linked_headers(sources) == ["hlo_accumulator.h", "hlo_tile_vector.h"]
    build(sources, unoptimised, cache)
    objects = {path.stat().st_ino for path in cache.directory.glob("*.o")}
    assert len(objects) == 2
    build({**sources, "other.h": ""}, unoptimised, cache)
    assert {path.stat().st_ino for path in cache.directory.glob("*.o")} == objects


def test_builds_once(serial: Compiler, cache: Cache) -> None:
    first = build(_SOURCE, serial, cache)
    written = first.stat().st_ino
    assert build(_SOURCE, serial, cache) == first
    assert first.stat().st_ino == written
    assert sorted(p.suffix for p in cache.directory.iterdir()) == [".sha256", ".so"]


def test_name_depends_on_everything(compiler: Compiler, cache: Cache) -> None:
    other_source = {"unit_0.c": "int answer(void) { return 43; }\n"}
    paths = {
        build(_SOURCE, compiler, cache),
        build(other_source, compiler, cache),
        build(_SOURCE, replace(compiler, version="another"), cache),
        build(_SOURCE, replace(compiler, flags=(*compiler.flags, "-g")), cache),
    }
    assert len(paths) == 4


def test_several_units_link(compiler: Compiler, cache: Cache) -> None:
    sources = {
        "answer.h": "int answer(void);\n",
        "unit_0.c": '#include "answer.h"\nint answer(void) { return 42; }\n',
        "unit_1.c": _TWICE,
    }
    assert build(sources, compiler, cache).exists()


def test_compiler_errors_are_shown(compiler: Compiler, cache: Cache) -> None:
    with pytest.raises(ToolchainError, match=r"unit_0.c:1:.*error"):
        build({"unit_0.c": "int answer(void) { return forty_two; }\n"}, compiler, cache)
    assert list(cache.directory.iterdir()) == []


def test_a_warning_does_not_refuse_a_program(compiler: Compiler, cache: Cache) -> None:
    """An unused variable in generated C refused the programs of users."""
    source = "int f(void) {\n  const int i = 1;\n  return 7;\n}\n"
    with pytest.warns(CompilerWarning, match=r"(?s)unused variable.*please report"):
        path = build({"unit_0.c": source}, compiler, cache)
    assert ctypes.CDLL(str(path)).f() == 7
    with pytest.raises(ToolchainError, match="undeclared"):
        build({"unit_0.c": source.replace("7", "seven")}, compiler, cache)


@pytest.mark.parametrize("damage", [b"", b"not a library"])
def test_damaged_libraries_are_built_again(compiler: Compiler, cache: Cache, damage: bytes) -> None:
    path = build(_SOURCE, compiler, cache)
    whole = path.read_bytes()
    path.write_bytes(damage)
    assert build(_SOURCE, compiler, cache).read_bytes() == whole


def test_links_in_the_cache_are_not_followed(compiler: Compiler, cache: Cache) -> None:
    path = build(_SOURCE, compiler, cache)
    moved = path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(moved)
    assert not build(_SOURCE, compiler, cache).is_symlink()


def test_cache_is_bounded(compiler: Compiler, cache: Cache) -> None:
    small = Cache(cache.directory, maximum_bytes=1)
    first = build(_SOURCE, compiler, small)
    second = build({"unit_0.c": "int answer(void) { return 1; }\n"}, compiler, small)
    assert not first.exists()
    assert sorted(small.directory.iterdir()) == sorted([second, second.with_suffix(".sha256")])


def test_cache_is_listed_now_and_then(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never larger than it may be, though most of what is added is not looked at."""
    small = Cache(cache.directory, maximum_bytes=1000)
    looks: list[Path] = []
    look = cache_module._shrunk
    monkeypatch.setattr(cache_module, "_shrunk", lambda *of: looks.append(of[1]) or look(*of))
    for number in range(300):
        with workspace(small) as directory:
            made = Path(directory) / "library.so"
            made.write_bytes(bytes(10))
            newest = publish(small, f"library-{number}", made)
        assert newest.exists()
        assert sum(p.stat().st_size for p in small.directory.glob("*.so")) <= 1000
    assert 0 < len(looks) < 150 and not (small.directory / "library-0.so").exists()


def test_workspaces_of_killed_processes_are_removed(compiler: Compiler, cache: Cache) -> None:
    small = Cache(cache.directory, maximum_bytes=1)
    abandoned, in_use = (
        Path(tempfile.mkdtemp(prefix="building-", dir=small.directory)) for _ in "ab"
    )
    (abandoned / "unit_0.c").touch()
    os.utime(abandoned, (0, time.time() - 2 * 24 * 3600))
    build(_SOURCE, compiler, small)
    assert in_use.exists() and not abandoned.exists()


def test_cache_is_closed_to_others(cache: Cache) -> None:
    assert stat.S_IMODE(cache.directory.stat().st_mode) == 0o700
    cache.directory.chmod(0o755)
    with pytest.raises(ToolchainError, match="chmod 700"):
        open_cache(cache.directory)


def test_cache_must_be_a_directory_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "link", tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ToolchainError, match="cannot use the cache directory"):
            open_cache(directory)


def test_cache_may_be_named_by_a_string(tmp_path: Path) -> None:
    """Callers of compile write cache="directory" as readily as a Path."""
    assert open_cache(str(tmp_path / "named")) == Cache(tmp_path / "named")
    text = "HloModule m\nENTRY e { x = s32[] parameter(0)\n ROOT y = s32[] negate(x) }"
    executable = backend_c.compile(hlo.parse(text), cache=str(default_directory(os.environ)))
    assert executable(np.int32(3)) == -3


def test_cache_must_be_named_by_a_path() -> None:
    with pytest.raises(ArgumentError, match="path of a directory, not int"):
        open_cache(3)  # type: ignore[arg-type]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_foreign_caches_are_refused(cache: Cache) -> None:
    os.chown(cache.directory, 12345, -1)
    with pytest.raises(ToolchainError, match="belongs to user 12345"):
        open_cache(cache.directory)


def test_unwritable_cache(compiler: Compiler, cache: Cache) -> None:
    cache.directory.rmdir()  # as good as read-only, for root too
    with pytest.raises(ToolchainError, match="name a directory of your own"):
        build(_SOURCE, compiler, cache)


def test_default_directory() -> None:
    assert default_directory({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == Path("/x/hlo-oracle")
    assert default_directory({"HOME": "/h"}) == Path("/h/.cache/hlo-oracle")
    assert default_directory({"XDG_CACHE_HOME": "relative", "HOME": "/h"}).is_absolute()


def test_the_default_directory_is_never_relative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries are loaded from there, so it must not follow the current directory."""
    own = Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".cache" / "hlo-oracle"
    for home in ({}, {"HOME": ""}, {"HOME": "relative"}, {"HOME": "~"}):
        for caches in ({}, {"XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "relative"}):
            assert default_directory({**home, **caches}) == own

    def missing(number: int) -> object:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", missing)
    with pytest.raises(ToolchainError, match="set HOME or XDG_CACHE_HOME"):
        default_directory({"HOME": ""})

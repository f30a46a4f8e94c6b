"""Check that some configurations of compilers give the same bits, and that every detector finds a
planted bug."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from conftest import TESTS

import hlo
import interp
from fuzz.compilers.configurations import Configuration, configurations
from fuzz.compilers.processors import refusal
from fuzz.compilers.source_digests import digest, elsewhere
from fuzz.compilers.trial import Outcome, Trial, ran, written
from fuzz.draw.seeded_programs import programs
from hlo.bit_equality import differences
from hlo_oracle.arguments import from_seed
from selftest.compiler_matrix import main
from selftest.compiler_rows import Batch, Row, compared, tried

REGRESSIONS = sorted((TESTS / "regressions").glob("*.hlo"))
BRIEFLY = (
    "gcc -O0 SSE2", "gcc -O3 native", "gcc -O0 embedded C99", "gcc ASan + UBSan, openmp",
    "gcc TSan", "clang, as shipped", "clang MSan", "tcc, small grain",
    "gcc -O3 znver3", "gcc -O3 haswell, no OpenMP", "clang -O3 icelake-server",
    "aarch64-linux-gnu-gcc, qemu-aarch64",
)  # fmt: skip
_GATHERS = ("bytes_of_floats", "elements_repeated_in_a_row")
_PROGRAM = """
HloModule planted
ENTRY main {
  x = s32[40,25] parameter(0)
  turned = s32[25,40] transpose(x), dimensions={1,0}
  back = s32[1000] reshape(turned)
  y = s32[1000] parameter(1)
  ROOT sum = s32[1000] add(back, y)
}
"""
_TWO_KERNELS = """
HloModule planted
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY main {
  x = f32[100] parameter(0)
  sorted = f32[100] sort(x), dimensions={0}, to_apply=less
  ROOT twice = f32[100] add(sorted, sorted)
}
"""
_ALWAYS_TRUE = """
HloModule always_true
ENTRY main {
  p = pred[3] parameter(0)
  u = u8[3] parameter(1)
  s = s32[3] parameter(2)
  yes = pred[3] constant({true, true, true})
  least = u8[3] constant({0, 0, 0})
  most = u8[3] constant({255, 255, 255})
  mask = s32[3] constant({8, 8, 8})
  four = s32[3] constant({4, 4, 4})
  two = s32[3] constant({2, 2, 2})
  or = pred[3] or(p, yes)
  any = pred[3] add(yes, p)
  implied = pred[3] compare(p, yes), direction=LE
  not_less = pred[3] compare(u, least), direction=GE
  more = pred[3] compare(most, u), direction=LT
  itself = pred[3] compare(s, s), direction=EQ
  masked = s32[3] and(s, mask)
  bits = pred[3] compare(masked, four), direction=EQ
  power = s32[3] xor(two, s)
  ROOT all = (pred[3], pred[3], pred[3], pred[3], pred[3], pred[3], pred[3], s32[3])
    tuple(or, any, implied, not_less, more, itself, bits, power)
}
"""


@cache
def present() -> dict[str, Configuration]:
    return {c.name: c for c in configurations(os.environ) if isinstance(c, Configuration)}


def needed(name: str) -> Configuration:
    if name not in present():
        pytest.skip(f"no {name} on this machine")
    return present()[name]


def trial(text: str, *arguments: np.ndarray) -> Trial:
    module = hlo.parse(text)
    return Trial("planted", module, arguments, interp.evaluate(module, *arguments))


def planted(
    one: Trial, configuration: Configuration, directory: Path, spoil: Callable[[str], str]
) -> Outcome:
    """Run a program whose C was changed."""
    sources = written(one, configuration, directory)
    unit, text = next(iter(sources.units.items()))
    changed = spoil(text)
    assert changed != text, text[text.index("static void kernel") :]
    units = {**sources.units, unit: changed}
    return ran(one, configuration, directory, sources._replace(units=units))


@pytest.fixture(scope="module")
def drawn() -> tuple[Batch, Trial]:
    parts = [(f"drawn {n}", *program) for n, program in enumerate(islice(programs(17), 4))]
    batch = Batch(tuple(parts))
    return batch, batch.trial()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BRIEFLY)
def test_the_same_bits(name: str, drawn: tuple[Batch, Trial]) -> None:
    row = Row(name)
    tried(*drawn, needed(name), row)
    assert not row.wrong
    assert row.modules == len(drawn[0].parts)
    assert row.elements


def test_a_processor_without_what_code_needs_is_left_out(tmp_path: Path) -> None:
    """A processor is refused for instructions that the compiler uses by itself (XOP, AVX512-FP16),
    not for those that it is asked for by name (SSE4A, AES)."""
    compiler = tmp_path / "cc"
    macros = "#define __SSE4A__ 1\n#define __AES__ 1\n#define {} 1\n"
    for macro, why_not in (("__linux__", ""), ("__XOP__", "xop"), ("__AVX512FP16__", "fp16")):
        compiler.write_text(f"#!/bin/sh\ncat << END\n{macros.format(macro)}END\n")
        compiler.chmod(0o755)
        found = refusal([str(compiler)], "any", features=frozenset(("avx2", "fma")))
        assert why_not in found and bool(found) == bool(why_not)
    compiler.write_text("#!/bin/sh\nexit 1\n")
    assert refusal([str(compiler)], "any") == "cc does not know -march=any"


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("clang MSan", "topk_of_fewer_than_k"),
        ("clang -O0 AVX2", "xor_of_constants"),
        ("gcc -O0 embedded C99", "select_of_the_lesser_pred"),
        ("gcc -O3 AVX2 embedded C99", "masked_rows_beside_a_computed_place"),
        ("gcc ASan + UBSan, openmp", "ragged_dot_without_groups"),
    ],
)
def test_a_regression_that_one_configuration_shows(name: str, stem: str) -> None:
    module = hlo.parse((TESTS / "regressions" / f"{stem}.hlo").read_text())
    row = Row(name)
    one = Batch(((stem, module, from_seed(module, 0)),))
    tried(one, one.trial(), needed(name), row)
    assert row.modules == 1 and not row.wrong


@pytest.mark.parametrize("processor", ["haswell", "skylake", "znver3"])
def test_regressions_on_processors_with_gathers(processor: str) -> None:
    """gcc 12.2 made wrong AVX2 gathers at these flags; at -march=x86-64-v3 it makes none."""
    row = Row(processor)
    modules = {path.stem: hlo.parse(path.read_text()) for path in REGRESSIONS}
    parts = [(stem, modules[stem], from_seed(modules[stem], 0)) for stem in _GATHERS]
    batch = Batch(tuple(parts))
    tried(batch, batch.trial(), needed(f"gcc -O3 {processor}"), row)
    assert not row.wrong
    assert row.modules == len(_GATHERS)


@pytest.mark.parametrize(
    "name",
    [
        *("gcc, no passes", "gcc -O0 embedded C99", "gcc -O3 embedded C99"),
        *("clang, no passes", "clang -O0 embedded C99", "clang -O3 embedded C99"),
        *("tcc, no passes", "tcc -O0 embedded C99"),
    ],
)
def test_compilers_do_not_mind_what_is_always_true(name: str) -> None:
    given = np.array([True, False, True]), np.arange(3, dtype=np.uint8), np.arange(3, dtype="i4")
    found, difference, _ = compared(trial(_ALWAYS_TRUE, *given), needed(name))
    assert not found.finding and not difference


@pytest.mark.parametrize("compiler", ["gcc", "clang", "tcc"])
def test_a_result_without_arrays(compiler: str) -> None:
    one = trial("HloModule m\nENTRY e {\n  ROOT t = token[] after-all()\n}")
    found, difference, _ = compared(one, needed(f"{compiler} -O0 embedded C99"))
    assert not found.finding and not difference


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    name = needed("gcc -O0 SSE2").name
    words = ["--modules", "0", "--only", name, "--markdown", str(REGRESSIONS[0])]
    assert main(words) == 0
    assert "| 1 |" in capsys.readouterr().out


def test_what_differs_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A difference that the oracle does not see when it reduces is kept as it is: here every
    comparison reports another bit."""
    name = needed("gcc -O0 SSE2").name
    monkeypatch.setattr("selftest.compiler_rows.unequal", lambda *_: "1 threads: another bit")
    words = ["--modules", "0", "--only", name, "--state", str(tmp_path / "state"), "--json"]
    assert main([*words, "--keep", str(tmp_path / "kept"), str(REGRESSIONS[0])]) == 1
    told = json.loads(capsys.readouterr().out)
    (row,) = (row for row in told["rows"] if row["name"] == name)
    assert (row["modules"], row["differing"], row["findings"]) == (1, 1, 0)
    (found,) = told["findings"]
    assert found["kind"] == f"{name}: other bits" and found["oracle"] == f"configurations: {name}"
    (state,) = (tmp_path / "state").glob("findings/*/reduced.hlo")
    assert hlo.parse(state.read_text()) == hlo.parse(REGRESSIONS[0].read_text())
    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.read_text().startswith(f"// {REGRESSIONS[0].name}: 1 threads: another bit\n")


def test_the_same_text_in_other_processes(tmp_path: Path) -> None:
    modules = [hlo.parse(path.read_text()) for path in REGRESSIONS[::48]]
    own = [digest(module) for module in modules]
    assert elsewhere(modules, tmp_path) == [own, own]


# ---- what is planted is found ----


def numbers(count: int, most: int = 100) -> np.ndarray:
    return np.random.default_rng(0).integers(-most, most, count).astype(np.int32)


def test_a_race(tmp_path: Path) -> None:
    one = trial(_PROGRAM, numbers(1000).reshape(40, 25), numbers(1000))
    configuration = needed("gcc TSan")
    found = planted(one, configuration, tmp_path, lambda text: text.replace("r0[i", "r0[0 * i"))
    assert "data race" in found.finding


def test_a_write_beyond_a_result(tmp_path: Path) -> None:
    one = trial(_PROGRAM, numbers(1000).reshape(40, 25), numbers(1000))
    configuration = needed("gcc ASan + UBSan, openmp")
    found = planted(one, configuration, tmp_path, lambda text: text.replace("r0[i", "r0[1 + i"))
    assert "heap-buffer-overflow" in found.finding


def test_a_write_between_two_buffers(tmp_path: Path) -> None:
    one = trial(_TWO_KERNELS, numbers(100).astype(np.float32))
    configuration = needed("gcc ASan + UBSan, openmp")
    found = planted(one, configuration, tmp_path, lambda text: text.replace("r0[", "r0[1 + ", 1))
    assert "use-after-poison" in found.finding


def test_a_signed_overflow(tmp_path: Path) -> None:
    one = trial(_PROGRAM, numbers(1000, 2**31).reshape(40, 25), numbers(1000, 2**31))
    configuration = needed("gcc ASan + UBSan, openmp")
    found = planted(
        one, configuration, tmp_path,
        lambda text: text.replace("hlo_add_s32(", "PLUS(").replace(
            "typedef _Bool", "#define PLUS(a, b) ((a) + (b))\ntypedef _Bool"
        ),
    )  # fmt: skip
    assert "signed integer overflow" in found.finding


@pytest.mark.parametrize("name", ["clang MSan", "gcc -O0 SSE2"])
def test_a_read_of_what_nobody_wrote(name: str, tmp_path: Path) -> None:
    """Found by the sanitizer; without it by what differs from run to run."""
    one = trial(_TWO_KERNELS, numbers(100).astype(np.float32))
    configuration = needed(name)

    def spoil(text: str) -> str:
        head, tail = text.split("    kernel_0(", 1)
        return f"{head}    (void)kernel_0, (void)arguments;{tail[tail.index(';') + 1 :]}"

    found = planted(one, configuration, tmp_path, spoil)
    if configuration.is_sanitizer:
        assert "uninitialized" in found.finding
    else:
        assert any(differences(one.expected, value) for value in found.values)


def test_another_bit_is_seen() -> None:
    one = trial(_PROGRAM, numbers(1000).reshape(40, 25), numbers(1000))
    wrong = one.expected.copy()
    wrong[7] ^= 1
    other = Trial(one.name, one.module, one.arguments, wrong)
    for name in ("gcc -O0 SSE2", "gcc -O0 embedded C99"):
        found, difference, _ = compared(other, needed(name))
        assert found.finding == "result 0 differs" or "first at [7]" in difference

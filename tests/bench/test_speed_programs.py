"""The programs of the benchmark: which are found, what work they are, of which class."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import CORPUS, ROOT

import hlo
from bench.speed import catalogue
from bench.speed.kinds import IRREGULAR, KINDS, MEMORY, PRODUCTS, SMALL, kind
from bench.speed.work import work
from hlo.errors import Error
from hlo.program_file import read

FOUND = {program.name: program for program in catalogue.found([])}


def test_every_program_of_the_corpus_is_found_once() -> None:
    before = {path.name.split(".")[0] for path in CORPUS.glob("*/*.before_optimizations.txt")}
    others = {path.stem for path in (ROOT / "bench" / "programs").glob("*.hlo")}
    assert set(FOUND) == before | others
    assert not before & others
    assert not [p for p in FOUND.values() if "after_optimizations" in p.path]


def test_files_that_are_named_are_found(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.hlo").write_text("HloModule same\n")
    found = catalogue.found([tmp_path / "one" / "same.hlo", tmp_path / "two"])
    assert [program.name for program in found] == ["one/same.hlo", "two/same.hlo"]
    assert {program.recipe for program in found} == {None}


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    """A missing file is an error before anything is measured, with the message of the `hlo`
    commands."""
    with pytest.raises(Error, match=r"nofile\.hlo: there is no such file"):
        catalogue.found([tmp_path / "nofile.hlo"])


def test_programs_of_jax_have_recipes() -> None:
    for program in FOUND.values():
        is_tensorflow = "tensorflow" in program.path
        assert (program.recipe is None) == is_tensorflow, program.name


def test_recipes_are_those_of_the_programs() -> None:
    directory = ROOT / "bench" / "programs"
    recipes = json.loads((directory / "arguments.json").read_text())
    assert set(recipes) == {path.stem for path in directory.glob("*.hlo")}
    for name, recipe in recipes.items():
        module = read(directory / f"{name}.hlo")
        given = [dims for _, dims, *_ in recipe["arguments"]]
        assert given == [[*p.shape.dims] for p in module.entry.parameters], name


@pytest.mark.parametrize("name", FOUND)
def test_class_is_one_of_the_table(name: str) -> None:
    assert kind(work(read(Path(FOUND[name].path)))) in KINDS


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("linrelu_512", PRODUCTS),
        ("conv3x3_14_256", PRODUCTS),
        ("attention", PRODUCTS),
        ("softmax", MEMORY),
        ("transpose2d", MEMORY),
        ("layer_norm_bf16", MEMORY),
        ("cross_entropy", MEMORY),
        ("threefry_normal_1m", MEMORY),
        ("mlp_dropout", PRODUCTS),
        ("embed_gather", IRREGULAR),
        ("embed_scatter_add", IRREGULAR),
        ("segment_sum", IRREGULAR),
        ("top_k", IRREGULAR),
        ("depthwise_3x3", IRREGULAR),
        ("matmul_8x8", MEMORY),
        ("sort_1m", IRREGULAR),
        ("nbody_2048", IRREGULAR),
        ("sin100_1m", IRREGULAR),
        ("scalar_tiny", SMALL),
        ("scan_rows_4096", SMALL),
        ("lstm_256", SMALL),
        ("logistic_map", SMALL),
        ("dots_of_a_batch", MEMORY),
        ("group_norm", MEMORY),
        ("conv_int8", PRODUCTS),
    ],
)
def test_class(name: str, expected: str) -> None:
    assert kind(work(read(Path(FOUND[name].path)))) == expected


def test_work_of_a_product() -> None:
    module = hlo.parse("""HloModule product
ENTRY main { x = f32[16,32] parameter(0)
  y = f32[32,64] parameter(1)
  ROOT z = f32[16,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
""")
    found = work(module)
    assert (found.read, found.written) == (4 * (16 * 32 + 32 * 64), 4 * 16 * 64)
    assert found.operations == {"f32": 2 * 16 * 32 * 64}
    assert found.products == 2 * 16 * 32 * 64


def test_work_of_what_is_only_indexed() -> None:
    module = hlo.parse("""HloModule row
ENTRY main { table = f32[1000,8] parameter(0)
  i = s32[] parameter(1)
  zero = s32[] constant(0)
  ROOT row = f32[1,8] dynamic-slice(table, i, zero), dynamic_slice_sizes={1,8} }
""")
    assert work(module).read == 4 * 8 + 4


@pytest.mark.parametrize("trips", [1, 7, 4096])
def test_work_of_a_loop_counts_its_trips(trips: int) -> None:
    module = hlo.parse(f"""HloModule loop
body {{ s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] add(x, x)
  ROOT t = (s32[], f32[8]) tuple(next, y) }}
condition {{ s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT less = pred[] compare(i, n), direction=LT }}
ENTRY main {{ zero = s32[] constant(0)
  x = f32[8] parameter(0)
  s = (s32[], f32[8]) tuple(zero, x)
  t = (s32[], f32[8]) while(s), condition=condition, body=body
  ROOT y = f32[8] get-tuple-element(t), index=1 }}
""")
    assert work(module).operations == {"f32": 8 * trips}

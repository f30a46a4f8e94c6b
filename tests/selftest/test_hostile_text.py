"""Hostile texts: a module or a typed error, in time; and absurd modules that verify, run."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, has_c_compiler
from cost import cost

import backend_c
import hlo
import interp
from fuzz.draw.text_mutations import LARGEST, Sources, drawn, mutations, pieces, sources
from hlo_oracle.arguments import from_seed
from selftest.hostile_text import main, read, read_all, slowest

EXAMPLES = ROOT / "examples"
ADD = """add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
"""


def entry(*lines: str, callees: str = "", header: str = "") -> str:
    body = "\n  ".join(("a = f32[2] parameter(0)", "s = f32[] parameter(1)", *lines))
    return f"HloModule m{header}\n{callees}ENTRY e {{\n  {body}\n}}\n"


# One text after the other


def mutated(count: int, seed: int) -> Sources:
    texts = [path.read_text() for path in sorted(EXAMPLES.glob("*.hlo"))]
    return sources([*texts, *drawn(count, seed)])


def test_mutations_give_a_module_or_a_typed_error() -> None:
    found = read_all(enumerate(mutations(mutated(20, 0), 0, range(500))))
    assert found.suspects == []
    outcomes = found.tallies["outcomes"]
    assert outcomes["module"] > 10 and outcomes["VerifyError"] > 20
    assert 0 < slowest(found, 0.5) <= slowest(found, 0.99)


def test_the_same_number_is_the_same_text() -> None:
    texts = mutated(20, 3)
    one, two = list(mutations(texts, 1, range(20))), list(mutations(texts, 1, range(10, 20)))
    assert one[10:] == two and len(set(one)) > 15
    assert drawn(5, 1) == drawn(5, 1) != drawn(5, 2)


def test_long_texts_are_read_in_pieces() -> None:
    text = "HloModule m\n" + "x" * 50 + "\n" * 3 + ("y" * 99 + "\n") * 1000
    found = pieces(text)
    assert len(found) == 6 and all(piece.startswith("HloModule m\n") for piece in found)
    assert all(len(piece) < LARGEST + 200 for piece in found)
    assert "".join(piece.removeprefix("HloModule m\n") for piece in found) == text[12:]


def test_a_defect_is_found_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(text: str) -> hlo.Module:
        raise KeyError("oops")

    monkeypatch.setattr(hlo, "parse", broken)
    arguments = ["--count", "5", "--drawn", "1", "--workers", "0", "--state", str(tmp_path / "s")]
    assert main([str(EXAMPLES), *arguments, "--keep", str(tmp_path / "kept")]) == 1
    assert "KeyError: 'oops'" in capsys.readouterr().out
    assert len(list((tmp_path / "kept").iterdir())) == 5


def test_a_text_with_a_defect_is_reduced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = hlo.parse

    def broken(text: str) -> hlo.Module:
        return right({}[text] if "multiply" in text and "add" in text else text)

    monkeypatch.setattr(hlo, "parse", broken)
    arguments = ["--count", "40", "--workers", "0", "--state", str(tmp_path), "--json"]
    assert main([str(EXAMPLES), *arguments]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found["kind"] == "defect: KeyError in test_hostile_text.py:broken"
    assert found["times"] > 1 and found["characters"] == len("multiplyadd")
    (text,) = (path.read_text() for path in tmp_path.glob("findings/*/reduced.txt"))
    assert sorted(text) == sorted("multiplyadd")
    (original,) = (path.read_text() for path in tmp_path.glob("findings/*/original.txt"))
    assert "multiply" in original and len(original) > 100


def test_workers_have_processes_and_limits_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    limit = resource.getrlimit(resource.RLIMIT_AS)
    assert main([str(EXAMPLES), "--count", "20", "--drawn", "1", "--workers", "2"]) == 0
    assert resource.getrlimit(resource.RLIMIT_AS) == limit
    assert capsys.readouterr().out.startswith("20 texts: ")


# Texts that were chosen


CALLS = "".join(
    f"f{n} {{ x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f{n - 1} }}\n"
    for n in range(1, 500)
)
LEAF = "f0 { x = f32[] parameter(0)\n  ROOT y = f32[] negate(x) }\n"
CHOSEN = {
    "nothing": ("", "ParseError"),
    "no instruction": ("HloModule m\nENTRY e { }", "ParseError"),
    "a NUL": ("HloModule m\0", "ParseError"),
    "a lone surrogate": ("HloModule \udc80", "ParseError"),
    "a deep tuple shape": (entry("r = " + "(" * 9000 + ")" * 9000 + " tuple()"), "ParseError"),
    "a deep sharding": (entry("r = f32[2] add(a, a), sharding=" + "{" * 9000), "ParseError"),
    "a deep constant": (entry("r = f32[1] constant(" + "{" * 9000 + "1" + "}" * 9000 + ")"),
                        "ParseError"),
    "deep nested operands": (entry("r = f32[] " + "negate(" * 3000 + "s" + ")" * 3000),
                             "ParseError"),
    "a call of itself": (entry(callees="f { x = f32[] parameter(0)\n  ROOT y = f32[] call(x),"
                                       " to_apply=f }\n"), "ParseError"),
    "calls in a circle": (entry(callees="f { x = f32[] parameter(0)\n  ROOT y = f32[] call(x),"
                                        " to_apply=g }\n" + LEAF.replace("f0", "g")),
                          "ParseError"),
    "calls of calls of calls": (entry(callees=LEAF + CALLS), "VerifyError"),
    "an operand of itself": (entry("r = f32[2] add(r, r)"), "ParseError"),
    "more elements than 64 bits": (entry("r = f32[4294967296,4294967296] broadcast(s),"
                                         " dimensions={}"), "ParseError"),
    "more bytes than 64 bits": (entry("r = f64[4611686018427387904] broadcast(s),"
                                      " dimensions={}"), "VerifyError"),
    "more than 64 dimensions": (entry(f"r = f32[{'1,' * 99}1] broadcast(s), dimensions={{}}"),
                                "VerifyError"),
    "a constant of more than 64 dimensions": (
        entry(f"r = f32[{'1,' * 99}1] constant({'{' * 100}1{'}' * 100})"), "ParseError"),
    "a huge constant": (entry("r = f32[1000000000000] constant({1,2})"), "ParseError"),
    "a constant of nothing": (entry("r = u8[2,2] constant()"), "ParseError"),
    "a number in a constant without elements": (entry("r = pred[0,1] constant({{1}})"),
                                                "ParseError"),
    "a row of a constant without elements": (entry("r = f32[2,0,1] constant({{{1}},{}})"),
                                             "ParseError"),
    "a constant of nothing, but huge": (entry("r = s32[0,9223372036854775807] constant({})"),
                                        "ParseError"),
    "a huge elided constant": (entry("r = f32[1000000000000] constant({...})"), "module"),
    "a huge iota": (entry("r = s32[1000000000000] iota(), iota_dimension=0"), "module"),
    "a huge broadcast": (entry("r = f32[1000000000000] broadcast(s), dimensions={}"), "module"),
    "a constant with a huge exponent": (entry("r = f32[] constant(1e999999999)"), "ParseError"),
    "a constant of many digits": (entry(f"r = f32[] constant({'9' * 15000})"), "ParseError"),
    "an integer of many digits": (entry(f"r = s32[] constant({'9' * 15000})"), "ParseError"),
    "an index of many digits": (entry(f"r = f32[] get-tuple-element(a), index={'9' * 15000}"),
                                "ParseError"),
    "a parameter of many digits": (entry(f"r = f32[] parameter({'9' * 15000})"), "ParseError"),
    "a dimension of many digits": (entry(f"r = f32[{'9' * 15000}] negate(a)"), "ParseError"),
    "huge padding": (entry("r = f32[9] pad(a, s), padding=9223372036854775807_"
                           "9223372036854775807_9223372036854775807"), "VerifyError"),
    "a huge window": (entry("r = f32[0] reduce-window(a, s), to_apply=add, window={size="
                            "9223372036854775807 rhs_dilate=9223372036854775807}", callees=ADD),
                      "module"),
    "a huge stride": (entry("r = f32[1] slice(a), slice={[0:2:9223372036854775807]}"), "module"),
    "many groups": (entry("r = f32[2] all-reduce(a), to_apply=add,"
                          " replica_groups=[1,1000000000]<=[1000000000]", callees=ADD),
                    "VerifyError"),
    "many axes": (entry("r = f32[2] all-reduce(a), to_apply=add, replica_groups=mesh['x'="
                        "1000000000] {'x'}", callees=ADD), "VerifyError"),
    "many dimensions of an iota": (
        entry(f"r = f32[2] all-reduce(a), to_apply=add, replica_groups=[1,1]<=[{'1,' * 5000}1]",
              callees=ADD), "module"),
    "a huge iota of devices": (
        entry("r = f32[2] all-reduce(a), to_apply=add, replica_groups=mesh['x'=2],"
              " device_ids=([999999999,999999999]) {'x'}", callees=ADD), "VerifyError"),
    "a device of many digits": (
        entry("r = f32[2] all-reduce(a), to_apply=add, replica_groups=mesh['x'=1],"
              f" device_ids=({'9' * 30}) {{'x'}}", callees=ADD), "ParseError"),
    "an id of many digits": (
        entry(f"r = f32[2] all-reduce(a), to_apply=add, replica_groups={{{{{'9' * 5000}}}}}",
              callees=ADD), "ParseError"),
    "a pair of many digits": (
        entry(f"r = f32[2] collective-permute(a), source_target_pairs={{{{0,{'9' * 30}}}}}"),
        "ParseError"),
    "many axes of a mesh": (
        entry("r = f32[2] all-reduce(a), to_apply=add, replica_groups=mesh["
              + ",".join(f"'x{n}'=1" for n in range(1500)) + "] {"
              + ",".join(f"'x{n}'" for n in range(1500)) + "}", callees=ADD), "module"),
    "an alias of a huge part": (
        entry("r = f32[2] add(a, a)", header=", input_output_alias={ {999999999}: (0, {}) }"),
        "VerifyError"),
    "a deep layout of the entry": (
        entry("r = f32[2] add(a, a)",
              header=f", entry_computation_layout={{{'(' * 3000}{')' * 3000}->f32[2]}}"),
        "ParseError"),
    "lists for slice sizes": (
        entry("r = f32[2] gather(a, a), offset_dims={0}, collapsed_slice_dims={},"
              " start_index_map={0}, index_vector_dim=0, slice_sizes={{1},{2}}"), "VerifyError"),
    "a comment that ends at the end": (entry("r = f32[2] add(a, a), backend_config={}/**//**/"),
                                       "module"),
    "a number among computations": (
        entry("r = f32[] conditional(s, s), branch_computations={0, {x=1}}"), "ParseError"),
    "an open comment": (entry("r = f32[2] add(a, a) /*"), "ParseError"),
    "an open string": (entry('r = f32[2] add(a, a), metadata={op_name="'), "ParseError"),
    "ranks without number": (entry("r = f32[2] add(a, a)", header=", replica_count=0"),
                             "VerifyError"),
}  # fmt: skip


def read_at_cost(text: str, enough: float) -> tuple[float, set[str]]:
    """Measure the cost of reading a text, in units of the module cost, and the outcomes of the
    calls."""
    outcomes: list[str] = []
    return cost(lambda: outcomes.append(read(text)), enough), set(outcomes)


@pytest.mark.parametrize("name", CHOSEN)
def test_chosen_texts(name: str) -> None:
    text, outcome = CHOSEN[name]
    taken, outcomes = read_at_cost(text, 150)
    assert taken < 150 and outcomes == {outcome}


# Where a pattern that is not careful takes quadratic time: 10,000 characters of the same in each
# place of a text. None takes more than ten units.

PLACES = {
    "all": "%s",
    "name": "HloModule %s",
    "header": "HloModule m, %s\n",
    "layout of the entry": "HloModule m, entry_computation_layout={(%s)->f32[2]}\n",
    "alias": "HloModule m, input_output_alias={%s}\n",
    "donor": "HloModule m, buffer_donor={%s}\n",
    "table": 'HloModule m\nFileNames\n1 "%s\n',
    "signature": "HloModule m\nENTRY e (%s) -> f32[2] {",
    "line": entry("%s"),
    "instruction": entry("%s = f32[2] add(a, a)"),
    "quoted": entry('%%"%s" = f32[2] add(a, a)'),
    "shape": entry("r = %s add(a, a)"),
    "tuple": entry("r = (%s) add(a, a)"),
    "dims": entry("r = f32[%s] add(a, a)"),
    "layout": entry("r = f32[2]{0:%s} add(a, a)"),
    "opcode": entry("r = f32[2] %s(a, a)"),
    "operands": entry("r = f32[2] add(%s)"),
    "operand": entry("r = f32[2] add(f32[2] %s, a)"),
    "tail": entry("r = f32[2] add(a, a), %s"),
    "metadata": entry("r = f32[2] add(a, a), metadata={%s}"),
    "string": entry('r = f32[2] add(a, a), metadata={op_name="%s"}'),
    "config": entry("r = f32[2] add(a, a), backend_config=%s"),
    "sharding": entry("r = f32[2] add(a, a), sharding={%s}"),
    "control": entry("r = f32[2] add(a, a), control-predecessors={%s}"),
    "constant": entry("r = f32[2] constant(%s)"),
    "braces": entry("r = f32[2] constant({%s})"),
    "dimensions": entry("r = f32[2] broadcast(a), dimensions={%s}"),
    "slice": entry("r = f32[2] slice(a), slice={%s}"),
    "padding": entry("r = f32[2] pad(a, s), padding=%s"),
    "window": entry("r = f32[2] reduce-window(a, s), window={size=%s}, to_apply=x"),
    "labels": entry("r = f32[2] convolution(a, a), dim_labels=%s"),
    "groups": entry("r = f32[2] collective-broadcast(a), replica_groups={%s}"),
    "iota of groups": entry("r = f32[2] collective-broadcast(a), replica_groups=[1,2]<=[%s]"),
    "axes of a mesh": entry("r = f32[2] collective-broadcast(a), replica_groups=mesh[%s] {'x'}"),
    "devices of a mesh": entry("r = f32[2] collective-broadcast(a),"
                               " replica_groups=mesh['x'=2], device_ids=(%s) {'x'}"),
    "parts of axes": entry("r = f32[2] collective-broadcast(a), replica_groups=mesh['x'=2] {%s}"),
    "pairs": entry("r = f32[2] collective-permute(a), source_target_pairs={%s}"),
    "aliasing": entry('r = f32[2] custom-call(a), custom_call_target="x",'
                      " output_to_operand_aliasing={%s}"),
    "constraints": entry('r = f32[2] custom-call(a), custom_call_target="x",'
                         " operand_layout_constraints={%s}"),
    "outfeed": entry("r = token[] outfeed(a, a), outfeed_shape=(%s)"),
    "domain": entry("r = f32[2] domain(a), domain={%s}"),
    "sparsity": entry("r = f32[2] convolution(a, a), dim_labels=bf_io->bf, sparsity_config={%s}"),
    "sparse operand": entry("r = f32[2] convolution(a, a), dim_labels=bf_io->bf,"
                            " sparsity_config={lhs={%s}}"),
}  # fmt: skip
UNITS = [
    *("a", "1", "-1,", "9.", "1e", "_", "-", ".", "é", "\n", " ", "\0", "%", ",", "=", "#0", "?"),
    *("(", "[", "{", ")", "]", "}", "()", "[]", "{}", "({[", "'", '"', "\\", '\\"', "''", "\"'"),
    *("/*", "*/", "/**/", "//", "//\n", "/*/", "->", "<=", "f32[", "f32[]", "f32[2] a, ", "a, "),
    *("a=", "a={},", "x=1 ", "mesh['", "{0}: (0, {}),", "1_2x", "[0:1],", "nan(0x", "ROOT ", "s4"),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("place", PLACES)
def test_time_is_linear_in_what_repeats(place: str) -> None:
    slow = []
    for unit in UNITS:
        for end in ("", "["):
            text = PLACES[place] % (unit * (LARGEST // 2 // len(unit)) + end)
            taken, outcomes = read_at_cost(text, 40)
            assert all(outcomes)
            if taken > 40:
                slow.append((unit, end, taken))
    assert not slow


# Modules that verify, of sizes that no machine has

BIG = "1000000000000"
IOTA = f"b = s32[{BIG}] iota(), iota_dimension=0"
ABSURD = {
    "broadcast": entry(f"r = f32[{BIG}] broadcast(s), dimensions={{}}"),
    "iota": entry(f"r = s32[{BIG}] iota(), iota_dimension=0"),
    "pad": entry("r = f32[1000000000002] pad(a, s), padding=0_1000000000000"),
    "dilation": entry("r = f32[1000000000002] pad(a, s), padding=0_0_1000000000000"),
    "concatenate": entry(
        f"b = f32[{BIG}] broadcast(s), dimensions={{}}",
        "r = f32[2000000000000] concatenate(b, b), dimensions={0}",
    ),
    "dot": entry(
        "b = f32[9000000,1] broadcast(s), dimensions={}",
        "r = f32[9000000,9000000] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    ),
    "window": entry(
        f"r = f32[1000000000002] reduce-window(a, s), window={{size=1 pad=0_{BIG}}}, to_apply=add",
        callees=ADD,
    ),
    "fft": entry(
        f"b = f32[{BIG}] broadcast(s), dimensions={{}}",
        f"r = c64[500000000001] fft(b), fft_type=RFFT, fft_length={{{BIG}}}",
    ),
    "rng": entry(
        "w = u64[2] constant({1, 2})",
        f"r = (u64[2], u32[{BIG}]) rng-bit-generator(w), algorithm=rng_default",
    ),
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_sizes_are_typed_errors_in_the_interpreter(name: str) -> None:
    module = hlo.parse(ABSURD[name])
    hlo.verify(module)
    with pytest.raises(hlo.Unsupported, match="memory"):
        interp.evaluate(module, np.zeros(2, np.float32), np.zeros((), np.float32))


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name", ["broadcast", "concatenate", "fft", "rng"])
def test_absurd_sizes_are_typed_errors_in_c(name: str) -> None:
    module = hlo.parse(ABSURD[name])
    with pytest.raises(hlo.Unsupported, match="memory"):
        backend_c.compile(module)(np.zeros(2, np.float32), np.zeros((), np.float32))


def test_what_is_huge_but_not_needed_is_no_error() -> None:
    module = hlo.parse(entry("n = f32[0,1000000,1000000] broadcast(s), dimensions={}"))
    result = interp.evaluate(module, *from_seed(module, 0))
    assert result.shape == (0, 1000000, 1000000)

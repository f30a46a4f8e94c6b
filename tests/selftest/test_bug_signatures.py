"""Each bug of docs/found has signatures, which its own failure matches and no other bug's."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import hlo
from fuzz.campaign.program_findings import told_of
from fuzz.reducer.search import Case
from hlo.errors import ArgumentError
from selftest.bug_signatures import FOUND, Failure, expressions, read, shown_values

SIGNATURES = read()
PROGRAMS = sorted(
    path for path in FOUND.rglob("*.hlo") if path.stem == "reduced" or "invalid" in str(path)
)
NAMES = ["-".join(path.relative_to(FOUND).with_suffix("").parts) for path in PROGRAMS]


def failure_of(program: Path) -> Failure:
    """The failure of a folder's program, as a campaign would have found it."""
    facts = json.loads((program.parent / "facts.json").read_text())
    module = hlo.parse(program.read_text())
    told = told_of(Case(module, ()))
    return Failure(
        oracle="xla-accepts" if "invalid" in facts else "xla",
        kind=f"{facts['kind']}: {', '.join(facts.get('signs', ('SIGABRT',)))}",
        detail=facts.get("crash") or facts.get("mismatch") or "",
        blamed=told.blamed,
        opcodes=told.opcodes,
        program=expressions(module),
        values=shown_values(facts),
    )


def test_each_bug_has_signatures() -> None:
    assert sorted(SIGNATURES.bugs) == sorted(path.name for path in FOUND.iterdir() if path.is_dir())
    assert len(SIGNATURES.first) == 55 and set(SIGNATURES.first) <= SIGNATURES.bugs


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_a_bug_matches_its_own_signature_alone(program: Path) -> None:
    failure = failure_of(program)
    assert SIGNATURES.matching(failure) == (program.relative_to(FOUND).parts[0],)
    elsewhere = replace(failure, kind="crash: new.cc:1]", detail="F0101 new.cc:1] Check failed: a")
    if failure.oracle == "xla":
        assert SIGNATURES.matching(elsewhere) == ()
        assert SIGNATURES.matching(replace(failure, oracle="c")) == ()


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_a_wrong_result_where_another_process_ended_is_new(program: Path) -> None:
    failure = failure_of(program)
    if failure.kind.startswith("crash"):
        wrong = replace(failure, kind="wrong result: another number", detail="output 0")
        # What writes elsewhere may survive it, and one array is as good as several.
        too = {"dynamic_update_slice_at_an_s2_index", "scatter_of_a_bounded_array"}
        too |= {"reduce_window_of_bounded_arrays", "scatter_of_three_arrays"}
        assert set(SIGNATURES.matching(wrong)) <= too


def made(
    kind: str, program: str, values: str = "", detail: str = "output 0", before: str = ""
) -> Failure:
    """A failure of an entry computation with these instructions, ``before`` which others are."""
    module = hlo.parse(f"HloModule m\n{before}ENTRY e {{\n{program}\n}}\n")
    told = told_of(Case(module, ()))
    text = expressions(module)
    return Failure("xla", kind, detail, told.blamed, told.opcodes, text, values)


NUMBER, NAN = "wrong result: another number", "wrong result: NaN"
SECOND = "second {\n  a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1)\n}\n"
LESS = (
    "less {\n  a = u2[] parameter(0)\n  b = u2[] parameter(1)\n"
    "  ROOT c = pred[] compare(a, b), direction=LT\n}\n"
)
NEW = {
    "a power of floats": made(
        NUMBER, "x = f32[] parameter(0)\nROOT r = f32[] power(x, x)", "actual 0 expected -1 legal"
    ),
    "leading zeros of a parameter": made(
        NUMBER,
        "x = s32[] parameter(0)\nROOT r = s32[] count-leading-zeros(x)",
        "actual -32 (0xffffffe0) expected 0 (0x00000000) legal 0 only",
    ),
    "leading zeros of a positive constant": made(
        NUMBER,
        "x = s32[] constant(4)\nROOT r = s32[] count-leading-zeros(x)",
        "actual 3 (0x3) expected 29 (0x1d) legal 29 only",
    ),
    "a small unsigned start": made(
        NUMBER,
        "x = f32[9] parameter(0)\ni = u8[] constant(7)\n"
        "ROOT r = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}",
    ),
    "a gather of large unsigned numbers": made(
        NUMBER,
        "x = u8[2] constant({200, 201})\ni = s32[] constant(1)\nROOT r = u8[1] gather(x, i), "
        "offset_dims={0}, index_vector_dim=0, collapsed_slice_dims={}, start_index_map={0}, "
        "slice_sizes={1}",
    ),
    "the cube root of a normal number": made(
        NUMBER,
        "x = f32[] parameter(0)\nROOT r = f32[] cbrt(x)",
        "actual 3.0 (0x40400000) expected 2.0 (0x40000000) legal 2.0 only",
    ),
    "log-plus-one where it is good": made(
        NUMBER,
        "x = f64[] parameter(0)\nROOT r = f64[] log-plus-one(x)",
        "actual 0.5 (0x0) expected 0.6931471805599453 (0x0) legal",
    ),
    "a quotient by a broadcast that is too large for a divisor of 2^126": made(
        NUMBER,
        "x = f32[2,9] parameter(0)\ny = f32[2] parameter(1)\n"
        "b = f32[2,9] broadcast(y), dimensions={0}\nROOT r = f32[2,9] divide(x, b)",
        "actual 0.0 (0x00000000) expected 5.0 (0x40a00000) legal 4.9999995 to 5.0000005",
    ),
    "a quotient of a product": made(
        NUMBER,
        "x = f32[] parameter(0)\ny = f32[] multiply(x, x)\nROOT r = f32[] divide(y, x)",
        "actual 0.0 (0x00000000) expected 1.0 (0x3f800000) legal 1.0 only",
    ),
    "a quotient of quotients of integers": made(
        NUMBER,
        "x = s32[] parameter(0)\ny = s32[] divide(x, x)\nROOT r = s32[] divide(y, x)",
    ),
    "a convolution of constants that does not overflow": made(
        NUMBER,
        "x = s8[1,1] constant({{1}})\nROOT r = s8[1,1] convolution(x, x), dim_labels=fb_oi->fb",
        "actual 2 (0x02) expected 1 (0x01) legal 1 only",
    ),
    "a total order of parameters": made(
        NUMBER,
        "x = f32[] parameter(0)\nROOT r = pred[] compare(x, x), direction=LT, type=TOTALORDER",
    ),
    "a product of one constant": made(
        NUMBER,
        "x = f32[] parameter(0)\nc = f32[] constant(2)\ny = f32[] multiply(x, x)\n"
        "ROOT r = f32[] multiply(y, c)",
    ),
    "a slice without bounds": made(
        NUMBER, "x = f32[8] parameter(0)\nROOT r = f32[2] slice(x), slice={[0:2]}"
    ),
    "a TopK of two dimensions": made(
        NUMBER,
        "x = f32[2,2] parameter(0)\n"
        'ROOT r = (f32[2,1], s32[2,1]) custom-call(x), custom_call_target="TopK"',
    ),
    "damaged memory after an addition of u4": made(
        "crash: SIGABRT",
        "x = u4[9] parameter(0)\nROOT r = u4[9] add(x, x)",
        detail="SIGABRT: free(): invalid pointer",
    ),
    "a shape without a layout elsewhere": made(
        "crash: shape.h in xla::New",
        "x = f32[] parameter(0)\nROOT r = f32[] negate(x)",
        detail="SIGABRT: F1122 shape.h:843] Check failed: buffer != nullptr in xla::New",
    ),
    "a batch normalisation by one constant": made(
        NUMBER,
        "x = f16[1,1] parameter(0)\nc = f16[1] constant({29})\nm = f16[1] parameter(1)\n"
        "ROOT r = f16[1,1] batch-norm-inference(x, c, c, m, c), epsilon=1, feature_index=0",
        "actual inf (0x7c00) expected 2.0 (0x4000) legal 2.0 only",
    ),
    "a scatter whose last start does not wrap": made(
        NUMBER,
        "x = f32[256] parameter(0)\ni = u8[1,1] parameter(1)\nu = f32[1] parameter(2)\n"
        "ROOT r = f32[256] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second",
        before=SECOND,
    ),
    "a sort of u4": made(
        NUMBER,
        "x = u4[9] parameter(0)\nROOT r = u4[9] sort(x), dimensions={0}, to_apply=less",
        before=LESS.replace("u2", "u4"),
    ),
    "a quotient of f16 by a constant that has a reciprocal": made(
        NUMBER,
        "x = f16[] parameter(0)\nc = f16[] constant(0.001)\nROOT r = f16[] divide(x, c)",
        "actual inf (0x7c00) expected 2.0 (0x4000) legal 2.0 only",
    ),
    "a quotient of c64 that is too large for a divisor of 2^126": made(
        NUMBER,
        "x = c64[] parameter(0)\nc = c64[] constant((9e37, 0))\nROOT r = c64[] divide(x, c)",
        "actual 0j (0x00000000, 0x00000000) expected (8+1j) (0x41000000, 0x3f800000) legal",
    ),
    "a product of random bits that are unsigned": made(
        NUMBER,
        "s = u64[2] parameter(0)\n"
        "b = (u64[2], u32[2]) rng-bit-generator(s), algorithm=rng_default\n"
        "x = u32[2] get-tuple-element(b), index=1\n"
        "ROOT r = u32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    ),
    "a reduce-window of a bounded array without paddings": made(
        NUMBER,
        "x = f32[<=5] parameter(0)\nz = f32[] constant(0)\n"
        "ROOT r = f32[<=4] reduce-window(x, z), window={size=2}, to_apply=second",
        before=SECOND,
    ),
    "zeros of a type that has none": made(
        NAN,
        "x = f8e8m0fnu[] parameter(0)\n"
        "ROOT r = f8e8m0fnu[] collective-permute(x), source_target_pairs={}",
        "actual nan (0xff) expected 5.87747e-39 (0x00) legal 5.87747e-39 only",
    ),
}


@pytest.mark.parametrize("failure", NEW.values(), ids=NEW)
def test_what_is_like_a_bug_is_new(failure: Failure) -> None:
    assert SIGNATURES.matching(failure) == ()


ROWS = (
    "x = f32[2,9] parameter(0)\ny = f32[2] parameter(1)\n"
    "b = f32[2,9] broadcast(y), dimensions={0}\nROOT r = f32[2,9] divide(x, b)"
)
MAPPED = "f {\n  a = s32[] parameter(0)\n  ROOT r = s32[] count-leading-zeros(a)\n}\n"
VARIANTS = {
    "count_leading_zeros_of_a_constant": made(
        NUMBER,
        "x = s32[] constant(-4)\nROOT r = s32[] map(x), to_apply=f",
        "actual -32 (0xffffffe0) expected 0 (0x00000000) legal 0 only",
        before=MAPPED,
    ),
    "division_by_a_small_number": made(
        NAN,
        "x = f16[] parameter(0)\nc = f16[] constant(1.0014e-05)\nROOT r = f16[] divide(x, c)",
        "actual nan (0xfe00) expected -0.0 (0x8000) legal -0.0 to 0.0",
    ),
    "random_bits_of_s32": made(
        NUMBER,
        "s = u64[2] parameter(0)\n"
        "b = (u64[2], f32[2]) rng-bit-generator(s), algorithm=rng_default\n"
        "x = f32[2] get-tuple-element(b), index=1\ny = f32[2] parameter(1)\n"
        "ROOT r = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    ),
    "sort_of_f8e5m2fnuz": made(
        NUMBER,
        "x = f8e5m2fnuz[2] parameter(0)\nt = (f8e5m2fnuz[2], s32[2]) topk(x), k=2\n"
        "ROOT r = s32[2] get-tuple-element(t), index=1",
        "actual 0 (0x00000000) expected 1 (0x00000001) legal 1 only",
    ),
    "division_by_a_large_number": made(
        NAN, ROWS, "actual nan (0x7fc00000) expected inf (0x7f800000) legal inf only"
    ),
    "gather_at_unsigned_constant": made(
        NUMBER,
        "x = s32[2] constant({0, 1})\ni = u64[1,1] constant({{9223372036854775810}})\n"
        "ROOT r = s32[1] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
    ),
    "dynamic_slice_at_unsigned_constant": made(
        NUMBER,
        "x = f32[5] parameter(0)\nc = s32[] constant(-4)\ni = u32[] convert(c)\n"
        "ROOT r = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}",
    ),
    "constant_of_complex_nan": made(NAN, "ROOT r = c128[2] constant({(1, 2), (nan, 3)})"),
    "power_of_constant_minus_one": made(
        NUMBER,
        "c = s32[] constant(0)\nn = s32[] not(c)\nROOT r = s32[] power(n, n)",
        "actual 0 (0x00000000) expected -1 (0xffffffff) legal -1 only",
    ),
    "scatter_at_an_s2_index": made(
        NUMBER,
        "x = f32[257] parameter(0)\ni = u8[1,1] parameter(1)\nu = f32[1] parameter(2)\n"
        "ROOT r = f32[257] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second",
        before=SECOND,
    ),
    "product_of_two_constants": made(
        NUMBER,
        "x = f16[1,1] parameter(0)\nc = f16[1] constant({29})\nm = f16[1] constant({-2500})\n"
        "ROOT r = f16[1,1] batch-norm-inference(x, c, c, m, c), epsilon=1, feature_index=0",
        "actual inf (0x7c00) expected 1.349e+04 (0x7296) legal 1.346e+04 to 1.3544e+04",
    ),
    "clamp_of_constant_preds": made(
        NUMBER,
        "n = s32[] constant(0)\nl = pred[] convert(n)\nx = pred[] constant(false)\n"
        "h = pred[] constant(true)\nROOT r = pred[] clamp(l, x, h)",
    ),
    "convolution_of_constants": made(
        NUMBER,
        "t = (u8[1,1], f32[]) parameter(0)\nx = u8[1,1] get-tuple-element(t), index=0\n"
        "k = u8[1,1] constant({{16}})\nROOT r = u8[1,1] convolution(x, k), dim_labels=fb_oi->fb",
        "actual 255 (0xff) expected 0 (0x00) legal 0 only",
    ),
    "sort_of_u2": made(
        "crash: SIGABRT",
        "x = u2[9] parameter(0)\nROOT r = u2[9] sort(x), dimensions={0}, to_apply=less",
        detail="SIGABRT: free(): invalid pointer",
        before=LESS,
    ),
    "square_of_a_multiple": made(
        NAN,
        "x = f16[9] parameter(0)\ns = f16[1] constant({1})\no = f16[1] constant({0})\n"
        "ROOT r = (f16[9], f16[1], f16[1]) batch-norm-training(x, s, o), epsilon=1, "
        "feature_index=0".replace("f16[9]", "f16[9,1]").replace("index=0", "index=1"),
        "actual nan (0x7e00) expected 1.0 (0x3c00) legal 1.0 only",
    ),
    "shard_barrier_of_two": made(
        "crash: sharding_remover.cc:66]",
        "x = f32[] parameter(0)\n"
        'ROOT r = (f32[], f32[]) custom-call(x, x), custom_call_target="Sharding"',
        detail="F0101 sharding_remover.cc:66] instruction must have exactly one operand",
    ),
    "collective_in_a_map": made(
        "crash: computation_partitioner.cc:269]",
        "x = f32[] parameter(0)\nROOT r = f32[] fusion(x), kind=kLoop, calls=f",
        before="f {\n  a = f32[] parameter(0)\n  s = (f32[], f32[], u32[]) copy-start(a)\n"
        "  ROOT d = f32[] copy-done(s)\n}\n",
    ),
    "reduce_window_of_bounded_arrays": made(
        "crash: shape.cc:249]",
        "x = f32[<=5] parameter(0)\nz = f32[] constant(0)\n"
        "ROOT r = f32[<=4] reduce-window(x, z), window={size=2}, to_apply=second",
        before=SECOND,
    ),
    "collective_permute_of_u4": made(
        "crash: SIGABRT",
        "x = s2[9] parameter(0)\nROOT r = s2[9] collective-permute(x), source_target_pairs={{0,0}}",
        detail="SIGABRT: corrupted size vs. prev_size",
    ),
}


MORE = tomllib.loads(Path(__file__).with_name("bug_variants.toml").read_text("utf-8"))
ALL = [*VARIANTS.items(), *((bug, made(**one)) for bug, some in MORE.items() for one in some)]


@pytest.mark.parametrize(("bug", "variant"), ALL, ids=[bug for bug, _ in ALL])
def test_a_variant_is_the_bug(bug: str, variant: Failure) -> None:
    assert SIGNATURES.matching(variant) == (bug,)


def test_a_part_is_told_where_nothing_matches() -> None:
    failure = made(
        NUMBER,
        "c = s32[] constant(-4)\nx = s32[] count-leading-zeros(c)\nROOT r = s32[] negate(x)",
    )
    assert SIGNATURES.matching(failure) == ()
    assert SIGNATURES.parts(failure) == ("count_leading_zeros_of_a_constant",)


def test_the_more_specific_signature_is_first(tmp_path: Path) -> None:
    path = tmp_path / "signatures.toml"
    path.write_text(
        "first = ['b']\n[fragments]\nany = 'wrong.*|crash.*'\n[[a]]\nkind = '<any>'\n"
        "[[b]]\nkind = '<any>'\nprogram = ['negate', 'parameter']\n[[c]]\nkind = 'hang.*'\n"
    )
    failure = made(NUMBER, "x = f32[] parameter(0)\nROOT r = f32[] negate(x)")
    signatures = read(path)
    assert signatures.matching(failure) == ("b", "a") and signatures.first == ("b",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[a]]\nkinds = 'x'", "signature of a: kinds is no field"),
        ("[[a]]\nblamed = 'x'", "signature of a: one of any kind"),
        ("[[a]]\nkind = '<x>'", "signature of a: no fragment x"),
        ("[[a]]\nkind = '('", "signature of a: kind"),
        ("a = [", "is no TOML"),
    ],
)
def test_what_is_no_signature_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "signatures.toml"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=said):
        read(path)


def test_expressions_have_operands_in_place() -> None:
    module = hlo.parse(
        "HloModule m\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT s = f32[] add(a, b)\n}\nENTRY e {\n  x = f32[2] parameter(0)\n"
        "  y = f32[2] negate(x)\n  z = f32[] constant(0)\n"
        "  ROOT r = f32[] reduce(y, z), dimensions={0}, to_apply=sum\n}\n"
    )
    *_, last = expressions(module).splitlines()
    assert last == (
        "f32[] reduce(f32[2] negate(f32[2] parameter(0)); f32[] constant(0)), dimensions={0}, "
        "to_apply=sum where f32[] add(f32[] parameter(0); f32[] parameter(1))"
    )


def test_expressions_end_where_they_are_deep_or_long() -> None:
    steps = "\n".join(f"x{n} = f32[] add(x{n - 1}, x{n - 1})" for n in range(1, 40))
    module = hlo.parse(f"HloModule m\nENTRY e {{\nx0 = f32[] parameter(0)\n{steps}\n}}\n")
    lines = expressions(module).splitlines()
    assert all(len(line) < 1400 for line in lines) and "…" in lines[-1]

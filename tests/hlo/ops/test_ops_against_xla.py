"""The shapes that XLA infers where a text leaves them out are those of hlo/ops."""

import re

import pytest
from test_ops_elementwise import BINARY, KINDS, UNARY
from verdicts import label, module

xla = pytest.importorskip("jaxlib._hlo")

# XLA infers a shape here, but has no meaning for it.
MEANINGLESS = {
    *((opcode, "complex") for opcode in ("maximum", "minimum", "remainder")),
    ("mulhi", "pred"),
    *(
        (opcode, kind)
        for opcode in ("shift-left", "shift-right-arithmetic", "shift-right-logical", "mulhi")
        for kind in ("float", "complex")
    ),
}
ELEMENTWISE = [
    (opcode, "ab"[:arity], kind)
    for arity, table in ((1, UNARY), (2, BINARY))
    for opcodes in table
    for opcode in opcodes.split()
    for kind in KINDS
]


def inferred(operands: str, instruction: str) -> str:
    """The shape XLA infers for an instruction without one; nothing if it refuses."""
    try:
        text = str(xla.hlo_module_from_text(module(operands, instruction)).to_string())
    except RuntimeError as error:
        assert "parse" in str(error), error
        return ""
    found = re.search(r"ROOT %r = (.+?) [a-z0-9-]+\(", text)
    assert found, text
    return re.sub(r"\{[\d,]*\}", "", found[1])


@pytest.mark.parametrize(("opcode", "names", "kind"), ELEMENTWISE)
def test_elementwise(opcode: str, names: str, kind: str) -> None:
    operands = f"{KINDS[kind]} {KINDS[kind]}"
    call = f"{opcode}({', '.join(names)})"
    shape = inferred(operands, call)
    if (opcode, kind) in MEANINGLESS:
        assert label(operands, f"{KINDS[kind]} {call}")
    elif shape:
        assert not label(operands, f"{shape} {call}")
    else:
        assert label(operands, f"{KINDS[kind]} {call}") == "C2"


B = "f32[<=4,3]"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
IMAGE = "window={size=3x3}, dim_labels=b01f_01io->b01f"
GATHER = (
    "offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1,"
    " slice_sizes="
)


@pytest.mark.parametrize(
    ("operands", "call"),
    [
        (f"{B} f32[4,3]", "add(a, b)"),
        (f"f32[4,3] {B}", "compare(a, b), direction=LT"),
        (f"pred[4,3] {B} f32[4,3]", "select(a, b, c)"),
        ("pred[<=4,3] f32[4,3]", "select(a, b, b)"),
        (f"{B} f32[4,3]", "clamp(a, b, a)"),
        (f"{B} f32[4,3]", "clamp(b, a, b)"),
        (B, "transpose(a), dimensions={1,0}"),
        (f"{B} f32[]", "pad(a, b), padding=1_0x0_0"),
        ("f32[0,4] f32[]", "pad(a, b), padding=1_1_5x0_0"),
        (f"{B} f32[4,3]", "concatenate(a, b), dimensions={1}"),
        (f"f32[4,3] {B}", "concatenate(a, b), dimensions={0}"),
        (f"{B} f32[]", "reduce(a, b), dimensions={1}, to_apply=add"),
        (f"{B} f32[]", "reduce-window(a, b), window={size=2x1}, to_apply=add"),
        ("f32[3] f32[]", "reduce-window(a, b), window={size=5}, to_apply=add"),
        ("f32[] f32[]", "reduce-window(a, b), to_apply=add"),
        (f"{B} s32[]", "set-dimension-size(a, b), dimensions={1}"),
        (B, "get-dimension-size(a), dimensions={0}"),
        (f"{B} f32[3,<=5]", f"dot(a, b), {DOT}"),
        ("s8[2,3] u8[3,2]", f"dot(a, b), {DOT}"),
        ("f32[<=6,4,4]", "cholesky(a)"),
        ("f32[<=6,<=4]", "topk(a), k=4, largest=true"),
        ("f32[<=6,4]", "fft(a), fft_type=RFFT, fft_length={4}"),
        ("f32[0]", "fft(a), fft_type=RFFT, fft_length={0}"),
        ("c64[3,3]", "fft(a), fft_type=IRFFT, fft_length={3,4}"),
        ("f32[<=6,4] s32[7,1]", f"gather(a, b), {GATHER}{{6,1}}"),
        ("f32[<=6,4] s32[7,1]", f"gather(a, b), {GATHER}{{5,1}}"),
        ("f32[6,4] s32[<=7,1]", f"gather(a, b), {GATHER}{{5,1}}"),
        ("f32[<=2,8,8,3] f32[3,3,3,5]", f"convolution(a, b), {IMAGE}"),
        ("f32[2,<=8,8,3] f32[3,3,3,5]", f"convolution(a, b), {IMAGE}"),
        ("f32[2,3] f32[3]", "batch-norm-training(a, b, b), epsilon=0.1, feature_index=1"),
        ("f32[2,3] f32[3]", "batch-norm-grad(a, b, b, b, a), epsilon=0.1, feature_index=1"),
        (
            "f32[11,5] f32[3,5,7] s32[3]",
            "ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={1},"
            " lhs_ragged_dims={0}, rhs_group_dims={0}",
        ),
        ("f32[5,11] f32[11,7] s32[3]", f"ragged-dot(a, b, c), {DOT}, lhs_ragged_dims={{1}}"),
        ("f32[8,2] f32[2]", "scan(a, b), dimensions={0}, num_carries=1, to_apply=step"),
        ("f32[<=2]", "map(a, a), dimensions={0}, to_apply=add"),
    ],
)
def test_inferred_shapes(operands: str, call: str) -> None:
    shape = inferred(operands, call)
    assert shape
    assert not label(operands, f"{shape} {call}")

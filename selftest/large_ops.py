"""Programs of one op each, large enough for the blocks, tiles and strips of its kernels."""

from __future__ import annotations

from collections.abc import Iterator

import hlo
from hlo.module import Module

_SUM = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
"""
_MOST = _SUM.replace("add(a", "maximum(a").replace("add {", "most {")
_LESS = """less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=LT }
"""
_ROWS = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
# The entry's parameters and its result; then the computation that it calls.
_PROGRAMS = {
    "dot of s8": f"s8[70,130] s8[130,90] | s32[70,90] dot(a, b), {_ROWS}",
    "dot of bf16": f"bf16[70,130] bf16[130,90] | bf16[70,90] dot(a, b), {_ROWS}",
    "dot of f32": f"f32[70,130] f32[130,90] | f32[70,90] dot(a, b), {_ROWS}",
    "dot of f64": f"f64[20,130] f64[130,90] | f64[20,90] dot(a, b), {_ROWS}",
    "dot of a vector": "f32[300] f32[300,90] | f32[90] dot(a, b), lhs_contracting_dims={0},"
    " rhs_contracting_dims={0}",
    "convolution": "f32[1,14,14,16] f32[3,3,16,24] | f32[1,14,14,24] convolution(a, b),"
    " window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
    "depthwise convolution": "f32[2,14,14,40] f32[3,3,1,40] | f32[2,14,14,40] convolution(a, b),"
    " window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=40",
    "transposed convolution": "f32[1,7,7,16] f32[3,3,16,24] | f32[1,14,14,24] convolution(a, b),"
    " window={size=3x3 pad=1_2x1_2 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f",
    "dot of few rows": f"f32[4,300] f32[300,90] | f32[4,90] dot(a, b), {_ROWS}",
    "dot of two vectors": "f32[20000] f32[20000] | f32[] dot(a, b), lhs_contracting_dims={0},"
    " rhs_contracting_dims={0}",
    "dots of small matrices": "f32[300,8,8] f32[300,8,8] | f32[300,8,8] dot(a, b),"
    " lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
    "cholesky": "f32[80,80] | f32[80,80] cholesky(a), lower=true",
    "cholesky by panels": "f32[130,130] | f32[130,130] cholesky(a), lower=false",
    "triangular-solve": "f32[90,90] f32[90,70] | f32[90,70] triangular-solve(a, b),"
    " left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
    "triangular-solve of few vectors": "f64[90,90] f64[90,2] | f64[90,2] triangular-solve(a, b),"
    " left_side=true, lower=false, transpose_a=TRANSPOSE",
    "triangular-solve of many systems": "f32[40,8,8] f32[40,8,3] | f32[40,8,3]"
    " triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
    "triangular-solve by panels": "f32[140,140] f32[9,140] | f32[9,140]"
    " triangular-solve(a, b), left_side=false, lower=false, transpose_a=NO_TRANSPOSE",
    "fft": "c64[5,360] | c64[5,360] fft(a), fft_type=FFT, fft_length={360}",
    "fft of real numbers": "f32[2,37,60] | c64[2,37,31] fft(a), fft_type=RFFT, fft_length={37,60}",
    "sort": f"f32[3,3000] | f32[3,3000] sort(a), dimensions={{1}}, to_apply=less | {_LESS}",
    "topk": "f32[4,600] | (f32[4,20], s32[4,20]) topk(a), k=20, largest=true",
    "cumulative sum": "f32[3,3000] f32[] | f32[3,3000] reduce-window(a, b),"
    f" window={{size=1x3000 pad=0_0x2999_0}}, to_apply=add | {_SUM}",
    "window": "f32[40,500] f32[] | f32[40,496] reduce-window(a, b), window={size=1x5},"
    f" to_apply=most | {_MOST}",
    "sum of rows": f"f32[70,300] f32[] | f32[70] reduce(a, b), dimensions={{1}}, to_apply=add"
    f" | {_SUM}",
    "sum of columns": f"f32[700,70] f32[] | f32[70] reduce(a, b), dimensions={{0}}, to_apply=add"
    f" | {_SUM}",
    "sum of all": f"f32[300,100] f32[] | f32[] reduce(a, b), dimensions={{0,1}}, to_apply=add"
    f" | {_SUM}",
    "transpose": "f32[70,90,11] | f32[11,90,70] transpose(a), dimensions={2,1,0}",
    "scatter": "f32[100,30] s32[200,1] f32[200,30] | f32[100,30] scatter(a, b, c), to_apply=add,"
    " update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},"
    f" index_vector_dim=1 | {_SUM}",
    "batch-norm": "f32[60,8,9] f32[8] f32[8] | (f32[60,8,9], f32[8], f32[8])"
    " batch-norm-training(a, b, c), epsilon=1.0, feature_index=1",
    "rng-bit-generator": "u64[2] | (u64[2], u32[5000]) rng-bit-generator(a), algorithm=rng_philox",
}


def large_ops() -> Iterator[tuple[str, Module]]:
    """Yield the programs, each by its name."""
    for name, program in _PROGRAMS.items():
        operands, result, *computations = (part.strip() for part in program.split(" | "))
        lines = [
            f"  {'abc'[number]} = {shape} parameter({number})"
            for number, shape in enumerate(operands.split())
        ]
        body = "\n".join([*lines, f"  ROOT r = {result}"])
        text = "\n".join(["HloModule large", *computations, f"ENTRY main {{\n{body}\n}}"])
        made = hlo.parse(text)
        hlo.verify(made)
        yield name, made

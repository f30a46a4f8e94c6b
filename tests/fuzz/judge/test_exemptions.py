"""Check that nothing is reported where the language leaves the result open: legal rewrites."""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

import hlo
import interp
from fuzz.judge.failure import Against
from fuzz.peers.xla import Answer
from hlo.values import arrays_of
from interp.envelope.budget import UNKNOWN, XLA_CPU, Budget

_TINY = np.array([1e-40, -1e-45, 1.0], np.float32)
_WIDE = np.array([1e-30, 1e-8, 0.5, 1.0, 3.0, 80.0, 100.0, 1e30], np.float32)


class Open(NamedTuple):
    """A program's lines and what a compiler may compute instead, for the arguments."""

    lines: str
    instead: str
    arguments: tuple[np.ndarray, ...]


_TWO = "a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
_COMPUTATIONS = {
    "sum": f"{_TWO} ROOT s = f32[] add(a, b)",
    "product": "a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT m = c64[] multiply(a, b)",
    "ge": f"{_TWO} ROOT c = pred[] compare(a, b), direction=GE",
    "lt": f"{_TWO} ROOT c = pred[] compare(a, b), direction=LT",
    "first": f"{_TWO} c = s32[] parameter(2)\n d = s32[] parameter(3)\n"
    " ROOT l = pred[] compare(a, b), direction=LT",
}

_EXEMPTIONS: dict[str, Open] = {
    "flushed subnormals": Open(
        "x = f32[3] parameter(0)\n ROOT r = f32[3] add(x, x)",
        "x = f32[3] parameter(0)\n c = f32[3] constant({0, 0, 2})\n ROOT r = f32[3] copy(c)",
        (_TINY,),
    ),
    "integer 0 to a negative power": Open(
        "x = s32[1] parameter(0)\n y = s32[1] parameter(1)\n ROOT r = s32[1] power(x, y)",
        "x = s32[1] parameter(0)\n y = s32[1] parameter(1)\n ROOT r = s32[1] constant({-1})",
        (np.array([0], np.int32), np.array([-1], np.int32)),
    ),
    "f4 overflow": Open(
        "x = f32[2] parameter(0)\n ROOT r = f4e2m1fn[2] convert(x)",
        "x = f32[2] parameter(0)\n ROOT r = f4e2m1fn[2] constant({-0, 0})",
        (np.array([100, -np.inf], np.float32),),
    ),
    "an infinity of a kernel in the padding": Open(
        "x = f32[1,1,2] parameter(0)\n k = f32[2,1,2] parameter(1)\n ROOT r = f32[1,2,3]"
        " convolution(x, k), window={size=2 pad=1_1}, dim_labels=bf0_oi0->bf0",
        "x = f32[1,1,2] parameter(0)\n k = f32[2,1,2] parameter(1)\n z = f32[] constant(0)\n"
        " p = f32[1,1,4] pad(x, z), padding=0_0x0_0x1_1\n ROOT r = f32[1,2,3]"
        " convolution(p, k), window={size=2}, dim_labels=bf0_oi0->bf0",
        (np.ones((1, 1, 2), np.float32), np.float32([[[np.inf, 1]], [[2, 3]]])),
    ),
    "the side of the cut of a complex atan2 of computed numbers": Open(
        "x = c128[1] parameter(0)\n y = c128[1] parameter(1)\n p = c128[1] power(y, y)\n"
        " ROOT r = c128[1] atan2(p, x)",
        "x = c128[1] parameter(0)\n y = c128[1] parameter(1)\n p = c128[1] power(y, y)\n"
        " a = c128[1] atan2(p, x)\n ROOT r = c128[1] negate(a)",
        (np.array([-32 + 1.1e39j]), np.array([1.36 + 0.037j])),
    ),
    "a quotient by zero in f4": Open(
        "x = f4e2m1fn[1] parameter(0)\n y = f4e2m1fn[1] parameter(1)\n"
        " ROOT r = f4e2m1fn[1] divide(x, y)",
        "x = f4e2m1fn[1] parameter(0)\n y = f4e2m1fn[1] parameter(1)\n"
        " ROOT r = f4e2m1fn[1] constant({0})",
        (np.ones(1, ml_dtypes.float4_e2m1fn), np.zeros(1, ml_dtypes.float4_e2m1fn)),
    ),
    "the side of the cut of an atan2 of c64 that loses digits": Open(
        "x = c64[1] parameter(0)\n y = c64[1] parameter(1)\n ROOT r = c64[1] atan2(y, x)",
        "x = c64[1] parameter(0)\n y = c64[1] parameter(1)\n a = c64[1] atan2(y, x)\n"
        " ROOT r = c64[1] negate(a)",
        (np.array([-612 + 1938j], np.complex64), np.array([0j], np.complex64)),
    ),
    "a negative number in f8e8m0fnu": Open(
        "x = f32[2] parameter(0)\n ROOT r = f8e8m0fnu[2] convert(x)",
        "x = f32[2] parameter(0)\n a = f32[2] abs(x)\n ROOT r = f8e8m0fnu[2] convert(a)",
        (np.array([-1, -4], np.float32),),
    ),
    "log of exp": Open(
        "x = f32[8] parameter(0)\n e = f32[8] exponential(x)\n ROOT r = f32[8] log(e)",
        "x = f32[8] parameter(0)\n ROOT r = f32[8] copy(x)",
        (_WIDE,),
    ),
    "sqrt of a square": Open(
        "x = f32[8] parameter(0)\n s = f32[8] multiply(x, x)\n ROOT r = f32[8] sqrt(s)",
        "x = f32[8] parameter(0)\n ROOT r = f32[8] abs(x)",
        (_WIDE,),
    ),
    "power of a power": Open(
        "x = f32[8] parameter(0)\n a = f32[8] constant({3,3,3,3,3,3,3,3})\n"
        " p = f32[8] power(x, a)\n ROOT r = f32[8] power(p, a)",
        "x = f32[8] parameter(0)\n a = f32[8] constant({9,9,9,9,9,9,9,9})\n"
        " ROOT r = f32[8] power(x, a)",
        (_WIDE,),
    ),
    "adding zero to -0": Open(
        "x = f32[2] parameter(0)\n z = f32[2] constant({0, 0})\n ROOT r = f32[2] add(x, z)",
        "x = f32[2] parameter(0)\n ROOT r = f32[2] copy(x)",
        (np.array([-0.0, 1], np.float32),),
    ),
    "an epsilon that is subnormal": Open(
        "x = f64[2,1] parameter(0)\n v = f64[1] parameter(1)\n"
        " ROOT r = f64[2,1] batch-norm-inference(x, v, v, v, v), epsilon=1e-40, feature_index=1",
        "x = f64[2,1] parameter(0)\n v = f64[1] parameter(1)\n"
        " ROOT r = f64[2,1] batch-norm-inference(x, v, v, v, v), epsilon=0, feature_index=1",
        (np.zeros((2, 1)), np.zeros(1)),
    ),
    "constants added up first": Open(
        "x = f32[2] parameter(0)\n c = f32[2] constant({1e8, 1e8})\n"
        " d = f32[2] constant({-1e8, -1e8})\n s = f32[2] add(x, c)\n ROOT r = f32[2] add(s, d)",
        "x = f32[2] parameter(0)\n ROOT r = f32[2] copy(x)",
        (np.array([0.75, 3], np.float32),),
    ),
    "complex arithmetic with infinities": Open(
        "x = c64[2] parameter(0)\n y = c64[2] parameter(1)\n ROOT r = c64[2] divide(x, y)",
        "x = c64[2] parameter(0)\n y = c64[2] parameter(1)\n"
        " ROOT r = c64[2] constant({(nan, nan), (inf, nan)})",
        (np.array([np.inf, 1], np.complex64), np.array([1, 0], np.complex64)),
    ),
    "reduce over no dimensions": Open(
        "x = f32[3] parameter(0)\n i = f32[] constant(5)\n"
        " ROOT r = f32[3] reduce(x, i), dimensions={}, to_apply=sum",
        "x = f32[3] parameter(0)\n ROOT r = f32[3] copy(x)",
        (np.array([1, 2, 3], np.float32),),
    ),
    "ties of select-and-scatter in padding": Open(
        "x = f32[2] parameter(0)\n s = f32[2] parameter(1)\n i = f32[] constant(0)\n"
        " ROOT r = f32[2] select-and-scatter(x, s, i), window={size=2 stride=2 pad=1_1},"
        " select=ge, scatter=sum",
        "x = f32[2] parameter(0)\n s = f32[2] parameter(1)\n ROOT r = f32[2] constant({0, 0})",
        (np.array([-np.inf, -np.inf], np.float32), np.array([1, 2], np.float32)),
    ),
    "ties of select-and-scatter with padding, in another order": Open(
        "x = f32[2,2] parameter(0)\n s = f32[2,2] parameter(1)\n i = f32[] constant(0)\n"
        " ROOT r = f32[2,2] select-and-scatter(x, s, i), window={size=2x2 pad=0_1x0_1},"
        " select=ge, scatter=sum",
        "x = f32[2,2] parameter(0)\n s = f32[2,2] parameter(1)\n"
        " ROOT r = f32[2,2] constant({{0, 2}, {4, 4}})",
        (np.array([[0, 4], [4, 0]], np.float32), np.array([[1, 2], [3, 4]], np.float32)),
    ),
    "an unstable sort": Open(
        "k = f32[4] parameter(0)\n v = s32[4] parameter(1)\n"
        " ROOT r = (f32[4], s32[4]) sort(k, v), dimensions={0}, to_apply=first",
        "k = f32[4] parameter(0)\n v = s32[4] parameter(1)\n"
        " w = s32[4] reverse(v), dimensions={0}\n ROOT r = (f32[4], s32[4]) tuple(k, w)",
        (np.ones(4, np.float32), np.arange(4, dtype=np.int32)),
    ),
    "FMA": Open(
        "x = f32[2] parameter(0)\n m = f32[2] multiply(x, x)\n n = f32[2] constant({-1, -1})\n"
        " ROOT r = f32[2] add(m, n)",
        "x = f32[2] parameter(0)\n w = f64[2] convert(x)\n m = f64[2] multiply(w, w)\n"
        " n = f64[2] constant({-1, -1})\n s = f64[2] add(m, n)\n ROOT r = f32[2] convert(s)",
        (np.array([1 + 2.0**-12, 1 - 2.0**-12], np.float32),),
    ),
    "the place of a NaN in topk": Open(
        "x = f32[2] parameter(0)\n ROOT r = (f32[2], s32[2]) topk(x), k=2",
        "x = f32[2] parameter(0)\n i = s32[2] constant({1, 0})\n"
        " w = f32[2] reverse(x), dimensions={0}\n ROOT r = (f32[2], s32[2]) tuple(w, i)",
        (np.array([-np.nan, 0], np.float32),),
    ),
    "atan2 of complex numbers by its quotient": Open(
        "y = c64[1] parameter(0)\n x = c64[1] parameter(1)\n ROOT r = c64[1] atan2(y, x)",
        "y = c64[1] parameter(0)\n x = c64[1] parameter(1)\n"
        " ROOT r = c64[1] constant({(-4.3711388e-08, -0)})",
        (np.array([0], np.complex64), np.array([2.0**31 * 1j], np.complex64)),
    ),
    "power of complex numbers by its logarithm": Open(
        "x = c64[2] parameter(0)\n y = c64[2] parameter(1)\n ROOT r = c64[2] power(x, y)",
        "x = c64[2] parameter(0)\n y = c64[2] parameter(1)\n"
        " ROOT r = c64[2] constant({(7394180600, -3609341200), (nan, nan)})",
        (np.full(2, 710 + 128j, np.complex64), np.array([-128j, 3e38j], np.complex64)),
    ),
    "below the least number of f8e8m0fnu": Open(
        "x = f8e8m0fnu[1] parameter(0)\n ROOT r = f8e8m0fnu[1] divide(x, x)",
        "x = f8e8m0fnu[1] parameter(0)\n ROOT r = f8e8m0fnu[1] constant({nan})",
        (np.array([2.0**-127], ml_dtypes.float8_e8m0fnu),),
    ),
    "the first of iota in f8e8m0fnu": Open(
        "ROOT r = f8e8m0fnu[2] iota(), iota_dimension=0",
        "ROOT r = f8e8m0fnu[2] constant({0.125, 1})",
        (),
    ),
    "more than the largest number, kept wide": Open(
        "x = f8e4m3fn[2] parameter(0)\n a = f8e4m3fn[2] add(x, x)\n"
        " h = f8e4m3fn[2] constant({0.5, 0.5})\n ROOT r = f8e4m3fn[2] multiply(a, h)",
        "x = f8e4m3fn[2] parameter(0)\n ROOT r = f8e4m3fn[2] copy(x)",
        (np.array([448, 1], ml_dtypes.float8_e4m3fn),),
    ),
    "an operand of more range than the result": Open(
        "x = f64[2] parameter(0)\n y = f32[2] parameter(1)\n"
        " ROOT r = c64[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "x = f64[2] parameter(0)\n y = f32[2] parameter(1)\n ROOT r = c64[] constant((nan, nan))",
        (np.array([-1e168, 1]), np.array([0, 1], np.float32)),
    ),
    "zero of f8e8m0fnu": Open(
        "x = f8e8m0fnu[1] parameter(0)\n ROOT r = f8e8m0fnu[1] subtract(x, x)",
        "x = f8e8m0fnu[1] parameter(0)\n ROOT r = f8e8m0fnu[1] copy(x)",
        (np.array([2.0**-127], ml_dtypes.float8_e8m0fnu),),
    ),
    "a subnormal that ranks add up": Open(
        "x = f32[1] parameter(0)\n ROOT r = f32[1] reduce-scatter(x), dimensions={0}, to_apply=sum",
        "x = f32[1] parameter(0)\n ROOT r = f32[1] constant({0})",
        (np.array([1e-40], np.float32),),
    ),
    "a subnormal of f8e5m2 with fewer mantissa bits": Open(
        "x = f8e5m2[1] parameter(0)\n"
        " ROOT r = f8e5m2[1] reduce-precision(x), exponent_bits=13, mantissa_bits=0",
        "x = f8e5m2[1] parameter(0)\n ROOT r = f8e5m2[1] constant({0})",
        (np.array([2.0**-16], ml_dtypes.float8_e5m2),),
    ),
    "zeros of f8e8m0fnu that nobody sends": Open(
        "x = f8e8m0fnu[1] parameter(0)\n"
        " ROOT r = f8e8m0fnu[1] collective-permute(x), source_target_pairs={}",
        "x = f8e8m0fnu[1] parameter(0)\n ROOT r = f8e8m0fnu[1] constant({nan})",
        (np.array([2.0], ml_dtypes.float8_e8m0fnu),),
    ),
    "a factor of a nearly singular matrix": Open(
        "x = f16[2,2] parameter(0)\n ROOT r = f16[2,2] cholesky(x)",
        "x = f16[2,2] parameter(0)\n n = f16[] constant(nan)\n"
        " ROOT r = f16[2,2] broadcast(n), dimensions={}",
        (np.array([[7948, -8068], [-8068, 8192]], np.float16),),
    ),
    "a fold from what is no identity": Open(
        "x = f32[1,33] parameter(0)\n i = f32[] constant(1)\n"
        " ROOT r = f32[] reduce(x, i), dimensions={0,1}, to_apply=sum",
        "x = f32[1,33] parameter(0)\n ROOT r = f32[] constant(3)",
        (np.zeros((1, 33), np.float32),),
    ),
    "a fold of nothing from what is no identity": Open(
        "x = f32[33] parameter(0)\n zero = s32[] constant(0)\n i = f32[] constant(1)\n"
        " none = f32[<=33] set-dimension-size(x, zero), dimensions={0}\n"
        " ROOT r = f32[] reduce(none, i), dimensions={0}, to_apply=sum",
        "x = f32[33] parameter(0)\n ROOT r = f32[] constant(34)",
        (np.zeros(33, np.float32),),
    ),
    "a pred of other bits": Open(
        "x = s8[] parameter(0)\n p = pred[] bitcast(x)\n ROOT r = pred[] copy(p)",
        "x = s8[] parameter(0)\n ROOT r = pred[] constant(false)",
        (np.array(-4, np.int8),),
    ),
    "operands of different sizes": Open(
        "x = f32[<=3] parameter(0)\n y = f32[3] parameter(1)\n"
        " ROOT r = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "x = f32[<=3] parameter(0)\n y = f32[3] parameter(1)\n ROOT r = f32[] constant(nan)",
        (np.zeros(2, np.float32), np.array([1, 2, np.inf], np.float32)),
    ),
    "a source of another size than there are windows": Open(
        "x = f32[3] parameter(0)\n s = f32[<=3] parameter(1)\n i = f32[] constant(0)\n"
        " ROOT r = f32[3] select-and-scatter(x, s, i), window={size=1}, select=ge, scatter=sum",
        "x = f32[3] parameter(0)\n s = f32[<=3] parameter(1)\n ROOT r = f32[3] constant({0, 7, 0})",
        (np.ones(3, np.float32), np.zeros(0, np.float32)),
    ),
    "what is in an array that grows": Open(
        "x = f32[<=3] parameter(0)\n n = s32[] constant(3)\n"
        " ROOT r = f32[<=3] set-dimension-size(x, n), dimensions={0}",
        "x = f32[<=3] parameter(0)\n c = f32[3] constant({1, 7, 8})\n ROOT r = f32[3] copy(c)",
        (np.ones(1, np.float32),),
    ),
    "elements gathered from slices that have none": Open(
        "x = s32[1] parameter(0)\n ROOT r = s32[1] gather(x, x), offset_dims={},"
        " index_vector_dim=1, collapsed_slice_dims={0}, start_index_map={0}, slice_sizes={0}",
        "x = s32[1] parameter(0)\n ROOT r = s32[1] copy(x)",
        (np.ones(1, np.int32),),
    ),
    "the sign of a zero that ranks add up": Open(
        "x = f32[1] parameter(0)\n ROOT r = f32[1] reduce-scatter(x), dimensions={0}, to_apply=sum",
        "x = f32[1] parameter(0)\n ROOT r = f32[1] constant({0})",
        (np.array([-0.0], np.float32),),
    ),
    "the sign of a zero that ranks multiply": Open(
        "x = c64[1] parameter(0)\n"
        " ROOT r = c64[1] reduce-scatter(x), dimensions={0}, to_apply=product",
        "x = c64[1] parameter(0)\n ROOT r = c64[1] constant({(0, -4)})",
        (np.array([complex(-0.0, -4)], np.complex64),),
    ),
    "a subnormal part of what ranks multiply": Open(
        "x = c64[1] parameter(0)\n"
        " ROOT r = c64[1] reduce-scatter(x), dimensions={0}, to_apply=product",
        "x = c64[1] parameter(0)\n ROOT r = c64[1] constant({(0, -4)})",
        (np.array([complex(6e-39, -4)], np.complex64),),
    ),
    "a factor that is rounded before an integer sum": Open(
        "x = s64[1] parameter(0)\n y = f32[1] parameter(1)\n"
        " ROOT r = u64[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "x = s64[1] parameter(0)\n y = f32[1] parameter(1)\n ROOT r = u64[] constant(50331648)",
        (np.array([(1 << 24) + 1], np.int64), np.array([3.0], np.float32)),
    ),
    "floats that are integers before they are added up": Open(
        "x = f64[2] parameter(0)\n"
        " ROOT r = s16[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "x = f64[2] parameter(0)\n ROOT r = s16[] constant(0)",
        (np.array([0.9, 300.0]),),
    ),
    "logistic of a complex number by its exponential, beside a pole": Open(
        "x = c128[1] parameter(0)\n ROOT r = c128[1] logistic(x)",
        "x = c128[1] parameter(0)\n"
        " ROOT r = c128[1] constant({(0.5000000000009434, 141.90033425277878)})",
        (np.array([5.164496182887335e19j]),),
    ),
    "the state that random numbers begin with": Open(
        "ROOT r = u64[2] rng-get-and-update-state(), delta=1",
        "ROOT r = u64[2] constant({117515157, 0})",
        (),
    ),
    "legacy rng": Open(
        "a = f32[] constant(0)\n b = f32[] constant(1)\n"
        " ROOT r = f32[4] rng(a, b), distribution=rng_uniform",
        "ROOT r = f32[4] constant({0.5, 0.25, 0.125, 0.75})",
        (),
    ),
}


def _text(lines: str) -> str:
    computations = "".join(f"{name} {{\n {body}\n}}\n" for name, body in _COMPUTATIONS.items())
    return f"HloModule m\n{computations}ENTRY e {{\n {lines}\n}}\n"


@pytest.mark.parametrize("budget", [XLA_CPU, UNKNOWN], ids=lambda budget: budget.name)
@pytest.mark.parametrize("name", _EXEMPTIONS)
def test_it_is_not_reported(name: str, budget: Budget) -> None:
    lines, instead, arguments = _EXEMPTIONS[name]
    module, other = hlo.parse(_text(lines)), hlo.parse(_text(instead))

    def run(text: str, arrays: object) -> Answer:
        if hlo.parse(text).entry.root_instruction.name != "r":
            return Answer(error="no values in between")
        return Answer(tuple(arrays_of((interp.evaluate(other, *arguments),))))

    assert Against(run, budget).failure(module, arguments) is None

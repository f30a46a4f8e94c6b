"""List the programs of the tables that are not tried, and those whose results differ in XLA.

Patterns are those of fnmatch, over the names of cases. What was seen is of jaxlib 0.10.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from against_jax.case import COMPLEX, FLOATS, NARROW

TWO_BITS = ("s2", "u2")
FOUR_BITS = ("s4", "u4")
FNUZ = ("f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2fnuz")

# Functions of JAX without a case, and why.
EXCLUDED = {
    "lax": {
        "no computation": "ConvGeneralDilatedDimensionNumbers DotDimensionNumbers PrecisionLike"
        " broadcast_shapes conv_dimension_numbers conv_general_permutations"
        " conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple dtype"
        " padtype_to_pads reduce_window_shape_tuple",
        "JAX lowers it for GPU and TPU only": "pbroadcast precv psend",
        "its numbers are free: tests/interp/ops/test_random.py has ours": "rng_uniform",
    },
    "lax.linalg": {},
    "random": {"no computation": "key_dtype key_impl"},
    "numpy.linalg": {},
    "numpy.fft": {},
    "scipy.cluster.vq": {},
    "scipy.fft": {},
    "scipy.integrate": {},
    "scipy.linalg": {},
    "scipy.ndimage": {},
    "scipy.optimize": {},
    "scipy.signal": {},
    "scipy.sparse.linalg": {},
    "scipy.special": {},
    "scipy.stats": {},
    "scipy.stats.beta": {},
    "scipy.stats.norm": {},
    "nn.initializers": {},
    "ops": {},
    "image": {},
    "nn": {
        "no computation": "get_scaled_dot_general_config",
        "JAX lowers it for GPU only": "scaled_matmul",
    },
    "numpy": {
        "no computation": "array_repr array_str broadcast_shapes can_cast einsum_path empty"
        " from_dlpack frombuffer fromfile fromiter fromstring get_printoptions iscomplexobj isdtype"
        " isrealobj isscalar issubdtype iterable load ndim printoptions promote_types result_type"
        " save savez set_printoptions shape size diag_indices diag_indices_from tril_indices"
        " triu_indices",
        "constants": "bartlett blackman hamming hanning kaiser",
        "its result's shape depends on values": "trim_zeros",
        "other names": "acos acosh asin asinh atan atan2 atanh bitwise_invert bitwise_left_shift"
        " bitwise_right_shift pow",
    },
}


@dataclass(frozen=True, slots=True)
class Known:
    """Cases and element types, and what is known of them; ``hlo`` is a program that shows it."""

    cases: str
    types: tuple[str, ...]
    why: str
    hlo: str = ""


# XLA:CPU ends the process, or writes over its memory: it is not asked.
CRASHES = (
    Known(
        "*concatenate*", TWO_BITS, "CHECK failure in EmitFastConcatenate (ir_array.cc:598)",
        "ROOT r = s2[4] concatenate(s2[2] parameter(0), s2[2] parameter(1)), dimensions={0}",
    ),
    Known("*sort*", TWO_BITS, "sort of packed elements writes beyond its buffer"),
)  # fmt: skip
# hlo.verify rejects them.
MEANINGLESS = (
    Known("lax.clamp*", COMPLEX, "JAX takes complex numbers, whose order the language leaves open"),
)
# XLA's result is not what the language means.
DEVIATIONS = (
    Known(
        "lax.population_count",
        FOUR_BITS,
        "counts the sign's copies of a number widened to s8",
        "ROOT r = s4[] popcnt(s4[] constant(-8))",  # XLA: 5
    ),
    Known(
        "lax.mulhi",
        FOUR_BITS,
        "the high half of the product of numbers widened to 8 bits is 0",
        "ROOT r = u4[] multiply-high(u4[] constant(15), u4[] constant(15))",
    ),
    Known(
        "lax.convert_element_type/[su]*",
        ("f4e2m1fn",),
        "saturates from 6, the largest f4 number below the integers' limits, on",
        "ROOT r = s8[] convert(f4e2m1fn[] constant(6))",  # XLA: 127
    ),
    Known(
        "lax.reduce_max/edges",
        ("f32", "f64"),
        "__ynn_fusion drops NaN: a maximum of NaN only is -inf, of some it is of the others",
        "reduce(add(f32[64,64] x, f32[64,64] y), -inf), dimensions={1}, to_apply=maximum",
    ),
    Known(
        "*abs*",
        COMPLEX,
        "the magnitude of (inf, nan) is NaN; as IEEE 754's hypot it is inf",
        "ROOT r = f32[] abs(c64[] constant((inf, nan)))",
    ),
    Known("*acos*", COMPLEX, "the imaginary part of acos(1 + 2**-126 i), -2**-63, is lost"),
    Known("*arccos*", COMPLEX, "as acos"),
    Known("*expm1", COMPLEX, "exp(inf + inf i) - 1 is NaN in XLA; as C's cexp it is infinite"),
    *(
        Known(cases, COMPLEX, "the squares of its formula overflow, and its differences cancel")
        for cases in ("lax.atan2", "lax.pow", "numpy.arctan2", "numpy.*power")
    ),
    Known(
        "lax.top_k/edges", NARROW, "a negative NaN is the smallest, any NaN is to be the largest"
    ),
    Known(
        "lax.reduce_precision/[18],0",
        (*FLOATS, *NARROW),
        "a NaN without mantissa bits stays NaN, as in docs/numerics.md; HloEvaluator has infinity",
    ),
    *(
        Known(
            cases,
            ("f8e8m0fnu",),
            "the least numbers are subnormal in f32, which XLA flushes to a zero that is NaN here",
            "ROOT r = f8e8m0fnu[] multiply(f8e8m0fnu[] 2**-126, f8e8m0fnu[] 0.5)",
        )
        for cases in ("lax.asinh", "lax.exp2", "lax.lgamma", "lax.integer_pow/*", "lax.conv*")
    ),
    Known(
        "lax.reduce_window/mul*",
        NARROW,
        "multiplies in f16, and rounds once: what is a zero on the way here is none there",
    ),
    *MEANINGLESS,
)
# What the C backend says of what it does not do, and the interpreter does.
NOT_YET_IN_C = (
    "no C for the custom call target 'lapack_",
    " in C: fast numerics of processors have it",
    "has no proven sequence yet",
    " in C: f32 and f64 of static sizes are",
)


def find(rows: Iterable[Known], case: str, type_name: str) -> Known | None:
    """The first row for this case and type."""
    for row in rows:
        if type_name in row.types and fnmatchcase(case, row.cases):
            return row
    return None

"""jax.numpy, jax.nn and jax.scipy.special: functions made of many instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from against_jax.case import (
    ALL,
    COMPLEX_PARTS,
    COMPOSITE,
    ELEMENTARY,
    EXACT,
    FLOATS,
    INTEGERS,
    ONE,
    SUM,
    UNSTABLE,
    USUAL,
    WIDE,
    Bound,
    Case,
    row,
)

_MATRIX, _SQUARE = "T[4,6]", "T[4,4]"
_POOR = Bound(16, 16, "differences of numbers of the same size")
# Every type is in the tables of lax.
_MOST = ("f32", "s32", "bf16", "f64", "u8", "c64", "f8e4m3fn", "pred")
# Functions by what they take.
_UNARY = (
    (EXACT, "abs absolute around ceil conj conjugate fabs fix floor imag invert isfinite"
     " isinf isnan isneginf isposinf iscomplex isreal logical_not negative positive real rint sign"
     " signbit spacing square trunc bitwise_count bitwise_not nan_to_num"),
    (ELEMENTARY, "arccos arccosh arcsin arcsinh arctan arctanh cbrt angle cos cosh deg2rad degrees"
     " exp exp2 expm1 log log10 log1p log2 rad2deg radians reciprocal sin sinh sqrt tan tanh"),
    (UNSTABLE, "i0 sinc"),
)  # fmt: skip
_REDUCTIONS = (
    (EXACT, "all any max min amax amin argmax argmin count_nonzero nanargmax nanargmin nanmax"
     " nanmin ptp"),
    (SUM, "sum mean prod nansum nanmean nanprod cumsum cumprod nancumsum nancumprod trapezoid"),
    (_POOR, "std var nanstd nanvar median nanmedian average diff gradient"),
)  # fmt: skip
_SHAPES = (
    "sort argsort flip fliplr flipud rot90 ravel transpose squeeze tril triu diag diagonal"
    " atleast_1d atleast_3d ediff1d matrix_transpose swapaxes0 nonzero0"
    " fftshift0 copy zeros_like ones_like"
)
_BINARY = (
    (EXACT, "add subtract multiply divide true_divide maximum minimum fmax fmin equal not_equal"
     " less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and"
     " bitwise_or bitwise_xor left_shift right_shift copysign nextafter heaviside ldexp"),
    (ELEMENTARY, "arctan2 hypot power float_power"),
    (COMPOSITE, "logaddexp logaddexp2"),
    (EXACT, "floor_divide remainder mod fmod divmod"),
)  # fmt: skip
_PRODUCTS = "convolve correlate cross dot inner kron matmul outer vdot vecdot"
_SPECIAL = (
    "digamma entr erf erfc erfinv expi expit exp1 gammaln i0 i0e i1 i1e log_ndtr log_softmax"
    " logit ndtr ndtri softmax spence xlogy1"
)
_NN = (
    "relu relu6 sigmoid softplus silu swish log_sigmoid leaky_relu hard_sigmoid hard_silu hard_tanh"
    " elu celu selu gelu soft_sign glu softmax log_softmax logsumexp standardize squareplus mish"
    " sparse_plus sparse_sigmoid"
)


def _named(module: Any, prefix: str, names: str) -> list[tuple[str, Callable[..., Any]]]:
    return [
        (f"{prefix}.{name}", getattr(module, name))
        for name in names.split()
        if hasattr(module, name)
    ]


def _tables() -> list[Case]:
    rows = []
    for bound, names in _UNARY:
        rows += [
            row(name, f, "T[]:edges", types=_MOST, bound=bound, complex_bound=COMPLEX_PARTS)
            for name, f in _named(jnp, "numpy", names)
        ]
    for bound, names in _REDUCTIONS:
        rows += [
            row(f"{name}/axis", lambda x, f=f: f(x, axis=1), _MATRIX, types=USUAL, bound=bound)
            for name, f in _named(jnp, "numpy", names)
        ]
        rows += [
            row(name, f, _MATRIX, types=USUAL, bound=bound)
            for name, f in _named(jnp, "numpy", names)
        ]
    rows += [row(name, f, _SQUARE, types=_MOST) for name, f in _named(jnp, "numpy", _SHAPES)]
    rows += [  # of the least integer, whose magnitude is no number, they never end
        row(name, f, "T[6,7]:positive", "T[6,7]:positive", types=("s8", "s32", "s64", "u8", "u32"))
        for name, f in _named(jnp, "numpy", "gcd lcm")
    ]
    for bound, names in _BINARY:
        rows += [
            row(
                name,
                f,
                "T[]:rows",
                "T[]:columns",
                types=_MOST,
                bound=bound,
                complex_bound=COMPLEX_PARTS,
            )
            for name, f in _named(jnp, "numpy", names)
        ]
    rows += [
        row(name, f, "T[3]", "T[3]", types=USUAL, bound=SUM)
        for name, f in _named(jnp, "numpy", _PRODUCTS)
    ]
    rows.append(row("numpy.tensordot", lambda a, b: jnp.tensordot(a, b, 1), "T[3,4]", "T[4,2]",
                    types=USUAL, bound=SUM))  # fmt: skip
    rows += [
        row(name, f, "T[9]:fraction", types=FLOATS, bound=UNSTABLE)
        for name, f in _named(jax.scipy.special, "scipy.special", _SPECIAL)
    ]
    for name, f in _named(jax.nn, "nn", _NN):
        rows.append(row(name, f, "T[3,8]", types=FLOATS, bound=COMPOSITE))
        rows.append(row(f"grad {name}", jax.grad(lambda x, f=f: (f(x) ** 2).sum()), "T[3,8]",
                        types=FLOATS, bound=UNSTABLE))  # fmt: skip
    return rows


def _attention(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def _layer(x, w, b):
    y = jax.nn.gelu(jax.nn.standardize(x @ w) + b)
    return jnp.mean(y * y)


_EINSUMS = ("ij,jk->ik", "ij,ij->i", "ijk,ikl->ijl", "ii->i", "ij->ji", "ijkl,km->ijml")


def _einsum_operands(text: str) -> list[str]:
    sizes = dict(zip("ijklm", (4, 4, 3, 5, 2), strict=True))
    terms = text.split("->")[0].split(",")
    return [f"T[{','.join(str(sizes[letter]) for letter in term)}]" for term in terms]


CASES = (
    *_tables(),
    *(
        row(
            f"numpy.einsum/{text}",
            lambda *x, text=text: jnp.einsum(text, *x),
            *_einsum_operands(text),
            types=USUAL,
            bound=SUM,
        )
        for text in _EINSUMS
    ),
    row("numpy.unwrap", jnp.unwrap, _SQUARE, types=_MOST, bound=_POOR),
    row("numpy.trace", jnp.trace, _SQUARE, types=_MOST, bound=SUM),
    row("numpy.interp", jnp.interp, "T[9]", "T[5]:ascending", "T[5]", types=WIDE, bound=_POOR),
    row(
        "numpy.searchsorted",
        lambda a, v: jnp.searchsorted(a, v),
        "T[7]:ascending",
        "T[9]",
        types=(*FLOATS, *INTEGERS[2:6]),
    ),
    row(
        "numpy.searchsorted/right",
        lambda a, v: jnp.searchsorted(a, v, side="right"),
        "T[7]:ascending",
        "T[9]",
        types=(*FLOATS, *INTEGERS[2:6]),
    ),
    row(
        "numpy.searchsorted/sort",
        lambda a, v: jnp.searchsorted(a, v, method="sort"),
        "T[7]:ascending",
        "T[9]",
        types=USUAL[:2],
    ),
    row("numpy.histogram", lambda x: jnp.histogram(x, 5, (-3, 3)), "T[30]", types=WIDE, bound=SUM),
    row(
        "numpy.digitize",
        lambda x, b: jnp.digitize(x, b),
        "T[9]",
        "T[5]:ascending",
        types=("f32", "s32"),
    ),
    row("numpy.bincount", lambda x: jnp.bincount(x, length=9), "s32[20]:index8", types=ONE),
    row(
        "numpy.unique",
        lambda x: jnp.unique(x, size=6, return_counts=True, return_inverse=True),
        "T[9]:small",
        types=("f32", "s32", "u8"),
    ),
    row(
        "numpy.nonzero",
        lambda x: jnp.nonzero(x, size=5, fill_value=-1),
        "T[3,4]:small",
        types=USUAL,
    ),
    row("numpy.argwhere", lambda x: jnp.argwhere(x, size=5), "T[3,4]:small", types=USUAL),
    row("numpy.where", lambda x: jnp.where(x, size=5), "T[12]:small", types=USUAL),
    row(
        "numpy.percentile",
        lambda x: jnp.percentile(x, jnp.array([10.0, 50.0])),
        "T[9]",
        types=FLOATS[:2],
        bound=_POOR,
    ),
    row(
        "numpy.quantile",
        lambda x: jnp.quantile(x, 0.3, method="linear"),
        "T[9]",
        types=FLOATS[:2],
        bound=_POOR,
    ),
    row("numpy.cov", jnp.cov, "T[3,9]", types=WIDE, bound=_POOR),
    row("numpy.corrcoef", jnp.corrcoef, "T[3,9]", types=WIDE, bound=_POOR),
    row(
        "numpy.polyval",
        lambda p, x: jnp.polyval(p, x),
        "T[4]",
        "T[5]",
        types=USUAL[:4],
        bound=COMPOSITE,
    ),
    row(
        "numpy.polyfit",
        lambda x, y: jnp.polyfit(x, y, 2),
        "T[9]",
        "T[9]",
        types=("f64",),
        bound=UNSTABLE,
    ),
    row("numpy.roll", lambda x: jnp.roll(x, 2, 1), _MATRIX),
    row("numpy.repeat", lambda x: jnp.repeat(x, 2, 1), _MATRIX),
    row("numpy.tile", lambda x: jnp.tile(x, (2, 2)), _MATRIX),
    row("numpy.pad/reflect", lambda x: jnp.pad(x, 2, "reflect"), _MATRIX),
    row("numpy.pad/edge", lambda x: jnp.pad(x, 2, "edge"), _MATRIX),
    row("numpy.pad/wrap", lambda x: jnp.pad(x, 2, "wrap"), _MATRIX),
    row(
        "numpy.lexsort",
        lambda x, y: jnp.lexsort((x, y)),
        "T[9]:small",
        "T[9]:small",
        types=("f32", "s32"),
    ),
    row("numpy.partition", lambda x: jnp.partition(x, 3), "T[9]", types=("f32", "s32", "u8")),
    row(
        "numpy.argpartition",
        lambda x: jnp.argpartition(x, 3),
        "T[9]:distinct",
        types=("f32", "s32"),
    ),
    row("numpy.isin", jnp.isin, "T[9]:small", "T[4]:small", types=USUAL),
    row(
        "numpy.intersect1d",
        lambda x, y: jnp.intersect1d(x, y, size=4),
        "T[9]:small",
        "T[4]:small",
        types=("s32",),
    ),
    row("numpy.packbits", jnp.packbits, "u8[20]", types=ONE),
    row("numpy.unpackbits", jnp.unpackbits, "u8[5]", types=ONE),
    row(
        "numpy.linspace",
        lambda a, b: jnp.linspace(a, b, 7),
        "T[]",
        "T[]",
        types=FLOATS,
        bound=_POOR,
    ),
    row(
        "numpy.logspace",
        lambda a, b: jnp.logspace(a, b, 7),
        "T[]:unit",
        "T[]:unit",
        types=WIDE,
        bound=COMPOSITE,
    ),
    row("numpy.vander", lambda x: jnp.vander(x, 4), "T[5]:unit", types=WIDE, bound=COMPOSITE),
    row("numpy.round", lambda x: jnp.round(x, 2), "T[9]", types=FLOATS, bound=_POOR),
    row("numpy.clip", lambda x: jnp.clip(x, 1, 2), "T[]:edges", types=ALL),
    row("numpy.frexp", jnp.frexp, "T[]:edges", types=FLOATS),
    row("numpy.modf", jnp.modf, "T[]:edges", types=FLOATS),
    row(
        "numpy.fft.irfft",
        lambda x: jnp.fft.irfft(jnp.fft.rfft(x)),
        "T[9]",
        types=WIDE,
        bound=Bound(4, 16, "two transforms"),
    ),
    row("numpy.astype", lambda x: x.astype(jnp.bfloat16), "T[]:edges"),
    row("numpy.view", lambda x: x.view(jnp.uint8), "T[4,6]", types=USUAL),
    row("nn.one_hot", lambda i: jax.nn.one_hot(i, 5), "s32[6]:index8", types=ONE),
    row(
        "nn.dot_product_attention",
        _attention,
        "T[2,4,2,3]",
        "T[2,4,2,3]",
        "T[2,4,2,3]",
        types=FLOATS,
        bound=COMPOSITE,
    ),
    row(
        "grad attention",
        jax.grad(lambda q, k, v: _attention(q, k, v).sum(), (0, 1, 2)),
        "T[2,4,2,3]",
        "T[2,4,2,3]",
        "T[2,4,2,3]",
        types=FLOATS,
        bound=UNSTABLE,
    ),
    row(
        "grad layer",
        jax.value_and_grad(_layer, (0, 1, 2)),
        "T[4,6]",
        "T[6,8]",
        "T[8]",
        types=FLOATS,
        bound=UNSTABLE,
    ),
    row(
        "image.resize",
        lambda x: jax.image.resize(x, (7, 5), "linear"),
        _MATRIX,
        types=FLOATS,
        bound=SUM,
    ),
    row(
        "image.resize/cubic",
        lambda x: jax.image.resize(x, (3, 9), "cubic"),
        _MATRIX,
        types=WIDE,
        bound=SUM,
    ),
    row(
        "scipy.signal.convolve2d",
        jax.scipy.signal.convolve2d,
        "T[5,6]",
        "T[2,3]",
        types=USUAL[:4],
        bound=SUM,
    ),
    row(
        "scipy.ndimage.map_coordinates",
        lambda x, c: jax.scipy.ndimage.map_coordinates(x, list(c), 1),
        "T[5,6]",
        "T[2,7]",
        types=WIDE,
        bound=_POOR,
    ),
)

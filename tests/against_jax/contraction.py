"""Products of matrices, and convolutions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from against_jax.case import COMPOSITE, FLOATS, NUMBERS, SUM, USUAL, Case, row

_DOTS = {
    # name: (operands, dimension numbers)
    "matrices": ("T[3,4]", "T[4,5]", (((1,), (0,)), ((), ()))),
    "vectors": ("T[7]", "T[7]", (((0,), (0,)), ((), ()))),
    "matrix and vector": ("T[3,7]", "T[7]", (((1,), (0,)), ((), ()))),
    "batch": ("T[2,3,4]", "T[2,4,5]", (((2,), (1,)), ((0,), (0,)))),
    "any order": ("T[4,2,3,5]", "T[3,6,4,2]", (((0, 2), (2, 0)), ((1,), (3,)))),
    "outer": ("T[3]", "T[4]", (((), ()), ((), ()))),
    "elementwise": ("T[3,4]", "T[3,4]", (((), ()), ((0, 1), (0, 1)))),
    "nothing": ("T[3,0]", "T[0,4]", (((1,), (0,)), ((), ()))),
}
_CONVOLUTIONS = {
    # name: (operands, window strides, padding, the rest)
    "plain": (("T[2,3,6]", "T[4,3,3]"), (1,), "VALID", {}),
    "same": (("T[1,2,5,6]", "T[3,2,3,2]"), (2, 1), "SAME", {}),
    "same lower": (("T[1,2,5,6]", "T[3,2,3,2]"), (1, 2), "SAME_LOWER", {}),
    "padded": (("T[1,2,5,4]", "T[3,2,3,2]"), (1, 1), ((2, 1), (0, 3)), {}),
    "cropped": (("T[1,2,7,7]", "T[3,2,3,2]"), (1, 1), ((-1, 1), (0, -2)), {}),
    "dilated": (
        ("T[1,2,4,5]", "T[2,2,2,3]"),
        (1, 1),
        ((1, 1), (2, 2)),
        {"lhs_dilation": (2, 1), "rhs_dilation": (1, 2)},
    ),
    "groups": (("T[2,4,6]", "T[6,2,3]"), (1,), "VALID", {"feature_group_count": 2}),
    "depthwise": (("T[2,4,6]", "T[8,1,3]"), (1,), "SAME", {"feature_group_count": 4}),
    "batch groups": (("T[4,3,6]", "T[6,3,3]"), (1,), "VALID", {"batch_group_count": 2}),
    "NHWC": (
        ("T[1,5,6,3]", "T[2,3,3,4]"),
        (1, 1),
        "SAME",
        {"dimension_numbers": ("NHWC", "HWIO", "NHWC")},
    ),
    "other order": (
        ("T[5,3,2,6]", "T[3,4,2,2]"),
        (1, 2),
        "VALID",
        {"dimension_numbers": ("HCNW", "IOWH", "WNCH")},
    ),
    "three": (("T[1,2,3,4,3]", "T[2,2,2,2,2]"), (1, 1, 1), "VALID", {}),
    "no space": (("T[3,4]", "T[5,4]"), (), (), {}),
    "one": (("T[2,3,4]", "T[5,3,1]"), (1,), "VALID", {}),
}


def _dots() -> list[Case]:
    return [
        row(
            f"lax.dot_general/{name}",
            lambda x, y, numbers=numbers: lax.dot_general(x, y, numbers),
            *operands,
            bound=SUM,
        )
        for name, (*operands, numbers) in _DOTS.items()
    ]


def _wide() -> list[Case]:
    """Products of one type, summed in another."""
    pairs = (("s8", "int32"), ("u8", "int32"), ("bf16", "float32"), ("f16", "float32"),
             ("s4", "int32"), ("f8e4m3fn", "float32"), ("f8e5m2", "bfloat16"), ("s16", "int64"),
             ("f32", "float64"), ("bf16", "float64"))  # fmt: skip
    return [
        row(
            f"lax.dot/{name} to {to}",
            lambda x, y, to=to: lax.dot(x, y, preferred_element_type=to),
            "T[3,40]",
            "T[40,5]",
            types=(name,),
            bound=SUM,
        )
        for name, to in pairs
    ]


def _precisions() -> list[Case]:
    names = ("default", "high", "highest", "BF16_BF16_F32", "F32_F32_F32", "F64_F64_F64",
             "BF16_BF16_F32_X3")  # fmt: skip
    return [
        row(
            f"lax.dot/{name}",
            lambda x, y, name=name: lax.dot(x, y, precision=_precision(name)),
            "T[3,7]:small",
            "T[7,5]:small",
            types=FLOATS,
            bound=SUM,
        )
        for name in names
    ]


def _precision(name: str) -> object:
    return name if name.islower() else getattr(lax.DotAlgorithmPreset, name)


def _convolutions() -> list[Case]:
    return [
        row(
            f"lax.conv_general_dilated/{name}",
            lambda x, y, s=strides, p=padding, o=options: lax.conv_general_dilated(x, y, s, p, **o),
            *operands,
            bound=SUM,
        )
        for name, (operands, strides, padding, options) in _CONVOLUTIONS.items()
    ]


def _gradients() -> list[Case]:
    """Gradients of convolutions have base dilation, reversal, negative padding, batch groups."""
    rows = []
    for name, (operands, strides, padding, options) in _CONVOLUTIONS.items():

        def loss(x, y, s=strides, p=padding, o=options):
            return (lax.conv_general_dilated(x, y, s, p, **o) ** 2).sum()

        rows.append(
            row(
                f"grad conv/{name}",
                jax.grad(loss, (0, 1)),
                *operands,
                types=FLOATS,
                bound=COMPOSITE,
            )
        )
    return rows


def _ragged(numbers: tuple[object, ...], *operands: str) -> Case:
    dimension_numbers = lax.RaggedDotDimensionNumbers(*numbers)
    return row(
        f"lax.ragged_dot_general/{numbers[1]} {numbers[2]}",
        lambda x, y: lax.ragged_dot_general(
            x, y, jnp.array([2, 0, 4], jnp.int32), dimension_numbers
        ),
        *operands,
        bound=SUM,
    )


def _scaled_dot(x, y, a, b):
    return lax.scaled_dot(
        x, y, lhs_scale=a, rhs_scale=b, dimension_numbers=(((2,), (2,)), ((0,), (0,)))
    )


CASES = (
    *_dots(),
    *_wide(),
    *_precisions(),
    *_convolutions(),
    *_gradients(),
    row("lax.dot", lax.dot, "T[3,4]", "T[4,5]", bound=SUM),
    row("lax.dot/large", lax.dot, "T[30,70]", "T[70,50]", types=NUMBERS[:6] + ("c64",), bound=SUM),
    row("lax.batch_matmul", lax.batch_matmul, "T[2,3,4]", "T[2,4,5]", bound=SUM),
    row(
        "lax.conv",
        lambda x, y: lax.conv(x, y, (1, 1), "SAME"),
        "T[1,2,4,4]",
        "T[3,2,2,2]",
        bound=SUM,
    ),
    row(
        "lax.conv_with_general_padding",
        lambda x, y: lax.conv_with_general_padding(x, y, (1, 1), ((1, 0), (0, 1)), (1, 2), (2, 1)),
        "T[1,2,4,4]",
        "T[3,2,2,2]",
        bound=SUM,
    ),
    row(
        "lax.conv_transpose",
        lambda x, y: lax.conv_transpose(x, y, (2, 2), "SAME"),
        "T[1,4,4,3]",
        "T[3,3,3,2]",
        bound=SUM,
    ),
    row(
        "lax.conv_transpose/kernel",
        lambda x, y: lax.conv_transpose(x, y, (2,), "VALID", transpose_kernel=True),
        "T[1,4,3]",
        "T[3,2,3]",
        bound=SUM,
    ),
    row(
        "lax.conv_general_dilated_patches",
        lambda x: lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "SAME"),
        "T[1,2,4,6]",
        bound=SUM,
    ),
    row(
        "lax.conv_general_dilated_local",
        lambda x, y: lax.conv_general_dilated_local(x, y, (1,), "VALID", (2,)),
        "T[2,3,5]",
        "T[4,6,4]",
        bound=SUM,
    ),
    row(
        "lax.conv_general_dilated/s8 to s32",
        lambda x, y: lax.conv_general_dilated(x, y, (1,), "SAME", preferred_element_type=jnp.int32),
        "s8[1,2,5]",
        "s8[3,2,3]",
        types=("s8",),
    ),
    row(
        "lax.ragged_dot",
        lambda x, y: lax.ragged_dot(x, y, jnp.array([2, 1, 3], jnp.int32)),
        "T[6,4]",
        "T[3,4,5]",
        bound=SUM,
    ),
    row(
        "lax.ragged_dot/short",
        lambda x, y: lax.ragged_dot(x, y, jnp.array([1, 0, 3], jnp.int32)),
        "T[6,4]",
        "T[3,4,5]",
        bound=SUM,
    ),
    _ragged(((((1,), (1,)), ((), ())), (0,), (0,)), "T[6,4]", "T[3,4,5]"),
    _ragged(((((0,), (0,)), ((), ())), (0,), ()), "T[6,4]", "T[6,5]"),
    _ragged(((((1,), (1,)), ((0,), (0,))), (0,), ()), "T[6,2,4]", "T[6,4,5]"),
    row(
        "grad lax.ragged_dot",
        jax.grad(lambda x, y: lax.ragged_dot(x, y, jnp.array([2, 1, 3], jnp.int32)).sum(), (0, 1)),
        "T[6,4]",
        "T[3,4,5]",
        types=("f32", "bf16"),
        bound=SUM,
    ),
    row(
        "lax.scaled_dot",
        _scaled_dot,
        "f8e4m3fn[2,3,64]",
        "f8e4m3fn[2,5,64]",
        "f8e8m0fnu[2,3,2]:positive",
        "f8e8m0fnu[2,5,2]:positive",
        types=("f8e4m3fn",),
        bound=SUM,
    ),
    row(
        "lax.scaled_dot/f4",
        _scaled_dot,
        "f4e2m1fn[2,3,64]",
        "f4e2m1fn[2,5,64]",
        "f8e8m0fnu[2,3,2]:positive",
        "f8e8m0fnu[2,5,2]:positive",
        types=("f4e2m1fn",),
        bound=SUM,
    ),
    row("vmap lax.dot", jax.vmap(lax.dot, (0, None)), "T[2,3,4]", "T[4,5]", bound=SUM, types=USUAL),
    row(
        "grad lax.dot",
        jax.grad(lambda x, y: (x @ y).sum(), (0, 1)),
        "T[3,4]",
        "T[4,5]",
        types=FLOATS,
        bound=SUM,
    ),
    row(
        "vmap conv",
        jax.vmap(lambda x, y: lax.conv(x, y, (1,), "SAME")),
        "T[2,1,2,4]",
        "T[2,3,2,2]",
        bound=SUM,
        types=USUAL,
    ),
)

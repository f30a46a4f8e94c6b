"""ATen's operations on JAX's arrays, against NumPy and against what PyTorch's documentation says.

JAX computes them here, element by element; that C gives the same is other tests' matter. Nothing
here needs PyTorch.
"""

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from hlo_oracle.frontends.jax_internals import with_x64  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch.aten.pooling import (  # noqa: E402 (after the skip)
    Windows,
    _flat_places,
)
from hlo_oracle.frontends.torch.aten.promotion import common_type  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch.aten.table import operation_of  # noqa: E402 (after the skip)

F32, I64 = np.dtype("float32"), np.dtype("int64")


def of(name: str, result: Any, *arguments: Any, **named: Any) -> Any:
    operation = operation_of(*name.partition(".")[::2])
    assert operation is not None
    with with_x64(True):
        given = jax.tree.map(
            lambda x: jax.numpy.asarray(x) if hasattr(x, "shape") else x, arguments
        )
        return jax.tree.map(np.asarray, jax.jit(lambda: operation(result, *given, **named))())


def numbers(*dims: int) -> Any:
    return np.random.default_rng(0).standard_normal(dims, F32)


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ([np.zeros(2, "int32"), 1.5], "float32"),  # the kind is higher
        ([np.zeros(2, "int32"), 2], "int32"),
        ([np.zeros(2, "float16"), np.zeros((), "float64")], "float16"),  # no dimensions
        ([np.zeros(2, "float16"), np.zeros(2, "float32")], "float32"),
        ([np.zeros(2, "bool"), 1], "int64"),
        ([np.zeros(2, "float64"), 1j], "complex128"),
        ([np.zeros(2, "int8"), np.zeros((), "float32")], "float32"),
    ],
)
def test_types_are_promoted_by_kind_first(operands: list[Any], expected: str) -> None:
    with with_x64(True):
        assert common_type(*operands) == expected


def test_a_correction_of_a_variance_may_be_a_fraction() -> None:
    x = numbers(5, 3)
    expected = np.square(x - x.mean(0)).sum(0) / 3.7
    assert np.allclose(of("var", F32, x, [0], 1.3), expected)  # that of prims has it third
    assert np.allclose(of("var.correction", F32, x, [0], correction=1.3), expected)
    assert np.allclose(of("var.dim", F32, x, [0], True), x.var(0, ddof=1))


def test_quotients_are_rounded_as_asked() -> None:
    x = np.array([-7, 7, -6], I64)
    assert of("div.Tensor", F32, x, 2).tolist() == [-3.5, 3.5, -3]
    assert of("div.Tensor_mode", I64, x, 2, rounding_mode="floor").tolist() == [-4, 3, -3]
    assert of("div.Tensor_mode", I64, x, 2, rounding_mode="trunc").tolist() == [-3, 3, -3]


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(None, None, 1), (-3, None, 1), (1, 2**63 - 1, 2), (4, 2, 1), (0, -9, 1)],
)  # fmt: skip
def test_slices_are_those_of_python(start: int | None, end: int | None, step: int) -> None:
    x = np.arange(7)
    expected = x[start:end:step].tolist()
    assert of("slice.Tensor", I64, x, 0, start, end, step).tolist() == expected


def test_a_slice_is_written_where_it_is_read() -> None:
    x, source = np.arange(6), np.array([10, 11])
    assert of("slice_scatter", I64, x, source, 0, 1, 3).tolist() == [0, 10, 11, 3, 4, 5]
    assert of("slice_scatter", I64, x, source, 0, 1, 5, 2).tolist() == [0, 10, 2, 11, 4, 5]


def test_arrays_of_no_elements_are_left_out_of_a_concatenation() -> None:
    x = numbers(2, 3)
    assert np.array_equal(of("cat", F32, [np.zeros(0, F32), x, x], 1), np.hstack([x, x]))


@pytest.mark.parametrize("ceil", [False, True])
def test_windows_of_a_pooling(ceil: bool) -> None:
    """Largest elements and their places, of windows that overhang with ``ceil``."""
    x = numbers(1, 2, 5, 6)
    values, places = of("max_pool2d_with_indices", F32, x, [2, 3], [2, 2], [1, 1], [1, 1], ceil)
    assert values.shape == (1, 2, 3, 4 if ceil else 3)
    assert np.array_equal(x.reshape(1, 2, 30)[0, 1][places[0, 1]], values[0, 1])
    assert values[0, 0, 0, 0] == x[0, 0, :1, :2].max()
    gradient = of(
        "max_pool2d_with_indices_backward", F32, np.ones_like(values), x, [2, 3], [2, 2], [1, 1],
        [1, 1], ceil, places,
    )  # fmt: skip
    assert gradient.sum() == values.size


def test_the_place_of_a_largest_element_is_within_the_array() -> None:
    x = np.full((1, 1, 2, 2), -np.inf, F32)
    _, places = of("max_pool2d_with_indices", F32, x, [2, 2], [2, 2], [1, 1])
    assert places.ravel().tolist() == [0, 1, 2, 3]


def test_places_in_the_padding_of_large_planes_are_outside() -> None:
    size = 2**24
    windows = Windows((1, size), (2, 1), (1, size), (1, 0), 1, False)
    with with_x64(True):
        assert _flat_places((2, 1), windows, (0, 0)).ravel().tolist() == [-1, 0]


def test_padding_counts_in_a_mean_only_if_asked_for() -> None:
    x = np.ones((1, 1, 3), F32)
    assert of("avg_pool1d", F32, x, [2], [2], [1]).ravel().tolist() == [0.5, 1]
    alone = of("avg_pool1d", F32, x, [2], [2], [1], False, False)
    assert alone.ravel().tolist() == [1, 1]


def test_a_transposed_convolution_is_the_gradient_of_a_convolution() -> None:
    x, weight = numbers(1, 4, 5), numbers(4, 3, 3)
    convolution = operation_of("convolution", "default")
    assert convolution is not None
    rest = None, [2], [1], [1]
    transposed = convolution(F32, x, weight, *rest, True, [1], 1)

    def paired(y: Any) -> Any:
        return (convolution(F32, y, weight, *rest, False, [0], 1) * x).sum()

    gradient = jax.grad(paired)(numbers(*transposed.shape))
    assert np.allclose(transposed, gradient, atol=1e-5)


def test_gathers_and_scatters_go_along_one_dimension() -> None:
    x, index = numbers(3, 4), np.array([[0, 3], [2, 2]])
    assert np.array_equal(of("gather", F32, x, 1, index), np.take_along_axis(x[:2], index, 1))
    added = of("scatter_add", F32, np.zeros((3, 4), F32), 1, index, np.ones((2, 2), F32))
    assert added.tolist() == [[1, 0, 0, 1], [0, 0, 2, 0], [0, 0, 0, 0]]


def test_the_rows_of_the_padding_have_no_gradient() -> None:
    gradient, indices = np.ones((3, 2), F32), np.array([0, 2, 0])
    assert of("embedding_dense_backward", F32, gradient, indices, 3, 2, False).tolist() == [
        [2, 2], [0, 0], [0, 0]
    ]  # fmt: skip


def test_the_sign_of_nan_is_zero() -> None:
    found = of("sign", F32, np.array([np.nan, -2, 0, -0.0, 3], F32))
    assert found.tolist() == [0, -1, 0, 0, 1] and not np.signbit(found[3])


@pytest.mark.parametrize("name", ["bitwise_right_shift", "__rshift__"])
def test_numbers_without_a_sign_have_none_to_shift_in(name: str) -> None:
    x, by = np.array([200, 128, 100, 255], "uint8"), np.array([1, 7, 1, 8], "uint8")
    assert of(name, x.dtype, x, by).tolist() == [100, 1, 50, 0]
    assert of(name, I64, np.array([-8, 8]), 1).tolist() == [-4, 4]


def test_powers_of_integers_by_all_bits_of_the_exponent() -> None:
    x = np.array([3, 2, 7, -1, -1, 1, 2, 0, -3], I64)
    y = np.array([100, 64, 2**62, -(2**62), -(2**62) - 1, -9, -1, 0, 65], I64)
    expected = [pow(int(a), int(b), 2**64) for a, b in zip(x[:3], y[:3], strict=True)]
    expected += [1, 2**64 - 1, 1, 0, 1, pow(-3, 65, 2**64)]
    assert of("pow.Tensor_Tensor", I64, x, y).view("uint64").tolist() == expected
    x, y = np.array([3, 255], "uint8"), np.array([200, 255], "uint8")
    assert of("pow.Tensor_Tensor", x.dtype, x, y).tolist() == [pow(3, 200, 256), 255]


def test_divisors_of_the_least_number() -> None:
    """Its absolute value is itself."""
    least = -(2**31)
    x, y = np.array([least, 1, least, 12, 0], "int32"), np.array([1, least, least, -18, 0], "int32")
    assert np.abs(of("gcd", x.dtype, x, y)).tolist() == [1, 1, least, 6, 0]
    assert of("lcm", x.dtype, x, y).tolist() == [least, least, least, 36, 0]


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_the_angle_of_a_real_number_is_zero_or_a_half_turn(kind: str) -> None:
    x = np.array([-0.0, 0, 2, -2, np.nan], kind)
    expected = np.array([0, 0, 0, np.pi, np.nan], kind)
    assert np.array_equal(of("angle", x.dtype, x), expected, equal_nan=True)
    assert of("angle", F32, np.array([-3, 3])).tolist() == [F32.type(np.pi), 0]
    assert np.isclose(of("angle", F32, np.array([1j], "complex64")), np.pi / 2)


@pytest.mark.parametrize(
    ("kind", "x", "exponent"),
    [
        ("float32", 1e-3, 130),  # the power is no number of its type
        ("float32", -1, 128),
        ("float32", 1, 2**40),
        ("float32", -3, -(2**40)),
        ("float64", 1e-300, 1100),
        ("float16", 3, -20),
        ("float16", 2**-14, 29),
    ],
)
def test_products_with_powers_of_two_are_rounded_once(kind: str, x: float, exponent: int) -> None:
    number = np.array([x, np.inf, 0, np.nan], kind)
    exponent_in_range = np.clip(exponent, -9999, 9999)
    with np.errstate(over="ignore", under="ignore"):
        expected = np.ldexp(number, exponent_in_range)
    found = of("ldexp", number.dtype, number, np.array([exponent]))
    assert np.array_equal(found, expected, equal_nan=True)


def test_the_digamma_function_has_limits_at_the_two_zeros() -> None:
    x = np.array([0, -0.0, -1, 1], F32)
    for found in (of("digamma", F32, x), of("polygamma", F32, 0, x)):
        assert found[:2].tolist() == [-np.inf, np.inf] and np.isnan(found[2])
        assert np.isclose(found[3], -np.euler_gamma)


def test_norms_of_narrow_floats_are_those_of_wide_ones() -> None:
    x = np.array([60, 60, 300], "float16")
    for order in (0.5, 2, 3):
        found = of("linalg_vector_norm", x.dtype, x, order).astype("float16")
        assert found == np.float16(np.linalg.norm(x.astype("float64"), order))


def test_an_attention_whose_mask_is_causal() -> None:
    query = numbers(1, 2, 4, 8)
    result, logarithms = of(
        "_scaled_dot_product_flash_attention_for_cpu", F32, query, query, query, 0.0, True
    )
    scores = np.where(np.tri(4, dtype=bool), query @ query.swapaxes(2, 3) / np.sqrt(8), -np.inf)
    weights = np.exp(scores)
    assert np.allclose(result, weights / weights.sum(-1, keepdims=True) @ query, atol=1e-5)
    assert np.allclose(logarithms, np.log(weights.sum(-1)), atol=1e-5)


def test_a_row_that_is_masked_as_a_whole_attends_to_nothing() -> None:
    """Its result is 0, not NaN, by masks of bool and of -inf, and so are its gradients."""
    name = "_scaled_dot_product_flash_attention_for_cpu"
    query = numbers(1, 1, 2, 3)
    mask = np.array([[True, False], [False, False]])
    for given in (mask, np.where(mask, F32.type(0), F32.type(-np.inf))):
        result, logarithms = of(name, F32, query, query, query, attn_mask=given)
        assert np.allclose(result[0, 0], [query[0, 0, 0], [0, 0, 0]], atol=1e-6)
        assert np.isfinite(logarithms).all()
        gradients = of(
            f"{name}_backward", F32, np.ones_like(query), query, query, query, result, logarithms,
            0.0, False, attn_mask=given,
        )  # fmt: skip
        assert np.isfinite(gradients).all() and not gradients[0][0, 0, 1].any()


def test_an_array_of_no_dimensions_is_a_window() -> None:
    x = np.asarray(3, F32)
    assert of("unfold", F32, x, 0, 1, 1).tolist() == [3]
    assert of("unfold", F32, x, 0, 0, 1).shape == (0,)
    assert of("multilabel_margin_loss_forward", F32, x, np.asarray(0), 1)[1].shape == ()


def test_a_copy_of_a_part_may_begin_at_its_distance_from_the_end() -> None:
    x = np.arange(12).reshape(3, 4)
    assert of("narrow_copy", I64, x, -1, 1, 2).tolist() == x[:, 1:3].tolist()
    assert of("narrow_copy", I64, x, 0, -2, 2).tolist() == x[1:].tolist()


@pytest.mark.parametrize("dim", [0, 1])
def test_gradients_of_a_weight_and_its_norm(dim: int) -> None:
    v, gradient = numbers(3, 4), numbers(3, 4)[::-1]
    norm = np.sqrt(np.square(v).sum(1 - dim, keepdims=True))
    g = 2 * np.ones_like(norm)
    found = of("_weight_norm_interface_backward", F32, gradient, v, g, norm, dim)
    assert np.allclose((found[0] * v).sum(1 - dim), 0, atol=1e-5)  # its length does not count
    assert np.allclose(found[1], (gradient * v).sum(1 - dim, keepdims=True) / norm, rtol=1e-5)
    assert np.allclose(found[0], 2 / norm * (gradient - v * found[1] / norm), rtol=1e-4)


def test_gradients_at_a_mask_are_those_of_the_first_elements() -> None:
    mask = np.array([[True, False], [True, True]])
    gradient = np.array([[1, 2], [3, 4]], F32)
    found = of("masked_scatter_backward", F32, gradient, mask, [2, 3])
    assert found.tolist() == [[1, 3, 4], [0, 0, 0]]


def test_the_slopes_of_a_randomized_leaky_relu_are_its_noise() -> None:
    gradient, x, noise = np.array([2, 2], F32), np.array([-1, 1], F32), np.array([0.5, 1], F32)
    rest = gradient, x, noise, 0.25, 0.75
    assert of("rrelu_with_noise_backward", F32, *rest, True, False).tolist() == [1, 2]
    assert of("rrelu_with_noise_backward", F32, *rest, False, False).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_powers_of_two_are_rounded_once(dtype: str) -> None:
    x = np.linspace(-13, 14, 100).astype(jax.numpy.dtype(dtype))
    expected = np.exp2(x.astype("float64")).astype(x.dtype)
    found = of("exp2", x.dtype, x)
    error = np.abs(found.astype("float64") - expected.astype("float64"))
    assert np.max(error / np.exp2(x.astype("float64"))) <= jax.numpy.finfo(x.dtype).eps


def test_scores_of_attention_are_not_rounded_to_bf16() -> None:
    narrow = (numbers(1, 1, 4, 8) * 4).astype(jax.numpy.bfloat16)
    name = "_scaled_dot_product_flash_attention_for_cpu"
    logarithms = of(name, narrow.dtype, narrow, narrow, narrow)[1]
    wide = narrow.astype(F32)
    assert np.allclose(logarithms, of(name, F32, wide, wide, wide)[1], rtol=1e-6)

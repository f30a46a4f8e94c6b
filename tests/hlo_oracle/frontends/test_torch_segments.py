"""ATen's reductions of segments, histograms of points, and factors of matrices on JAX's arrays,
against loops of NumPy. Nothing here needs PyTorch."""

import math
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from hlo_oracle.frontends.jax_internals import with_x64  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch.aten.table import operation_of  # noqa: E402 (after the skip)


def of(name: str, *arguments: Any, result: Any = None, **named: Any) -> Any:
    operation = operation_of(name, "default")
    assert operation is not None

    def array(x: Any) -> Any:
        return jax.numpy.asarray(x) if hasattr(x, "shape") else x

    with with_x64(True):
        given, keywords = (jax.tree.map(array, x) for x in (list(arguments), named))
        return jax.tree.map(np.asarray, jax.jit(lambda: operation(result, *given, **keywords))())


X = np.array([[[2, -1], [np.nan, 3], [0, 3], [4, 0], [5, 0], [6, -7]]] * 2) * [[[1]], [[0.5]]]
LENGTHS = np.array([[2, 0, 3], [1, 5, 0]])  # of the first batch, what is left does not count
_REDUCED = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}
_EMPTY = {"sum": 0, "mean": np.nan, "prod": 1, "max": -np.inf, "min": np.inf}


def segments(batch: int) -> list[slice]:
    ends = np.cumsum(LENGTHS[batch])
    return [slice(end - count, end) for end, count in zip(ends, LENGTHS[batch], strict=True)]


@pytest.mark.parametrize("reduce", _REDUCED)
@pytest.mark.parametrize("given", ["lengths", "offsets"])
def test_segments_are_reduced(reduce: str, given: str) -> None:
    expected = [
        [_REDUCED[reduce](x[at], 0) if len(x[at]) else [_EMPTY[reduce]] * 2 for at in segments(n)]
        for n, x in enumerate(X)
    ]
    offsets = np.pad(np.cumsum(LENGTHS, 1), ((0, 0), (1, 0)))
    named = {given: LENGTHS if given == "lengths" else offsets}
    assert np.allclose(of("segment_reduce", X, reduce, axis=1, **named), expected, equal_nan=True)


def test_what_segments_begin_with() -> None:
    found = of("segment_reduce", X, "sum", axis=1, lengths=LENGTHS, initial=9.0)
    assert np.array_equal(found[0, 1], [9, 9])
    assert np.array_equal(found[0, 2], [18, 12])
    found = of("segment_reduce", X, "max", axis=1, lengths=LENGTHS, initial=9.0)
    assert np.array_equal(found[0, 0], [np.nan, 9], equal_nan=True)


def _pulled(reduce: str, x: Any, gradient: float) -> list[float]:
    """Compute the gradients of the elements of one segment, one by one."""
    if not len(x):
        return []
    if reduce in ("sum", "mean"):
        return [gradient / (len(x) if reduce == "mean" else 1)] * len(x)
    if reduce == "prod":
        return [gradient * math.prod(np.delete(x, n)) for n in range(len(x))]
    chosen = (x == _REDUCED[reduce](x)) | np.isnan(x)
    return list(np.where(chosen, gradient / max(chosen.sum(), 1), 0))


@pytest.mark.parametrize("reduce", _REDUCED)
def test_gradients_of_segments(reduce: str) -> None:
    value = of("segment_reduce", X, reduce, axis=1, lengths=LENGTHS)
    gradient = np.arange(-5.0, value.size - 5).reshape(value.shape)
    expected = np.zeros_like(X)
    for n, column in np.ndindex(2, 2):
        for number, at in enumerate(segments(n)):
            own = gradient[n, number, column]
            expected[n, at, column] = _pulled(reduce, X[n, at, column], own)
    found = of("_segment_reduce_backward", gradient, value, X, reduce, lengths=LENGTHS, axis=1)
    assert np.allclose(found, expected, equal_nan=True)


def test_histograms_of_points() -> None:
    points = np.random.default_rng(0).standard_normal((30, 2))
    weights = np.arange(30.0)
    named: dict[str, Any] = {"weight": weights, "density": True, "result": points.dtype}
    expected, edges = np.histogramdd(points, (3, 4), weights=weights, density=True)
    assert np.allclose(of("_histogramdd_from_bin_cts", points, [3, 4], **named), expected)
    assert np.allclose(of("_histogramdd_from_bin_tensors", points, edges, **named), expected)
    for found, edge in zip(of("_histogramdd_bin_edges", points, [3, 4]), edges, strict=True):
        assert np.allclose(found, edge)
    ends = [-1.0, 1.0, 0.0, 2.0]
    found = of("_histogramdd_from_bin_cts", points, [3, 4], range=ends, result=points.dtype)
    assert np.array_equal(found, np.histogramdd(points, (3, 4), ((-1, 1), (0, 2)))[0])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("dims", [(2, 4, 4), (5, 3), (3, 5), (0, 2)])
def test_reflectors_of_a_factor(dtype: str, dims: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((2, *dims)).astype(dtype)
    x = x[0] + (1j * x[1] if dtype == "complex128" else 0)
    reflectors, factors = of("geqrf", x)
    upper = np.triu(reflectors)
    assert np.allclose(of("ormqr", reflectors, factors, upper), x)
    assert np.allclose(of("ormqr", reflectors, factors, x, True, True), upper)
    right = of("ormqr", reflectors, factors, x.conj().swapaxes(-1, -2), False)
    assert np.allclose(right, upper.conj().swapaxes(-1, -2))


def test_the_first_minor_that_is_not_positive() -> None:
    x = np.stack([np.diag([2.0, 1, -1, -1]), np.eye(4), np.full((4, 4), np.nan)])
    x[0, 1, 0] = 1
    assert of("linalg_cholesky_ex", x)[1].tolist() == [3, 0, 1]
    assert of("linalg_cholesky_ex", x.swapaxes(-1, -2), upper=True)[1].tolist() == [3, 0, 1]


def test_rows_beyond_a_norm_are_scaled() -> None:
    weight = np.array([[3.0, 4], [0.3, 0.4], [6, 8]])
    found = of("embedding_renorm", weight, np.array([[0, 1], [0, 1]]), 1.0, 2.0)
    assert np.allclose(found, [[0.6, 0.8], [0.3, 0.4], [6, 8]])


def test_gradients_by_frequency() -> None:
    gradient, index = np.ones((3, 2)), np.array([0, 2, 2])
    found = of("embedding_dense_backward", gradient, index, 3, -1, True)
    assert np.array_equal(found, [[1, 1], [0, 0], [1, 1]])


def test_gradients_of_a_shrinkage() -> None:
    x = np.array([-2, -1, 0.5, np.nan, 3])
    for name in ("hardshrink_backward", "softshrink_backward"):
        assert of(name, np.ones(5), x, 1.0).tolist() == [1, 0, 0, 1, 1]


def test_operands_of_complex_numbers_are_broadcast() -> None:
    assert of("complex", np.ones((2, 1)), np.arange(3.0)).shape == (2, 3)
    assert of("igamma", np.ones((2, 1)), np.arange(3.0), result=np.dtype("f8")).shape == (2, 3)

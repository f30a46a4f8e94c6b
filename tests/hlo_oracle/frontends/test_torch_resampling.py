"""ATen's interpolations and adaptive poolings on JAX's arrays, against what they do to arrays
whose result is known.

Nothing here needs PyTorch.
"""

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from hlo_oracle.frontends.jax_internals import with_x64  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch.aten.table import operation_of  # noqa: E402 (after the skip)

F32 = np.dtype("float32")


def of(name: str, *arguments: Any) -> Any:
    operation = operation_of(name, "default")
    assert operation is not None
    with with_x64(True):
        given = [jax.numpy.asarray(x) if hasattr(x, "shape") else x for x in arguments]
        return jax.tree.map(np.asarray, jax.jit(lambda: operation(F32, *given))())


def numbers(*dims: int) -> Any:
    return np.random.default_rng(0).standard_normal(dims, F32)


def test_windows_of_an_adaptive_pooling_overlap_where_they_do_not_divide() -> None:
    x = numbers(2, 5, 7)
    values, places = of("adaptive_max_pool2d", x, [2, 3])
    assert np.array_equal(values[:, 1, 1], x[:, 2:5, 2:5].max((1, 2)))
    assert np.array_equal(np.take_along_axis(x.reshape(2, -1), places.reshape(2, -1), 1).ravel(),
                          values.ravel())  # fmt: skip
    gradient = of("adaptive_max_pool2d_backward", np.ones_like(values), x, places)
    assert gradient.sum() == values.size
    assert np.array_equal(gradient != 0, np.isin(x, values))


def test_the_largest_element_of_a_window_is_its_last_nan() -> None:
    x = np.array([[[-np.inf, -np.inf, np.nan, np.nan, 1]]], F32)
    values, places = of("adaptive_max_pool2d", x, [1, 2])
    assert np.isnan(values).all()
    assert places.tolist() == [[[2, 3]]]
    assert of("adaptive_max_pool2d", x[..., :2], [1, 1])[1].item() == 0


def test_an_interpolation_is_the_weighted_sum_that_the_kernels_compute() -> None:
    """a (1 - t) + b t: at the border, where a is b, it may differ from a by a rounding."""
    x = numbers(2, 3)
    found = of("upsample_linear1d", x[None], [5], False)
    t = np.float32(3 / 5) * (np.arange(5, dtype=F32) + F32.type(0.5)) - F32.type(0.5)
    t = np.maximum(t, 0)
    first = t.astype(int)
    t = t - first.astype(F32)
    expected = x[:, first] * (1 - t) + x[:, np.minimum(first + 1, 2)] * t
    assert np.allclose(found[0], expected, rtol=3e-7)
    assert of("upsample_bilinear2d", x[None, None], [4, 6], True).shape == (1, 1, 4, 6)
    half = of("upsample_trilinear3d", np.ones((1, 1, 2, 2, 2), np.float16), [3, 2, 5], False)
    assert half.dtype == F32 and np.allclose(half, 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["bilinear2d", "bicubic2d"])
@pytest.mark.parametrize("align", [False, True])
def test_the_gradient_of_an_interpolation_sums_to_that_of_its_results(
    name: str, align: bool
) -> None:
    """The weights of each result sum to 1, and a place between two elements has those of both."""
    gradient = numbers(1, 2, 7, 3)
    found = of(f"upsample_{name}_backward", gradient, [7, 3], [1, 2, 4, 5], align)
    assert np.allclose(found.sum(), gradient.sum(), atol=1e-4)
    half = np.zeros((1, 3), F32)
    half[0, 1] = 1
    assert of("upsample_linear1d_backward", half[None], [3], [1, 1, 2], True).ravel().tolist() == [
        0.5, 0.5,
    ]  # fmt: skip


def test_the_gradient_of_copies_is_the_sum_of_theirs() -> None:
    gradient = np.arange(5, dtype=F32).reshape(1, 1, 5)
    assert of("upsample_nearest1d_backward", gradient, [5], [1, 1, 2]).ravel().tolist() == [3, 7]
    x = np.zeros((1, 1, 2), F32)
    padded = of("replication_pad1d_backward", gradient, x, [1, 2])
    assert padded.ravel().tolist() == [1, 9]


def grid_of(*dims: int) -> Any:
    """Make the grid whose places are the elements of an array, with corners aligned."""
    axes = np.meshgrid(*(np.linspace(-1, 1, size) for size in dims), indexing="ij")
    return np.stack(axes[::-1], -1)[None].astype(F32)


@pytest.mark.parametrize("mode", [0, 1])
def test_samples_at_elements_are_the_elements(mode: int) -> None:
    x = numbers(1, 2, 3, 4, 5)
    assert np.allclose(of("grid_sampler_3d", x, grid_of(3, 4, 5), mode, 0, True), x, atol=1e-5)


@pytest.mark.parametrize(("padding", "expected"), [(0, 0), (1, 5), (2, 3)])
def test_places_beyond_the_array(padding: int, expected: float) -> None:
    """Nothing, the last element, or a reflection: two elements beyond 3, 4, 5 is 3."""
    x = np.array([3, 4, 5], F32).reshape(1, 1, 1, 1, 3)
    place = np.array([3, 0, 0], F32).reshape(1, 1, 1, 1, 3)
    assert np.isclose(of("grid_sampler_3d", x, place, 0, padding, True).item(), expected)


@pytest.mark.parametrize("padding", [0, 1, 2])
def test_gradients_of_samples_are_slopes(padding: int) -> None:
    """Sampling is linear in the array: its gradient, summed with the array, is the sum of the
    samples. And a ramp has a constant slope, 0 beyond its border."""
    ramp = np.broadcast_to(np.arange(8, dtype=F32), (1, 1, 8, 8))
    grid = np.array([0.1, 0.2], F32).reshape(1, 1, 1, 2)
    one = np.ones((1, 1, 1, 1), F32)
    to_array, to_grid = of(
        "grid_sampler_2d_backward", one, ramp, grid, 0, padding, False, [True, True]
    )
    assert np.isclose((to_array * ramp).sum(), 0.1 * 4 + 3.5, atol=1e-5)
    assert np.allclose(to_grid.ravel(), [4, 0], atol=1e-4)
    if padding == 1:
        beyond = of(
            "grid_sampler_2d_backward", one, ramp, grid + 2, 0, padding, False, [False, True]
        )
        assert beyond[0] is None
        assert not beyond[1].any()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("kind", "half"), [("bilinear", 1), ("bicubic", 2), ("lanczos", 3)])
@pytest.mark.parametrize(("size", "count"), [(17, 5), (9, 8), (4, 11)])
def test_an_antialiased_interpolation_averages_as_much_as_it_shrinks(
    kind: str, half: int, size: int, count: int
) -> None:
    def weight(x: Any) -> Any:
        if kind == "bilinear":
            return 1 - x
        if kind == "lanczos":
            return np.sinc(x) * np.sinc(x / 3)
        return np.where(x < 1, 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2)

    matrix = np.zeros((count, size))
    width = max(size / count, 1)
    for n in range(count):
        distance = np.abs(np.arange(size) + 0.5 - (n + 0.5) * size / count) / width
        matrix[n] = np.where(distance < half, weight(distance), 0)
        matrix[n] /= matrix[n].sum()
    x = numbers(2, 3, size, size)
    found = of(f"_upsample_{kind}2d_aa", x, [count, size], False)
    assert np.allclose(found, matrix @ x, atol=1e-5)
    gradient = numbers(2, 3, count, size)
    back = of(f"_upsample_{kind}2d_aa_backward", gradient, [count, size], [2, 3, size, size], False)
    assert np.allclose(back, matrix.T @ gradient, atol=1e-5)


def test_copies_beyond_an_edge_that_is_cut_add_up_at_the_other() -> None:
    x, gradient = numbers(1, 4), np.array([[1, 2, 4, 8, 16]], F32)
    found = of("replication_pad1d_backward", gradient, x, [-1, 2])
    assert found.tolist() == [[0, 1, 2, 28]]


def test_windows_of_a_fractional_pooling_begin_at_distances_that_vary() -> None:
    x = numbers(2, 11, 9)
    x[1, 4:6, 3] = np.nan
    samples = np.array([[[0.3, 0.7], [0.9, 0.1]]], F32)  # the last dimension's first
    values, places = of("fractional_max_pool2d", x, [3, 2], [4, 5], samples)
    for n, (across, down) in enumerate(samples[0]):
        rows = [int((i + down) * 8 / 3) - int(down * 8 / 3) for i in range(3)] + [8]
        columns = [int((i + across) * 7 / 4) - int(across * 7 / 4) for i in range(4)] + [7]
        parts = np.array([[x[n, r : r + 3, c : c + 2].max() for c in columns] for r in rows])
        assert np.array_equal(values[n], parts, equal_nan=True)
    picked = np.take_along_axis(x.reshape(2, -1), places.reshape(2, -1), 1)
    assert np.array_equal(picked.ravel(), values.ravel(), equal_nan=True)
    assert 5 * 9 + 3 in places[1]  # the last NaN of a window
    rest = x, [3, 2], [4, 5], places
    gradient = of("fractional_max_pool2d_backward", np.ones_like(values), *rest)
    assert gradient.sum() == values.size


BYTES = np.arange(63, dtype=np.uint8).reshape(1, 1, 7, 9) * 37


@pytest.mark.parametrize("kind", ["upsample_{}2d", "_upsample_{}2d_aa"])
@pytest.mark.parametrize(("name", "sizes", "align"), [
    ("bilinear", (3, 9), False), ("bilinear", (7, 20), True), ("bicubic", (11, 9), False),
    ("bicubic", (7, 4), True),
])  # fmt: skip
def test_bytes_are_rounded_and_do_not_wrap(
    kind: str, name: str, sizes: tuple[int, int], align: bool
) -> None:
    name = kind.format(name)
    expected = np.clip(of(name, BYTES.astype("float64"), list(sizes), align), 0, 255)
    found = of(name, BYTES, list(sizes), align)
    assert found.dtype == np.uint8
    assert np.abs(found - expected).max() < 0.51  # weights have some 14 bits


def test_bytes_are_rounded_after_each_dimension() -> None:
    both = of("upsample_bilinear2d", BYTES, [11, 20], False)
    rows = of("upsample_bilinear2d", BYTES, [7, 20], False)
    assert np.array_equal(both, of("upsample_bilinear2d", rows, [11, 20], False))
    eager = [[0, 26, 30, 7], [5, 34, 38, 15], [16, 46, 50, 27], [24, 54, 58, 35]]
    given = BYTES[..., :3, :3] % 64
    assert of("upsample_bicubic2d", given, [4, 4], False)[0, 0].tolist() == eager

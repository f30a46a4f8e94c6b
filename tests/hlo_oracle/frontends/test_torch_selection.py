"""ATen's operations that pick, count, and reduce in bags, on JAX's arrays, against NumPy.

Nothing here needs PyTorch.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from hlo_oracle.frontends.jax_internals import with_x64  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch.aten.table import operation_of  # noqa: E402 (after the skip)

F32, I64 = np.dtype("float32"), np.dtype("int64")
NAN = np.nan


def of(name: str, result: Any, *arguments: Any, **named: Any) -> Any:
    operation = operation_of(*name.partition(".")[::2])
    assert operation is not None
    with with_x64(True):
        given = [jax.numpy.asarray(x) if hasattr(x, "shape") else x for x in arguments]
        return jax.tree.map(np.asarray, jax.jit(lambda: operation(result, *given, **named))())


def numbers(*dims: int) -> Any:
    return np.random.default_rng(0).standard_normal(dims, F32)


def test_the_lower_one_of_two_in_the_middle_is_the_median() -> None:
    x = np.array([[4, 1, 3, 2], [7, 7, 5, 6]], F32)
    values, places = of("median.dim", F32, x, 1)
    assert (values.tolist(), places.tolist()) == ([2, 6], [3, 3])
    assert of("median", F32, x) == 4
    assert of("median.dim", F32, x, -2, True)[0].shape == (1, 4)


def test_nan_is_the_median_unless_it_is_skipped() -> None:
    x = np.array([[4, NAN, 3, NAN], [NAN] * 4, [1, 2, 3, 4]], F32)
    assert of("median.dim", F32, x, 1)[1].tolist() == [1, 0, 1]
    values, places = of("nanmedian.dim", F32, x, 1)
    assert np.array_equal(values, np.array([3, NAN, 2], F32), equal_nan=True)
    assert places.tolist() == [2, 0, 1]


def test_elements_by_their_rank_and_the_most_frequent_ones() -> None:
    x = np.array([[5, 1, 5, 3, 1], [2, 2, 2, 0, 1]], I64)
    assert of("kthvalue", I64, x, 4, 1)[0].tolist() == [5, 2]
    values, places = of("mode", I64, x, 1)
    assert (values.tolist(), places.tolist()) == ([1, 2], [4, 2])
    assert of("mode", I64, x[0, 0])[0] == 5


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 0)])
def test_a_histogram_is_that_of_numpy(low: int, high: int) -> None:
    x = numbers(40)
    bounds = (low, high) if low != high else (x.min(), x.max())
    expected = np.histogram(x, 5, bounds)[0].tolist()
    assert of("histc", F32, x, 5, low, high).tolist() == expected
    edges = np.linspace(*bounds, 6, dtype=F32)
    counts, _ = of("histogram.bins_tensor", F32, x, edges, weight=np.abs(x), density=True)
    assert np.allclose(counts, np.histogram(x, edges, weights=np.abs(x), density=True)[0])


def test_a_histogram_of_equal_elements_has_bounds() -> None:
    assert of("histc", F32, np.full(3, 2.0, F32), 4).tolist() == [0, 0, 3, 0]


def test_indices_that_counts_and_elements_name() -> None:
    counts = np.array([2, 0, 1])
    repeated = of("repeat_interleave.Tensor", I64, counts, output_size=3)
    assert repeated.tolist() == [0, 0, 2]
    with pytest.raises(NotImplementedError, match="number is data"):
        of("repeat_interleave.Tensor", I64, counts)
    assert of("nonzero_static", I64, np.zeros((0, 2)), size=2).tolist() == [[-1, -1]] * 2
    x = np.array([[0, 1], [1, 0]])
    assert of("nonzero_static", I64, x, size=3).tolist() == [[0, 1], [1, 0], [-1, -1]]


def test_places_in_sorted_rows() -> None:
    rows, values = np.array([[1, 3, 5], [2, 2, 6]], F32), np.array([[3, 6], [2, 0]], F32)
    assert of("searchsorted.Tensor", I64, rows, values).tolist() == [[1, 3], [0, 0]]
    found = of("searchsorted.Tensor", I64, rows, values, right=True)
    assert found.tolist() == [[2, 3], [2, 0]]
    sorter = np.array([2, 0, 1])
    assert of("searchsorted.Tensor", I64, np.array([2, 3, 1]), 2, sorter=sorter) == 1


@pytest.mark.parametrize("right", [False, True])
def test_places_of_nan_and_among_them(right: bool) -> None:
    """A boundary is passed unless a comparison holds: NaN passes all, and NaN is passed."""
    values = np.array([NAN, 3, 2, -1], F32)
    expected = [3, 3, 3 if right else 1, 0]
    for name, given in ("searchsorted", [0, 1]), ("bucketize", [1, 0]):
        operands = [np.array([1, 2, NAN], F32), values]
        found = of(name, I64, *(operands[n] for n in given), right=right)
        assert found.tolist() == expected


def test_linear_indices_below_zero_count_from_the_end() -> None:
    x = np.arange(6).reshape(2, 3)
    assert of("take", I64, x, np.array([-1, 0])).tolist() == [5, 0]
    index, values = np.array([-1, 1, 1]), np.array([7, 8, 8])
    assert of("put", I64, x, index, values).tolist() == [[0, 8, 2], [3, 4, 7]]
    assert of("put", I64, x, index, values, True).tolist() == [[0, 17, 2], [3, 4, 12]]


def test_slices_are_reduced_by_their_index() -> None:
    x, source, index = np.ones((3, 2), F32), np.full((3, 2), 4, F32), np.array([2, 0, 2])
    rows = {"prod": [4, 1, 16], "mean": [2.5, 1, 3], "amax": [4, 1, 4], "amin": [1, 1, 1]}
    for how, expected in rows.items():
        assert of("index_reduce", F32, x, 0, index, source, how)[:, 1].tolist() == expected
    alone = of("index_reduce", F32, x, 0, index, source, "mean", include_self=False)
    assert alone[:, 0].tolist() == [4, 1, 4]


def test_elements_are_written_in_order_where_a_mask_is_true() -> None:
    x, mask = np.zeros((2, 3), F32), np.array([True, False, True])
    assert of("masked_scatter", F32, x, mask, np.arange(1, 9)).tolist() == [[1, 0, 2], [3, 0, 4]]


@pytest.mark.parametrize("offset", [-2, 0, 1])
def test_a_diagonal_is_written_where_it_is_read(offset: int) -> None:
    x = numbers(3, 2, 4)
    source = of("diagonal", F32, numbers(3, 2, 4) + 9, offset, 0, -1)
    written = of("diagonal_scatter", F32, x, source, offset, 0, -1)
    assert np.array_equal(of("diagonal", F32, written, offset, 0, -1), source)
    assert (written != x).sum() == source.size


def test_bits_are_read_in_another_type() -> None:
    x = numbers(2, 4)
    narrow = of("view.dtype", np.dtype("int16"), x, None)
    assert np.array_equal(narrow, x.view("int16"))
    assert np.array_equal(of("view.dtype", np.dtype("float64"), x, None), x.view("float64"))


INDICES, OFFSETS = np.array([1, 2, 4, 5, 4]), np.array([0, 2, 2])  # the second bag is empty


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_bags_of_rows_and_their_gradients(mode: int) -> None:
    weight = numbers(6, 3)
    rest = False, mode, False, None, False, 4
    reduce = [np.sum, np.mean, np.max][mode]
    result, *saved = of("_embedding_bag", F32, weight, INDICES, OFFSETS, *rest)
    rows = [[k for k in INDICES[a:b] if k != 4] for a, b in pairwise([0, 2, 2, 5])]
    expected = [reduce(weight[row], 0) if row else np.zeros(3) for row in rows]
    assert np.allclose(result, expected)
    gradient = of(
        "_embedding_bag_backward", F32, numbers(3, 3), INDICES, OFFSETS, *saved, 6, False, mode,
        False, None, 4,
    )  # fmt: skip
    step = numbers(6, 3)[::-1]
    moved, *_ = of("_embedding_bag", F32, weight + 1e-3 * step, INDICES, OFFSETS, *rest)
    assert np.isclose(((moved - result) * numbers(3, 3)).sum() * 1e3, (gradient * step).sum(), 1e-2)


@pytest.mark.parametrize(
    ("offsets", "expected", "places"),
    [
        ([0, 1], [[NAN, 1], [2, NAN]], [[0, 0], [1, 1]]),
        ([0], [[NAN, 1]], [[0, 0]]),  # only as the first is NaN the largest
        ([0, 2], [[NAN, 1], [0, 0]], [[0, 0], [-1, -1]]),
    ],
)
def test_nan_is_the_largest_of_a_bag_that_begins_with_it(
    offsets: list[int], expected: Any, places: Any
) -> None:
    weight = np.array([[NAN, 1], [2, NAN]], F32)
    result, _, _, best = of(
        "_embedding_bag", F32, weight, np.array([0, 1]), np.array(offsets), False, 2
    )
    assert np.array_equal(result, expected, equal_nan=True)
    assert best.tolist() == places


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, np.inf])
def test_distances_of_all_pairs_and_their_gradients(p: float) -> None:
    x, y = numbers(4, 3), numbers(9, 3)[4:]
    distance = of("_cdist_forward", F32, x, y, p, None)
    assert np.allclose(distance[1, 2], np.linalg.norm(x[1] - y[2], p))
    assert np.allclose(of("dist", F32, x, y[:4], p), np.linalg.norm((x - y[:4]).ravel(), p))
    assert np.allclose(of("_pdist_forward", F32, x, p)[1], np.linalg.norm(x[0] - x[2], p))
    if p:
        step = numbers(4, 3)[::-1] * F32.type(1e-3)
        moved = of("_cdist_forward", F32, x + step, y, p, None).sum() - distance.sum()
        gradient = of("_cdist_backward", F32, np.ones_like(distance), x, y, p, distance)
        assert np.isclose((gradient * step).sum(), moved, 5e-2, 1e-5)


def test_numbers_are_rounded_to_a_grid() -> None:
    x = np.array([-1, 0.04, 0.05, 0.31, 9], F32)
    value, kept = of("fake_quantize_per_tensor_affine_cachemask", F32, x, 0.1, 3, 0, 15)
    assert np.allclose(value, [-0.3, 0, 0, 0.3, 1.2])
    assert kept.tolist() == [False, True, True, True, False]
    value, kept = of(
        "fake_quantize_per_tensor_affine_cachemask", F32, np.array([NAN], F32), 0.1, 0, -128, 127
    )
    assert np.isclose(value, -12.8) and not kept
    off = of(
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", F32, x, np.float32(0.1),
        np.int32(3), np.array([0]), 0, 15,
    )  # fmt: skip
    assert np.array_equal(off[0], x)
    scale, zero = np.array([0.1, 1], F32), np.array([0, 1], "int32")
    value, _ = of(
        "fake_quantize_per_channel_affine_cachemask", F32, x[:4].reshape(2, 2), scale, zero, 1, -8,
        7,
    )  # fmt: skip
    assert np.allclose(value, [[-0.8, 0], [0, 0]])


def test_nan_has_no_margin() -> None:
    x = np.array([[NAN, 1, 2], [3, 0, NAN]], F32)
    rows, _ = of("multilabel_margin_loss_forward", F32, x, np.array([[1, 2, -1], [0, -1, 1]]), 0)
    assert rows.tolist() == [0, 0]


def test_margins_of_the_classes_that_a_row_lists() -> None:
    x, target = numbers(3, 4), np.array([[3, 0, -1, 1], [-1, 1, 1, 1], [0, 1, 2, 3]])
    rows, is_target = of("multilabel_margin_loss_forward", F32, x, target, 0)
    expected = sum(max(0, 1 - (x[0, j] - x[0, i])) for j in (3, 0) for i in (1, 2)) / 4
    assert np.allclose(rows, [expected, 0, 0])
    assert is_target.tolist() == [[1, 0, 0, 1], [0] * 4, [1] * 4]
    one = np.ones((), F32)
    gradient = of("multi_margin_loss_backward", F32, one, x, np.array([1, 0, 3]), 1, 9, None, 2)
    assert np.allclose(gradient.sum(1), 0)
    assert gradient[0].tolist() == [0.25, -0.75, 0.25, 0.25]


def test_frequencies_of_transforms() -> None:
    for count in (1, 4, 5):
        expected = np.fft.fftfreq(count, 0.5)
        assert np.allclose(of("fft_fftfreq", F32, count, 0.5), expected)
        assert np.allclose(of("fft_rfftfreq", F32, count, 0.5), np.fft.rfftfreq(count, 0.5))


def test_a_histogram_of_bins_of_one_width_is_that_of_numpy() -> None:
    x = numbers(50)
    for bounds in (None, (-1, 2)):
        expected = np.histogram(x, 7, bounds)
        counts, edges = of("histogram.bin_ct", F32, x, 7, range=bounds)
        assert counts.tolist() == expected[0].tolist() and np.allclose(edges, expected[1])
    same = of("histogram.bin_ct", F32, np.ones(3, F32), 2)
    assert (same[0].tolist(), same[1].tolist()) == ([0, 3], [0.5, 1, 1.5])
    density = of("histogram.bin_ct", F32, x, 7, density=True)[0]
    assert np.allclose(density, np.histogram(x, 7, density=True)[0])


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_rows_after_the_end_of_the_last_bag_do_not_count(mode: int) -> None:
    table, indices, offsets = numbers(6, 3), np.array([1, 4, 0, 2, 5]), np.array([0, 1, 3])
    result, bags, sizes, best = of(
        "_embedding_bag", F32, table, indices, offsets, False, mode, False, None, True
    )
    reduced = (np.sum, np.mean, np.max)[mode]
    expected = [reduced(table[indices[a:b]], axis=0) for a, b in pairwise(offsets)]
    assert np.allclose(result, expected) and sizes.tolist() == [1, 2]
    gradient = np.ones((2, 3), F32)
    found = of(
        "_embedding_bag_backward", F32, gradient, indices, offsets, bags, sizes, best, 6, False,
        mode, False, None,
    )  # fmt: skip
    assert found.sum() == pytest.approx(9 if mode == 0 else 6)
    assert not found[[2, 3, 5]].any()


def test_gradients_of_factors_find_bags_that_are_not_given() -> None:
    table, indices, offsets = numbers(6, 3), np.array([1, 4, 4, 2]), np.array([0, 3])
    gradient, none = numbers(2, 3), np.zeros(0, I64)
    expected = (gradient[[0, 0, 0, 1]] * table[indices]).sum(1)
    rest = gradient, table, indices, offsets, none, 0
    name = "_embedding_bag_per_sample_weights_backward"
    assert np.allclose(of(name, F32, *rest), expected, atol=1e-6)
    padded = of(name, F32, *rest, 4)
    assert padded[[1, 2]].tolist() == [0, 0] and np.isclose(padded[0], expected[0])
    factors = np.array([1, 2, 3, 4], F32)
    found = of(
        "_embedding_bag_backward", F32, gradient, indices, offsets, none, none, none, 6, False, 0,
        False, factors,
    )  # fmt: skip
    assert np.allclose(found[4], 5 * gradient[0]) and np.allclose(found[2], 4 * gradient[1])


@pytest.mark.parametrize("name", ["index_put", "put"])
def test_sums_of_truth_values_are_their_disjunction(name: str) -> None:
    x, index = np.array([True, False, False, True]), np.array([1, 1, 3, 3], I64)
    values = np.array([True, False, False, False])
    places = [jax.numpy.asarray(index)] if name == "index_put" else index
    assert of(name, x.dtype, x, places, values, True).tolist() == [True, True, False, True]
    assert of("index_add", x.dtype, x, 0, index, values).tolist() == [True, True, False, True]
    assert of("scatter_add", x.dtype, x, 0, index, values).tolist() == [True, True, False, True]


@pytest.mark.parametrize(("reduce", "expected"), [
    ("sum", [True, True, True]), ("prod", [False, True, False]), ("amax", [True, True, True]),
    ("amin", [False, True, False]),
])  # fmt: skip
def test_truth_values_are_reduced_by_index(reduce: str, expected: list[bool]) -> None:
    x, index = np.array([True, False, False]), np.array([0, 0, 1, 2, 2], I64)
    values = np.array([True, False, True, True, False])
    found = of("scatter_reduce", x.dtype, x, 0, index, values, reduce, include_self=False)
    assert found.tolist() == expected
    assert of("sign", x.dtype, x).tolist() == x.tolist()


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(
    ("first", "dims"), [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (0, 3)]
)  # of a mask: its first dimension, and their number
@pytest.mark.parametrize("shared", [False, True])
def test_values_are_written_at_a_mask(
    first: int, dims: int, shared: bool, accumulate: bool
) -> None:
    x = numbers(3, 4, 2)
    mask = np.random.default_rng(1).random(x.shape[first : first + dims]) < 0.6
    where = (slice(None),) * first + (mask,)
    values = numbers(*x[where].shape[first + 1 :] if shared else x[where].shape)
    expected = x.copy()
    expected[where] = values + x[where] if accumulate else values
    indices = [None] * first + [jax.numpy.asarray(mask)]
    assert np.array_equal(of("index_put", F32, x, indices, values, accumulate), expected)


def test_nothing_is_written_at_a_mask_without_true_elements() -> None:
    x, mask = numbers(3, 2), [jax.numpy.zeros(3, bool)]
    assert np.array_equal(of("index_put", F32, x, mask, numbers(0, 2)), x)
    assert of("index_put", F32, x[:0], [mask[0][:0]], numbers(0, 2)).shape == (0, 2)


def test_numbers_beyond_an_integer_type_wrap() -> None:
    x = np.array([0, 1, 255], np.uint8)
    assert of("eq.Scalar", np.dtype(bool), x, -1).tolist() == [False, False, True]
    assert of("mul.Tensor", x.dtype, x, -1).tolist() == [0, 255, 1]
    assert of("add.Tensor", np.dtype("int8"), x.astype("int8"), 300).tolist() == [44, 45, 43]
    assert of("scalar_tensor", x.dtype, -1) == 255


def test_powers_of_a_distance_of_f16_do_not_overflow() -> None:
    x = np.full(8, 300, "float16")
    assert of("dist", x.dtype, x, -x, 4) == pytest.approx(600 * 8**0.25, rel=1e-3)


def test_the_exponential_of_a_matrix_of_f16() -> None:
    found = of("linalg_matrix_exp", np.dtype("float16"), np.diag([1, 2]).astype("float16"))
    assert found.dtype == "float16" and np.allclose(found.diagonal(), np.exp([1, 2]), rtol=1e-3)

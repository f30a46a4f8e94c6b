"""Factors are judged by the equation that defines them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import scipy.linalg

import hlo
import interp
from hlo.values import Array, arrays_of
from interp.envelope import anchors
from interp.envelope.budget import XLA_CPU
from interp.envelope.defining_equations.all_results import with_all_results
from interp.envelope.defining_equations.factorisations import checked, is_judged_factorisation
from interp.envelope.judgement import Judge
from interp.envelope.peer_values.followed import followed

LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}
CONFIGS = {
    "syevd": "{mode = 86 : ui8, uplo = 76 : ui8}",
    "gesdd": "{mode = 83 : ui8}",
}


def drawn(dims: Sequence[int], dtype: str) -> Array:
    rng = np.random.default_rng(list(dims))
    parts = rng.standard_normal((2, *dims))
    return (parts[0] + 1j * parts[1] if dtype[0] == "c" else parts[0]).astype(dtype)


def name(routine: str, dtype: str) -> str:
    if dtype[0] == "c":
        routine = {"syevd": "heevd", "orgqr": "ungqr"}.get(routine, routine)
    return f"lapack_{LETTERS[dtype]}{routine}_ffi"


def lu(matrix: Array) -> list[Array]:
    """Row by row, in NumPy: another algorithm than LAPACK's."""
    work, size = matrix.copy(), min(matrix.shape)
    pivots = np.zeros(size, np.int32)
    for k in range(size):
        best = k + int(np.argmax(np.abs(work[k:, k].real) + np.abs(work[k:, k].imag)))
        pivots[k] = best + 1
        work[[k, best]] = work[[best, k]]
        work[k + 1 :, k] /= work[k, k]
        work[k + 1 :, k + 1 :] -= np.outer(work[k + 1 :, k], work[k, k + 1 :])
    return [work, pivots, np.int32(0) * np.zeros((), np.int32)]


@pytest.mark.parametrize("dtype", LETTERS)
@pytest.mark.parametrize("dims", [(7, 7), (6, 4), (4, 6), (40, 40)])
def test_factors_with_partial_pivoting(dims: tuple[int, ...], dtype: str) -> None:
    matrix, target = drawn(dims, dtype), name("getrf", dtype)
    packed, pivots, info = lu(matrix)
    assert checked(target, [matrix], [packed, pivots, info], "") is True
    wrong = packed.copy()
    wrong[1, 2] *= 1.5
    assert checked(target, [matrix], [wrong, pivots, info], "") is False
    swapped = pivots.copy()
    swapped[0] = 1 + (pivots[0] % dims[0])
    assert checked(target, [matrix], [packed, swapped, info], "") is False
    assert checked(target, [matrix], [packed, pivots * 0, info], "") is False


@pytest.mark.parametrize("dtype", LETTERS)
def test_eigenvalues_of_symmetric_matrices(dtype: str) -> None:
    matrix = drawn((9, 9), dtype)
    matrix = matrix + matrix.conj().T
    target, config = name("syevd", dtype), CONFIGS["syevd"]
    values, vectors = np.linalg.eigh(matrix)
    zero = np.zeros((), np.int32)
    assert checked(target, [matrix], [vectors, values, zero], config) is True
    assert checked(target, [matrix], [-vectors, values, zero], config) is True
    assert checked(target, [matrix], [vectors, values[::-1], zero], config) is False
    assert checked(target, [matrix], [vectors, values + 1, zero], config) is False
    assert checked(target, [matrix], [vectors * 0, values, zero], config) is False
    alone = config.replace("86", "78")
    assert checked(target, [matrix], [vectors * 0, values, zero], alone) is True
    assert checked(target, [matrix], [vectors * 0, values + 1, zero], alone) is False


@pytest.mark.parametrize("dtype", LETTERS)
def test_eigenvalues(dtype: str) -> None:
    matrix, target = drawn((9, 9), dtype), name("geev", dtype)
    config = "{compute_left = 86 : ui8, compute_right = 86 : ui8}"
    w, left, right = scipy.linalg.eig(matrix, left=True)
    zero = np.zeros((), np.int32)

    def result(w: Array, left: Array, right: Array) -> list[Array]:
        narrow = np.dtype(dtype).type(0).real.dtype
        parts = (
            [w.astype(dtype)] if dtype[0] == "c" else [x.astype(narrow) for x in (w.real, w.imag)]
        )
        complex_ = np.result_type(dtype, np.complex64)
        return [*parts, left.astype(complex_), right.astype(complex_), zero]

    assert checked(target, [matrix], result(w, left, right), config) is True
    assert checked(target, [matrix], result(w, left, right * 1j), config) is True
    assert checked(target, [matrix], result(w[::-1], left, right), config) is False
    assert checked(target, [matrix], result(w, left, right * 2), config) is False
    twice = [np.concatenate([x[..., :1], x[..., :-1]], axis=-1) for x in (w, left, right)]
    assert checked(target, [matrix], result(*twice), config) is not True


@pytest.mark.parametrize("dtype", LETTERS)
def test_the_form_of_schur(dtype: str) -> None:
    matrix, target = drawn((9, 9), dtype), name("gees", dtype)
    config = "{mode = 86 : ui8, sort = 78 : ui8}"
    t, z = scipy.linalg.schur(matrix)
    (gees,) = scipy.linalg.get_lapack_funcs(("gees",), (matrix,))
    w = sum(x * f for x, f in zip(gees(lambda *value: 0, matrix)[2:-3], (1, 1j), strict=False))
    zero = np.zeros((), np.int32)

    def result(t: Array, z: Array, w: Array) -> list[Array]:
        values = [w] if dtype[0] == "c" else [w.real, w.imag]
        return [t, z, *values, zero, zero]

    assert checked(target, [matrix], result(t, z, w), config) is True
    nothing = np.full_like(t, np.nan), z, np.full_like(w, np.nan)
    assert checked(target, [matrix], result(*nothing), config) is None
    assert checked(target, [matrix], result(t, -z, w), config) is True
    assert checked(target, [matrix], result(t, z, w[::-1]), config) is False
    assert checked(target, [matrix], result(t, z * 1.1, w), config) is False
    assert checked(target, [matrix], result(t.T, z.conj(), w), config) is False
    assert checked(target, [matrix], result(t, z, w), "{mode = 78 : ui8}") is None


@pytest.mark.parametrize("dtype", LETTERS)
@pytest.mark.parametrize("dims", [(9, 9), (9, 5), (5, 9)])
def test_singular_values(dims: tuple[int, int], dtype: str) -> None:
    matrix, target, config = drawn(dims, dtype), name("gesdd", dtype), CONFIGS["gesdd"]
    u, s, vt = scipy.linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")
    rest = [np.zeros((), np.int32)]
    assert checked(target, [matrix], [matrix, s, u, vt, *rest], config) is True
    assert checked(target, [matrix], [matrix, -s, u, vt, *rest], config) is False
    lost = u.copy()
    lost[0, -1] = np.nan
    assert checked(target, [matrix], [matrix, s, lost, vt, *rest], config) is None
    assert checked(target, [matrix], [matrix, s, u, vt.conj() * 1.2, *rest], config) is False
    alone = config.replace("83", "78")
    assert checked(target, [matrix], [matrix, s, u * 0, vt * 0, *rest], alone) is True
    assert checked(target, [matrix], [matrix, s * 1.1, u, vt, *rest], alone) is False


@pytest.mark.parametrize("dtype", LETTERS)
@pytest.mark.parametrize("dims", [(9, 9), (9, 5), (5, 9)])
def test_reflectors(dims: tuple[int, int], dtype: str) -> None:
    matrix, zero = drawn(dims, dtype), np.zeros((), np.int32)
    (packed, tau), _ = scipy.linalg.qr(matrix, mode="raw")
    packed = np.asarray(packed)
    assert checked(name("geqrf", dtype), [matrix], [packed, tau, zero], "") is True
    assert checked(name("geqrf", dtype), [matrix], [packed, tau], "") is True
    wrong = packed * np.asarray(1.1, dtype)
    assert checked(name("geqrf", dtype), [matrix], [wrong, tau, zero], "") is False
    if dims[0] >= dims[1]:
        q = scipy.linalg.qr(matrix, mode="economic")[0]
        assert checked(name("orgqr", dtype), [packed, tau], [q, zero], "") is True
        assert checked(name("orgqr", dtype), [packed, tau], [q], "") is True
        assert checked(name("orgqr", dtype), [packed, tau], [q[:, ::-1], zero], "") is False


def without_pivoting(low: Array, main: Array, high: Array, right: Array) -> Array:
    """Solve tridiagonal systems by Thomas' algorithm, in the type of the operands: another
    algorithm than LAPACK's."""
    x, diagonal = right.copy(), main.copy()
    for n in range(1, len(main)):
        factor = low[n] / diagonal[n - 1]
        diagonal[n] -= factor * high[n - 1]
        x[n] -= factor * x[n - 1]
    x[-1] /= diagonal[-1]
    for n in reversed(range(len(main) - 1)):
        x[n] = (x[n] - high[n] * x[n + 1]) / diagonal[n]
    return x


@pytest.mark.parametrize("dtype", LETTERS)
@pytest.mark.parametrize("size", [1, 2, 20, 700])
def test_tridiagonal_systems(size: int, dtype: str) -> None:
    low, main, high = drawn((3, size), dtype)
    main += np.asarray(4, dtype)  # without pivoting elimination is stable where it dominates
    right, zero = drawn((size, 2), dtype), np.zeros((), np.int32)
    given = [low, main, high, right]
    x, rest = without_pivoting(*given), [low, main, high]
    target = name("gtsv", dtype)
    assert checked(target, given, [*rest, x, zero], "") is True
    assert checked(target, given, [*rest, x, zero + 1], "") is None
    wrong = x.copy()
    wrong[size // 2, 1] *= 2
    for other in wrong, x[:, ::-1]:
        proof = checked(target, given, [*rest, other, zero], "")
        assert proof is False or (size > 20 and not proof)  # the bound of proofs grows with it
    batch = [np.stack((one, one)) for one in (*given, *rest, x, zero)]
    assert checked(target, batch[:4], batch[4:], "") is True


BATCHED = """HloModule m
ENTRY e {
  packed = f32[2,4,3] parameter(0)
  tau = f32[2,3] parameter(1)
  ROOT q = f32[2,4,3]{1,2,0} custom-call(packed, tau), custom_call_target="lapack_sorgqr_ffi",
    operand_layout_constraints={f32[2,4,3]{1,2,0}, f32[2,3]{1,0}}
}
"""


def test_vectors_beside_a_batch_of_matrices_are_no_matrices() -> None:
    calls = hlo.parse(BATCHED), hlo.parse(BATCHED.replace("{1,2,0}", "{2,1,0}"))
    roots = (module.entry.root_instruction for module in calls)
    assert [is_judged_factorisation(root) for root in roots] == [True, False]


def test_a_vector_that_is_no_number_is_not_legal() -> None:
    """Beside a basis of the image, whose residual is small, full matrices have more vectors."""
    matrix, zero = drawn((9, 5), "f4"), np.zeros((), np.int32)
    u, s, vt = scipy.linalg.svd(matrix, full_matrices=True)
    config = "{mode = 65 : ui8}"
    assert checked("lapack_sgesdd_ffi", [matrix], [matrix, s, u, vt, zero], config) is True
    u[:, 7] = np.nan
    assert checked("lapack_sgesdd_ffi", [matrix], [matrix, s, u, vt, zero], config) is None


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_multipliers_may_underflow(dtype: str) -> None:
    """XLA:CPU flushes subnormal numbers, in LAPACK, too: 6e-31 / 2e13 is 0 in f32."""
    tiny = float(np.finfo(dtype).tiny)
    matrix = np.array([[2e13, 0, 0], [tiny * 1e7, 1, -1], [1, 0, 1]], dtype)
    packed, pivots, info = lu(matrix)
    packed[np.abs(packed) < tiny] = 0
    assert packed[1, 0] == 0
    assert checked(name("getrf", dtype), [matrix], [packed, pivots, info], "") is True
    packed[1, 0] = 0.5
    assert checked(name("getrf", dtype), [matrix], [packed, pivots, info], "") is False


def test_factors_of_small_numbers_lose_what_underflows() -> None:
    """A few products of the smallest normal number, beside elements a few times as large."""
    tiny = np.finfo(np.float32).tiny
    matrix = drawn((4, 4), "f4") * np.float32(8) * tiny
    u, values, vt = (x.astype(np.float32) for x in np.linalg.svd(matrix.astype(np.float64)))
    zero = np.zeros((), np.int32)
    for moved, is_legal in ((2, True), (1000, False)):
        outputs = [matrix, values + np.float32(moved) * tiny, u, vt, zero]
        assert checked(name("gesdd", "f4"), [matrix], outputs, CONFIGS["gesdd"]) is is_legal


_EIGENVECTORS = "{compute_left = 86 : ui8, compute_right = 86 : ui8}"
_GRADED = [[2e13, 0, 0, 0], [0, 1, -2e25, 0], [1, 0, 0, 1], [-2e13, 1e-30, 0, 1]]


def test_eigenvectors_are_those_of_the_balanced_matrix() -> None:
    """Their residual is 9,000 units of the norm of the matrix, as LAPACK balances it."""
    matrix = np.array(_GRADED)
    outputs = _geev(matrix)
    assert checked("lapack_dgeev_ffi", [matrix], outputs, _EIGENVECTORS) is True
    outputs[3][0, 0] += 0.1
    assert checked("lapack_dgeev_ffi", [matrix], outputs, _EIGENVECTORS) is not True


@pytest.mark.parametrize("scale", [1e-150, 1e-140, 1.0, 1e140, 1e155, 1e300])
def test_eigenvalues_of_large_and_small_numbers(scale: float) -> None:
    """SciPy's xGEEV does not scale them back: the interpreter's are right, and those are wrong."""
    matrix = drawn((5, 5), "f8") * scale
    outputs = _geev(matrix)
    expected = np.sort_complex(np.linalg.eigvals(matrix / scale))
    found = np.sort_complex(outputs[0] / scale + 1j * (outputs[1] / scale))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert checked("lapack_dgeev_ffi", [matrix], outputs, _EIGENVECTORS) is True
    unscaled = [outputs[0] / 32, outputs[1] / 32, *outputs[2:]]
    assert checked("lapack_dgeev_ffi", [matrix], unscaled, _EIGENVECTORS) is False


def _geev(matrix: Array) -> list[Array]:
    n = len(matrix)
    parts = f"(f64[{n}], f64[{n}], c128[{n},{n}], c128[{n},{n}], s32[])"
    text = (
        f"HloModule m\nENTRY e {{ x = f64[{n},{n}] parameter(0)\n"
        f' ROOT r = {parts} custom-call(x), custom_call_target="lapack_dgeev_ffi",'
        f' api_version=API_VERSION_TYPED_FFI, backend_config="{_EIGENVECTORS}" }}'
    )
    return [x.copy() for x in arrays_of(interp.evaluate(hlo.parse(text), matrix))]


def test_nothing_is_known_of_other_numbers() -> None:
    matrix, zero = drawn((3, 3), "f8"), np.zeros((), np.int32)
    packed, pivots, info = lu(matrix)
    assert checked("lapack_dgetrf_ffi", [matrix * np.nan], [packed, pivots, info], "") is None
    assert checked("lapack_dgees_ffi", [matrix], [packed, pivots, zero], "") is None
    assert checked("lapack_dgesdd_ffi", [matrix], [packed, pivots, info], "") is None
    assert checked("lapack_dgeqrf_ffi", [matrix], [packed[0], pivots], "") is None
    assert checked("other", [matrix], [packed, pivots, zero], "") is None


SOLVE = """HloModule m
ENTRY e {
  a = f32[64,64] parameter(0)
  f = (f32[64,64]{0,1}, s32[64], s32[]) custom-call(a), custom_call_target="lapack_sgetrf_ffi",
    operand_layout_constraints={f32[64,64]{0,1}}
  lu = f32[64,64] get-tuple-element(f), index=0
  ROOT r = f32[64,64] negate(lu)
}
"""


def test_what_follows_is_judged_on_the_peer_s_own_factors() -> None:
    """All results of the factorisation are asked for, used or not."""
    matrix = drawn((64, 64), "f4")
    matrix[0] = matrix[1] * np.float32(1.0001)  # nearly singular: the factors are far apart
    module = with_all_results(hlo.parse(SOLVE))
    names = anchors.planned(module, matrix, peer=XLA_CPU).names
    assert {"f.with.0", "f.with.1", "f.with.2"} <= {*names}
    packed, pivots, info = lu(matrix)
    own = {"f.with.0": packed, "f.with.1": pivots, "f.with.2": info, "lu": packed}
    enclosed, wrong = followed(module, own, matrix, peer=XLA_CPU)
    (legal,) = arrays_of(enclosed.result)
    assert not wrong and legal.is_point and np.array_equal(legal.low, -packed)
    own |= {"f.with.0": packed * 2, "lu": packed * 2}
    _, wrong = followed(module, own, matrix, peer=XLA_CPU)
    assert [step.instruction.name for step in wrong] == ["f"]
    assert np.asarray(interp.evaluate(module, matrix)).shape == (64, 64)


def test_factors_that_are_the_result_are_judged_too() -> None:
    text = SOLVE[: SOLVE.index("  lu =")].replace("  f =", "  ROOT f =") + "}\n"
    module, matrix = hlo.parse(text), drawn((64, 64), "f4")
    packed, pivots, info = lu(matrix)
    exact = [("", array) for array in arrays_of(interp.evaluate(module, matrix))]
    judge = Judge(module, (matrix,), exact, peer=XLA_CPU)
    for actual, is_wrong in ((packed, False), (packed * np.float32(1.5), True)):
        results = [actual, pivots, info.astype(np.int32)]
        found = judge.judged(results, lambda other, shown=results: [*shown, *shown])
        assert bool(found.wrong) == is_wrong
        assert is_wrong or not found.counts["undetermined"]


def test_a_matrix_that_is_not_passed_by_columns_proves_nothing() -> None:
    """LAPACK takes it for its transpose, if the compiler lays it out by rows."""
    by_columns = "{f32[64,64]{0,1}}"
    matrix = drawn((64, 64), "f4")
    packed, pivots, info = lu(matrix.T)
    own = {"f.with.0": packed, "f.with.1": pivots, "f.with.2": info, "lu": packed}
    texts = {
        SOLVE: ["f"],
        SOLVE.replace("constraints={f32[64,64]{0,1}}", "constraints={f32[64,64]{1,0}}"): [],
        SOLVE.replace("f = (f32[64,64]{0,1}", "f = (f32[64,64]"): [],
        SOLVE.replace(f",\n    operand_layout_constraints={by_columns}", ""): [],
    }
    for text, wrong_steps in texts.items():
        module = with_all_results(hlo.parse(text))
        enclosed, wrong = followed(module, own, matrix, peer=XLA_CPU)
        assert [step.instruction.name for step in wrong] == wrong_steps
        (legal,) = arrays_of(enclosed.result)
        assert wrong_steps or not legal.is_point


def test_nan_in_factors_of_zeros_is_neither_legal_nor_wrong() -> None:
    """A matrix of norm 0 has no relative residual, but a NaN in its factors counts."""
    zeros, eye, done = np.zeros((2, 2), np.float32), np.eye(2, dtype=np.float32), np.int32(0)
    nan = np.full(2, np.nan, np.float32)
    for mode in ("{mode = 65 : ui8}", "{mode = 78 : ui8}"):
        for values, expected in ((zeros[0], True), (nan, None)):
            outputs = [zeros, values, eye, eye, done]
            assert checked("lapack_sgesdd_ffi", [zeros], outputs, mode) is expected
    packed = np.where(eye * np.float32([1, 0]) == 1, np.nan, zeros)
    for factors, expected in ((zeros, True), (packed, None)):
        assert checked("lapack_sgeqrf_ffi", [zeros], [factors, zeros[0]], "") is expected

"""The targets of custom calls."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from hlo.errors import Unsupported, VerifyError
from hlo.types import ELEMENT_TYPES, ArrayShape, Shape, TupleShape, element_type_of
from interp import evaluate
from interp.ops import custom_call as calls


def called(target: str, shape: Shape, *operands: np.ndarray, config: str = "") -> object:
    shapes = [ArrayShape(element_type_of(x.dtype), x.shape) for x in operands]  # type: ignore[arg-type]
    return calls.custom_call(
        *operands,
        custom_call_target=target,
        shape=shape,
        operand_shapes=tuple(shapes),
        backend_config=config,
    )


def array(name: str, *dims: int) -> ArrayShape:
    return ArrayShape(ELEMENT_TYPES[name], dims)


def test_markers_are_their_operand() -> None:
    x = np.ones(2, np.float32)
    assert called("Sharding", array("f32", 2), x) is x


@pytest.mark.parametrize(
    "target", ["xla.sdy.GlobalToLocalShape", "xla.sdy.Other", "SPMDFullToShardShape"]
)
def test_sharded_programs_are_to_be_partitioned(target: str) -> None:
    with pytest.raises(Unsupported, match="sharded, and not yet partitioned.*partitions=N"):
        called(target, array("f32", 2), np.ones(4, np.float32))


def test_an_unknown_target_names_what_registers_functions() -> None:
    with pytest.raises(Unsupported, match=r"interp\.evaluate\(module, …, custom_calls=") as raised:
        called("callback", array("f32", 2), np.ones(2, np.float32))
    assert "sharded" not in str(raised.value)


ASKS = hlo.parse("""HloModule asks
ENTRY e {
  p = f32[2] parameter(0)
  ROOT c = f32[2] custom-call(p), custom_call_target="kept"
}
""")


def test_a_function_may_keep_what_it_returns() -> None:
    kept = np.ones(2, np.float32)
    result = evaluate(ASKS, kept, custom_calls={"kept": lambda *given: kept})
    assert result.tolist() == [1, 1] and result is not kept


@pytest.mark.parametrize(("value", "said"), [(1.0, "a Python float"), ([1, 2], "a Python list")])
def test_a_function_must_return_arrays(value: object, said: str) -> None:
    with pytest.raises(VerifyError, match=f"the result is {said}, not f32"):
        evaluate(ASKS, np.ones(2, np.float32), custom_calls={"kept": lambda *given: value})


def test_topk_takes_k_from_its_shape() -> None:
    x = np.array([1, 5, 5, 2], np.float32)
    shape = TupleShape((array("f32", 2), array("s32", 2)))
    values, indices = called("TopK", shape, x)  # type: ignore[misc]
    assert values.tolist() == [5, 5] and indices.tolist() == [1, 2]


def positive(n: int) -> np.ndarray:
    x = np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)
    return (x @ x.T + n * np.eye(n, dtype=np.float32)).astype(np.float32)


@pytest.mark.parametrize("config", ["{uplo = 76 : ui8}", '{"uplo":"76"}', "{uplo = 85 : ui8}"])
def test_potrf_keeps_the_other_triangle(config: str) -> None:
    x, shape = positive(5), TupleShape((array("f32", 5, 5), array("s32")))
    factor, info = called("lapack_spotrf_ffi", shape, x, config=config)  # type: ignore[misc]
    lower = "76" in config
    kept = np.triu(x, 1) if lower else np.tril(x, -1)
    found = np.tril(factor) if lower else np.triu(factor).T
    assert info == 0 and info.dtype == np.int32
    assert np.array_equal(factor - (np.tril(factor) if lower else np.triu(factor)), kept)
    assert np.allclose(found @ found.T, x, rtol=1e-5)


@pytest.mark.parametrize("failing", [1, 3, 5])
def test_potrf_says_which_pivot_failed(failing: int) -> None:
    x = positive(5)
    x[failing - 1, failing - 1] = -1
    both = np.stack([positive(5), x])
    shape = TupleShape((array("f32", 2, 5, 5), array("s32", 2)))
    factor, info = called("lapack_spotrf_ffi", shape, both, config="{uplo = 76 : ui8}")  # type: ignore[misc]
    assert info.tolist() == [0, failing]
    assert np.isnan(np.tril(factor[1])[np.tril_indices(5)]).all()
    assert np.array_equal(np.triu(factor[1], 1), np.triu(x, 1))
    assert not np.isnan(factor[0]).any()


def test_trsm_solves() -> None:
    a, b = positive(4), np.ones((4, 2), np.float32)
    config = "{diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}"
    x = called("lapack_strsm_ffi", array("f32", 4, 2), a, b, config=config)
    assert np.allclose(np.tril(a).T @ x, b, rtol=1e-5)  # type: ignore[operator]


def test_routines_of_scipy() -> None:
    pytest.importorskip("scipy")
    a = np.stack([positive(4), positive(4)[::-1]])
    factors = TupleShape((array("f32", 2, 4, 4), array("s32", 2, 4), array("s32", 2)))
    lu, pivots, info = called("lapack_sgetrf_ffi", factors, a)  # type: ignore[misc]
    assert pivots.min() >= 1 and info.tolist() == [0, 0]
    for matrix, parts, swaps in zip(a, lu, pivots):
        expected = matrix.copy()
        for i, j in enumerate(swaps):
            expected[[i, j - 1]] = expected[[j - 1, i]]
        product = (np.tril(parts, -1) + np.eye(4)) @ np.triu(parts)
        assert np.allclose(product, expected, rtol=1e-4)
    eigen = TupleShape((array("f32", 2, 4, 4), array("f32", 2, 4), array("s32", 2)))
    config = "{mode = 86 : ui8, uplo = 76 : ui8}"
    symmetric = np.stack([positive(4), positive(4)])
    vectors, values, _ = called("lapack_ssyevd_ffi", eigen, symmetric, config=config)  # type: ignore[misc]
    assert np.allclose(symmetric @ vectors, vectors * values[:, None, :], atol=1e-3)


@pytest.mark.parametrize("dims", [(0, 0), (0, 2), (2, 0)])
def test_factors_of_matrices_without_elements(dims: tuple[int, int]) -> None:
    """The info is 0, for which LAPACK is not asked: SciPy passes it a leading dimension of 0."""
    pytest.importorskip("scipy")
    factors = TupleShape((array("f32", 3, *dims), array("s32", 3, 0), array("s32", 3)))
    *_, info = called("lapack_sgetrf_ffi", factors, np.zeros((3, *dims), np.float32))  # type: ignore[misc]
    assert info.tolist() == [0, 0, 0]


def test_python_code_may_register_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(calls.TARGETS, "twice", lambda operands, shape, config: operands[0] * 2)
    text = """HloModule twice
ENTRY main { x = f32[2] parameter(0)
  ROOT c = f32[2] custom-call(x), custom_call_target="twice" }
"""
    assert evaluate(hlo.parse(text), np.ones(2, np.float32)).tolist() == [2, 2]


def test_functions_of_the_caller() -> None:
    module = hlo.parse("""HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  ROOT y = f32[2] custom-call(x), custom_call_target="double", backend_config="by 2"
}
""")
    x = np.array([1, 2], np.float32)

    def double(operands: tuple[np.ndarray, ...], shape: Shape, config: str) -> np.ndarray:
        assert config == '"by 2"' and str(shape) == "f32[2]"
        return operands[0] * np.float32(2)

    assert evaluate(module, x, custom_calls={"double": double}).tolist() == [2, 4]
    with pytest.raises(hlo.Unsupported, match="'double': interp.evaluate.*custom_calls.*TopK"):
        evaluate(module, x, custom_calls={"triple": double})

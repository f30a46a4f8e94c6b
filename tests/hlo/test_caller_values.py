"""Numbers and lists of Python, and arrays in another byte order, become arrays of a program."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo.caller_values import as_given, described, require_count
from hlo.errors import ArgumentError
from hlo.types import ELEMENT_TYPES, ArrayShape, TupleShape

_TYPES = [t for t in ELEMENT_TYPES.values() if t.is_array]
_NUMBERS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-3, 3),
    st.floats(),
    st.complex_numbers(),
)


def converted(value: Any, name: str) -> Any:
    return as_given("x", value, ArrayShape(ELEMENT_TYPES[name], np.shape(value)))


@given(_NUMBERS, st.sampled_from(_TYPES), st.integers(0, 3))
def test_a_number_is_kept(number: Any, element_type: Any, depth: int) -> None:
    """An element is the number, or its nearest one in NumPy's floats, or there is none."""
    value: Any = number
    for _ in range(depth):
        value = [value]
    try:
        found = as_given("x", value, ArrayShape(element_type, (1,) * depth))
    except ArgumentError as error:
        assert str(error) == f"x: {number} is no {element_type}"
        return
    if not isinstance(found, np.ndarray):
        assert found is value  # of a wider kind, which the caller's check refuses
        return
    assert (found.dtype, found.shape) == (element_type.numpy, (1,) * depth)
    element = complex(found.astype(np.complex128).item())
    with np.errstate(over="ignore"):
        nearest = complex(np.asarray(number, np.complex128).astype(np.complex64).item())
    exact = complex(number)
    is_same = repr(element) == repr(exact) or element == exact
    assert is_same or isinstance(number, float | complex), (element, number)
    if element_type.numpy in (np.float32, np.complex64):
        np.testing.assert_equal(element, nearest)
    elif element_type.numpy != np.float16:
        np.testing.assert_equal(element, exact)


@pytest.mark.parametrize(
    ("value", "name", "wanted"),
    [
        (3, "s32", np.int32(3)),
        (2**63, "u64", np.uint64(2**63)),
        (3, "f32", np.float32(3)),
        (0.1, "f32", np.float32(0.1)),
        (0.1, "f16", np.float16(0.1)),
        (1.5, "bf16", ml_dtypes.bfloat16(1.5)),
        (-8, "s4", ml_dtypes.int4(-8)),
        (True, "pred", np.bool_(True)),
        (1, "c64", np.complex64(1)),
        ([[1, 2.5]], "f64", np.array([[1, 2.5]])),
        ([], "f32", np.zeros(0, np.float32)),
    ],
)
def test_numbers_that_fit(value: Any, name: str, wanted: Any) -> None:
    found = converted(value, name)
    assert found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (256, "u8"), (-1, "u64"), (2**64 + 1, "f32"), (2**24 + 1, "f32"), (1e39, "f32"),
        (0.1, "bf16"), (8, "s4"), (2**63, "s64"), (70000, "f16"), ([0, 300], "s8"),
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit(value: Any, name: str) -> None:
    with pytest.raises(ArgumentError, match=rf"x: \S+ is no {name}"):
        converted(value, name)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1.0, "s32"), (1, "pred"), (1j, "f32"), ([1, "a"], "f32"), ([[1], [1, 2]], "f32"),
        ([np.float64(1)], "f32"), ([np.ones(1)], "f32"), ([(1, 2)], "f32"),
        (np.float64(1), "f32"), ("1", "f32"),
    ],
)  # fmt: skip
def test_others_are_left_to_the_check(value: Any, name: str) -> None:
    assert as_given("x", value, ArrayShape(ELEMENT_TYPES[name], ())) is value


def test_another_byte_order() -> None:
    array = np.arange(3, dtype=np.float32)
    swapped = array.astype(array.dtype.newbyteorder())
    found = converted(swapped, "f32")
    assert found.dtype.isnative and found.tobytes() == array.tobytes()
    assert converted(swapped, "s32") is swapped
    assert converted(array, "f32") is array


def test_tuples() -> None:
    f32 = ArrayShape(ELEMENT_TYPES["f32"], ())
    token = ArrayShape(ELEMENT_TYPES["token"], ())
    one, inner, none = as_given(
        "x", (1, (2.5,), None), TupleShape((f32, TupleShape((f32,)), token))
    )
    assert one == 1 and inner[0] == 2.5 and none is None
    assert as_given("x", (1,), TupleShape((f32, f32))) == (1,)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.5, "float"),
        (None, "None"),
        ((1, None), "(int, None)"),
        ({"a": 1}, "a dict: a program takes the leaves of dicts and lists (jax.tree.leaves)"),
        ("x", "str"),
        (["x"], "list"),
        (np.zeros((2, 3)), "float64[2,3]"),
        (np.zeros(2, ml_dtypes.bfloat16), "bfloat16[2]"),
        (np.zeros(2, np.dtype("f4").newbyteorder()), "float32[2] in another byte order"),
    ],
)
def test_what_was_given(value: Any, words: str) -> None:
    assert described(value) == words


def test_the_number_of_arguments() -> None:
    require_count(1, [0])
    for expected, values, said in (
        (1, [0, 0], r"^1 argument is expected, 2 were given$"),
        (2, [0], r"^2 arguments are expected, 1 was given$"),
        (2, [{}], r"^2 arguments are expected, 1 was given: a program takes the leaves of dicts"),
    ):
        with pytest.raises(ArgumentError, match=said):
            require_count(expected, values)

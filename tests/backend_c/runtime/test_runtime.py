"""The element types, integers and floats of the runtime against NumPy, ml_dtypes and integers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from c_driver import BUILDS, Maps, edge_floats, pairs, same

from hlo.types import ELEMENT_TYPES

NARROW = [n for n, t in ELEMENT_TYPES.items() if t.is_float and t.bits < 32]
INTEGERS = [n for n, t in ELEMENT_TYPES.items() if t.is_integer]
FLOATS = {"f32": np.float32, "f64": np.float64}
_C = {"f32": "float", "f64": "double"}
_HEADERS = "hlo_types.h hlo_integer.h hlo_float.h"


def _storage(name: str) -> str:
    bits = max(8, ELEMENT_TYPES[name].bits)
    return f"{'' if ELEMENT_TYPES[name].kind == 'signed' else 'u'}int{bits}_t"


def _narrow_expressions() -> dict[str, tuple[str, str, str]]:
    table = {}
    for name in NARROW:
        code = _storage(name)
        table |= {
            f"load_{name}": ("float", code, f"hlo_load_{name}(a[i])"),
            f"store_{name}": (code, "float", f"hlo_store_{name}(a[i])"),
            f"store64_{name}": (code, "double", f"hlo_store_{name}_from_f64(a[i])"),
            f"round_{name}": ("float", "float", f"hlo_round_{name}(a[i])"),
            f"round64_{name}": ("float", "double", f"hlo_round_{name}_from_f64(a[i])"),
        }
    return table


_SHIFTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic")
_ARITHMETIC = ("add", "subtract", "multiply", "divide", "remainder", "power", "mulhi")
_BINARY = (*_ARITHMETIC, "maximum", "minimum", *_SHIFTS)
_UNARY = ("negate", "not", "abs", "sign", "popcnt", "count_leading_zeros")


def _integer_expressions() -> dict[str, tuple[str, str, str]]:
    table = {}
    for name in INTEGERS:
        t = _storage(name)
        table |= {f"{op}_{name}": (t, f"{t} {t}", f"hlo_{op}_{name}(a[i], b[i])") for op in _BINARY}
        table |= {f"{op}_{name}": (t, t, f"hlo_{op}_{name}(a[i])") for op in _UNARY}
        for f, c_type in _C.items():
            table[f"{name}_from_{f}"] = (t, c_type, f"hlo_{name}_from_{f}(a[i])")
    for name in ("s64", "u64"):
        odd = f"hlo_f64_from_{name}_to_odd(a[i])"
        table[f"bf16_from_{name}"] = ("float", _storage(name), f"hlo_round_bf16_from_f64({odd})")
    return table


_ROUNDINGS = ("floor", "ceil", "truncate", "round_nearest_even", "round_nearest_afz")
_FLOAT_UNARY = (*_ROUNDINGS, "sign", "sqrt", "abs")


def _float_expressions() -> dict[str, tuple[str, str, str]]:
    table = {}
    for f, c_type in _C.items():
        for op in _FLOAT_UNARY:
            table[f"{op}_{f}"] = (c_type, c_type, f"hlo_{op}_{f}(a[i])")
        for op in ("maximum", "minimum", "remainder"):
            table[f"{op}_{f}"] = (c_type, f"{c_type} {c_type}", f"hlo_{op}_{f}(a[i], b[i])")
        three = f"{c_type} {c_type} {c_type}"
        table[f"clamp_{f}"] = (c_type, three, f"hlo_clamp_{f}(a[i], b[i], c[i])")
        key = f"int{f[1:]}_t"
        table[f"total_order_{f}"] = (key, c_type, f"hlo_total_order_{f}(a[i])")
        table[f"is_finite_{f}"] = ("uint8_t", c_type, f"hlo_is_finite_{f}(a[i])")
    for f, c_type in {**_C, "f16": "float", "bf16": "float"}.items():
        for e, m in _REDUCED:
            text = f"hlo_reduce_precision_{f}(a[i], {e}, {m})"
            table[f"reduce_{f}_{e}_{m}"] = (c_type, c_type, text)
    return table


_REDUCED = ((5, 10), (8, 7), (4, 3), (2, 1), (8, 23), (11, 52), (3, 0), (8, 0), (1, 5), (5, 2))


@pytest.fixture(scope="module", params=BUILDS)
def run(request: pytest.FixtureRequest) -> Maps:
    table = _narrow_expressions() | _integer_expressions() | _float_expressions()
    return Maps(_HEADERS, table, request.param)


# ---- narrow floats ----


def _codes(name: str) -> np.ndarray:
    bits = ELEMENT_TYPES[name].bits
    return np.arange(2**bits).astype(f"u{max(1, bits // 8)}")


def _table(name: str) -> np.ndarray:
    """The value of every code."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return _codes(name).view(ELEMENT_TYPES[name].numpy).astype(np.float64)


def _near_ties(name: str, dtype: type[np.floating]) -> np.ndarray:
    """Every value of a type, every midpoint of two, and what lies just beside those."""
    values = np.unique(_table(name))
    values = values[np.isfinite(values)]
    beyond = values[-1] + (values[-1] - values[-2]) * np.array([0.5, 1, 2, 1e3])
    values = np.concatenate([values, (values[1:] + values[:-1]) / 2, beyond, -beyond])
    with np.errstate(over="ignore"):
        centre = values.astype(dtype)
    beside = [np.nextafter(centre, dtype(s * np.inf)) for s in (-1, 1)]
    return np.concatenate([centre, *beside, edge_floats(dtype, 100_000)])


@pytest.mark.parametrize("name", NARROW)
def test_load(run: Maps, name: str) -> None:
    with np.errstate(invalid="ignore"):
        expected = _table(name).astype(np.float32)
    assert same(run(f"load_{name}", _codes(name)), expected).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NARROW)
def test_store_rounds_as_ml_dtypes(run: Maps, name: str) -> None:
    values = _near_ties(name, np.float32)
    if name == "f8e8m0fnu":  # ml_dtypes takes what lies above 2**-127 up to 2**-126, not nearest
        values = values[~((values > 2.0**-127) & (values < 2.0**-126))]
    if ELEMENT_TYPES[name].bits < 8:  # where there is no NaN it becomes -0, whatever its sign
        values = np.where(np.isnan(values), np.float32(np.nan), values)
    dtype = ELEMENT_TYPES[name].numpy
    with np.errstate(all="ignore"):
        expected = values.astype(dtype)
    stored = run(f"store_{name}", values).view(dtype)
    wrong = ~same(stored, expected)
    assert not wrong.any(), (values[wrong][:5], stored[wrong][:5], expected[wrong][:5])
    rounded = run(f"round_{name}", values)
    assert same(rounded, expected.astype(np.float32)).all()


def _rounded_once(values: np.ndarray, name: str) -> np.ndarray:
    """Finite positive f64 within a type's range: the nearest code, a tie to the even one."""
    table = _table(name)[: 2 ** (ELEMENT_TYPES[name].bits - (name != "f8e8m0fnu"))]
    table = table[np.isfinite(table)]
    below = np.searchsorted(table, values, "right") - 1
    above = np.minimum(below + 1, table.size - 1)
    middle = (table[below] + table[above]) / 2
    up = (values > middle) | ((values == middle) & (below % 2 == 1))
    if name == "f8e8m0fnu":  # significands are 1 and 10 in binary: the upper one is even
        up = values >= middle
    return np.where(up, above, below).astype(_codes(name).dtype)


@pytest.mark.parametrize("name", NARROW)
def test_store_from_f64_rounds_once(run: Maps, name: str) -> None:
    values = np.abs(_near_ties(name, np.float64))
    table = _table(name)
    least = np.nanmin(table[table >= (0 if name != "f8e8m0fnu" else 2.0**-127)])
    values = values[(values >= least) & (values <= np.nanmax(table[np.isfinite(table)]))]
    expected = _rounded_once(values, name)
    stored = run(f"store64_{name}", values)
    wrong = stored != expected
    assert not wrong.any(), (values[wrong][:5], stored[wrong][:5], expected[wrong][:5])


@pytest.mark.parametrize("name", NARROW)
def test_store_from_f64_outside_of_the_range(run: Maps, name: str) -> None:
    """Signs, NaN, overflow: as from f32, where f64 and f32 have the same value."""
    with np.errstate(all="ignore"):
        values = _near_ties(name, np.float32)
        wide = values.astype(np.float64)
    stored = run(f"store64_{name}", wide).view(ELEMENT_TYPES[name].numpy)
    expected = run(f"store_{name}", values).view(ELEMENT_TYPES[name].numpy)
    assert same(stored, expected).all()
    huge = np.array([1e300, -1e300])
    infinite = np.array([np.inf, -np.inf], np.float32)
    assert same(run(f"round64_{name}", huge), run(f"round_{name}", infinite)).all()


# ---- integers ----


def _truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _divided(x: int, y: int) -> int:
    return _truncated(x, y) if y else -1


def _power(x: int, y: int) -> int:
    if y >= 0:
        return pow(x, y, 1 << 64)
    return _truncated(1, x ** (-y % 2 + 2)) if x else 0


_EXPECTED: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda x, y, bits: x + y,
    "subtract": lambda x, y, bits: x - y,
    "multiply": lambda x, y, bits: x * y,
    "divide": lambda x, y, bits: _divided(x, y),
    "remainder": lambda x, y, bits: x - _truncated(x, y) * y if y else x,
    "power": lambda x, y, bits: _power(x, y),
    "maximum": lambda x, y, bits: max(x, y),
    "minimum": lambda x, y, bits: min(x, y),
    "mulhi": lambda x, y, bits: x * y >> bits,
    "shift_left": lambda x, y, bits: x << y % 2**bits if y % 2**bits < bits else 0,
    "shift_right_logical": lambda x, y, bits: x % 2**bits >> min(y % 2**bits, bits),
    "shift_right_arithmetic": lambda x, y, bits: _signed(x, bits) >> min(y % 2**bits, bits),
    "negate": lambda x, y, bits: -x,
    "not": lambda x, y, bits: ~x,
    "abs": lambda x, y, bits: abs(x),
    "sign": lambda x, y, bits: (x > 0) - (x < 0),
    "popcnt": lambda x, y, bits: (x % 2**bits).bit_count(),
    "count_leading_zeros": lambda x, y, bits: bits - (x % 2**bits).bit_length(),
}


def _signed(x: int, bits: int) -> int:
    return (x + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _values(name: str) -> list[int]:
    """All values of up to 6 bits; else the ends, what is near zero, and random ones."""
    element_type = ELEMENT_TYPES[name]
    bits, lowest = element_type.bits, -(2 ** (element_type.bits - 1))
    lowest = lowest if element_type.kind == "signed" else 0
    if bits <= 8:
        return list(range(lowest, lowest + 2**bits))[:: 3 if bits == 8 else 1]
    rng = np.random.default_rng(3)
    near = {
        x + d for x in (lowest, 0, lowest + 2**bits - 1, 2 ** (bits // 2)) for d in range(-5, 9)
    }
    near |= {int(rng.integers(0, 2**63)) >> int(rng.integers(0, 63)) for _ in range(40)}
    near |= {-x for x in near} | {bits, bits - 1}
    return sorted(x for x in near if lowest <= x < lowest + 2**bits)


def _wrapped(x: int, name: str) -> int:
    bits = ELEMENT_TYPES[name].bits
    return _signed(x, bits) if ELEMENT_TYPES[name].kind == "signed" else x % 2**bits


@pytest.mark.sampled(120)
@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("operation", [*_BINARY, *_UNARY])
def test_integers(run: Maps, name: str, operation: str) -> None:
    dtype = _storage(name).removesuffix("_t")
    lhs, rhs = pairs(np.array(_values(name), dtype))
    operands = (lhs, rhs) if operation in _BINARY else (lhs,)
    results = run(f"{operation}_{name}", *operands)
    bits, expected = ELEMENT_TYPES[name].bits, _EXPECTED[operation]
    for x, y, result in zip(lhs.tolist(), rhs.tolist(), results.tolist(), strict=True):
        assert result == _wrapped(expected(x, y, bits), name), (x, y)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_integers_from_floats_saturate(run: Maps, name: str, source: str) -> None:
    values = edge_floats(FLOATS[source], 2000)
    results = run(f"{name}_from_{source}", values).tolist()
    bits = ELEMENT_TYPES[name].bits
    lowest = -(2 ** (bits - 1)) if ELEMENT_TYPES[name].kind == "signed" else 0
    for value, result in zip(values.tolist(), results, strict=True):
        highest = lowest + 2**bits - 1
        clipped = 0 if math.isnan(value) else min(max(value, lowest - 1.0), highest + 1.0)
        assert result == min(max(int(clipped), lowest), highest), value


@pytest.mark.parametrize("name", ["s64", "u64"])
def test_wide_integers_to_narrow_floats_round_once(run: Maps, name: str) -> None:
    """Near a tie of bf16 at 2**62, f64 cannot hold what decides it."""
    tie = 2**62 + 2**54
    values = np.array([tie - 1, tie, tie + 1, 5, 0, 2**53 + 1], _storage(name).removesuffix("_t"))
    expected = [2.0**62, 2.0**62, 2.0**62 + 2.0**55, 5, 0, 2.0**53]
    assert run(f"bf16_from_{name}", values).tolist() == expected


# ---- floats ----

_NUMPY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "truncate": np.trunc,
    "round_nearest_even": np.rint,
    "round_nearest_afz": lambda x: np.copysign(
        np.trunc(np.abs(x)) + (np.abs(x) - np.trunc(np.abs(x)) >= 0.5), x
    ).astype(x.dtype),
    "sign": lambda x: np.where(x == 0, x, np.sign(x)),
    "sqrt": np.sqrt,
    "abs": np.abs,
}


@pytest.mark.parametrize("f", FLOATS)
@pytest.mark.parametrize("operation", _FLOAT_UNARY)
def test_unary_floats(run: Maps, f: str, operation: str) -> None:
    x = edge_floats(FLOATS[f], 100_000)
    with np.errstate(all="ignore"):
        x = np.concatenate([x, (x.view(f"i{x.itemsize}") % 2**25).astype(x.dtype) / 2])
        expected = _NUMPY[operation](x)
    result = run(f"{operation}_{f}", x)
    wrong = ~same(result, expected)
    assert not wrong.any(), (x[wrong][:5], result[wrong][:5], expected[wrong][:5])


@pytest.mark.parametrize("f", FLOATS)
def test_remainder_is_fmod(run: Maps, f: str) -> None:
    x, y = pairs(edge_floats(FLOATS[f], 300))
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    assert same(run(f"remainder_{f}", x, y), expected).all()


@pytest.mark.parametrize("f", FLOATS)
def test_maximum_minimum_clamp(run: Maps, f: str) -> None:
    x, y = pairs(edge_floats(FLOATS[f], 300))
    key_x, key_y = run(f"total_order_{f}", x), run(f"total_order_{f}", y)
    nan = np.where(np.isnan(x), x, y)
    either = np.isnan(x) | np.isnan(y)
    most = np.where(either, nan, np.where(key_x > key_y, x, y))
    least = np.where(either, nan, np.where(key_x < key_y, x, y))
    assert same(run(f"maximum_{f}", x, y), most).all()
    assert same(run(f"minimum_{f}", x, y), least).all()
    z = np.roll(x, 17)
    clamped = run(f"minimum_{f}", z, run(f"maximum_{f}", y, x))
    assert same(run(f"clamp_{f}", x, y, z), clamped).all()


@pytest.mark.parametrize("f", FLOATS)
def test_total_order(run: Maps, f: str) -> None:
    dtype = FLOATS[f]
    positive = np.array([0, np.finfo(dtype).smallest_subnormal, 1, np.inf, np.nan], dtype)
    x = np.concatenate([-positive[::-1], positive])
    assert (np.diff(run(f"total_order_{f}", x).astype(object)) > 0).all()
    x = edge_floats(dtype, 1000)
    assert (run(f"is_finite_{f}", x) == np.isfinite(x)).all()


def _reduced(bits: int, width: int, e: int, m: int) -> int:
    """reduce-precision of one bit pattern, by integers."""
    source_m = {16: 10, 32: 23, 64: 52, 0: 7}[width]
    width = width or 16
    source_e = width - 1 - source_m
    sign, magnitude = bits >> (width - 1) << (width - 1), bits & ((1 << (width - 1)) - 1)
    infinity = ((1 << source_e) - 1) << source_m
    if magnitude > infinity:
        return bits if m else infinity
    if m < source_m:
        last = 1 << (source_m - m)
        kept, cut = divmod(magnitude, last)
        magnitude = (kept + (cut > last // 2 or (cut == last // 2 and kept % 2 == 1))) * last
    if e < source_e:
        bias, reduced = (1 << (source_e - 1)) - 1, (1 << (e - 1)) - 1
        if magnitude >> source_m > bias + reduced:
            magnitude = infinity
        elif magnitude >> source_m <= bias - reduced:
            magnitude = 0
    return sign | magnitude


@pytest.mark.parametrize(("e", "m"), _REDUCED)
@pytest.mark.parametrize("f", ["f16", "bf16", "f32", "f64"])
def test_reduce_precision(run: Maps, f: str, e: int, m: int) -> None:
    if f in FLOATS:
        x = edge_floats(FLOATS[f], 3000)
        words, width = x.view(f"u{x.itemsize}"), 8 * x.itemsize
        expected = [_reduced(word, width, e, m) for word in words.tolist()]
        result = run(f"reduce_{f}_{e}_{m}", x)
        assert same(result, np.array(expected, words.dtype).view(x.dtype)).all()
    else:
        words = _codes(f)[::7]
        expected = [_reduced(word, 16 if f == "f16" else 0, e, m) for word in words.tolist()]
        values = np.array(expected, np.uint16).view(ELEMENT_TYPES[f].numpy).astype(np.float32)
        assert same(run(f"reduce_{f}_{e}_{m}", run(f"load_{f}", words)), values).all()

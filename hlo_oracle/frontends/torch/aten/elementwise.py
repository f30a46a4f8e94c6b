"""Elementwise operations of ATen, in the types that PyTorch promotes to."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from hlo_oracle.frontends.torch.aten.promotion import (
    Operation,
    compared,
    in_f32,
    promoted,
    typed,
    unpromoted,
    with_numbers_as_given,
)


def _is_inexact(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.inexact))


def _add(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return jnp.add(x, y if alpha == 1 else y * jnp.asarray(alpha, y.dtype))


def _sub(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return jnp.subtract(x, y if alpha == 1 else y * jnp.asarray(alpha, y.dtype))


def _rsub(x: Any, y: Any, alpha: Any = 1) -> Any:
    return jnp.subtract(y, x if alpha == 1 else x * jnp.asarray(alpha, x.dtype))


def _div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
    """Divide; ``trunc`` and ``floor`` round the quotient of numbers of the result's type."""
    if rounding_mode is None:
        return jnp.true_divide(x, y)
    if rounding_mode == "floor":
        return jnp.floor_divide(x, y)
    quotient = lax.div(*jnp.broadcast_arrays(x, y))
    return jnp.trunc(quotient) if _is_inexact(x) else quotient


def _power_of_scalar(result: Any, x: Any, exponent: Any) -> Any:
    """Raise to a known power; small powers are products, as in PyTorch's own kernel."""
    x = jnp.asarray(x, result)
    if _is_inexact(x):
        if exponent in (0.5, -0.5):
            return jnp.sqrt(x) if exponent > 0 else lax.rsqrt(x)
        if exponent in (-2, -1, 0, 1, 2, 3):
            return lax.integer_pow(x, int(exponent))
        return jnp.power(x, jnp.asarray(exponent, result))
    return lax.integer_pow(x, exponent) if exponent >= 0 else jnp.power(x, jnp.asarray(exponent))


def _round(x: Any, *, decimals: int = 0) -> Any:
    return jnp.round(x, decimals) if _is_inexact(x) else x


def _rounded(function: Any) -> Operation:
    """Make a rounding operation that leaves integers as they are."""
    return unpromoted(lambda x: function(x) if _is_inexact(x) else x)


def _clamp(result: Any, x: Any, low: Any = None, high: Any = None, **named: Any) -> Any:
    """Clamp to bounds, either of which may be missing; NaN stays."""
    low, high = named.get("min", low), named.get("max", high)
    x = jnp.asarray(x, result)
    x = x if low is None else jnp.maximum(x, jnp.asarray(low, result))
    return x if high is None else jnp.minimum(x, jnp.asarray(high, result))


def _where(result: Any, condition: Any, x: Any, y: Any) -> Any:
    return jnp.where(jnp.asarray(condition, bool), jnp.asarray(x, result), jnp.asarray(y, result))


def _to_copy(result: Any, x: Any, *, dtype: Any = None, **named: Any) -> Any:
    return _converted(x, result)


def _converted(x: Any, dtype: Any) -> Any:
    """Convert as PyTorch does: a complex number loses its imaginary part, a float its fraction."""
    if jnp.iscomplexobj(x) and not jnp.issubdtype(dtype, jnp.complexfloating):
        x = jnp.real(x)
    return jnp.asarray(x, dtype)


def _exp2(x: Any) -> Any:
    """Compute 2ˣ as a power: JAX's exp2 is exp(x log 2), whose product is rounded."""
    return jnp.exp2(x) if jnp.iscomplexobj(x) else lax.pow(jnp.full_like(x, 2), x)


def _sign(x: Any) -> Any:
    # NumPy's sign of NaN is NaN, and that of -0 is -0; PyTorch's is 0.
    if x.dtype == bool:
        return x
    return jnp.asarray(x > 0, x.dtype) - jnp.asarray(x < 0, x.dtype)


def _angle(result: Any, x: Any) -> Any:
    """Compute the angle of a number: that of a real one is 0 for -0, too, unlike that of a complex
    one."""
    if jnp.iscomplexobj(x):
        return jnp.angle(x)
    x = jnp.asarray(x, result)
    return jnp.where(x < 0, jnp.asarray(jnp.pi, result), jnp.where(jnp.isnan(x), x, 0))


def _relu(x: Any) -> Any:
    return jnp.maximum(x, jnp.zeros((), x.dtype))


def _gelu(x: Any, *, approximate: str = "none") -> Any:
    """Compute x Φ(x) as ATen does (ATen/native/cpu/Activation.cpp): by 1 + erf, of which far below
    zero little but roundings is left, where erfc would be exact; of narrow types in f32."""
    if approximate == "tanh":
        return jax.nn.gelu(x, approximate=True)
    wide = x.astype("float32") if x.dtype.itemsize < 4 else x
    return (wide * 0.5 * (1 + lax.erf(wide * math.sqrt(0.5)))).astype(x.dtype)


def _leaky_relu(x: Any, slope: float = 0.01) -> Any:
    return jnp.where(x > 0, x, x * jnp.asarray(slope, x.dtype))


def _rrelu_backward(
    gradient: Any, x: Any, noise: Any, lower: float, upper: float, training: bool, *rest: Any
) -> Any:
    """Compute the gradient of the randomized leaky ReLU, whose slopes are the noise."""
    if training and upper - lower > 1e-6:
        return gradient * noise
    slope = jnp.asarray((lower + upper) / 2, x.dtype)
    return jnp.where(x > 0, gradient, gradient * slope)


def _shrink_backward(gradient: Any, x: Any, bound: Any) -> Any:
    """Compute the gradient of what is 0, or moved towards 0, from -bound to bound."""
    bound = jnp.asarray(bound, x.dtype)
    return jnp.where((x >= -bound) & (x <= bound), jnp.zeros((), gradient.dtype), gradient)


def _elu(x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    def number(value: float) -> Any:
        return jnp.asarray(value, x.dtype)

    negative = number(alpha * scale) * jnp.expm1(x * number(input_scale))
    return jnp.where(x > 0, x * number(scale), negative)


def _broadcast(function: Any) -> Callable[..., Any]:
    """Make a function of operands that are broadcast to each other, which those of ``lax`` are
    not."""
    return lambda *operands: function(*jnp.broadcast_arrays(*operands))


def _addc(result: Any, x: Any, y: Any, z: Any, *, value: Any = 1, combine: Any = None) -> Any:
    x, y, z, value = (jnp.asarray(number, result) for number in (x, y, z, value))
    return x + value * combine(y, z)


def _lerp(start: Any, end: Any, weight: Any) -> Any:
    # PyTorch goes from the nearer end.
    near, far = start + weight * (end - start), end - (end - start) * (1 - weight)
    return jnp.where(jnp.abs(weight) < 0.5, near, far)


def _masked_fill(result: Any, x: Any, mask: Any, value: Any) -> Any:
    return jnp.where(mask, jnp.asarray(value, result), jnp.asarray(x, result))


def _nan_to_num(x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if not _is_inexact(x):
        return x
    return jnp.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


def _logical(function: Any) -> Operation:
    def operation(result: Any, *operands: Any) -> Any:
        return function(*(jnp.asarray(x).astype(bool) for x in operands))

    return operation


def _false(x: Any) -> Any:
    return jnp.zeros(x.shape, bool)


def _test(function: Any) -> Operation:
    """Make a test of floats that is False for all integers."""
    return unpromoted(lambda x: function(x) if _is_inexact(x) else _false(x))


def _erfcx(x: Any) -> Any:
    """Compute exp(x²) erfc(x): of x below 3 with the error of the square, of others by a continued
    fraction."""
    near = jnp.minimum(x, 3)
    square = near * near
    high = lax.reduce_precision(near, *_half_of_the_digits(x.dtype))
    low = near - high
    error = ((high * high - square) + 2 * high * low) + low * low
    exponential = jnp.exp(square)
    product = exponential * (1 + jnp.where(jnp.isfinite(exponential), error, 0)) * lax.erfc(near)
    far = jnp.maximum(x, 3)
    fraction = far
    for k in range(40, 0, -1):
        fraction = far + (k / 2) / fraction
    return jnp.where(x < 3, product, 1 / math.sqrt(math.pi) / fraction).astype(x.dtype)


def _half_of_the_digits(dtype: Any) -> tuple[int, int]:
    limits = jnp.finfo(dtype)  # type: ignore[no-untyped-call]
    return limits.nexp, limits.nmant // 2


_UNARY: dict[str, Callable[..., Any]] = {
    "acos": jnp.arccos, "acosh": jnp.arccosh, "asin": jnp.arcsin, "asinh": jnp.arcsinh,
    "atan": jnp.arctan, "atanh": jnp.arctanh, "cos": jnp.cos, "cosh": jnp.cosh,
    "erf": lax.erf, "erfc": lax.erfc, "erfinv": lax.erf_inv,
    "exp": jnp.exp, "exp2": _exp2, "expm1": jnp.expm1, "gelu": _gelu,
    "i0": in_f32(jax.scipy.special.i0), "special_i0e": jax.scipy.special.i0e,
    "special_ndtri": jax.scipy.special.ndtri, "special_i1": in_f32(jax.scipy.special.i1),
    "special_i1e": jax.scipy.special.i1e, "special_erfcx": _erfcx,
    "lgamma": lax.lgamma, "log": jnp.log, "log10": jnp.log10, "log1p": jnp.log1p,
    "log2": jnp.log2, "neg": jnp.negative, "reciprocal": jnp.reciprocal, "relu": _relu,
    "rsqrt": lax.rsqrt, "sigmoid": jax.nn.sigmoid, "silu": jax.nn.silu, "sin": jnp.sin,
    "sinh": jnp.sinh, "sqrt": jnp.sqrt, "square": jnp.square, "tan": jnp.tan, "tanh": jnp.tanh,
}  # fmt: skip


def _polar(size: Any, angle: Any) -> Any:
    return lax.complex(size * jnp.cos(angle), size * jnp.sin(angle))


def _frexp(x: Any) -> tuple[Any, Any]:
    fraction, exponent = jnp.frexp(x)
    return fraction, exponent


def _ldexp(result: Any, x: Any, exponent: Any) -> Any:
    """Multiply by a power of two, rounded once: the power itself may be out of range."""
    x = jnp.asarray(x, result)
    if _is_inexact(exponent):
        return x * _exp2(jnp.asarray(exponent, result))
    fraction, own = jnp.frexp(x)
    limits = jnp.finfo(result)  # type: ignore[no-untyped-call]
    # Sums that are larger or smaller have the same results: infinity and 0.
    least, most = limits.minexp - limits.nmant - 2, limits.maxexp + 1
    bound = most - 2 * least  # more than any sum of x's exponent and one that counts
    total = jnp.clip(own + jnp.clip(exponent.astype("int64"), -bound, bound), least, most)
    half = total // 2  # exact, as 0.5 <= |fraction| < 1, and half of the range is normal
    return fraction * _power_of_two(half, result) * _power_of_two(total - half, result)


def _power_of_two(exponent: Any, dtype: Any) -> Any:
    """Make normal powers of two of their bits."""
    limits = jnp.finfo(dtype)  # type: ignore[no-untyped-call]
    bits = (exponent + (1 - limits.minexp)).astype(f"int{limits.bits}") << limits.nmant
    return lax.bitcast_convert_type(bits, dtype)


def _pow(x: Any, y: Any) -> Any:
    """Raise to a power; of integers by all bits of the exponent, where ``jax.numpy.power`` reads
    the lowest six."""
    if _is_inexact(x):
        return jnp.power(x, y)
    x, y = jnp.broadcast_arrays(x, y)
    one, is_odd = jnp.ones((), x.dtype), (y & 1) != 0

    def step(operands: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        result, factor, rest = operands
        return jnp.where((rest & 1) != 0, result * factor, result), factor * factor, rest >> 1

    first = jnp.broadcast_to(one, x.shape), x, jnp.maximum(y, 0)
    result = lax.while_loop(lambda operands: jnp.any(operands[2] != 0), step, first)[0]
    # Of the reciprocals only those of 1 and -1 are no fractions.
    is_unit = (x == 1) | (x + 1 == 0)
    inverse = jnp.where(is_unit, jnp.where(is_odd, x, one), one - one)
    return jnp.where(y < 0, inverse, result)


def _gcd(x: Any, y: Any) -> Any:
    """Compute greatest common divisors by Euclid's algorithm.

    The absolute value of the least number of a type is negative, so is that of its divisors then:
    ``jax.numpy.gcd``, which orders both operands in each step, does not end for these.
    """

    def step(operands: tuple[Any, Any]) -> tuple[Any, Any]:
        x, y = operands
        goes_on = x != 0
        rest = lax.rem(y, jnp.where(goes_on, x, jnp.ones((), x.dtype)))
        return jnp.where(goes_on, rest, x), jnp.where(goes_on, x, y)

    x, y = jnp.broadcast_arrays(jnp.abs(x), jnp.abs(y))
    return lax.while_loop(lambda operands: jnp.any(operands[0] != 0), step, (x, y))[1]


def _lcm(x: Any, y: Any) -> Any:
    divisor = _gcd(x, y)
    quotient = lax.div(*jnp.broadcast_arrays(x, jnp.where(divisor == 0, 1, divisor)))
    return jnp.where(divisor == 0, 0, jnp.abs(quotient * y)).astype(x.dtype)


_BINARY: dict[str, Callable[..., Any]] = {
    "add": _add, "atan2": jnp.arctan2, "bitwise_and": jnp.bitwise_and,
    "bitwise_or": jnp.bitwise_or, "bitwise_xor": jnp.bitwise_xor, "copysign": jnp.copysign,
    "div": _div, "floor_divide": jnp.floor_divide, "fmax": jnp.fmax, "fmin": jnp.fmin,
    "gcd": _gcd, "igamma": _broadcast(lax.igamma), "igammac": _broadcast(lax.igammac),
    "lcm": _lcm,
    "hypot": jnp.hypot, "lerp": _lerp, "maximum": jnp.maximum, "minimum": jnp.minimum,
    "mul": jnp.multiply, "nextafter": jnp.nextafter, "pow": _pow,
    "remainder": jnp.remainder, "rsub": _rsub, "sub": _sub,
    "true_divide": jnp.true_divide,
}  # fmt: skip

_ARITHMETIC = {"add", "atan2", "div", "hypot", "lerp", "mul", "pow", "rsub", "sub", "true_divide"}

OPS: dict[str, Operation] = {
    **{name: promoted(function) for name, function in (_UNARY | _BINARY).items()},
    **{name: with_numbers_as_given(promoted(_BINARY[name])) for name in sorted(_ARITHMETIC)},
    **{name: compared(getattr(operator, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "frexp": unpromoted(_frexp),
    "ldexp": typed(_ldexp),
    "fmod": promoted(_broadcast(lax.rem)),
    "bitwise_left_shift": promoted(_broadcast(lax.shift_left)),
    "bitwise_right_shift": promoted(jnp.right_shift),  # logical if unsigned
    "__lshift__": promoted(_broadcast(lax.shift_left)),
    "__rshift__": promoted(jnp.right_shift),
    "pow.Tensor_Scalar": with_numbers_as_given(typed(_power_of_scalar)),
    "abs": unpromoted(jnp.abs),
    # Dynamo makes it of ``addcmul_`` and ``addcdiv_``; PyTorch's own kernel rounds twice, too.
    "fma": promoted(lambda x, y, z: x * y + z),
    "addcdiv": with_numbers_as_given(partial(_addc, combine=jnp.true_divide)),
    "addcmul": with_numbers_as_given(partial(_addc, combine=jnp.multiply)),
    "angle": typed(_angle),
    "bitwise_not": unpromoted(jnp.invert),
    "ceil": _rounded(jnp.ceil),
    "floor": _rounded(jnp.floor),
    "trunc": _rounded(jnp.trunc),
    "fix": _rounded(jnp.trunc),
    "round": unpromoted(_round),
    "clamp": typed(_clamp),
    "clamp_max": typed(lambda result, x, high: _clamp(result, x, None, high)),
    "clamp_min": typed(lambda result, x, low: _clamp(result, x, low)),
    "hardtanh": typed(lambda result, x, low=-1, high=1: _clamp(result, x, low, high)),
    "conj": unpromoted(jnp.conj),
    "_conj": unpromoted(jnp.conj),
    "_conj_physical": unpromoted(jnp.conj),
    "conj_physical": unpromoted(jnp.conj),
    "real": unpromoted(jnp.real),
    "imag": unpromoted(jnp.imag),
    "complex": unpromoted(_broadcast(lax.complex)),
    "polar": unpromoted(_polar),
    "elu": with_numbers_as_given(unpromoted(_elu)),
    "leaky_relu": with_numbers_as_given(unpromoted(_leaky_relu)),
    "hardshrink_backward": unpromoted(_shrink_backward),
    "softshrink_backward": unpromoted(_shrink_backward),
    "rrelu_with_noise_backward": unpromoted(_rrelu_backward),
    "isfinite": unpromoted(jnp.isfinite),
    "isinf": _test(jnp.isinf),
    "isnan": _test(jnp.isnan),
    "signbit": unpromoted(jnp.signbit),
    "sign": unpromoted(_sign),
    "sgn": unpromoted(jnp.sign),
    "logical_and": _logical(jnp.logical_and),
    "logical_not": _logical(jnp.logical_not),
    "logical_or": _logical(jnp.logical_or),
    "logical_xor": _logical(jnp.logical_xor),
    "masked_fill": typed(_masked_fill),
    "nan_to_num": unpromoted(_nan_to_num),
    "where": typed(_where),
    "_to_copy": typed(_to_copy),
    "convert_element_type": typed(lambda result, x, dtype: _converted(x, result)),
}

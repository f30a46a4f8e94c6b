"""Evaluate erf for f32."""

from __future__ import annotations

from hlo.elementary.fast.machine import BIAS, MANTISSA_BITS, ROUND, FloatMachine, horner
from hlo.elementary.machine import V

# erf(x) / x - 1 in x**2 - MIDDLE for |x| <= 1.0. It has a zero next to MIDDLE: Horner's rule adds
# small numbers there and on both sides.
MIDDLE = 0.40625
NEAR = (
    -0.007467467,
    -0.29645535,
    0.08474058,
    -0.019639138,
    0.0037538563,
    -0.0006111164,
    8.542436e-05,
)
# (-log2(1 - erf(x)) + log2(1 - erf(START))) / (x - START) in x - START for 0.9 <= x <= 4
FAR = (4.0175776, 1.2311817, 0.055184316, -0.0132805165, 0.0026869413, -0.0004015734, 3.2975273e-05)
# -log2(1 - erf(START)) is close to 3, so that only the rest is to be computed where much counts.
START = 1.0859375
# (1 - erf(START)) 2**(3 - f) for |f| <= 1/2
POWER = (
    0.9968025,
    -0.69093084,
    0.23945756,
    -0.055325974,
    0.009593854,
    -0.0013352601,
    0.00013914345,
)


def erf(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate the error function for x >= 0. Beyond 4 it is 1 in f32.

    Up to 0.9 it is x plus x times a polynomial in x**2, of small values; above, 1 - 2**-g(x) with
    a polynomial g, whose error counts little, as 2**-g(x) is below 1/4.
    """
    centred = machine.fused(x, x, -MIDDLE)
    near = machine.fused(x, horner(centred, NEAR, machine), x)
    beyond = machine.select(x > 4.0, 4.0, x) - START
    power = beyond * horner(beyond, FAR, machine)
    # 3 is added to the rounded power, and the bias and 1 are taken away.
    biased = power + (ROUND + (4 - BIAS))
    f = power - (biased - (ROUND + (4 - BIAS)))
    # The low bits of the sum are k + 4 - 127, those of its complement 127 - (k + 3) - 2.
    half = machine.from_bits((machine.bits(biased) ^ -1) << MANTISSA_BITS)
    far = machine.fused(half * -4.0, horner(f, POWER, machine), 1.0)
    return machine.select(x > 0.9, far, near)

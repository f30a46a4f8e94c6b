"""Evaluate erf for f64, in f64 arithmetic."""

from __future__ import annotations

from hlo.elementary.double_double import fast_two_sum
from hlo.elementary.fast.exponential_f64 import power_of_two, reduced_once
from hlo.elementary.fast.machine import DoubleMachine, horner
from hlo.elementary.machine import V

SEAM = 0.9375
# erf(x) / x - 1 in x**2 - MIDDLE for |x| <= SEAM; error 1.6e-18
MIDDLE = 0.75
NEAR = (
    -0.10010880203447822,
    -0.24458841374655807,
    0.066918887964662,
    -0.015131144700109015,
    0.0028472083350895216,
    -0.0004554912381050637,
    6.318505218885292e-05,
    -7.725365797479077e-06,
    8.435610633964659e-07,
    -8.349702322297896e-08,
    7.143406381014267e-09,
    -8.23320256935202e-10,
)
# e**(x**2) (1 - erf(x)) in t = (x - 1) / (x + 4) for SEAM <= x <= 6; error 6.7e-18
FAR = (
    0.427583576155807,
    -1.3660600739194917,
    2.493228960378159,
    -3.5508531229948908,
    3.9843788109651075,
    -3.4867310255521144,
    2.290295573198728,
    -1.0146441379260778,
    0.18738923670367563,
    0.09257760784150429,
    -0.06713699982410448,
    -0.0008201279585739984,
    0.01597649221119187,
    -0.0042694564540854815,
    -0.001825606288368059,
    0.0009147633419302353,
)


def erf(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate the error function for x >= 0; 1 from 6 on.

    Up to SEAM as x + x g(x**2), where |g| < 0.14: the roundings of g are 0.25 of 2**-53 at SEAM,
    with those of x**2 and of the product 0.43, and the last bit is 2**-53 or they are less.

    Above, with x**2 = -k ln(2) - r and P = e**(x**2) erfc(x), as (1 - 2**k P) - 2**k P (e**r - 1):
    the first difference is a pair, exactly, and what is subtracted from it at most 0.06. Relative
    to erfc(x), 0.19 at most, r and e**r err by 0.6 of 2**-53, P by 0.3, and x**2 by 1. With a half
    for the last rounding the error is below 0.95.
    """
    near = machine.fused(x, horner(machine.fused(x, x, -MIDDLE), NEAR, machine), x)
    limited = machine.select(x > 6.0, 6.0, x)
    fraction, biased = reduced_once(-(limited * limited), machine)
    t = (limited - 1.0) / (limited + 4.0)
    scaled = horner(t, FAR, machine) * power_of_two(biased, machine)
    total = fast_two_sum(scaled * 0.0 + 1.0, -scaled)
    far = total.high + machine.fused(-scaled, fraction, total.low)
    return machine.select(x > SEAM, far, near)

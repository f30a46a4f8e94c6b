"""Evaluate erf for f32 and narrower."""

from __future__ import annotations

from hlo.elementary.exponential import exponential
from hlo.elementary.machine import Machine, V, horner

_SLOPE_HIGH = 1.1283791661262512  # 2 / sqrt(pi), 29 bits: its product with an f32 is exact
_SLOPE_LOW = 9.692613531930338e-10

# (erf(x) / x - 2 / sqrt(pi)) / x**2 in x**2 for |x| <= 3/4; error 6e-18
NEAR = (
    -0.37612638903183754,
    0.11283791670954912,
    -0.02686617064500572,
    0.005223977622580217,
    -0.0008548326691694578,
    0.00012055310856597295,
    -1.4924749789477608e-05,
    1.6439328844296724e-06,
    -1.6014471512156006e-07,
    1.1743659521768306e-08,
)
# exp(x**2) (1 - erf(x)) in x - 19/8 for 3/4 <= x <= 4; error 5.7e-17
FAR = (
    0.22050569220490662,
    -0.08097712912220591,
    0.02818501053967196,
    -0.009358486060331087,
    0.002979303073113411,
    -0.0009130565045844966,
    0.0002702646254728549,
    -7.747943451195946e-05,
    2.1562740055875703e-05,
    -5.837315609320431e-06,
    1.5398275757612148e-06,
    -3.964073279321067e-07,
    9.972055833686092e-08,
    -2.4546007038249638e-08,
    5.923216575365781e-09,
    -1.399893472127455e-09,
    3.2148368663705876e-10,
    -7.331983053896277e-11,
    1.7691586169336063e-11,
    -3.870736514810475e-12,
    5.179213925424976e-13,
    -1.1440961154212956e-13,
    7.033860245591916e-14,
    -1.4303946984147754e-14,
)


def erf(x: V, machine: Machine[V]) -> V:
    """Evaluate the error function for x >= 0. Beyond 4 it is 1 in every narrow type.

    Up to 3/4 it is 2/sqrt(pi) x plus a polynomial in x**2; above, 1 - e**(-x**2) P(x), where P is
    e**(x**2) erfc(x).
    """
    clamped = machine.select(x > 4.0, 4.0, x)
    square = clamped * clamped
    near = clamped * _SLOPE_HIGH + clamped * (square * horner(square, NEAR) + _SLOPE_LOW)
    far = 1.0 - exponential(-square, machine) * horner(clamped - 2.375, FAR)
    far = machine.select(x > 4.0, 1.0, far)
    return machine.select(x > 0.75, far, near)

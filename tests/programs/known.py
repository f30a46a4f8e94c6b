"""Functions of which XLA's results are outside, and rightly so: defects of XLA that docs/found has.

What was seen is of jaxlib 0.10. A result that is outside and not here is a finding.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """A function, the types of its floats (those written, or those given in their place), and the
    folder of docs/found that says what is wrong."""

    name: str
    floats: tuple[str, ...]
    folder: str


REAL = (
    Known("activations.divided_by_a_huge_number", ("f32", "bf16"), "division_by_a_large_number"),
    Known("activations.inverse_hyperbolic", ("f64",), "log_plus_one_of_f64"),
    Known(
        "activations.wide_inverse_hyperbolic", ("f32", "bf16", "f16", "f64"), "log_plus_one_of_f64"
    ),
    Known("special_functions.error_functions", ("f64",), "log_plus_one_of_f64"),
    Known("special_functions.inverse_error_function_and_gammas", ("f64",), "log_plus_one_of_f64"),
    Known(
        "by_hand.series_and_integrals.entropies_and_divergences", ("f32",), "log_plus_one_of_f64"
    ),
    Known("spectral.complex_powers", ("f32",), "power_of_c64"),  # with --scale 100
    Known(
        "numerical_methods.zeta_and_gamma_of_complex_numbers", ("f32",), "power_of_c64"
    ),  # with --scale 30
    Known(
        "odd_corners.near_the_least_normal_numbers",
        ("f32", "bf16", "f16"),
        "product_of_two_constants",
    ),  # x · 1.2e-38 / 2: the product of the constants is subnormal, and flushed
)


def find(name: str, floats: str) -> Known | None:
    """The row of a function whose arguments of f32 are of another type."""
    return next((row for row in REAL if row.name == name and floats in row.floats), None)

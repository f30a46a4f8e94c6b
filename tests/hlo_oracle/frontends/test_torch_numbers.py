"""PyTorch's kernels round no number to the narrow type of a tensor, and nothing to a wider one.

Each of these was called wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")

import torch.nn.functional as F  # noqa: E402 (after the skip)

import hlo_oracle as ho  # noqa: E402 (after the skip)
from hlo_oracle.frontends import torch as torch_functions  # noqa: E402 (after the skip)
from hlo_oracle.function_check import of_tensors  # noqa: E402 (after the skip)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def numbers(count: int, name: str) -> Any:
    generator = torch.Generator().manual_seed(count)
    return torch.randn(count, generator=generator).to(getattr(torch, name))


def _sums(x: Any) -> Any:
    return x + 0.1, x - 1.3, 0.7 - x, torch.add(x, x.flip(0), alpha=0.3), torch.rsub(x, 1.1)


def _products(x: Any) -> Any:
    return x * 1e4, x * 0.3, x / 3.3, 0.77 / x, x * torch.tensor(0.3), x * 1e-5 * 1e-5


def _others(x: Any) -> Any:
    return (
        x.abs() ** 1.7, torch.lerp(x, x.flip(0), 0.3), torch.addcmul(x, x, x, value=0.3),
        torch.addcdiv(x, x, x.abs() + 1, value=0.7), F.leaky_relu(x, 0.23), F.elu(x, 1.3),
        torch.atan2(x, torch.tensor(0.3)), torch.div(x, 0.3, rounding_mode="floor"),
    )  # fmt: skip


@pytest.mark.parametrize("function", [_sums, _products, _others])
@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_numbers_are_taken_as_they_are(function: Callable[..., Any], name: str) -> None:
    x = numbers(200, name)
    verdict = ho.check(function, x)
    assert not verdict.outside, str(verdict)
    traced = torch_functions.lowered(function, (x,), {})
    assert traced is not None
    wrong = replace(traced, call=lambda: tuple(1.02 * one for one in function(x)))
    assert of_tensors(wrong).outside


def test_a_number_beyond_the_type() -> None:
    x = numbers(50, "float16") / 100
    assert ho.check(lambda x: x * 1e5, x)
    assert (x * 1e5).isfinite().all()


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16", "float16"])
def test_sums_of_derivatives_of_gamma_are_those_of_the_type(order: int, name: str) -> None:
    """The kernel adds them up in the type of the tensor."""
    verdict = ho.check(lambda x: torch.polygamma(order, x), numbers(60, name).abs() + 0.3)
    assert not verdict.outside, str(verdict)


def test_sums_of_zeta_are_those_of_the_type() -> None:
    x, q = numbers(200, "float32").abs() + 1.2, numbers(200, "float32").abs() + 0.2
    assert ho.check(torch.special.zeta, x, q)


def test_bessel_functions_of_f16_do_not_overflow_before_their_result_does() -> None:
    x = torch.linspace(-13, 13, 53, dtype=torch.float16)
    assert ho.check(lambda x: (torch.i0(x), torch.special.i1(x)), x)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_sequences_are_those_of_the_kernels(name: str) -> None:
    """They round the first element of each vector before they add multiples of the step."""

    def sequences(x: Any) -> Any:
        return torch.arange(1.7, -28.3, -0.1, dtype=x.dtype)[:300] * x, torch.arange(
            0, 30, 0.1, dtype=x.dtype
        )

    x = numbers(300, name)
    verdict = ho.check(sequences, x)
    assert not verdict.outside, str(verdict)
    traced = torch_functions.lowered(sequences, (x,), {})
    assert traced is not None
    wrong = replace(traced, call=lambda: tuple(1.02 * one for one in sequences(x)))
    assert of_tensors(wrong).outside


def test_remainders_by_the_documented_formula_are_legal() -> None:
    """Inductor computes them so: of quotients next to a whole number that is units off, or 0."""

    def remainders(x: Any) -> Any:
        return torch.remainder(x, 0.3), torch.remainder(x, x.abs().flip(0))

    def by_formula(x: Any, b: Any) -> Any:
        return x - torch.div(x, b, rounding_mode="floor") * b

    x = 10 * numbers(200, "float32")
    assert ho.check(remainders, x)
    traced = torch_functions.lowered(remainders, (x,), {})
    assert traced is not None
    formula = by_formula(x, torch.tensor(0.3)), by_formula(x, x.abs().flip(0))
    assert any((one != other).any() for one, other in zip(formula, remainders(x), strict=True))
    assert not of_tensors(replace(traced, call=lambda: formula)).outside
    assert of_tensors(replace(traced, call=lambda: formula, readings=())).outside
    assert of_tensors(replace(traced, call=lambda: tuple(1.02 * y for y in formula))).outside

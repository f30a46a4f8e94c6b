"""PyTorch's results are judged on the values that its operations have one by one.

Without PyTorch all of it is one skipped line; docs/torch.md says how to run it.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")

import torch.nn.functional as F  # noqa: E402 (after the skip)
from torch import nn  # noqa: E402 (after the skip)

import hlo_oracle as ho  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch import functions, values_between  # noqa: E402 (after the skip)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

WIDTH, HEADS = 32, 4


class Block(nn.Module):
    """A block of a decoder: causal attention, and two layers behind a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.three, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Any) -> Any:
        parts = self.three(self.before(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.layers(self.between(x))


@pytest.fixture(name="model")
def deep_model() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(*(Block() for _ in range(3)))


def numbers(*sizes: int) -> Any:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def test_a_deep_model_is_judged_to_the_last_element(model: Any) -> None:
    """Three blocks alone leave most elements open, as each rounding may be the worst one."""
    verdict = ho.check(model, numbers(2, 8, WIDTH))
    assert verdict and not verdict.undetermined, verdict


def test_its_gradients(model: Any) -> None:
    def gradients(x: Any, *parameters: Any) -> Any:
        def loss(given: tuple[Any, ...]) -> Any:
            named = dict(zip(dict(model.named_parameters()), given, strict=True))
            return torch.func.functional_call(model, named, (x,)).square().mean()

        return torch.func.grad(loss)(parameters)

    given = [x.detach() for x in model.parameters()]
    verdict = ho.check(gradients, numbers(1, 4, WIDTH), *given)
    elements = sum(x.numel() for x in given)
    assert verdict and verdict.undetermined < elements / 20, verdict


def test_results_of_another_compiler(model: Any) -> None:
    """Another compiler's result is legal if it follows from eager's values; else it stays open."""
    x = numbers(2, 8, WIDTH)

    def wrong(graph: Any, inputs: Any) -> Any:
        del inputs
        return lambda *given: [y * (1 + 2e-3) for y in graph(*given)]

    right = ho.check(torch.compile(model, backend="eager"), x)
    assert right and not right.undetermined, right
    torch.compiler.reset()
    verdict = ho.check(torch.compile(model, backend=wrong), x)
    open_or_wrong = verdict.undetermined + verdict.outside
    assert open_or_wrong > 0.9 * x.numel(), verdict


def test_values_are_those_after_all_writes() -> None:
    """A value that is written later is shown as it is in the end, by PyTorch and by the program."""

    def writing(x: Any, y: Any) -> Any:
        unused = torch.empty(5)
        unused[2] = 3
        z = x.sin()
        w = z * y
        z.mul_(3)
        w[0] = z[1]
        return w.exp().sum(), z

    x, y = numbers(3, 4), numbers(3, 4)
    traced = functions.lower(writing, (x, y), {})
    between = traced.between()
    assert between is not None and len(between.values) > 3
    assert ho.check(writing, x, y)
    require_equal(between)


def require_equal(between: values_between.ValuesBetween) -> None:
    """Require PyTorch's values to be those of the program, but for roundings."""
    found = ho.run(ho.load(between.text), *between.arguments)
    for exact, other in zip(found, (*between.results, *between.values), strict=True):
        if other is not None:
            torch.testing.assert_close(torch.tensor(exact), torch.tensor(other))


def test_a_value_that_is_not_computed_has_its_place() -> None:
    """A gradient that nobody reads is None, and what follows it was once taken for it."""

    def gradients(x: Any, weight: Any, bias: Any) -> Any:
        def loss(weight: Any, bias: Any) -> Any:
            y = F.batch_norm(x.sin(), torch.zeros(3), torch.ones(3), weight, bias)
            return (y - y.logsumexp(-1, keepdim=True)).square().mean()

        return torch.func.grad(loss, argnums=(0, 1))(weight, bias)

    given = numbers(2, 3, 8), numbers(3), numbers(3)
    between = functions.lower(gradients, given, {}).between()
    assert between is not None and any(x is None for x in between.values)
    require_equal(between)
    assert ho.check(gradients, *given)


def test_values_of_too_many_bytes_are_not_kept(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values_between, "_MOST_BYTES", 1 << 10)
    assert functions.lower(model, (numbers(2, 8, WIDTH),), {}).between() is None


def test_a_step_that_seems_wrong_is_told_and_proves_nothing(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eager's value of one operation is falsified; what follows is judged without it."""
    ran = values_between.run

    def falsified(module: Any, arguments: Any, count: int) -> Any:
        found = ran(module, arguments, count)
        assert found is not None
        values = list(found.values)
        place = next(n for n, x in enumerate(values) if x is not None and x.shape == (16, WIDTH))
        values[place] = values[place] * np.float32(1.01)
        return replace(found, values=tuple(values))

    monkeypatch.setattr(values_between, "run", falsified)
    verdict = ho.check(model, numbers(2, 8, WIDTH))
    assert verdict.outside == 0 and "suspect, but not proven" in str(verdict), verdict
    assert verdict.undetermined < 300, verdict


def test_an_operation_that_fails_leaves_the_results_to_themselves(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(module: Any) -> Any:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(values_between, "showing", failing)
    verdict = ho.check(model, numbers(2, 8, WIDTH))
    assert verdict.outside == 0 and verdict.undetermined, verdict

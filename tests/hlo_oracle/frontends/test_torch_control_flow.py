"""Branches, loops, scans and maps of torch, whose functions are graphs of their own.

Without PyTorch all of it is one skipped line; docs/torch.md says how to run it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")

import torch.nn.functional as F  # noqa: E402 (after the skip)
from torch import nn  # noqa: E402 (after the skip)
from torch._higher_order_ops.map import map as map_rows  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

import hlo_oracle as ho  # noqa: E402 (after the skip)
from hlo.errors import Unsupported  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch import graph_compiler  # noqa: E402 (after the skip)

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch, about its own operations


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    graph_compiler.HISTORY.clear()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def branch(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: (x.sin() + 1).exp(), lambda x: x.cos() * 2 - x, (x,))


def nested(x: Any) -> Any:
    # Some versions of PyTorch refuse views of operands in branches, such as x.T.
    return torch.cond(x[0, 0] > x[1, 1], branch, lambda x: x @ torch.ones(3, 3) * x, (x,))


def newton(x: Any) -> Any:
    """The square root, until it is good enough."""
    a = x.abs() + 0.5

    def more(n: Any, y: Any) -> Any:
        return (n < 20) & ((y * y - a).abs().max() > 1e-3)

    def step(n: Any, y: Any) -> Any:
        return n + 1, (y + a / y) / 2

    return while_loop(more, step, (torch.tensor(0), torch.ones_like(a)))


def recurrence(x: Any) -> Any:
    return scan(lambda c, row: (c * 0.5 + row, (c + row).tanh()), torch.zeros(3), x)


def backwards(x: Any) -> Any:
    return scan(lambda c, row: (c * 0.5 + row, c * row), torch.ones(3), x, reverse=True)


def each(x: Any) -> Any:
    return map_rows(lambda row, w: (row * w).cumsum(0), x, torch.arange(3.0))


def branch_in_a_loop(x: Any) -> Any:
    def row(c: Any, r: Any) -> Any:
        return c + torch.cond(r[0] > 0, lambda r: r * 2, lambda r: -r, (r,)), c.clone()

    return scan(row, torch.zeros(3), x)


def normalised(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: F.layer_norm(x, (3,)), lambda x: x.cos(), (x,))


ALL = [normalised, branch, nested, newton, recurrence, backwards, each, branch_in_a_loop]


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("sign", [1, -1])
def test_compiled(function: Callable[..., Any], sign: int) -> None:
    x = sign * torch.rand(4, 3)
    actual = torch.compile(function, backend=ho.torch.backend)(x)
    torch.testing.assert_close(actual, function(x), rtol=1e-4, atol=1e-5)
    assert not ho.torch.explain().eager


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_judged(function: Callable[..., Any]) -> None:
    verdict = ho.check(function, torch.randn(4, 3))
    assert verdict and not verdict.outside


@pytest.mark.parametrize("function", [normalised, branch, nested, branch_in_a_loop])
def test_gradients(function: Callable[..., Any]) -> None:
    x = torch.randn(4, 3)
    found = []
    for called in (function, torch.compile(function, backend=ho.torch.backend)):
        given = x.clone().requires_grad_(True)
        value = called(given)
        (value if isinstance(value, torch.Tensor) else value[-1]).pow(2).sum().backward()
        found.append(given.grad)
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
    assert not ho.torch.explain().eager


def test_a_module_has_parameters_in_its_branches() -> None:
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = nn.Linear(3, 2), nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            return torch.cond(
                x.mean() > 0, lambda x: self.left(x).relu(), lambda x: self.right(x), (x,)
            )

    model = Gated()
    for x in (torch.rand(4, 3), -torch.rand(4, 3)):
        torch.testing.assert_close(torch.compile(model, backend=ho.torch.backend)(x), model(x))
        assert ho.check(model, x)


def test_a_branch_that_draws_is_pytorch_s_and_in_order() -> None:
    def drawing(x: Any) -> Any:
        first = torch.rand(3)
        second = torch.cond(x.sum() > 0, lambda x: x + torch.rand(3), lambda x: x * 1, (x,))
        return first * 2 + 1, second * 3 + 1, torch.rand(3) * 2 + 1

    x = torch.ones(3)
    torch.manual_seed(7)
    expected = drawing(x)
    torch.manual_seed(7)
    actual = torch.compile(drawing, backend=ho.torch.backend)(x)
    torch.testing.assert_close(actual, expected)
    (one, *_) = [e for e in ho.torch.explain().eager if "cond" in e.op]
    assert "random" in one.why
    with pytest.raises(Unsupported, match="random"):
        ho.check(drawing, x)


@torch.library.custom_op("hlo_oracle_tests::own", mutates_args=())
def own(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@own.register_fake
def _(x: Any) -> Any:
    return torch.empty_like(x)


def test_what_does_not_convert_inside_is_named() -> None:
    def function(x: Any) -> Any:
        return torch.cond(x.sum() > 0, own, torch.sin, (x,)) * 2 + 1

    explanation = ho.torch.explain(function, torch.rand(3))
    (one,) = explanation.eager
    assert (one.op, one.why) == (
        "cond", "hlo_oracle_tests.own.default inside: no conversion to HLO",
    )  # fmt: skip


def test_what_has_an_effect_is_named() -> None:
    """PyTorch raises an error for a matrix without an inverse."""
    (one,) = ho.torch.explain(lambda x: torch.linalg.inv(x) @ x + 1, torch.eye(3)).eager
    assert (one.op, one.why) == (
        "with_effects", "aten._linalg_check_errors.default has an effect",
    )  # fmt: skip


def test_sizes_are_no_operands_of_a_loop() -> None:
    def function(x: Any) -> Any:
        n = x.shape[0]
        return torch.cond(x.sum() > 0, lambda x: x.reshape(n, -1) * n, lambda x: x / n, (x,))

    compiled = torch.compile(function, backend=ho.torch.backend, dynamic=True)
    for count in (2, 5):
        x = torch.rand(count, 3)
        torch.testing.assert_close(compiled(x), function(x))


def test_what_a_trace_writes_is_read_in_a_branch() -> None:
    """A tensor of the module, neither parameter nor buffer: the branch reads what was written."""

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n = torch.zeros(3)

        def forward(self, x: Any) -> Any:
            self.n += 1
            return torch.cond(x.sum() > 0, lambda x: x * self.n, lambda x: x - self.n, (x,))

    model = Counting()
    assert ho.check(model, torch.rand(3))
    assert model.n.tolist() == [1, 1, 1]  # by the one run that is judged

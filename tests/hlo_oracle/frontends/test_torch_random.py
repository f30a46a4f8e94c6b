"""Random operations of compiled functions draw what eager draws, however tensors lie in memory.

Without PyTorch all of it is one skipped line; docs/torch.md says how to run it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")

import torch.nn.functional as F  # noqa: E402 (after the skip)
from torch import nn  # noqa: E402 (after the skip)

import hlo_oracle as ho  # noqa: E402 (after the skip)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

TENSORS = [
    torch.rand(5, 6).t(),
    torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    torch.rand(4, 1, 3, 5).permute(3, 1, 0, 2),
    torch.rand(6, 8)[::2, 1:5],
    torch.rand(6, 1).expand(6, 4),
]
DROPPED: dict[str, Callable[[Any], Any]] = {
    "dropout": lambda x: F.dropout(x * 2, 0.5),
    "of an argument": lambda x: F.dropout(x, 0.5) + 1,
    "float64": lambda x: F.dropout(x.double() * 2, 0.5),
    "alpha": lambda x: F.alpha_dropout(x * 2, 0.5),
    "features": lambda x: F.feature_alpha_dropout(x * 2, 0.5),
    "in place": lambda x: (x * 2).bernoulli_(0.3) + x,
}
DRAWN: dict[str, Callable[[Any], Any]] = {
    "like": lambda x: torch.rand_like(x * 2) + torch.randn_like(x) + torch.randint_like(x, 9),
    "written": lambda x: (x * 2).normal_(1, 2) + (x * 2).uniform_(1, 2) + (x * 2).random_(9),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()) + (x * 2).bernoulli_(x.sigmoid()),
    "rrelu": lambda x: F.rrelu(x * 2 - 1, training=True),
    "gumbel": lambda x: F.gumbel_softmax(x * 2, hard=True),
    "multinomial": lambda x: torch.multinomial((x * 2 + 1).flatten(0, -2), 2),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def assert_draws_as_eager(function: Callable[..., Any], *given: Any, dynamic: bool) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=ho.torch.backend, dynamic=dynamic)
    torch.manual_seed(3)
    expected = function(*given)
    torch.manual_seed(3)
    torch.testing.assert_close(compiled(*given), expected)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", DROPPED)
def test_dropout_drops_what_eager_drops_in_any_order_in_memory(name: str, dynamic: bool) -> None:
    for x in TENSORS if not dynamic else TENSORS[:2]:
        assert_draws_as_eager(DROPPED[name], x, dynamic=dynamic)


@pytest.mark.parametrize("name", DRAWN)
def test_random_operations_draw_what_eager_draws(name: str) -> None:
    for x in TENSORS[:2]:
        assert_draws_as_eager(DRAWN[name], x, dynamic=False)


def test_an_encoder_layer_in_training_drops_what_eager_drops() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.3, batch_first=True)
    x, results = torch.randn(2, 5, 8), []
    for function in (layer, torch.compile(layer, backend=ho.torch.backend)):
        layer.zero_grad()
        torch.manual_seed(3)
        value = function(x)
        value.square().sum().backward()
        results.append([value, *(p.grad.clone() for p in layer.parameters())])
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)

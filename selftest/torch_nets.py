"""Judge PyTorch's eager results of drawn networks and of their gradients: none should be wrong.

``python -m selftest.torch_nets --count N --seed S`` draws networks of a few layers in f32, f64,
bf16 and f16, with their gradients half of the time, and has each judged by
:func:`hlo_oracle.check`, which runs eager's operations one by one where results alone do not tell.
Eager's kernels follow no budget of this project, so what they give is evidence against the envelope
where it is called wrong. Prints what is undetermined or suspect, and a row for each type: networks,
elements by verdict. Exit status: 1 if an element is outside.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

import hlo_oracle as ho
from hlo.errors import Error
from interp.envelope.verdict import KINDS, OUTSIDE

_WIDTH, _HEADS, _STEPS = 16, 4, 6
_TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class Attention(nn.Module):  # type: ignore[misc]
    """Causal attention, or not, of a few heads."""

    def __init__(self, *, is_causal: bool) -> None:
        super().__init__()
        self.three, self.out = nn.Linear(_WIDTH, 3 * _WIDTH), nn.Linear(_WIDTH, _WIDTH)
        self.is_causal = is_causal

    def forward(self, x: Any) -> Any:
        """Attend along the second dimension."""
        parts = self.three(x).unflatten(-1, (3, _HEADS, _WIDTH // _HEADS))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        return self.out(y.transpose(1, 2).flatten(2))


class Called(nn.Module):  # type: ignore[misc]
    """A function of an array as a layer; a residual layer adds its operand."""

    def __init__(self, function: Callable[[Any], Any], *, is_residual: bool = False) -> None:
        super().__init__()
        self.function, self.is_residual = function, is_residual

    def forward(self, x: Any) -> Any:
        """Apply the function."""
        y = self.function(x)
        return x + y if self.is_residual else y


_PARTS: tuple[Callable[[], nn.Module], ...] = (
    lambda: nn.Linear(_WIDTH, _WIDTH),
    lambda: Called(nn.Linear(_WIDTH, _WIDTH), is_residual=True),
    lambda: Called(Attention(is_causal=True), is_residual=True),
    lambda: Called(Attention(is_causal=False)),
    lambda: Called(nn.Sequential(nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, _WIDTH), nn.GELU())),
    lambda: nn.LayerNorm(_WIDTH),
    lambda: nn.RMSNorm(_WIDTH),
    lambda: nn.GroupNorm(2, _STEPS),
    lambda: nn.BatchNorm1d(_STEPS),
    lambda: nn.Conv1d(_STEPS, _STEPS, 3, padding=1),
    lambda: nn.Sequential(nn.Conv1d(_STEPS, 9, 3, padding=1), nn.MaxPool1d(2, 1), nn.ReLU(),
                          nn.Conv1d(9, _STEPS, 4, padding=2)),
    *(nn.GELU, lambda: nn.GELU(approximate="tanh"), nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus),
    *(nn.ELU, nn.Mish, nn.Hardswish, nn.LeakyReLU, nn.LogSigmoid, lambda: nn.Softmax(-1)),
    lambda: nn.LogSoftmax(-1),
    lambda: Called(lambda x: torch.cumsum(x, 1)),
    lambda: Called(lambda x: x - torch.logsumexp(x, -1, keepdim=True)),
    lambda: Called(lambda x: torch.einsum("bsw,btw->bst", x, x) @ x / _WIDTH),
    lambda: Called(lambda x: x / (1 + x.square().sum(-1, keepdim=True)).sqrt()),
    lambda: Called(lambda x: torch.sin(x) * torch.exp(-x.abs())),
    lambda: Called(lambda x: x.std(-1, keepdim=True) * x, is_residual=True),
    lambda: Called(lambda x: torch.where(x > 0, x, x.expm1()).clamp(-2, 2)),
)  # fmt: skip


def drawn(rng: random.Random) -> tuple[Callable[..., Any], tuple[Any, ...], str]:
    """Draw a network of three to eight layers, or the gradients of its loss by its parameters;
    return a function, its arguments and the name of its type."""
    torch.manual_seed(rng.getrandbits(32))
    dtype = rng.choice(_TYPES)
    model = nn.Sequential(*(rng.choice(_PARTS)() for _ in range(rng.randint(3, 8)))).to(dtype)
    model.train(mode=rng.random() < 0.3)
    x = torch.randn(2, _STEPS, _WIDTH).to(dtype)
    name = str(dtype).removeprefix("torch.")
    names = [name for name, _ in model.named_parameters()]
    if not names or rng.random() < 0.5:
        return model.eval(), (x,), name

    def gradients(x: Any, *parameters: Any) -> Any:
        def loss(given: tuple[Any, ...]) -> Any:
            named = dict(zip(names, given, strict=True))
            return torch.func.functional_call(model, named, (x,)).square().mean()

        return torch.func.grad(loss)(parameters)

    return gradients, (x, *(p.detach() for p in model.parameters())), name


def rows(found: dict[str, Counter[str]]) -> Iterator[str]:
    """Yield a table by type."""
    columns = ("networks", *KINDS, "suspect", "refused")
    yield "| type | " + " | ".join(columns) + " |"
    yield "|:--|" + "--:|" * len(columns)
    for name, counts in sorted(found.items()):
        yield f"| {name} | " + " | ".join(f"{counts[column]:,}" for column in columns) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m selftest.torch_nets", description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found: dict[str, Counter[str]] = {}
    for number in range(given.count):
        function, arguments, name = drawn(random.Random(f"{given.seed} {number}"))
        counts = found.setdefault(name, Counter())
        try:
            verdict = ho.check(function, *arguments)
        except Error as error:
            counts["refused"] += 1
            print(f"{number}: {error}", file=sys.stderr)
            continue
        counts["networks"] += 1
        counts.update({kind: getattr(verdict, kind) for kind in KINDS})
        counts["suspect"] += "suspect" in str(verdict)
        if verdict.outside or verdict.undetermined or "suspect" in str(verdict):
            print(f"{number}: {verdict}\n{function}", file=sys.stderr)
    print(*rows(found), sep="\n")
    return int(any(counts[OUTSIDE] for counts in found.values()))


if __name__ == "__main__":
    sys.exit(main())

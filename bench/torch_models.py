"""Measure models of PyTorch: eager, inductor and this backend, beside each other.

    python -m bench.torch_models [MODEL …] [--rounds N] [--json]

Each model is called by the three in turn, round by round, in one process with one thread, once as
it is evaluated and once as a training step (loss, gradients, no optimiser). Times are the least
processor time of a call; ``compile`` is the wall time of the first call, from empty caches. What
they give in evaluation is judged (``ho.check``): the number of elements outside, of how many.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hlo_oracle as ho

COMPILERS = ("eager", "inductor", "hlo_oracle")
_MINIMUM = 0.2  # seconds of calls in a sample


class Residual(nn.Module):
    """A residual block: two convolutions with batch norms, and a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.convolutions(x))


def cnn() -> nn.Module:
    """Make a residual network for images of 32 by 32 pixels, 10 classes."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        Residual(32),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        Residual(64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


class Block(nn.Module):
    """A transformer block: attention of 4 heads and two dense layers, each after a layer norm and
    with a residual connection."""

    def __init__(self, width: int, is_causal: bool) -> None:
        super().__init__()
        self.is_causal = is_causal
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dense = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = self.qkv(self.norms[0](x)).view(batch, length, 3, 4, width // 4)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.dense(self.norms[1](x))


class Transformer(nn.Module):
    """A transformer: embeddings of 1,000 tokens and 128 positions, blocks, and logits or
    classes."""

    def __init__(self, is_causal: bool, outputs: int, width: int = 256, blocks: int = 4) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(1000, width), nn.Embedding(128, width)
        self.blocks = nn.Sequential(*(Block(width, is_causal) for _ in range(blocks)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)
        self.is_causal = is_causal

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        y = self.norm(self.blocks(x))
        return self.head(y) if self.is_causal else self.head(y[:, 0])


def _tokens() -> Tensor:
    return torch.randint(0, 1000, (4, 128))


# The model, its argument, and the shape and the number of its labels.
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor], tuple[int, ...], int]] = {
    "cnn": (cnn, lambda: torch.randn(8, 3, 32, 32), (8,), 10),
    "gpt": (lambda: Transformer(True, 1000), _tokens, (4, 128), 1000),
    "bert": (lambda: Transformer(False, 2), _tokens, (4,), 2),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A model under a compiler: milliseconds of a call, seconds of the first call, and the numbers
    of elements outside and undetermined, of ``elements`` (0 if not judged)."""

    model: str
    compiler: str
    milliseconds: float
    compile_seconds: float
    outside: int = 0
    undetermined: int = 0
    elements: int = 0


def measured(name: str, is_training: bool, rounds: int) -> list[Row]:
    """Measure a model under every compiler."""
    make, draw, shape, classes = MODELS[name]
    torch.manual_seed(0)
    model, x = make().train(is_training), draw()
    labels = torch.randint(0, classes, shape)
    calls, first = {}, {}
    for compiler in COMPILERS:
        torch.compiler.reset()
        compiled = _compiled(model, compiler)
        calls[compiler] = _step(compiled, x, labels) if is_training else _forward(compiled, x)
        begin = time.perf_counter()
        calls[compiler]()
        first[compiler] = time.perf_counter() - begin
    best = dict.fromkeys(COMPILERS, float("inf"))
    for _ in range(rounds):
        for compiler, call in calls.items():
            best[compiler] = min(best[compiler], _seconds(call))
    title = f"{name}, {'training step' if is_training else 'evaluation'}"
    rows = []
    for compiler in COMPILERS:
        counts = (0, 0, 0) if is_training else _judged(model, compiler, x)
        rows.append(Row(title, compiler, best[compiler] * 1e3, first[compiler], *counts))
    return rows


def _compiled(model: nn.Module, compiler: str) -> Any:
    if compiler == "eager":
        return model
    if compiler == "inductor":
        return torch.compile(model, backend="inductor")
    return torch.compile(model, backend=ho.torch.backend, options={"threads": 1})


def _forward(model: Any, x: Tensor) -> Callable[[], object]:
    def call() -> object:
        with torch.no_grad():
            return model(x)

    return call


def _step(model: Any, x: Tensor, labels: Tensor) -> Callable[[], object]:
    def call() -> object:
        logits = model(x)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        loss.backward()
        return loss

    return call


def _seconds(call: Callable[[], object]) -> float:
    """Measure the mean processor time of a call, over a sample of calls."""
    count, begin, wall = 0, time.process_time(), time.perf_counter()
    while time.perf_counter() - wall < _MINIMUM:
        call()
        count += 1
    return (time.process_time() - begin) / count


def _judged(model: nn.Module, compiler: str, x: Tensor) -> tuple[int, int, int]:
    torch.compiler.reset()
    with torch.no_grad():
        verdict = ho.check(_compiled(model, compiler), x)
    elements = verdict.equal + verdict.within + verdict.outside + verdict.undetermined
    return verdict.outside, verdict.undetermined, elements


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a Markdown table: one per model, a column for each compiler."""
    times = (f"{compiler}, ms" for compiler in COMPILERS)
    columns = ("model", *times, "ours / best", "first call, s", "outside", "undetermined")
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    by_model: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_model.setdefault(row.model, {})[row.compiler] = row
    for name, found in by_model.items():
        each = [found[compiler] for compiler in COMPILERS]
        ours = found["hlo_oracle"].milliseconds
        ratio = ours / min(row.milliseconds for row in each if row.compiler != "hlo_oracle")
        cells = (
            name,
            *(f"{row.milliseconds:.2f}" for row in each),
            f"{ratio:.2f}",
            " / ".join(f"{row.compile_seconds:.1f}" for row in each[1:]),
            _counts(each, "outside"),
            _counts(each, "undetermined"),
        )
        yield f"| {' | '.join(cells)} |"


def _counts(rows: Sequence[Row], field: str) -> str:
    """Format a number of elements for each compiler; a training step is not judged."""
    if not rows[0].elements:
        return ""
    return " / ".join(f"{getattr(row, field)}" for row in rows) + f" of {rows[0].elements}"


def main() -> int:
    given = argparse.ArgumentParser(prog="python -m bench.torch_models", description=__doc__)
    given.add_argument("models", nargs="*", metavar="MODEL", help="cnn, gpt, bert (default: all)")
    given.add_argument("--rounds", type=int, default=8, help="of the three in turn (default: 8)")
    given.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = given.parse_args()
    unknown = [name for name in options.models if name not in MODELS]
    if unknown:
        print(f"error: no model {unknown[0]!r}: {', '.join(MODELS)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as caches:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{caches}/inductor"
        os.environ["XDG_CACHE_HOME"] = caches
        rows = [
            row
            for name in options.models or MODELS
            for is_training in (False, True)
            for row in measured(name, is_training, options.rounds)
        ]
    print(json.dumps([asdict(row) for row in rows]) if options.json else "\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Ways from PyTorch into this project, by the version of PyTorch that is installed.

``python -m selftest.versions.torch_doors [NAME ...]`` tries them
(:mod:`selftest.versions.doors`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import hlo_oracle as ho
from hlo.errors import Error
from selftest.versions.doors import Door, checked, told


def _f(x: Any) -> Any:
    """Compute attention's scores, and sums."""
    return torch.softmax(torch.tanh(x) @ x.T, -1), x.sum(0)


def _x(*dims: int) -> Any:
    return torch.linspace(-3, 3, torch.Size(dims).numel()).reshape(dims)


def _model() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 4)
    )


def _cnn() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(16, 3),
    )  # fmt: skip


def _compiled(function: Any, **named: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, backend="hlo_oracle", **named)


def _same(function: Callable[..., Any], *arguments: Any, **named: Any) -> Door:
    def door() -> None:
        expected, actual = function(*arguments), _compiled(function, **named)(*arguments)
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
        _all_in_c()

    return door


def _all_in_c() -> None:
    graphs = ho.torch.explain().graphs
    if not graphs or not graphs[-1].compiled or graphs[-1].eager:
        raise AssertionError(str(ho.torch.explain()))


def _forward() -> None:
    model = _model().eval()
    _same(model, _x(5, 12))()


def _stepped(make: Callable[[], Any], x: Any) -> Door:
    def door() -> None:
        one, other = make(), make()
        target = torch.arange(x.shape[0]) % 3
        for model, called in ((one, one), (other, _compiled(other))):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            for _ in range(2):
                torch.manual_seed(5)
                optimizer.zero_grad()
                F.cross_entropy(called(x), target).backward()
                optimizer.step()
        for p, q in zip(one.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(q, p, rtol=1e-3, atol=1e-4)
        kinds = [graph.kind for graph in ho.torch.explain().graphs[-2:]]
        if kinds != ["forward", "backward"]:
            raise AssertionError(str(ho.torch.explain()))

    return door


def _dynamic(**named: Any) -> Door:
    def door() -> None:
        model = _model().eval()
        compiled = _compiled(model, **named)
        for rows in (5, 7, 3, 7):
            torch.testing.assert_close(compiled(_x(rows, 12)), model(_x(rows, 12)))
        _all_in_c()

    return door


def _step_in_graph() -> None:
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.stack([p.sum() for p in model.parameters()]).sum().backward()
    before = [p.detach().clone() for p in model.parameters()]
    _compiled(optimizer.step)()
    for p, old in zip(model.parameters(), before, strict=True):
        torch.testing.assert_close(p.detach(), old - 0.1)


def _checked_module() -> None:
    checked(_model().eval(), _x(5, 12))()


def _checked_step() -> None:
    model = nn.Linear(12, 4)

    def step(x: Any) -> Any:
        loss = (model(x) ** 2).mean()
        return loss, torch.autograd.grad(loss, list(model.parameters()))

    checked(step, _x(5, 12))()


def _checked_export() -> None:
    checked(torch.export.export(_model().eval(), (_x(5, 12),)), _x(5, 12))()


def _checked_reads() -> None:
    checked(lambda x: x * 2 if x.sum() > 0 else x[x > 0] - 1, _x(5, 12))()


def _checked_compiled(backend: str) -> Door:
    def door() -> None:
        torch._dynamo.reset()
        checked(torch.compile(_model().eval(), backend=backend), _x(5, 12))()

    return door


def _explained() -> None:
    told = ho.torch.explain(_model(), _x(5, 12))
    text = str(told)
    if "1 operation by PyTorch" not in text or "aten.bernoulli.p" not in text:
        raise AssertionError(text)
    if not told.source or not str(ho.torch.explain()):
        raise AssertionError(text)


def _broken() -> None:
    def broken(x: Any) -> Any:
        y = torch.sin(x) * 2
        print(end="")
        return (torch.cos(y) + 1).sum() if y.sum() > 100 else torch.exp(y) + 1

    told = ho.torch.explain(broken, _x(5, 12))
    if not told.breaks or "doors.py" not in str(told):
        raise AssertionError(str(told))


def _refused(call: Callable[[], object]) -> Door:
    """Make a way that is closed, by an error of this project that names PyTorch."""

    def door() -> None:
        try:
            call()
        except Error as error:
            if "torch" not in str(error).lower():
                raise AssertionError(str(error)) from error
        else:
            raise AssertionError("no error")

    return door


def _cond() -> None:
    def chosen(x: Any) -> Any:
        return torch.cond(
            x.sum() > -9, lambda x: torch.sin(x) + 1, lambda x: torch.cos(x) * 2, (x,)
        )

    _same(chosen, _x(5, 12))()


def _many() -> None:
    def many(x: Any) -> Any:
        a = torch.linalg.solve(x[:, :5] + 5 * torch.eye(5), x)
        b, _ = torch.topk(x, 3)
        c = F.interpolate(x[None, None], scale_factor=2, mode="bilinear")
        d = F.scaled_dot_product_attention(x[None], x[None], x[None])
        return a, b, c, d, torch.cumsum(x, 1), F.embedding(torch.tensor([1, 2]), x)

    expected, actual = many(_x(5, 12)), _compiled(many)(_x(5, 12))
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


DOORS: dict[str, Door] = {
    "torch.compile of a function": _same(_f, _x(5, 12)),
    "torch.compile of a module": _forward,
    "torch.compile, exact": _same(_f, _x(5, 12), options={"numerics": "exact"}),
    "a training step": _stepped(_model, _x(6, 12)),
    "a training step of a CNN": _stepped(_cnn, _x(3, 2, 4, 4)),
    "an optimizer's step": _step_in_graph,
    "a dynamic batch": _dynamic(dynamic=True),
    "a batch that changes": _dynamic(),
    "torch.cond": _cond,
    "many operations": _many,
    "ho.torch.explain(f, x)": _explained,
    "ho.torch.explain of breaks": _broken,
    "ho.check of a function": checked(_f, _x(5, 12)),
    "ho.check of a module": _checked_module,
    "ho.check of a gradient": _checked_step,
    "ho.check of numbers read": _checked_reads,
    "ho.check of an ExportedProgram": _checked_export,
    "ho.check of torch.compile": _checked_compiled("hlo_oracle"),
    "ho.check of inductor": _checked_compiled("inductor"),
    "ho.load": _refused(lambda: ho.load(_model(), _x(5, 12))),
    "ho.load of a function": _refused(lambda: ho.load(_f, _x(5, 12))),
    "ho.compile": _refused(lambda: ho.compile(_f, _x(5, 12))),
    "ho.compile of an ExportedProgram": _refused(
        lambda: ho.compile(torch.export.export(_model().eval(), (_x(5, 12),)), _x(5, 12))
    ),
}


if __name__ == "__main__":
    told(DOORS)

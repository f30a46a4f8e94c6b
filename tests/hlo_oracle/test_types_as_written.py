"""Programs of PyTorch in f16 or bf16 are judged without the f32 that decompositions put in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hlo
import interp
from hlo_oracle.types_as_written import narrowed

_LOG_OF_SUM = """HloModule m
add {{ a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b) }}
ENTRY e {{ x = {given}[3,8] parameter(0)
  k = f32[3] parameter(1)
  wide = f32[3,8] convert(x)
  zero = f32[] constant(0.1)
  sum = f32[3] reduce(wide, zero), dimensions={{1}}, to_apply=add
  log = f32[3] log(sum)
  scaled = f32[3] multiply(log, k)
  ROOT narrow = {made}[3] convert(scaled) }}
"""


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
def test_f32_inside_is_replaced(narrow: str) -> None:
    module = narrowed(hlo.parse(_LOG_OF_SUM.format(given=narrow, made=narrow)))
    assert module is not None
    given, scale = module.entry.parameters
    others = [one for one in module.entry.instructions if one is not scale]
    assert str(scale.shape.element_type) == "f32"  # type: ignore[union-attr]
    assert "f32" not in str(others)
    x = np.arange(24).reshape(3, 8).astype(given.shape.element_type.numpy)  # type: ignore[union-attr]
    found = interp.evaluate(module, x, np.float32([1, 2, 3]))
    expected = np.log(x.astype(float).sum(1)) * [1, 2, 3]
    assert np.allclose(np.asarray(found, float), expected, rtol=1e-2)


def test_results_of_f32_are_meant() -> None:
    assert narrowed(hlo.parse(_LOG_OF_SUM.format(given="bf16", made="f32"))) is None


def _gradients(x: Any, w: Any, b: Any, g: Any) -> Any:
    import torch

    x, w, b = (one.detach().requires_grad_() for one in (x, w, b))
    made = torch.nn.functional.layer_norm(x, (8,), w, b)
    return torch.autograd.grad(made, (x, w, b), g)


def _folds(x: Any, *others: Any) -> Any:
    return x.logsumexp(0), x.prod(1), x.std(), x.softmax(-1), x.float().sum()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("function", [_gradients, _folds])
@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_narrow_kernels_of_pytorch_are_not_called_wrong(function: Any, name: str) -> None:
    """Eager adds up the gradient of a bias in the type of the tensors, and rounds between the steps
    of logsumexp; decompositions do all that in f32."""
    torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")
    import hlo_oracle as ho
    from hlo_oracle.frontends import torch as torch_functions
    from hlo_oracle.function_check import of_tensors

    generator = torch.Generator().manual_seed(0)
    sizes = (40, 8), (8,), (8,), (40, 8)
    given = [torch.randn(n, generator=generator).to(getattr(torch, name)) for n in sizes]
    found = ho.check(function, *given)
    assert not found.outside, str(found)
    traced = torch_functions.lowered(function, tuple(given), {})
    assert traced is not None
    wrong = replace(traced, call=lambda: tuple(1.5 * one for one in function(*given)))
    assert of_tensors(wrong).outside
